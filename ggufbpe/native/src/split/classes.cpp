#include "split/classes.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "simd.h"
#include "utf8.h"

namespace ggufbpe {

#if GGUFBPE_VECTORS

namespace {

// Classes of ASCII bytes, a vector at a time, until one is not ASCII; returns how many were done.
WITH_AVX2 size_t classify_ascii(const unsigned char *text, size_t size, const uint8_t *table, uint8_t *classes) {
    if (size < VECTOR_BYTES) return 0;
    const LookUp<8> look_up(table);
    size_t done = 0;
    while (done < size) {
        const size_t at = std::min(done, size - VECTOR_BYTES);  // at the end, some of them again
        const Bytes bytes = load(text + at);
        if (!is_ascii(bytes)) break;
        store(classes + at, look_up(bytes));
        done = at + VECTOR_BYTES;
    }
    return done;
}

// Classes and offsets of a run of ASCII that begins at `place` in the block; returns how many bytes it has, not counting the
// last few of the text. Up to a vector of memory after the run is overwritten.
WITH_AVX2 size_t classify_run(const unsigned char *text, size_t size, size_t place, const uint8_t *table, uint8_t *classes,
                              uint32_t *offsets) {
    const LookUp<8> look_up(table);
    size_t done = 0;
    for (; size - done >= VECTOR_BYTES; done += VECTOR_BYTES) {
        const Bytes bytes = load(text + done);
        store(classes + done, look_up(bytes));
        for (size_t i = done; i < done + VECTOR_BYTES; ++i) offsets[i] = static_cast<uint32_t>(place + i);
        if (const uint32_t not_ascii = highest_bits(bytes)) return done + lowest_bit(not_ascii);
    }
    return done;
}

// The last vector may extend past the end: both buffers have a margin there.
template <typename Table>
WITH_AVX2 void look_up_vectors(const uint8_t *from, size_t count, const uint8_t *table, uint8_t *to) {
    const Table look_up(table);
    for (size_t i = 0; i < count; i += VECTOR_BYTES) store(to + i, look_up(load(from + i)));
}

}  // namespace

#endif

void look_up_each(const uint8_t *from, size_t count, const uint8_t *table, size_t width, uint8_t *to) {
#if GGUFBPE_VECTORS
    if (has_vectors() && width <= 64) {
        alignas(16) uint8_t rows[64] = {};
        std::memcpy(rows, table, width);
        if (width <= 16) return look_up_vectors<Shuffle>(from, count, rows, to);
        if (width <= 32) return look_up_vectors<LookUp<2>>(from, count, rows, to);
        return look_up_vectors<LookUp<4>>(from, count, rows, to);
    }
#endif
    (void)width;
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
        for (size_t run = 0; run < runs_.size() && runs_[run].first < table->size(); ++run) {
            const size_t end = run + 1 < runs_.size() ? std::min<size_t>(runs_[run + 1].first, table->size()) : table->size();
            std::memset(table->data() + runs_[run].first, runs_[run].second, end - runs_[run].first);
        }
        return table;
    };
    return wide_.get(make).data();
}

uint8_t ClassTable::class_of(uint32_t code_point) const {
    if (code_point < std::tuple_size<OfEach>::value) return wide()[code_point];
    const auto behind = std::upper_bound(runs_.begin(), runs_.end(), std::make_pair(code_point, uint8_t(255)));
    return std::prev(behind)->second;
}

uint8_t ClassTable::class_at(const unsigned char *text, size_t size, size_t position) const {
    if (text[position] < 0x80) return ascii_[text[position]];
    unsigned length;
    return class_of(code_point_at(text + position, text + size, length));
}

uint8_t ClassTable::class_before(const unsigned char *text, size_t position) const {
    size_t start = position - 1;
    while (start > 0 && position - start < 4 && (text[start] & 0xC0) == 0x80) --start;
    return class_at(text, position, start);
}

void ClassTable::classify_mixed(const unsigned char *text, size_t size, size_t end, const uint8_t *wide, uint8_t *classes,
                                uint32_t *offsets, size_t &place, size_t &count) const {
    size_t i = place, n = count;
    while (i < end && size - i >= 8) {
        const uint64_t bytes = eight_bytes(text + i);
        if (!(bytes & 0x8080808080808080u)) break;
        if ((bytes & 0xC0E0C0E0C0E0C0E0u) == 0x80C080C080C080C0u) {  // four of two bytes
            const uint64_t code_points = (bytes & 0x001F001F001F001Fu) << 6 | (bytes >> 8 & 0x003F003F003F003Fu);
            for (size_t k = 0; k < 4; ++k, i += 2) {
                offsets[n + k] = static_cast<uint32_t>(i);
                classes[n + k] = wide[code_points >> (16 * k) & 0xFFFF];
            }
            n += 4;
            continue;
        }
        offsets[n] = static_cast<uint32_t>(i);
        if (!(bytes & 0x80)) {
            classes[n++] = ascii_[bytes & 0x7F];
            i += 1;
        } else if ((bytes & 0xC0E0) == 0x80C0) {
            classes[n++] = wide[(bytes & 0x1F) << 6 | (bytes >> 8 & 0x3F)];
            i += 2;
        } else if ((bytes & 0xC0C0F0) == 0x8080E0) {
            classes[n++] = wide[(bytes & 0x0F) << 12 | (bytes >> 8 & 0x3F) << 6 | (bytes >> 16 & 0x3F)];
            i += 3;
        } else {
            break;
        }
    }
    place = i;
    count = n;
}

size_t ClassTable::classify(const unsigned char *text, size_t size, uint8_t *classes, Buffer<uint32_t> &offset_buffer,
                            bool &is_ascii, const Poll &poll) const {
    const auto ascii_run = [&](const unsigned char *from, size_t most, uint8_t *to) -> size_t {
        size_t done = 0;
#if GGUFBPE_VECTORS
        if (has_vectors()) done = classify_ascii(from, most, ascii_, to);
#endif
        while (done < most && from[done] < 0x80) {
            to[done] = ascii_[from[done]];
            ++done;
        }
        return done;
    };
    size_t done = 0;
    in_pieces(size, poll, [&](size_t from, size_t end) {
        if (done == from) done += ascii_run(text + from, end - from, classes + from);
    });
    is_ascii = done == size;
    if (is_ascii) return size;
    const uint8_t *const wide_classes = wide();
    uint32_t *offsets = offset_buffer.room(size + MARGIN);
    in_pieces(done, poll, [&](size_t from, size_t end) {
        for (size_t i = from; i < end; ++i) offsets[i] = static_cast<uint32_t>(i);
    });
    size_t count = done, i = done;
    in_pieces(size - done, poll, [&](size_t, size_t most) {
        const size_t end = done + most;  // of a piece; the last character may extend beyond
        while (i < end) {
            classify_mixed(text, size, end, wide_classes, classes, offsets, i, count);
            if (i >= end) break;
            if (text[i] < 0x80) {
                size_t run = 0;
#if GGUFBPE_VECTORS
                if (has_vectors()) run = classify_run(text + i, end - i, i, ascii_, classes + count, offsets + count);
#endif
                for (i += run, count += run; i < end && text[i] < 0x80; ++i) {
                    offsets[count] = static_cast<uint32_t>(i);
                    classes[count++] = ascii_[text[i]];
                }
                continue;
            }
            unsigned length;
            offsets[count] = static_cast<uint32_t>(i);
            classes[count++] = class_of(code_point_at(text + i, text + size, length));
            i += length;
        }
    });
    offsets[count] = static_cast<uint32_t>(size);
    return count;
}

}  // namespace ggufbpe
