// Where a text is best divided: the levels of ggufbpe/tokenizer/boundaries.py, compiled.
//
// Most boundaries are looked for near a place, from bytes that may make one: a line break, or the mark that ends a sentence.
// What follows is read only at these. Lines of Markdown and definitions are few and found in one pass, with fenced blocks,
// which count from the beginning of the text.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "poll.h"
#include "tokenizer/byte_set.h"

namespace ggufbpe {

// The white space that boundaries are made of: a space, a tab, or a line break.
inline bool is_blank_or_break(unsigned char byte) {
    return byte <= ' ' && (uint64_t(1) << byte & (uint64_t(1) << ' ' | 1 << '\t' | 1 << '\r' | 1 << '\n'));
}

struct BoundaryLevel {
    enum Kind { GIVEN, WORD, LINE, SENTENCE, PARAGRAPH, HEADING, FENCED_BLOCK, RULE, DEFINITION, INNER_DEFINITION };

    Kind kind = GIVEN;
    size_t depth = 0;            // of a heading
    bool in_fences = false;      // counts within fenced blocks, too
    std::vector<size_t> places;  // all boundaries in order, if they are given, lines of Markdown, or definitions
    size_t near = 0;             // the number of the place that was found last

    // What the last searches near a place found: no boundary is behind `from` and up to `to`; there is one at `from`, or
    // nothing before it is known.
    size_t from = 0, to = 0;
    bool is_place = false;

    // The level of a name in boundaries.py; false if there is none.
    static bool of_name(const std::string &name, BoundaryLevel &level);
};

class Boundaries {
public:
    // A boundary is where its separator ends, or begins if `at_start`. `text` must outlive the object.
    Boundaries(const unsigned char *text, size_t size, std::vector<BoundaryLevel> levels, bool at_start, const Poll &poll);

    size_t level_count() const { return levels_.size(); }

    // The last boundary after `start` and up to `end`; `start` if there is none.
    size_t last(size_t level, size_t start, size_t end, Pace &pace);
    // The first boundary from `start` on and before `end`; `end` if there is none.
    size_t first(size_t level, size_t start, size_t end, Pace &pace);

private:
    static constexpr size_t NONE = SIZE_MAX;

    size_t search_back(BoundaryLevel &level, size_t start, size_t end, Pace &pace);
    size_t last_near(const BoundaryLevel &level, size_t start, size_t end, Pace &pace);
    size_t last_of_all(const BoundaryLevel &level, size_t start, size_t end, Pace &pace);
    size_t first_near(const BoundaryLevel &level, size_t start, size_t end, Pace &pace);
    size_t first_of_all(const BoundaryLevel &level, size_t start, size_t end, Pace &pace);
    uint64_t bytes_of(const BoundaryLevel &level, size_t start, size_t size);
    size_t least_byte(const BoundaryLevel &level, size_t place, Pace &pace);
    size_t place_at(const BoundaryLevel &level, size_t at, Pace &pace);
    size_t line_at(size_t at, bool is_paragraph, Pace &pace) const;
    size_t sentence_at(size_t at, Pace &pace) const;
    void find_lines_of_markdown(Pace &pace);
    void take_line_of_markdown(size_t start, Pace &pace);
    void take_fence(size_t mark, Pace &pace);
    void find_definitions(Pace &pace);
    void take_definition(size_t at, Pace &pace);
    void drop_places_in_fences();
    bool is_in_fence(size_t place) const;
    bool is_between_words(size_t place) const;
    bool is_rule(size_t at) const;
    bool is_definition(size_t at) const;
    bool has(size_t at, const char *word) const;
    template <typename IsIt>
    size_t first_behind(size_t at, Pace &pace, IsIt is_it) const;
    template <typename IsIt>
    size_t end_before(size_t at, Pace &pace, IsIt is_it) const;

    const unsigned char *const text_;
    const size_t size_;
    std::vector<BoundaryLevel> levels_;
    const bool at_start_;
    std::vector<size_t> fences_;  // where fenced blocks begin and end in turn
    unsigned char open_mark_ = 0;  // of the block that is not yet closed
    bool has_fences_ = false;
    // The closing marks and white space that were last gone through, the bytes that were looked for, and the last byte that was
    // looked at, with its place.
    size_t tail_start_ = 0, tail_end_ = 0;
    struct {
        const ByteSet *set;
        size_t start;
        uint64_t bytes;
    } found_{nullptr, 0, 0};
    struct {
        BoundaryLevel::Kind kind;
        size_t at, place;
    } last_{BoundaryLevel::GIVEN, 0, 0};
};

// The first byte from a place on that is_it() holds for; the size of the text if there is none.
template <typename IsIt>
size_t Boundaries::first_behind(size_t at, Pace &pace, IsIt is_it) const {
    return find_first(at, size_, pace, [&](size_t place) { return is_it(text_[place]); });
}

}  // namespace ggufbpe
