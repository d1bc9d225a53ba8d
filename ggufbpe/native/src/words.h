// Words of a text, to be looked up together.

#pragma once

#include <cstddef>

#include "memory.h"

namespace ggufbpe {

struct Words {
    static constexpr size_t GROUP = 256;        // after so many, no more are searched
    static constexpr size_t MOST = GROUP + 64;  // that fit

    const unsigned char *starts[MOST];
    size_t sizes[MOST];
    size_t count = 0;

    void add(const unsigned char *start, size_t size) {
        starts[count] = start;
        sizes[count++] = size;
    }
};

// Where the words of a text begin that have ids, one after the other; a special token counts as one.
struct WordStarts {
    struct Rewritten {
        size_t word, end;
    };

    const unsigned char *text = nullptr;
    LargeVector<size_t> places;
    LargeVector<Rewritten> rewritten;  // those whose tokens may stand for other bytes than theirs, and where they end

    void clear(const unsigned char *of_text) {
        text = of_text;
        places.clear();
        rewritten.clear();
    }
    void add(const unsigned char *start) { places.push_back(static_cast<size_t>(start - text)); }
};

}  // namespace ggufbpe
