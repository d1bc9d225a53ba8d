// Where a text is best divided: the levels of ggufbpe/tokenizer/boundaries.py, compiled.
//
// Most levels are at line breaks, which one pass finds, and sentences at a few bytes. Words are so frequent that they are
// looked for near a place.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "poll.h"

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
    std::vector<size_t> places;  // all boundaries in order, unless they are words
    size_t near = 0;             // the number of the place that was found last

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
    struct Run;

    void find_runs(Pace &pace);
    void drop_places_in_fences();
    size_t end_of_white_space(size_t at, Pace &pace) const;
    Run run_around(size_t base, size_t bit, uint64_t breaks, uint64_t spaces, size_t done, Pace &pace) const;
    void take_run(const Run &run);
    bool is_at(const BoundaryLevel &level, const Run &run) const;
    size_t start_of_separator(BoundaryLevel::Kind kind, const Run &run) const;
    void take_fence(size_t mark, Pace &pace);
    size_t fence_mark(size_t line) const;
    bool is_in_fence(size_t place) const;
    void find_sentences(std::vector<size_t> &places, Pace &pace) const;
    bool is_between_words(size_t place) const;
    bool is_rule(size_t at) const;
    bool is_definition(size_t at) const;
    bool has(size_t at, const char *word) const;

    const unsigned char *const text_;
    const size_t size_;
    std::vector<BoundaryLevel> levels_;
    // Those that may have boundaries at every run of white space with a line break, and those that need a blank line.
    std::vector<BoundaryLevel *> at_breaks_, at_blank_lines_;
    const bool at_start_;
    std::vector<size_t> fences_;  // where fenced blocks begin and end in turn
    unsigned char open_mark_ = 0;  // of the block that is not yet closed
    bool has_fences_ = false;
};

}  // namespace ggufbpe
