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

// Where the words of a text begin.
struct WordStarts {
    const unsigned char *text = nullptr;
    LargeVector<size_t> places;
    size_t bytes = 0;  // of all words

    void clear(const unsigned char *of_text) {
        text = of_text;
        places.clear();
        bytes = 0;
    }
    void add(const Words &words) {
        const size_t known = places.size();
        places.resize(known + words.count);
        for (size_t i = 0; i < words.count; ++i) {
            places[known + i] = static_cast<size_t>(words.starts[i] - text);
            bytes += words.sizes[i];
        }
    }
};

}  // namespace ggufbpe
