// Words of ASCII, 64 places at a time: letters and digits are words, everything else that is shown stands alone.

#pragma once

#include <cstddef>
#include <cstdint>

namespace ggufbpe {

// Words of a text, to be looked up together.
struct Words {
    static constexpr size_t GROUP = 256;        // after so many, no more are looked for
    static constexpr size_t MOST = GROUP + 64;  // that fit

    const unsigned char *starts[MOST];
    size_t sizes[MOST];
    size_t count = 0;

    void add(const unsigned char *start, size_t size) {
        starts[count] = start;
        sizes[count++] = size;
    }
};

// Adds words from `at` on, as long as there is nothing but ASCII, no control characters, no words of more than 64 bytes
// and 64 bytes left; returns where they end, which is not inside of a word.
size_t find_ascii_words(const unsigned char *text, size_t size, size_t at, Words &words);

}  // namespace ggufbpe
