#include "vocabulary/plain_piece.h"

#include "bpe/byte_alphabet.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr std::string_view ESCAPED_SPACE = "\xE2\x96\x81";  // U+2581

std::string with_spaces(std::string_view text) {
    std::string found;
    for (size_t at = 0; at < text.size();) {
        const size_t next = text.find(ESCAPED_SPACE, at);
        found += text.substr(at, next - at);
        if (next == std::string_view::npos) break;
        found += ' ';
        at = next + ESCAPED_SPACE.size();
    }
    return found;
}

// llama.cpp marks characters that are not in GPT-2's alphabet. Source: src/llama-vocab.cpp, llama_decode_text.
std::string from_alphabet(std::string_view text) {
    constexpr const char *DIGITS = "0123456789abcdef";
    const auto *p = reinterpret_cast<const unsigned char *>(text.data()), *end = p + text.size();
    std::string found;
    for (unsigned length; p < end; p += length) {
        code_point_at(p, end, length);
        const int byte = BYTE_ALPHABET.byte_of({reinterpret_cast<const char *>(p), length});
        if (byte != ByteAlphabet::NOT_A_BYTE) {
            found += static_cast<char>(byte);
            continue;
        }
        found += "[UNK_BYTE_0x";
        for (unsigned i = 0; i < length; ++i) found += {DIGITS[p[i] >> 4], DIGITS[p[i] & 15]};
        found.append(text).append("]");
    }
    return found;
}

}  // namespace

std::string plain_piece(std::string_view text, bool is_byte_level) {
    return is_byte_level ? from_alphabet(text) : with_spaces(text);
}

}  // namespace ggufbpe
