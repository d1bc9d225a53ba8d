#include "bpe/token_lengths.h"

#include <string_view>

#include "bpe/byte_alphabet.h"

namespace ggufbpe {

namespace {

constexpr std::string_view ESCAPED = "\xE2\x96\x81";
constexpr size_t STEPS_A_TOKEN = 16;  // the cost of one, in bytes looked at

// The bytes that a token of GPT-2's alphabet stands for.
uint32_t byte_level_length(std::string_view token) {
    uint32_t length = 0;
    for (size_t at = 0; at < token.size(); ++length) {
        const size_t size = static_cast<unsigned char>(token[at]) < 0x80 ? 1 : 2;
        if (BYTE_ALPHABET.byte_of(token.substr(at, size)) == ByteAlphabet::NOT_A_BYTE) return TokenLengths::UNCERTAIN;
        at += size;
    }
    return length;
}

uint32_t plain_length(std::string_view token, bool escape_spaces) {
    size_t length = token.size();
    for (size_t at = escape_spaces ? token.find(ESCAPED) : token.npos; at != token.npos; at = token.find(ESCAPED, at + 3)) length -= 2;
    return static_cast<uint32_t>(length);
}

}  // namespace

TokenLengths::TokenLengths(const MergeTable &table, const Poll &poll) {
    const MergeOptions &options = table.options();
    const Strings &tokens = table.tokens();
    Pace pace(poll);
    lengths_.reserve(tokens.size());
    for (size_t id = 0; id < tokens.size(); ++id) {
        pace.count(STEPS_A_TOKEN);
        lengths_.push_back(options.byte_encode ? byte_level_length(tokens[id]) : plain_length(tokens[id], options.escape_spaces));
    }
    for (unsigned byte = 0; byte < 256 && !options.byte_encode; ++byte) {
        const int32_t id = table.id_of_lone_byte(static_cast<unsigned char>(byte));
        const bool is_of_space = options.escape_spaces && ESCAPED.find(static_cast<char>(byte)) != ESCAPED.npos;
        if (id >= 0) lengths_[static_cast<size_t>(id)] = is_of_space ? UNCERTAIN : 1;  // three of them may be one space
    }
}

}  // namespace ggufbpe
