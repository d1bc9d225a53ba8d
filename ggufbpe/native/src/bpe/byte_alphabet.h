// GPT-2's alphabet: byte-level vocabularies write each byte of a token as one printable character.
//
// Source: src/unicode.cpp, unicode_byte_to_utf8_map.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "utf8.h"

namespace ggufbpe {

class ByteAlphabet {
public:
    static constexpr int NOT_A_BYTE = -1;

    ByteAlphabet() {
        for (int16_t &byte : byte_of_) byte = NOT_A_BYTE;
        uint16_t next_unprintable = 0x100;
        for (int byte = 0; byte < 256; ++byte) {
            const bool is_printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            const uint16_t code_point = is_printable ? static_cast<uint16_t>(byte) : next_unprintable++;
            unsigned char utf8[4];
            sizes_[byte] = static_cast<uint8_t>(write_utf8(code_point, utf8));
            std::memcpy(characters_[byte], utf8, 2);
            byte_of_[code_point] = static_cast<int16_t>(byte);
        }
    }

    // The character of a byte, as UTF-8.
    std::string_view character(unsigned char byte) const { return {characters_[byte], sizes_[byte]}; }

    // Writes the character of a byte; there must be room for two bytes. Returns where the next one goes.
    char *write(unsigned char byte, char *to) const {
        std::memcpy(to, characters_[byte], 2);
        return to + sizes_[byte];
    }

    // The byte that a text of one character stands for, or NOT_A_BYTE.
    int byte_of(std::string_view text) const {
        if (text.empty() || text.size() > 2) return NOT_A_BYTE;
        const auto *p = reinterpret_cast<const unsigned char *>(text.data());
        unsigned length;
        const uint32_t code_point = code_point_at(p, p + text.size(), length);
        return length == text.size() && code_point < CODE_POINTS ? byte_of_[code_point] : NOT_A_BYTE;
    }

private:
    static constexpr size_t CODE_POINTS = 0x200;  // the whole alphabet is below

    char characters_[256][2];
    uint8_t sizes_[256];
    int16_t byte_of_[CODE_POINTS];
};

inline const ByteAlphabet BYTE_ALPHABET;

}  // namespace ggufbpe
