#include "strings.h"

#include "utf8.h"

namespace ggufbpe {

namespace {

uint64_t read64(const char *p) {
    uint64_t value;
    std::memcpy(&value, p, 8);
    return value;
}

uint64_t read_up_to_8(const char *p, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, p, size);
    return value;
}

uint64_t mix(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
    a *= b;
    a ^= a >> 32;
    return a * 0x9E3779B97F4A7C15u;
#endif
}

uint64_t read_length(const char *p, int width, bool big_endian) {
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) {
        int at = big_endian ? width - 1 - i : i;
        value |= uint64_t(static_cast<unsigned char>(p[at])) << (8 * i);
    }
    return value;
}

}  // namespace

uint64_t hash_bytes(const char *data, size_t size) {
    uint64_t hash = 0x9E3779B97F4A7C15u ^ size;
    while (size > 16) {
        hash = mix(read64(data) ^ 0xA0761D6478BD642Fu, read64(data + 8) ^ hash);
        data += 16;
        size -= 16;
    }
    uint64_t low, high = 0;
    if (size >= 8) {
        low = read64(data);
        high = read64(data + size - 8);
    } else if (size >= 4) {
        uint32_t first, last;
        std::memcpy(&first, data, 4);
        std::memcpy(&last, data + size - 4, 4);
        low = uint64_t(first) << 32 | last;
    } else {
        low = read_up_to_8(data, size);
    }
    return mix(low ^ 0xE7037ED1A0B428DBu, high ^ hash ^ 0x8EBC6AF09C88C6E3u);
}

void Strings::reserve(size_t count, size_t bytes) {
    ends_.reserve(count + 1);
    data_.reserve(bytes);
}

void Strings::add(std::string_view text) {
    data_.insert(data_.end(), text.begin(), text.end());
    ends_.push_back(data_.size());
}

int64_t Strings::index() {
    size_t count = size();
    size_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    slots_.assign(capacity, Slot{});
    mask_ = capacity - 1;
    int64_t duplicate = -1;
    for (size_t i = 0; i < count; ++i) {
        std::string_view text = (*this)[i];
        uint64_t hash = hash_bytes(text.data(), text.size());
        uint32_t tag = static_cast<uint32_t>(hash >> 32);
        uint64_t at = hash & mask_;
        while (true) {
            Slot &slot = slots_[at];
            if (!slot.index_plus_1) {
                slot = {tag, static_cast<uint32_t>(i + 1)};
                break;
            }
            if (slot.tag == tag && (*this)[slot.index_plus_1 - 1] == text) {
                if (duplicate < 0) duplicate = static_cast<int64_t>(i);
                break;
            }
            at = (at + 1) & mask_;
        }
    }
    return duplicate;
}

int64_t Strings::find(std::string_view text) const { return find(text, hash_bytes(text.data(), text.size())); }

int64_t Strings::find(std::string_view text, uint64_t hash) const {
    uint32_t tag = static_cast<uint32_t>(hash >> 32);
    for (uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
        const Slot &slot = slots_[at];
        if (!slot.index_plus_1) return -1;
        if (slot.tag == tag && (*this)[slot.index_plus_1 - 1] == text) return slot.index_plus_1 - 1;
    }
}

Scan scan(const char *data, uint64_t size, uint64_t position, uint64_t count, int width, bool big_endian, Strings *into) {
    Scan result;
    uint64_t start = position;
    for (uint64_t i = 0; i < count; ++i) {
        if (position > size || size - position < uint64_t(width)) {
            return {Scan::Outcome::truncated, i, position, 0, false};
        }
        uint64_t length = read_length(data + position, width, big_endian);
        if (length > size - position - width) return {Scan::Outcome::too_long, i, position, length, false};
        position += width + length;
    }
    result.position = position;
    if (!into) return result;
    into->reserve(count, position - start - count * width);
    for (uint64_t i = 0, at = start; i < count; ++i) {
        uint64_t length = read_length(data + at, width, big_endian);
        into->add({data + at + width, length});
        at += width + length;
    }
    // String by string, for two broken halves of a character are not one whole.
    for (uint64_t i = 0; i < count && result.plain; ++i) {
        std::string_view text = (*into)[i];
        result.plain = is_utf8(reinterpret_cast<const unsigned char *>(text.data()), text.size()) &&
                       (text.empty() || !std::memchr(text.data(), 0, text.size()));
    }
    return result;
}

}  // namespace ggufbpe
