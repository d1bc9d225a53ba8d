// Sorting by whole numbers, digit by digit: while a model is opened, comparing tens of thousands of items would take longer than
// most other steps, since the branches are unpredictable.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "poll.h"

namespace ggufbpe {

// The places of `keys`, from the lowest key to the highest; equal ones stay in their order.
inline std::vector<uint32_t> sorted_places(const std::vector<uint64_t> &keys, const Poll &poll) {
    constexpr int DIGIT_BITS = 11, DIGITS = (64 + DIGIT_BITS - 1) / DIGIT_BITS;
    constexpr size_t VALUES = size_t(1) << DIGIT_BITS;
    const auto value = [](uint64_t key, int digit) { return key >> digit * DIGIT_BITS & (VALUES - 1); };
    using Counts = std::array<uint32_t, VALUES>;
    const auto counts = std::make_unique<std::array<Counts, DIGITS>>();  // zeros
    in_pieces(keys.size(), poll, [&](size_t from, size_t end) {
        for (size_t i = from; i < end; ++i) {
            for (int digit = 0; digit < DIGITS; ++digit) ++(*counts)[static_cast<size_t>(digit)][value(keys[i], digit)];
        }
    });
    std::vector<uint32_t> places(keys.size()), sorted(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) places[i] = static_cast<uint32_t>(i);
    for (int digit = 0; digit < DIGITS; ++digit) {
        Counts &of_digit = (*counts)[static_cast<size_t>(digit)];
        if (keys.empty() || of_digit[value(keys[0], digit)] == keys.size()) continue;  // the same in all keys
        uint32_t before = 0;
        for (uint32_t &count : of_digit) {
            const uint32_t start = before;
            before += count;
            count = start;
        }
        in_pieces(places.size(), poll, [&](size_t from, size_t end) {
            for (size_t i = from; i < end; ++i) sorted[of_digit[value(keys[places[i]], digit)]++] = places[i];
        });
        places.swap(sorted);
    }
    return places;
}

}  // namespace ggufbpe
