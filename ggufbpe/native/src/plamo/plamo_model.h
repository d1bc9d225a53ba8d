// PLaMo-2 and PLaMo-3 on plain text: ggufbpe/models/plamo.py, compiled.
//
//     text -> segments (PLaMo-3) -> words -> cache.h -> ids
//                                     ^ new words: the best path (Viterbi), from its end
//
// Scores are whole numbers, so the best path of a text is that of its parts wherever no token crosses: these are words.
//
// Source: src/llama-vocab.cpp, llm_tokenizer_plamo2.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "caching_model.h"
#include "plamo/segments.h"
#include "plamo/suffixes.h"

namespace ggufbpe {

class PlamoModel final : public CachingModel {
public:
    // `scores` are in ten-thousandths (suffixes.h), `byte_tokens` the 256 of single bytes; std::invalid_argument if there are
    // fewer or more. Unless `strict_utf8`, texts are read as by llama.cpp before b11739: overlong forms, and up to 0x1FFFFF.
    PlamoModel(const Strings &tokens, const std::vector<int32_t> &scores, std::vector<int32_t> byte_tokens, bool cuts_segments,
               size_t cache_bytes, const Poll &poll = NO_POLL, bool strict_utf8 = true);

    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    bool reads_bytes() const override { return true; }
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;
    bool words_are_bytes() const override { return false; }
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const override;

protected:
    std::unique_ptr<TextModel::Scratch> new_scratch() const override;

private:
    struct Scratch;
    struct Length {
        uint32_t bytes, characters;
    };

    void find_joined(const Strings &tokens, const std::vector<int32_t> &scores, const Poll &poll);
    bool is_joined(unsigned char before, unsigned char here) const { return joined_[before][here >> 6] >> (here & 63) & 1; }
    void join(unsigned char before, unsigned char here) { joined_[before][here >> 6] |= uint64_t(1) << (here & 63); }
    bool may_cut(const unsigned char *p, const unsigned char *end) const;
    template <typename Take>
    void each_segment(const unsigned char *p, const unsigned char *end, Pace &pace, Take take) const;
    void encode_segment(Segments::Segment segment, const unsigned char *end, Scratch &scratch, Sink &ids, Pace &pace) const;
    void look_up(const unsigned char *end, Scratch &scratch, Sink &ids, Pace &pace) const;
    void find_path(const unsigned char *word, size_t size, Scratch &scratch, Pace &pace) const;
    void follow_path(const unsigned char *word, size_t size, size_t enough, Scratch &scratch, Pace &pace) const;
    void encode_long(const unsigned char *word, size_t size, Scratch &scratch, Sink &ids, Pace &pace) const;
    void append_spans(const unsigned char *word, const int32_t *found, size_t count, Spans &spans, Pace &pace) const;

    Suffixes suffixes_;
    std::vector<int32_t> byte_tokens_;
    bool cuts_segments_, strict_utf8_;
    size_t ring_ = 8;  // a power of two above the longest token
    std::vector<Length> lengths_;  // of tokens
    std::array<std::array<uint64_t, 4>, 256> joined_{};  // pairs of bytes between which no word ends
};

}  // namespace ggufbpe
