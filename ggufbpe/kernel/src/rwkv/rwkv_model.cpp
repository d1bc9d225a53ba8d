#include "rwkv/rwkv_model.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace ggufbpe {

namespace {

constexpr size_t BLOCK = size_t(1) << 13;  // bytes between two looks at whether there is room

// The value of a hexadecimal digit; of what is none, what llama.cpp makes of it on machines with signed char.
unsigned digit(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 'a' && byte < 0x80 ? byte - 'a' + 10u : byte - unsigned('0');
}

// Appends the bytes that a token stands for.
// Source: src/llama-vocab.cpp, llama_unescape_rwkv_token.
void unescape(std::string_view token, std::string &to) {
    for (size_t i = 0; i < token.size(); ++i) {
        if (token[i] != '\\') {
            to += token[i];
        } else if (++i < token.size()) {
            const char escaped = token[i];
            if (escaped != 'x') {
                to += escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : escaped;
            } else {
                if (i + 2 < token.size()) to += static_cast<char>(digit(token[i + 1]) * 16 + digit(token[i + 2]));
                i += 2;
            }
        }
    }
}

LongestMatch trie_of(const Strings &tokens) {
    std::string bytes;
    bytes.reserve(tokens.byte_size());  // unescaped they are no longer, so that none of them moves
    std::vector<std::pair<std::string_view, int32_t>> numbered;
    numbered.reserve(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
        const size_t start = bytes.size();
        unescape(tokens[i], bytes);
        numbered.emplace_back(std::string_view(bytes.data() + start, bytes.size() - start), static_cast<int32_t>(i));
    }
    return LongestMatch(std::move(numbered));
}

}  // namespace

RWKVModel::RWKVModel(const Strings &tokens, int32_t unknown) : tokens_(trie_of(tokens)), unknown_(unknown) {}

void RWKVModel::encode(const Part &part, TextModel::Scratch &, Sink &ids, const Poll &poll) const {
    const unsigned char *at = part.data, *end = part.data + part.size;
    Spans *const spans = ids.spans();
    Pace pace(poll);
    while (at < end) {
        const unsigned char *begin = at, *stop = at + std::min(BLOCK, static_cast<size_t>(end - at));
        size_t count = 0;
        int32_t *to = ids.room(BLOCK);
        while (at < stop) {
            const LongestMatch::Match match = tokens_.find(at, end);
            const bool is_known = match.size > 0;
            if (spans) spans->push(at, is_known ? match.size : 1);
            at += is_known ? match.size : 1;
            if (to) *to++ = is_known ? match.token : unknown_;
            ++count;
        }
        if (to) {
            ids.advance(to);
        } else {
            ids.add(count);
        }
        pace.count(static_cast<size_t>(at - begin));
    }
}

// The text as it is: nothing splits it.
bool RWKVModel::words(const unsigned char *text, size_t size, TextModel::Scratch &, const TakesWord &take, const Poll &) const {
    if (size) take(text, size);
    return true;
}

// Whole: where the longest tokens end depends on all that comes before.
void RWKVModel::divide(const Part &part, size_t, std::vector<Part> &parts, const Poll &) const { parts.push_back(part); }

}  // namespace ggufbpe
