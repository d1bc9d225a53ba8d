// Divides a text into parts of at most so many tokens: ggufbpe/tokenizer/splitting.py, compiled.
//
//     text -> ids, once -> where tokens begin -> how far a part reaches -> the last of the strongest boundaries
//
// A part is counted by itself. Between two places where a text can be split (split_points.h), it has as many tokens as the
// whole text has there; only what is before the first of these places and behind the last one is encoded again.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "encoder.h"
#include "poll.h"
#include "tokenizer/boundaries.h"
#include "tokenizer/piece_counts.h"
#include "tokenizer/split_points.h"
#include "tokenizer/token_starts.h"

namespace ggufbpe {

struct PartOptions {
    size_t size, overlap;  // tokens
    bool strips;           // white space at both ends of a part is left out
    bool parse_special;
    bool has_words_of_patterns;  // a splitter's; then EncodeOptions::continues changes nothing
    bool is_byte_level;          // a byte has at most one token, and so has a space that is put before a text
    std::string_view ignored;    // white space that changes no token where it comes before a text
};

class TextParts {
public:
    using Span = std::pair<size_t, size_t>;

    // All must outlive the object.
    TextParts(const Encoder &encoder, const SplitPoints &places, Boundaries &boundaries, const Text &text,
              LengthArray lengths, const PartOptions &options, const Poll &poll);

    // The parts in order, in bytes.
    std::vector<Span> spans();

private:
    bool has_at_most(size_t size, size_t start, size_t end);
    size_t most_tokens(size_t start, size_t end) const;
    size_t count_alone(size_t start, size_t end, bool continues);
    bool is_place(size_t at);
    size_t place_behind(size_t start, size_t end);
    size_t place_before(size_t end, size_t least);
    bool fits(size_t start, size_t end, size_t size);
    size_t reach(size_t start);
    size_t end_of_part(size_t start, size_t done);
    size_t end_of_tokens(size_t start, size_t done, size_t reach);
    size_t end_of_characters(size_t start, size_t done);
    size_t overlapping(size_t start, size_t end);
    Span stripped(Span span) const;

    const Encoder &encoder_;
    const SplitPoints &places_;
    Boundaries &boundaries_;
    const Text text_;
    const PartOptions options_;
    const Poll &poll_;
    Pace pace_;
    TextModel::Lease scratch_;
    const SplitPoints::SpecialSpans special_;  // tokens in the text
    TokenStarts starts_;
    PieceCounts counts_;
    struct {
        size_t at;
        bool is_place;
    } known_[64]{};  // by the lowest bits of the place; 0 is none
    // The first place behind the start that was asked for last, the tokens in between, and those of the text before it.
    size_t start_ = SIZE_MAX, place_ = 0, count_to_place_ = 0, before_place_ = 0;
};

// Whether no character has bytes on both sides of a place; undecodable bytes stand alone.
bool is_character_start(const unsigned char *text, size_t size, size_t place);

}  // namespace ggufbpe
