// How many tokens short pieces of text have, remembered: the ends of parts are few different words and line breaks.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "machine.h"

namespace ggufbpe {

class PieceCounts {
public:
    // For a text of so many bytes.
    explicit PieceCounts(size_t bytes) {
        size_t count = 16;
        while (count < MOST && count * BYTES_AN_ENTRY < bytes) count *= 2;
        entries_.resize(count);
    }

    // The tokens of a piece that stands alone, or continues a text: what count() returns, called unless that is known.
    template <typename Count>
    size_t of(const unsigned char *piece, size_t size, bool continues, Count count) {
        if (size > LONGEST) return count();
        unsigned char bytes[16] = {};
        std::memcpy(bytes, piece, size);
        bytes[LONGEST] = static_cast<unsigned char>(size);
        bytes[LONGEST + 1] = continues ? 2 : 1;  // an empty entry has 0
        uint64_t low, high;
        std::memcpy(&low, bytes, 8);
        std::memcpy(&high, bytes + 8, 8);
        Entry &entry = entries_[multiply_and_fold(low ^ 0x9E3779B97F4A7C15u, high ^ 0xD1B54A32D192ED03u) & (entries_.size() - 1)];
        if (entry.low != low || entry.high != high) entry = {low, high, count()};
        return entry.count;
    }

private:
    static constexpr size_t LONGEST = 14, BYTES_AN_ENTRY = 256, MOST = 4096;
    struct Entry {
        uint64_t low, high;
        size_t count;
    };

    std::vector<Entry> entries_;  // a power of two
};

}  // namespace ggufbpe
