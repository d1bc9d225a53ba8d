// Divides a text into parts of at most so many tokens: ggufbpe/tokenizer/splitting.py, compiled.
//
//     text -> ids, once -> where tokens begin -> how far a part reaches -> the last of the strongest boundaries
//
// A part is counted by itself. Between two places where a text can be split (split_points.h), it has as many tokens as the
// whole text has there; only what is before the first of these places and behind the last one is encoded again.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "encoder.h"
#include "poll.h"
#include "tokenizer/boundaries.h"
#include "tokenizer/split_points.h"

namespace ggufbpe {

// The bytes of text that each token stands for, by id; below 0 if that is not known. None, if tokens may stand for other text.
struct LengthArray {
    const int32_t *data = nullptr;
    size_t size = 0;
};

struct PartOptions {
    size_t size, overlap;  // tokens
    bool strips;           // white space at both ends of a part is left out
    bool parse_special;
    bool ignores_what_precedes;  // EncodeOptions::continues changes nothing
    bool is_byte_level;          // a byte has at most one token
};

class TextParts {
public:
    using Span = std::pair<size_t, size_t>;

    // The memory of `lengths` is read here only.
    TextParts(const Encoder &encoder, const SplitPoints &places, const Boundaries &boundaries, const Text &text,
              LengthArray lengths, const PartOptions &options, const Poll &poll);

    // The parts in order, in bytes.
    std::vector<Span> spans();

private:
    void find_token_starts(LengthArray lengths);
    bool stands_for_itself() const;
    bool add_starts_by_length(const Ids &ids, LengthArray lengths, size_t from, size_t end);
    size_t tokens_before(size_t place);
    bool has_at_most(size_t size, size_t start, size_t end);
    size_t count_alone(size_t start, size_t end, bool continues);
    size_t place_behind(size_t start, size_t end) const;
    size_t place_before(size_t end, size_t least) const;
    bool fits(size_t start, size_t end, size_t size);
    size_t reach(size_t start);
    size_t end_of_part(size_t start, size_t done);
    size_t end_of_tokens(size_t start, size_t done, size_t reach);
    size_t end_of_characters(size_t start, size_t done);
    size_t overlapping(size_t start, size_t end);
    Span stripped(Span span) const;

    const Encoder &encoder_;
    const SplitPoints &places_;
    const Boundaries &boundaries_;
    const Text text_;
    const PartOptions options_;
    const Poll &poll_;
    Pace pace_;
    TextModel::Lease scratch_;
    std::vector<std::pair<size_t, size_t>> special_;  // tokens in the text
    std::vector<size_t> starts_;                      // of tokens
    size_t found_ = 0;                                // what tokens_before() returned last
    // The first place behind the start that was asked for last, and the tokens in between.
    size_t start_ = SIZE_MAX, place_ = 0, count_to_place_ = 0;
};

// Whether no character has bytes on both sides of a place; undecodable bytes stand alone.
bool is_character_start(const unsigned char *text, size_t size, size_t place);

}  // namespace ggufbpe
