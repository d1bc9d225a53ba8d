// Looking numbers up in a long row of ascending ones, where each is near one that was found before.

#pragma once

#include <algorithm>
#include <cstddef>

namespace ggufbpe {

// The first of `count` ascending places that is not before `place`, by its number; `count` if all are. `near`, at most
// `count`, is where the search begins.
inline size_t first_from(const size_t *places, size_t count, size_t place, size_t near) {
    size_t low = near, high = near;
    for (size_t step = 1; low > 0 && places[low - 1] >= place; step *= 2) {
        high = low - 1;
        low -= std::min(low, step);
    }
    for (size_t step = 1; high < count && places[high] < place; step *= 2) {
        low = high + 1;
        high += std::min(count - high, step);
    }
    // The answer is from `low` to `low + left`. In which half is unpredictable; compilers make a branch of a choice, but not of
    // a mask.
    for (size_t left = high - low; left > 0;) {
        const size_t half = (left + 1) / 2;
        low += half & (0 - size_t(places[low + half - 1] < place));
        left -= half;
    }
    return low;
}

}  // namespace ggufbpe
