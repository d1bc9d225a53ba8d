// Places where a text can be split without changing an id, whatever the rest of the text is:
// ggufbpe/tokenizer/split_points.py for C++.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "encoder.h"
#include "poll.h"
#include "split/splitter.h"
#include "vocabulary/vocabulary.h"

namespace ggufbpe {

// What a vocabulary says about its places.
struct SplitPointRules {
    bool strips = false;            // a special token strips white space
    bool is_kept_behind = false;    // no place directly behind a special token
    bool is_before_space = false;   // places are only before white space
    bool escapes_spaces = false;    // a space is escaped before text is split, and counts as no white space
    bool has_sequences = false;     // there are no places
    size_t around = 8;              // bytes on either side of a place that decide
};

// All text after a place is to be encoded with EncodeOptions::continues.
class SplitPoints {
public:
    using SpecialSpans = std::vector<std::pair<size_t, size_t>>;

    // `splitter` is null in models without pre-tokenizers. All must outlive it.
    SplitPoints(const Vocabulary &vocabulary, const Encoder &encoder, const Splitter *splitter, bool parse_special);

    // The first place at or after `start`, above 0, if the text has no special tokens; the size of the text if there is none.
    size_t in_words(const unsigned char *text, size_t size, size_t start, const Poll &poll) const;
    // The same in any text.
    size_t next(const unsigned char *text, size_t size, size_t start, const Poll &poll) const;

    // The same where Encoder::special_token_spans of the text are known; and whether there is a place at `at`, above 0.
    size_t next(const unsigned char *text, size_t size, size_t start, const SpecialSpans &special, const Poll &poll) const;
    bool is_place(const unsigned char *text, size_t size, size_t at, const SpecialSpans &special, const Poll &poll) const;

    // A place up to `end`, near it; 0 if there is none. The text begins at a place or the beginning, and has reach() bytes
    // after `end`.
    size_t last(const unsigned char *text, size_t size, size_t end, const Poll &poll) const;
    size_t reach() const { return 2 * rules_.around; }
    const SplitPointRules &rules() const { return rules_; }

    // Whether one of the special tokens in a text begins between two places.
    static bool begins_between(const SpecialSpans &special, size_t start, size_t end);
    // The first of the special tokens that begins at a place or behind it; the end of them all if there is none.
    static SpecialSpans::const_iterator first_special(const SpecialSpans &special, size_t place);

private:
    bool is_free(const unsigned char *text, size_t size, size_t at) const;
    bool is_crossed(const SpecialSpans &special, size_t at) const;
    template <typename IsPlace>
    size_t first(const unsigned char *text, size_t size, size_t start, const Poll &poll, IsPlace is_place) const;

    SplitPointRules rules_;
    const Encoder &encoder_;
    const Splitter *splitter_;
    const bool parse_special_;
};

}  // namespace ggufbpe
