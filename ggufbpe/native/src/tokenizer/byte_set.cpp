#include "tokenizer/byte_set.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "simd.h"

namespace ggufbpe {

namespace {

#if GGUFBPE_VECTORS

// Of whole 64 bytes; returns how many bytes that are.
WITH_AVX2 size_t find_by_vectors(const unsigned char *text, size_t size, const uint8_t *upper_table, const uint8_t *lower_table,
                                 uint64_t *masks) {
    const Shuffle upper(upper_table), lower(lower_table);
    size_t at = 0;
    for (; size - at >= 2 * VECTOR_BYTES; at += 2 * VECTOR_BYTES) {
        const Bytes first = load(text + at), second = load(text + at + VECTOR_BYTES);
        const Bytes in_first = upper(upper_nibbles(first)) & lower(lower_nibbles(first));
        const Bytes in_second = upper(upper_nibbles(second)) & lower(lower_nibbles(second));
        *masks++ = ~(uint64_t(highest_bits(is_zero(in_first))) | uint64_t(highest_bits(is_zero(in_second))) << VECTOR_BYTES);
    }
    return at;
}

#endif

}  // namespace

ByteSet::ByteSet(std::initializer_list<std::pair<unsigned char, unsigned char>> ranges) {
    unsigned lowers[16] = {};  // the bytes with each upper half, a bit for each
    for (const auto &[first, last] : ranges) {
        for (unsigned byte = first; byte <= last; ++byte) lowers[byte >> 4] |= 1u << (byte & 15);
    }
    unsigned bit = 1;
    for (size_t upper = 0; upper < 16; ++upper) {
        const auto same = static_cast<size_t>(std::find(lowers, lowers + upper, lowers[upper]) - lowers);
        upper_[upper] = upper_[same];
        if (!lowers[upper] || same < upper) continue;
        if (bit > 0x80) throw std::invalid_argument("a set of bytes with too many different halves");
        upper_[upper] = static_cast<uint8_t>(bit);
        for (size_t lower = 0; lower < 16; ++lower) {
            if (lowers[upper] >> lower & 1) lower_[lower] = static_cast<uint8_t>(lower_[lower] | bit);
        }
        bit *= 2;
    }
}

void ByteSet::find(const unsigned char *text, size_t size, uint64_t *masks) const {
    size_t at = 0;
#if GGUFBPE_VECTORS
    if (has_vectors()) {
        at = find_by_vectors(text, size, upper_, lower_, masks);
        if (at == size) return;
        unsigned char rest[PLACES] = {};
        std::memcpy(rest, text + at, size - at);
        find_by_vectors(rest, PLACES, upper_, lower_, masks + at / PLACES);
        masks[at / PLACES] &= (uint64_t(1) << (size - at)) - 1;
        return;
    }
#endif
    for (; at < size; ++at) {
        uint64_t &mask = masks[at / PLACES];
        if (at % PLACES == 0) mask = 0;
        mask |= uint64_t(has(text[at])) << at % PLACES;
    }
}

size_t ByteSet::count(const unsigned char *text, size_t size) const {
    uint64_t masks[MASKS];
    size_t found = 0;
    for (size_t at = 0; at < size; at += MASKS * PLACES) {
        const size_t chunk = std::min(MASKS * PLACES, size - at);
        find(text + at, chunk, masks);
        for (size_t i = 0; i * PLACES < chunk; ++i) found += count_bits(masks[i]);
    }
    return found;
}

}  // namespace ggufbpe
