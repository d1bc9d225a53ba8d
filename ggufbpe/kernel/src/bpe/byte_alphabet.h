// GPT-2's alphabet of bytes, in which the tokens of byte-level vocabularies are written.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "utf8.h"

namespace ggufbpe {

// GPT-2 writes each byte as one printable character (src/unicode.cpp: unicode_byte_to_utf8_map).
struct ByteAlphabet {
    uint16_t code_point[256];
    unsigned char text[256][2];
    uint8_t size[256];
    int16_t byte_of[0x200];  // by code point; -1 for none

    ByteAlphabet() {
        std::fill(std::begin(byte_of), std::end(byte_of), int16_t(-1));
        uint16_t other = 0x100;
        for (int byte = 0; byte < 256; ++byte) {
            bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            code_point[byte] = printable ? static_cast<uint16_t>(byte) : other++;
            unsigned char bytes[4];
            size[byte] = static_cast<uint8_t>(write_utf8(code_point[byte], bytes));
            std::memcpy(text[byte], bytes, 2);
            byte_of[code_point[byte]] = static_cast<int16_t>(byte);
        }
    }
};

inline const ByteAlphabet ALPHABET;

// The byte that a text of one character of GPT-2's alphabet stands for, or -1.
inline int byte_of(std::string_view text) {
    if (text.empty() || text.size() > 2) return -1;
    const auto *p = reinterpret_cast<const unsigned char *>(text.data());
    unsigned length;
    uint32_t code_point = code_point_at(p, p + text.size(), length);
    return length == text.size() && code_point < 0x200 ? ALPHABET.byte_of[code_point] : -1;
}

}  // namespace ggufbpe
