// WordPiece, as of BERT: words from a cache; new ones are normalized and cut into the longest tokens.
// ggufbpe/models/wordpiece.py, compiled.
//
//     text -> normalizer.h (where words end) -> unchanged words -> cache.h -> ids
//                                                   ^ new words: normalizer.h, token_trie.h

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "caching_model.h"
#include "lazy_build_budget.h"
#include "lazy.h"
#include "token_trie.h"
#include "string_array.h"
#include "wpm/ascii_words.h"
#include "wpm/normalizer.h"

namespace ggufbpe {

class WPMModel final : public CachingModel {
public:
    // std::invalid_argument unless `tokens` are indexed. `unknown` stands for a word that cannot be made of tokens.
    WPMModel(std::shared_ptr<const Strings> tokens, int32_t unknown, bool lowercase, bool strip_accents, size_t cache_bytes);
    ~WPMModel() override;

    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const override;
    void prepare_for(size_t bytes, const Poll &poll) const override;
    void append_word_spans(const unsigned char *word, size_t size, const int32_t *ids, size_t count, Spans &spans,
                           Pace &pace) const override;

protected:
    std::unique_ptr<TextModel::Scratch> new_scratch() const override;

private:
    struct Scratch;
    struct Matcher;

    size_t find_words(const unsigned char *text, size_t size, size_t at, Scratch &scratch, Pace &pace) const;
    void add_starts(const Scratch &scratch, WordStarts &starts, Pace &pace) const;
    void match_longest(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;

    const Matcher &matcher(const Poll &poll) const;
    bool match_first(Scratch &scratch) const;

    Normalizer normalizer_;
    const std::shared_ptr<const Strings> tokens_;
    Lazy<Matcher> matcher_;  // for more than the first words
    const LazyBuildBudget build_budget_;
    int32_t unknown_;
};

}  // namespace ggufbpe
