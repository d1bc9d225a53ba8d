// UTF-8: checking it, and reading it as llama.cpp does (src/unicode.cpp: unicode_cpts_from_utf8).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "poll.h"

namespace ggufbpe {

// How many bytes are UTF-8 as the standard has it, up to the first that is not: an overlong form, a surrogate, more than
// U+10FFFF, or a character that is cut off.
inline size_t utf8_length(const unsigned char *p, size_t size) {
    const unsigned char *const begin = p, *const end = p + size;
    while (p < end) {
        if (end - p >= 8) {
            uint64_t word;
            std::memcpy(&word, p, 8);
            if (!(word & 0x8080808080808080u)) {
                p += 8;
                continue;
            }
        }
        unsigned char lead = *p;
        if (lead < 0x80) {
            ++p;
            continue;
        }
        int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
        if (lead < 0xC2 || lead > 0xF4 || end - p <= more) break;
        unsigned char second = p[1];
        unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (second < low || second > high) break;
        if (more > 1 && (p[2] & 0xC0) != 0x80) break;
        if (more > 2 && (p[3] & 0xC0) != 0x80) break;
        p += more + 1;
    }
    return static_cast<size_t>(p - begin);
}

// The bytes of the character that a byte begins; 1 for a byte within one. Source: src/unicode.cpp, unicode_len_utf8.
inline size_t length_by_lead(unsigned char lead) { return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

inline bool is_utf8(const unsigned char *p, size_t size) { return utf8_length(p, size) == size; }

// For a text that may be long.
inline bool is_utf8(const unsigned char *p, size_t size, const Poll &poll) {
    while (size > Pace::STEPS) {
        size_t chunk = Pace::STEPS;
        for (int i = 0; i < 3 && (p[chunk] & 0xC0) == 0x80; ++i) --chunk;  // to where a character begins
        if (!is_utf8(p, chunk)) return false;
        p += chunk;
        size -= chunk;
        poll();
    }
    return is_utf8(p, size);
}

// Whether two characters of UTF-8 meet at a place within a text, so that they are the same whatever bytes are around them.
inline bool is_between_utf8(const unsigned char *text, size_t size, size_t at) {
    if (text[at - 1] < 0x80 && text[at] < 0x80) return true;
    size_t before = at - 1;
    while (before > 0 && at - before < 4 && (text[before] & 0xC0) == 0x80) --before;
    return is_utf8(text + before, at - before) && is_utf8(text + at, std::min(size - at, length_by_lead(text[at])));
}

// The code point at `p` and, in `length`, how many bytes it takes. A byte that cannot be decoded is U+FFFD of length 1.
// Surrogates are decoded, and so are overlong forms, as by builds of llama.cpp before b11739; above U+10FFFF, where these
// throw, each byte counts as undecodable.
inline uint32_t code_point_at(const unsigned char *p, const unsigned char *end, unsigned &length) {
    unsigned char lead = *p;
    length = 1;
    if (lead < 0x80) return lead;
    unsigned wanted = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead < 0xC0 || lead >= 0xF8 || size_t(end - p) < wanted) return 0xFFFD;
    uint32_t code_point = lead & (0x7Fu >> wanted);
    for (unsigned i = 1; i < wanted; ++i) {
        if ((p[i] & 0xC0) != 0x80) return 0xFFFD;
        code_point = code_point << 6 | (p[i] & 0x3Fu);
    }
    if (code_point > 0x10FFFF) return 0xFFFD;
    length = wanted;
    return code_point;
}

// The same as builds of llama.cpp from b11739 on read it: an overlong form is bytes that cannot be decoded.
inline uint32_t strict_code_point_at(const unsigned char *p, const unsigned char *end, unsigned &length) {
    constexpr uint32_t LEAST[5] = {0, 0, 0x80, 0x800, 0x10000};  // the first code point that needs so many bytes
    const uint32_t code_point = code_point_at(p, end, length);
    if (code_point >= LEAST[length]) return code_point;
    length = 1;
    return 0xFFFD;
}

inline uint32_t code_point_at(const unsigned char *p, const unsigned char *end, unsigned &length, bool is_strict) {
    return is_strict ? strict_code_point_at(p, end, length) : code_point_at(p, end, length);
}

// Writes a code point as UTF-8, surrogates too; returns the number of bytes.
inline unsigned write_utf8(uint32_t code_point, unsigned char *to) {
    if (code_point < 0x80) {
        to[0] = static_cast<unsigned char>(code_point);
        return 1;
    }
    if (code_point < 0x800) {
        to[0] = static_cast<unsigned char>(0xC0 | code_point >> 6);
        to[1] = static_cast<unsigned char>(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        to[0] = static_cast<unsigned char>(0xE0 | code_point >> 12);
        to[1] = static_cast<unsigned char>(0x80 | (code_point >> 6 & 0x3F));
        to[2] = static_cast<unsigned char>(0x80 | (code_point & 0x3F));
        return 3;
    }
    to[0] = static_cast<unsigned char>(0xF0 | code_point >> 18);
    to[1] = static_cast<unsigned char>(0x80 | (code_point >> 12 & 0x3F));
    to[2] = static_cast<unsigned char>(0x80 | (code_point >> 6 & 0x3F));
    to[3] = static_cast<unsigned char>(0x80 | (code_point & 0x3F));
    return 4;
}

constexpr size_t UTF8_GROUP = 32;  // code points; compilers vectorize loops of this length

// Whether a group of code points is ASCII alone.
template <typename CodePoint>
bool is_ascii_group(const CodePoint *from) {
    CodePoint bits = 0;
    for (size_t i = 0; i < UTF8_GROUP; ++i) bits = static_cast<CodePoint>(bits | from[i]);
    return bits < 0x80;
}

// Writes many code points as UTF-8; returns where it ends, or null if one is a surrogate, which has none.
template <typename CodePoint>
unsigned char *write_utf8(const CodePoint *from, size_t count, unsigned char *to) {
    for (const CodePoint *const end = from + count; from != end;) {
        const size_t some = std::min(UTF8_GROUP, static_cast<size_t>(end - from));
        if (some == UTF8_GROUP && is_ascii_group(from)) {
            for (size_t i = 0; i < UTF8_GROUP; ++i) to[i] = static_cast<unsigned char>(from[i]);
            to += UTF8_GROUP;
        } else {
            for (size_t i = 0; i < some; ++i) {
                const uint32_t code_point = from[i];
                if ((code_point & 0xFFFFF800u) == 0xD800) return nullptr;
                to += write_utf8(code_point, to);
            }
        }
        from += some;
    }
    return to;
}

}  // namespace ggufbpe
