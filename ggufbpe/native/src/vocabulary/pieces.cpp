#include "vocabulary/pieces.h"

#include <cstdlib>
#include <string_view>

#include "rwkv/rwkv_model.h"
#include "vocabulary/plain_piece.h"
#include "vocabulary/text_models.h"

namespace ggufbpe {

namespace {

// The number in <0xXX> as C's strtol reads it: anything but a number counts as 0.
char byte_of(std::string_view text) {
    const std::string digits(text.substr(std::min<size_t>(3, text.size()), 2));
    return static_cast<char>(std::strtol(digits.c_str(), nullptr, 16) & 0xFF);
}

}  // namespace

std::string piece_of(const Vocabulary &vocabulary, int32_t id, bool special) {
    const std::string_view text = (*vocabulary.tokens)[static_cast<size_t>(id)], name = vocabulary.kind->name;
    const uint16_t attributes = vocabulary.attributes[static_cast<size_t>(id)];
    if (!special && attributes & (CONTROL_TOKEN | UNKNOWN_TOKEN)) return {};
    if (name == "rwkv") {
        std::string bytes(text.size(), '\0');
        bytes.resize(static_cast<size_t>(unescape_rwkv_token(text, bytes.data()) - bytes.data()));
        return bytes;
    }
    if (name == "plamo2" || name == "plamo3") {
        const int byte = attributes & BYTE_TOKEN ? named_byte(text) : -1;
        return byte < 0 ? std::string(text) : std::string(1, static_cast<char>(byte));
    }
    if (attributes & (CONTROL_TOKEN | USER_DEFINED_TOKEN | UNKNOWN_TOKEN)) return std::string(text);
    if (attributes & NORMAL_TOKEN) {
        return plain_piece(text, vocabulary.kind->has_pre_tokenizer && !vocabulary.pre.escape_whitespaces);
    }
    return attributes & BYTE_TOKEN ? std::string(1, byte_of(text)) : std::string();
}

}  // namespace ggufbpe
