// Unigram models (llama.cpp's UGM) on plain text: ggufbpe/models/unigram_text.py, compiled.
//
//     text -> words -> cache.h -> ids
//                         ^ new words: normalized, then the best path through their lattice (Viterbi)
//
// Every sum of scores begins with the first token of a text, so its rounding may decide between two paths. Scores are
// multiples of some power of two. While sums are so small that doubles hold them exactly, the best path of a word does not
// depend on the text before it, and words come from the cache; beyond that, each word is given the sum that it begins with.
// How large sums get is known when a text is encoded, so threads take parts of it as if sums were exact, and see whether they were.
//
// Source: src/llama-vocab.cpp, llm_tokenizer_ugm and llm_tokenizer_ugm_session.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caching_model.h"
#include "lazy_build_budget.h"
#include "lazy.h"
#include "ugm/charsmap.h"
#include "token_trie.h"

namespace ggufbpe {

struct UGMOptions {
    bool add_space_prefix, remove_extra_whitespaces;
    int32_t unknown;  // the id of the unknown token
    bool composes = false;     // text is composed (composition.h) before anything else
    bool strict_utf8 = true;   // unless so, overlong forms and code points above U+10FFFF are characters
};

// How many bytes the character has that begins with a byte (src/unicode.cpp: unicode_len_utf8).
inline size_t code_units(unsigned char lead) {
    constexpr uint8_t CODE_UNITS[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};  // by the upper half
    return CODE_UNITS[lead >> 4];
}

class UGMModel final : public CachingModel {
public:
    // `matched_by` are the attributes of tokens before special ones were found, `attributes` those after; `scores` may be
    // empty. std::invalid_argument if lengths do not fit.
    UGMModel(std::shared_ptr<const Strings> tokens, const std::vector<uint16_t> &matched_by, const std::vector<uint16_t> &attributes,
             std::vector<float> scores, const std::string &charsmap, const UGMOptions &options, size_t cache_bytes,
             const Poll &poll = NO_POLL);

    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void prepare_for(size_t bytes, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    bool reads_bytes() const override { return true; }
    int32_t continued(int32_t token) const override;
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;

protected:
    std::unique_ptr<TextModel::Scratch> new_scratch() const override;

private:
    struct Scratch;
    struct Word {
        const unsigned char *data;
        size_t size;
    };

    void set_scores(const Strings &tokens, const std::vector<uint16_t> &matched_by, const std::vector<uint16_t> &attributes,
                    std::vector<float> scores, Pace &pace);
    void find_separators(const Strings &tokens, const std::vector<uint16_t> &matched_by, Pace &pace);
    double max_abs_sum(double sum, size_t bytes) const { return std::fabs(sum) + (growth_ * double(bytes) + 8) * largest_; }
    bool may_be_cached(double sum, size_t bytes) const { return has_words_ && max_abs_sum(sum, bytes) < most_; }
    bool are_words_independent(const Part &part, Pace &pace) const;
    size_t first_cut(const Part &part, Pace &pace) const;
    Word next_word(const unsigned char *&p, const unsigned char *end, Pace &pace) const;
    void encode_composed(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const;
    void encode_words(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const;
    void encode_group(const Words &words, const unsigned char *end, bool tracks, Scratch &scratch, Sink &ids, Pace &pace) const;
    void encode_word(const Word &word, double sum, Scratch &scratch, Sink &ids, Pace &pace) const;
    static size_t take_unknown(const int32_t *kept, size_t &count);
    double sum_of(const int32_t *found, size_t count, size_t unknown) const;
    void emit(const int32_t *found, size_t count, Sink &ids) const;

    void begin_word(const Word &word, Scratch &scratch) const;
    const unsigned char *normalize(const unsigned char *p, const unsigned char *end, size_t stop, Scratch &scratch,
                                   Pace &pace) const;
    template <bool KEEPS_SOURCES>
    const unsigned char *normalize(const unsigned char *p, const unsigned char *end, size_t stop, Scratch &scratch,
                                   Pace &pace) const;
    void append_spans(const Word &word, const int32_t *found, size_t count, Scratch &scratch, Spans &spans, Pace &pace) const;
    bool append_by_lengths(const Word &word, const int32_t *found, size_t count, Scratch &scratch, Spans &spans) const;

    // best_path.cpp
    void encode_in_windows(const Word &word, double sum, Scratch &scratch, Sink &ids, Pace &pace) const;
    void begin_path(double sum, size_t size, Scratch &scratch) const;
    size_t extend_path(size_t from, size_t stop, size_t base, const TokenTrie *trie, Scratch &scratch, Pace &pace) const;
    const TokenTrie &trie(const Poll &poll) const;
    const TokenTrie *trie_for(size_t bytes, const Poll &poll) const;
    size_t meeting_place(size_t from, Scratch &scratch, Pace &pace) const;
    size_t former_place(int32_t step, size_t end) const;
    void find_path(double sum, Scratch &scratch, Pace &pace) const;
    void follow_path(size_t end, Scratch &scratch, Pace &pace) const;
    void append_path(size_t end, bool continues, Scratch &scratch, Spans &spans, Pace &pace) const;

    UGMOptions options_;
    Charsmap charsmap_;
    std::shared_ptr<const Strings> tokens_;
    Lazy<TokenTrie> trie_;            // of the tokens that text may become
    LazyBuildBudget build_budget_;          // encoded without it
    TokenTrie user_defined_;
    bool has_user_defined_ = false;
    std::vector<float> scores_;       // of tokens, as they are added
    std::vector<uint32_t> lengths_;   // of tokens, in bytes; 0: text never becomes it
    size_t longest_ = 4;              // of these, and of characters
    float unknown_score_ = 0;
    size_t ring_ = 8;                 // a power of two above the longest token
    double most_ = 0, largest_ = 0;   // sums up to `most_` are exact; no score is larger than `largest_`; 0: none is
    double growth_ = 3;               // tokens that one byte becomes at most
    double mean_ = 0;                 // of the absolute scores, for each byte of a token
    bool is_separator_[256] = {};     // bytes that are only ever spaces, around which words are independent
    bool has_words_ = false;
    bool joins_spaces_ = false;       // a token has a U+2581 after another: words are independent in texts without one
    bool is_joined_[256] = {};        // bytes that a token has before a U+2581 that does not begin it
    bool is_copied_[256] = {};        // ASCII that stays unchanged before other ASCII
};

}  // namespace ggufbpe
