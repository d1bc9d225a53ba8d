// Vocabularies of longest matches: the trie, RWKV and WordPiece, on texts whose words end anywhere in a vector.

#include <map>

#include "compare.h"
#include "token_trie.h"
#include "rwkv/rwkv_model.h"
#include "utf8.h"
#include "wpm/wpm_model.h"

using namespace ggufbpe;

namespace {

using Tokens = std::map<std::string, int32_t>;

constexpr int32_t UNKNOWN = 1000;

// The longest token at a place, by trying all lengths; of size 0 if there is none.
std::pair<int32_t, size_t> longest(const Tokens &tokens, const std::string &text, size_t at) {
    for (size_t size = text.size() - at; size > 0; --size) {
        const auto found = tokens.find(text.substr(at, size));
        if (found != tokens.end()) return {found->second, size};
    }
    return {UNKNOWN, 0};
}

void append_longest(const Tokens &tokens, const std::string &text, std::vector<int32_t> &ids) {
    for (size_t at = 0; at < text.size();) {
        const auto [token, size] = longest(tokens, text, at);
        ids.push_back(token);
        at += size ? size : 1;
    }
}

void append_word(const Tokens &tokens, const std::string &word, std::vector<int32_t> &ids) {
    if (word.empty()) return;
    const std::string text = "\xE2\x96\x81" + word;
    std::vector<int32_t> found;
    for (size_t at = 0; at < text.size();) {
        const auto [token, size] = longest(tokens, text, at);
        if (!size) {
            ids.push_back(UNKNOWN);
            return;
        }
        found.push_back(token);
        at += size;
    }
    ids.insert(ids.end(), found.begin(), found.end());
}

// What WordPiece makes of a text, character by character.
std::vector<int32_t> word_pieces(const Tokens &tokens, const std::string &text, const Normalizer &normalizer) {
    std::vector<int32_t> ids;
    std::string word;
    const auto *data = reinterpret_cast<const unsigned char *>(text.data());
    unsigned length;
    for (size_t at = 0; at < text.size(); at += length) {
        const uint32_t c = code_point_at(data + at, data + text.size(), length);
        const std::string written = normalizer.written(c) == Normalizer::DROPPED ? "" : utf8(normalizer.written(c));
        if (normalizer.kind(c) == Normalizer::in_word) {
            word += written;
            continue;
        }
        append_word(tokens, word, ids);
        word.clear();
        if (normalizer.kind(c) == Normalizer::alone) append_word(tokens, written, ids);
    }
    append_word(tokens, word, ids);
    return ids;
}

std::string random_text(Choices &choices, size_t longest_text, bool any_bytes) {
    std::string text;
    const size_t kinds = choices.below(4);  // of few kinds, words are long
    for (size_t left = choices.below(longest_text); left > 0; --left) {
        if (any_bytes && choices.one_in(9)) {
            text += static_cast<char>(choices.byte());
        } else if (kinds == 3 || choices.one_in(40)) {
            append_utf8(text, choices.of(characters()));
        } else {
            append_utf8(text, kinds > 1 && choices.one_in(6) ? ' ' : 'a' + static_cast<uint32_t>(choices.below(1 + kinds)));
        }
    }
    return text;
}

std::string escaped(const std::string &bytes, Choices &choices) {
    static const char DIGITS[] = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7F && byte != '\\' && !choices.one_in(8)) {
            text += c;
        } else if (c == '\n') {
            text += "\\n";
        } else {
            text += {'\\', 'x', DIGITS[byte >> 4], DIGITS[byte & 15]};
        }
    }
    return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    const bool is_rwkv = choices.one_in(2);
    Tokens tokens;
    Strings strings;
    for (size_t left = choices.below(60); left > 0; --left) {
        std::string token = random_text(choices, choices.one_in(9) ? 90 : 6, is_rwkv);
        if (!is_rwkv && choices.one_in(2)) token = "\xE2\x96\x81" + token;
        const auto id = static_cast<int32_t>(strings.size());
        strings.add(is_rwkv ? escaped(token, choices) : token);
        if (!token.empty()) tokens[token] = id;  // of equal ones the last
    }
    const size_t offset = choices.below(8), part_size = 1 + choices.below(300);
    if (is_rwkv) {
        const std::string text = random_text(choices, choices.one_in(9) ? 9000 : 400, true);
        std::vector<int32_t> expected;
        append_longest(tokens, text, expected);
        compare(RWKVModel(strings, UNKNOWN, size_t(1) << 20), text, offset, part_size, expected);
        return 0;
    }
    const std::string text = random_text(choices, choices.one_in(9) ? 9000 : 400, false);
    const bool lowercase = choices.one_in(2), strip_accents = choices.one_in(2);
    const Normalizer normalizer(lowercase, strip_accents);
    const auto indexed = std::make_shared<Strings>(std::move(strings));
    indexed->index();
    const WPMModel model(indexed, UNKNOWN, lowercase, strip_accents, size_t(1) << 20);
    compare(model, text, offset, part_size, word_pieces(tokens, text, normalizer));
    return 0;
}
