// WordPiece, as of BERT: words from a cache; new ones are normalized and cut into the longest tokens.
// ggufbpe/models/wpm.py, compiled.
//
//     text -> normalizer.h (where words end) -> unchanged words -> cache.h -> ids
//                                                   ^ new words: normalizer.h, longest_match.h

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "caching_model.h"
#include "longest_match.h"
#include "string_array.h"
#include "wpm/ascii_words.h"
#include "wpm/normalizer.h"

namespace ggufbpe {

class WPMModel final : public CachingModel {
public:
    // `unknown` stands for a word that cannot be made of tokens.
    WPMModel(const Strings &tokens, int32_t unknown, bool lowercase, bool strip_accents, size_t cache_bytes);
    ~WPMModel() override;

    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const override;

protected:
    std::unique_ptr<TextModel::Scratch> new_scratch() const override;

private:
    struct Scratch;

    size_t find_words(const unsigned char *text, size_t size, size_t at, Words &words, Pace &pace) const;
    void append_spans(const unsigned char *word, size_t size, const int32_t *ids, size_t count, Spans &spans, Pace &pace) const;
    void match_longest(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;

    Normalizer normalizer_;
    LongestMatch tokens_;
    LongestMatch::Place beginning_;  // of words
    std::vector<uint32_t> lengths_;  // of tokens, in bytes
    int32_t unknown_;
};

}  // namespace ggufbpe
