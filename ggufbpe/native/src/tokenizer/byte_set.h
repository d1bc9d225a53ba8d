// Where bytes of a set are in a text, 64 places at a time, a bit for each.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "machine.h"
#include "poll.h"

namespace ggufbpe {

class ByteSet {
public:
    static constexpr size_t PLACES = 64;  // of a mask
    static constexpr size_t MASKS = 64;   // enough to fill at a time

    // The ranges of bytes, each with its first and last byte. Of the sets of lower halves that go with an upper half, at most
    // eight are different.
    explicit ByteSet(std::initializer_list<std::pair<unsigned char, unsigned char>> ranges);

    bool has(unsigned char byte) const { return upper_[byte >> 4] & lower_[byte & 15]; }

    // Writes a mask for each 64 bytes of a text, and one for the rest.
    void find(const unsigned char *text, size_t size, uint64_t *masks) const;

    // How many bytes are in the set.
    size_t count(const unsigned char *text, size_t size) const;

    // Calls take(place) for each place of such a byte, in order.
    template <typename Take>
    void each(const unsigned char *text, size_t size, Pace &pace, Take take) const {
        uint64_t masks[MASKS];
        for (size_t at = 0; at < size; at += MASKS * PLACES) {
            const size_t chunk = std::min(MASKS * PLACES, size - at);
            pace.count(chunk);
            find(text + at, chunk, masks);
            for (size_t i = 0; i * PLACES < chunk; ++i) {
                for (uint64_t left = masks[i]; left; left &= left - 1) take(at + i * PLACES + lowest_bit(left));
            }
        }
    }

private:
    // A byte is in the set if what both its halves give has a bit in common.
    alignas(16) uint8_t upper_[16] = {}, lower_[16] = {};
};

}  // namespace ggufbpe
