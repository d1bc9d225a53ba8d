#include "split/classes.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "machine.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

#if GGUFBPE_X86

// Classes of ASCII bytes, 32 at a time, until one is not ASCII; returns how many were done.
__attribute__((target("avx2"))) size_t classify_ascii(const unsigned char *text, size_t size, const uint8_t *table,
                                                      uint8_t *classes) {
    __m256i rows[8];
    for (int row = 0; row < 8; ++row) {
        rows[row] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(table + 16 * row)));
    }
    const __m256i limit = _mm256_set1_epi8(0x70);
    size_t i = 0;
    for (; i < size; i += 32) {
        if (size - i < 32) {
            if (size < 32) break;
            i = size - 32;  // some of them once more
        }
        __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(text + i));
        if (_mm256_movemask_epi8(bytes)) break;
        __m256i result = _mm256_setzero_si256();
        for (int row = 0; row < 8; ++row) {
            // In its own row a byte is 0x70 to 0x7F, a shuffle's index; in others the upper bit is set, which gives 0.
            __m256i index = _mm256_adds_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(row << 4))), limit);
            result = _mm256_or_si256(result, _mm256_shuffle_epi8(rows[row], index));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(classes + i), result);
    }
    return i;
}

// Columns of classes below 64, 32 at a time, the last of them maybe behind the end: both buffers have a margin there.
__attribute__((target("avx2"))) void translate(const uint8_t *classes, size_t size, const uint8_t *table, size_t width,
                                               uint8_t *columns) {
    __m256i rows[4];
    const int count = static_cast<int>((width + 15) / 16);
    for (int row = 0; row < count; ++row) {
        rows[row] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(table + 16 * row)));
    }
    const __m256i limit = _mm256_set1_epi8(0x70);
    for (size_t i = 0; i < size; i += 32) {
        __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(classes + i));
        __m256i result = _mm256_setzero_si256();
        for (int row = 0; row < count; ++row) {
            __m256i index = _mm256_adds_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(row << 4))), limit);
            result = _mm256_or_si256(result, _mm256_shuffle_epi8(rows[row], index));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(columns + i), result);
    }
}

#endif

}  // namespace

void look_up_each(const uint8_t *from, size_t count, const uint8_t *table, size_t width, uint8_t *to) {
#if GGUFBPE_X86
    if (has_avx2() && width <= 64) {
        alignas(16) uint8_t rows[64] = {};
        std::memcpy(rows, table, width);
        translate(from, count, rows, width, to);
        return;
    }
#else
    (void)width;
#endif
    for (size_t i = 0; i < count; ++i) to[i] = table[from[i]];
}

ClassTable::ClassTable(std::vector<std::pair<uint32_t, uint8_t>> runs, bool escape_spaces) : runs_(std::move(runs)) {
    for (size_t run = 0; run < runs_.size() && runs_[run].first < 0x80; ++run) {
        uint32_t end = run + 1 < runs_.size() ? std::min<uint32_t>(runs_[run + 1].first, 0x80) : 0x80;
        for (uint32_t c = runs_[run].first; c < end; ++c) ascii_[c] = runs_[run].second;
    }
    if (escape_spaces) {
        auto behind = std::upper_bound(runs_.begin(), runs_.end(), std::make_pair(ESCAPED_SPACE, uint8_t(255)));
        ascii_[int(' ')] = std::prev(behind)->second;
    }
}

const uint8_t *ClassTable::wide() const {
    const auto make = [this] {
        auto table = std::make_unique<OfEach>();
        for (size_t run = 0; run < runs_.size(); ++run) {
            uint32_t end = run + 1 < runs_.size() ? runs_[run + 1].first : 0x110000;
            std::memset(table->data() + runs_[run].first, runs_[run].second, end - runs_[run].first);
        }
        return table;
    };
    return wide_.get(make).data();
}

uint8_t ClassTable::class_at(const unsigned char *text, size_t size, size_t position) const {
    if (text[position] < 0x80) return ascii_[text[position]];
    unsigned length;
    return wide()[code_point_at(text + position, text + size, length)];
}

uint8_t ClassTable::class_before(const unsigned char *text, size_t position) const {
    size_t start = position - 1;
    while (start > 0 && position - start < 4 && (text[start] & 0xC0) == 0x80) --start;
    return class_at(text, position, start);
}

size_t ClassTable::classify(const unsigned char *text, size_t size, uint8_t *classes, Buffer<uint32_t> &offset_buffer,
                            bool &is_ascii) const {
    auto ascii_run = [&](const unsigned char *from, size_t most, uint8_t *to) -> size_t {
        size_t done = 0;
#if GGUFBPE_X86
        if (has_avx2()) done = classify_ascii(from, most, ascii_, to);
#endif
        while (done < most && from[done] < 0x80) {
            to[done] = ascii_[from[done]];
            ++done;
        }
        return done;
    };
    size_t done = ascii_run(text, size, classes);
    is_ascii = done == size;
    if (is_ascii) return size;
    const uint8_t *wide_classes = wide();
    uint32_t *offsets = offset_buffer.room(size + MARGIN);
    for (size_t i = 0; i < done; ++i) offsets[i] = static_cast<uint32_t>(i);
    size_t count = done;
    for (size_t i = done; i < size;) {
        unsigned char lead = text[i];
        offsets[count] = static_cast<uint32_t>(i);
        if (lead < 0x80) {
            classes[count++] = ascii_[lead];
            ++i;
            continue;
        }
        unsigned length;
        classes[count++] = wide_classes[code_point_at(text + i, text + size, length)];
        i += length;
    }
    offsets[count] = static_cast<uint32_t>(size);
    return count;
}

}  // namespace ggufbpe
