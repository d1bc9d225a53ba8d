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
    while (low < high) {  // without branches that nothing predicts
        const size_t half = (high - low) / 2;
        const bool is_before = places[low + half] < place;
        low = is_before ? low + half + 1 : low;
        high = is_before ? high : low + half;
    }
    return low;
}

}  // namespace ggufbpe
