// Plain text to the segments that PLaMo-3 encodes separately: PlamoText.segments of ggufbpe/models/plamo.py, compiled.

#pragma once

#include <cstddef>
#include <cstdint>

#include "poll.h"

namespace ggufbpe {

class Segments {
public:
    // The text is UTF-8, with surrogates and characters beyond Unicode.
    Segments(const unsigned char *text, const unsigned char *end) : at_(text), end_(end) {}

    struct Segment {
        const unsigned char *start, *end;
    };

    // The next one; empty when there are no more.
    Segment next(Pace &pace);

private:
    const unsigned char *run_end(Pace &pace) const;

    const unsigned char *at_, *end_;
    const unsigned char *marker_end_ = nullptr;  // of the last text that looked like a special token
};

// Whether a text may be cut before `c`, after the byte `before`, without changing segments: no run crosses the cut, nor a text
// that looks like a special token, which has no white space.
inline bool may_part_segments(unsigned char before, uint32_t c) {
    const auto is_space = [](uint32_t one) { return one == ' ' || (one >= '\t' && one <= '\r'); };
    return before != c && (is_space(before) || is_space(c));
}

}  // namespace ggufbpe
