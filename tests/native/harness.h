// What the programs beside it share: decisions made out of bytes, texts that end where their memory ends, and checks.
//
//     bytes (driver.cpp, or libFuzzer) -> Choices -> a case -> the kernel and model.h -> CHECK

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

// One case. What is wrong ends the program; what is fine comes back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);     \
            std::abort();                                                                   \
        }                                                                                   \
    } while (0)

// Basic blocks of the kernel that this thread has run; always 0 where they are not counted (work.cpp).
uint64_t work_done();

// Decisions out of bytes; when they are used up, every further one is 0.
class Choices {
public:
    Choices(const uint8_t *data, size_t size) : data_(data), size_(size) {}

    bool empty() const { return at_ >= size_; }
    uint8_t byte() { return empty() ? 0 : data_[at_++]; }
    size_t below(size_t count) {
        if (count <= 1) return 0;
        size_t number = byte();
        for (size_t reach = 256; reach < count; reach *= 256) number = number << 8 | byte();
        return number % count;
    }
    bool one_in(size_t count) { return below(count) == count - 1; }
    template <typename T>
    const T &of(const std::vector<T> &items) {
        return items[below(items.size())];
    }

private:
    const uint8_t *data_;
    size_t size_, at_ = 0;
};

// Numbers that look random: splitmix64.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }
    size_t below(size_t count) { return static_cast<size_t>(next() % count); }

private:
    uint64_t state_;
};

// A copy of some bytes that ends where its memory ends, `offset` bytes behind an aligned place: AddressSanitizer sees who
// reads beyond.
class Exact {
public:
    explicit Exact(const std::string &bytes, size_t offset = 0) : memory_(new unsigned char[offset + bytes.size()]) {
        data_ = memory_.get() + offset;
        size_ = bytes.size();
        if (size_) std::memcpy(data_, bytes.data(), size_);
    }
    const unsigned char *data() const { return data_; }
    size_t size() const { return size_; }

private:
    std::unique_ptr<unsigned char[]> memory_;
    unsigned char *data_;
    size_t size_;
};

inline void append_utf8(std::string &text, uint32_t c) {
    if (c < 0x80) {
        text += static_cast<char>(c);
    } else if (c < 0x800) {
        text += static_cast<char>(0xC0 | c >> 6);
        text += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        text += static_cast<char>(0xE0 | c >> 12);
        text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (c & 0x3F));
    } else {
        text += static_cast<char>(0xF0 | c >> 18);
        text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
        text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (c & 0x3F));
    }
}

inline std::string utf8(uint32_t c) {
    std::string text;
    append_utf8(text, c);
    return text;
}

// Characters that differ to some pattern or other.
inline const std::vector<uint32_t> &characters() {
    static const std::vector<uint32_t> all = {
        'a',    'b',    's',    't',    'r',    'e',    'v',    'm',     'l',     'd',     'A',      'Z',    'I',    'M',
        'G',    '0',    '1',    '7',    ' ',    ' ',    ' ',    '\n',    '\r',    '\t',    0x0B,     '\'',   '"',    '.',
        ',',    '!',    '(',    '<',    '>',    ':',    '/',    '$',     '+',     '|',     '_',      0x00,   0x7F,   0x85,
        0xA0,   0xAD,   0xDF,   0xE9,   0xB2,   0x301,  0x3B1,  0x5D0,   0x660,   0x964,   0x1C5,    0x2009, 0x2019, 0x2026,
        0x2028, 0x2581, 0x3000, 0x3002, 0x3042, 0x30A2, 0x4E2D, 0x4E00,  0xAC00,  0xE000,  0xFE0F,   0xFFFD, 0xFF01, 0xFF11,
        0xFF21, 0x10400, 0x1F600, 0x1F3FB, 0x20000, 0x2F800, 0xE0001, 0x10FFFF,
    };
    return all;
}
