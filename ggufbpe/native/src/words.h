// Words of a text, to be looked up together.

#pragma once

#include <cstddef>

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

}  // namespace ggufbpe
