// Where the tokens of a text begin: of the whole text, and known only where it is asked for.
//
//     text -> blocks, in order -> ids -> lengths of tokens -> where they begin
//                                    \-> spans, if the lengths do not add up
//
// A block is encoded when somebody asks for a place in it, and what lies before forget_before() is forgotten, so that the
// numbers stay in the processor's cache.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "encoder.h"
#include "memory.h"
#include "poll.h"
#include "tokenizer/split_points.h"

namespace ggufbpe {

// The bytes of text that each token stands for, by id; below 0 if that is not known. None, if tokens may stand for other text.
struct LengthArray {
    const int32_t *data = nullptr;
    size_t size = 0;
    // The model drops white space between words; BEGINS_WORD is set for tokens that begin one, and for unknown and special
    // ones. Lengths are those in text that is not changed otherwise.
    bool are_of_words = false;

    static constexpr uint32_t BEGINS_WORD = 1u << 30;

    // Of a token that is not known, UINT32_MAX, which adds up to no text's size. NO_TOKEN is beyond all.
    uint32_t of(int32_t id) const {
        return static_cast<uint32_t>(static_cast<uint32_t>(id) < size ? data[static_cast<uint32_t>(id)] : -1);
    }
};

class TokenStarts {
public:
    using SpecialSpans = SplitPoints::SpecialSpans;

    // All must outlive the object.
    TokenStarts(const Encoder &encoder, const SplitPoints &places, const Text &text, const SpecialSpans &special,
                LengthArray lengths, bool parse_special, const Poll &poll);

    // How many tokens begin before a place, which must not lie before what was forgotten.
    size_t before(size_t place);
    // Where a token begins, by its number; the size of the text if there are fewer, and 0 if that was forgotten.
    size_t operator[](size_t number);

    void forget_before(size_t place) { needed_from_ = place; }

private:
    bool encode_next();
    size_t end_of_block(size_t from, size_t size);
    size_t next_place(size_t from);
    bool ends_before_changes(size_t from, size_t &end);
    bool add_by_length(const Ids &ids, size_t from, size_t end);
    bool add_by_word(const Ids &ids, size_t from);
    void correct_rewritten_words(const Ids &ids, size_t from, size_t *to);
    void add_by_span(const Text &block, const EncodeOptions &options);

    const Encoder &encoder_;
    const SplitPoints &places_;
    const Text text_;
    const SpecialSpans &special_;
    const LengthArray lengths_;
    const bool parse_special_;
    const Poll &poll_;
    Pace pace_;
    Ids ids_;  // of one block
    Spans spans_;
    WordStarts words_;  // of one block
    LargeVector<uint32_t> first_tokens_;  // of the words of one block
    bool is_utf8_;
    size_t encoded_ = 0;            // bytes
    size_t searched_ = 0, found_ = 0;    // there is no place from searched_ on and before found_
    LargeVector<size_t> starts_;    // of the tokens from number forgotten_ on
    size_t forgotten_ = 0;
    size_t needed_from_ = 0;  // of the text
    size_t near_[2] = {0, 0};       // numbers that were found lately
    struct {
        size_t place, number;
    } known_[16]{};                 // what before() found, by the lowest bits of the place
};

}  // namespace ggufbpe
