// Tokens, their scores and their attributes: ggufbpe/models/token_table.py for C++.
//
// Source: src/llama-vocab.cpp, llama_vocab::impl::load.

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "gguf/value_types.h"
#include "vocabulary/loading.h"
#include "vocabulary/metadata_keys.h"

namespace ggufbpe {

namespace {

constexpr uint16_t ATTRIBUTE_OF_TYPE[] = {0,          NORMAL_TOKEN, UNKNOWN_TOKEN, CONTROL_TOKEN, USER_DEFINED_TOKEN,
                                          UNUSED_TOKEN, BYTE_TOKEN};
constexpr uint32_t TOKEN_TYPES = 7, NORMAL_TYPE = 1;
constexpr std::string_view K_MER_MARKER = "\xEE\x80\x80";  // U+E000, ends the text of a k-mer

// Empty tokens get a name.
std::shared_ptr<Strings> named(const Strings &tokens, std::vector<std::string> &warnings, const Poll &poll) {
    auto texts = std::make_shared<Strings>();
    texts->reserve(tokens.size(), tokens.byte_size());
    std::string places;  // of the first empty ones
    size_t empty = 0;
    Pace pace(poll);
    for (size_t i = 0; i < tokens.size(); ++i) {
        pace.count(tokens[i].size() + 16);
        if (tokens[i].empty() && empty++ < 5) places += (places.empty() ? "" : ", ") + std::to_string(i);
        texts->add(tokens[i].empty() ? "[EMPTY_" + std::to_string(i) + "]" : std::string(tokens[i]));
    }
    warnings.push_back(std::to_string(empty) + " of the tokens are empty, at index " + places + (empty > 5 ? " …" : ""));
    return texts;
}

// The texts of tokens without the markers of k-mers, which come after <oov>. Source: llm_tokenizer_hybriddna.
std::shared_ptr<Strings> without_markers(const Strings &names, const Poll &poll) {
    auto texts = std::make_shared<Strings>();
    texts->reserve(names.size(), names.byte_size());
    const int64_t unknown = names.find("<oov>");
    const size_t first = unknown == Strings::NOT_FOUND ? names.size() + 1 : static_cast<size_t>(unknown) + 1;
    Pace pace(poll);
    for (size_t i = 0; i < names.size(); ++i) {
        std::string_view text = names[i];
        pace.count(text.size() + 16);
        const bool is_k_mer = i >= first && text.size() > K_MER_MARKER.size() &&
                              text.substr(text.size() - K_MER_MARKER.size()) == K_MER_MARKER;
        if (is_k_mer) text.remove_suffix(K_MER_MARKER.size());
        texts->add(text);
    }
    return texts;
}

// The value of an array with an element for each token, or null.
const Value *parallel(const Metadata &file, const char *key, size_t tokens, bool is_wanted = true) {
    const Value *value = file.find(key, is_wanted);
    if (!value || value->count >= tokens) return is_wanted ? value : nullptr;
    throw file.error(key, "has " + std::to_string(value->count) + " elements for " + std::to_string(tokens) + " tokens");
}

}  // namespace

void read_tokens(const Metadata &file, Vocabulary &vocabulary, const Poll &poll) {
    vocabulary.names = file.require(LIST).strings;
    vocabulary.names->index(poll);
    if (vocabulary.names->find("") != Strings::NOT_FOUND) vocabulary.names = named(*vocabulary.names, vocabulary.warnings, poll);
    const Strings &names = *vocabulary.names;
    const int64_t again = vocabulary.names->index(poll);
    if (again != Strings::NOT_FOUND) {
        const int64_t first = names.find(names[static_cast<size_t>(again)]);
        throw file.error(LIST, "tokens " + std::to_string(first) + " and " + std::to_string(again) +
                                   " are the same, on which llama.cpp aborts");
    }
    vocabulary.tokens = vocabulary.kind->has_sequences ? without_markers(names, poll) : vocabulary.names;
}

void read_scores(const Metadata &file, Vocabulary &vocabulary) {
    const Value *value = parallel(file, SCORES, vocabulary.size(), vocabulary.kind->has_scores);
    if (!value) return;
    if (value->element == FLOAT32) {
        vocabulary.scores = numbers_in<float>(*value);
    } else {
        for (const int32_t number : numbers_in<int32_t>(*value)) vocabulary.scores.push_back(static_cast<float>(number));
    }
    vocabulary.scores.resize(vocabulary.size());
}

void read_attributes(const Metadata &file, Vocabulary &vocabulary) {
    vocabulary.attributes.assign(vocabulary.size(), NORMAL_TOKEN);
    const Value *value = parallel(file, TYPES, vocabulary.size());
    if (!value) return;
    constexpr size_t AT_ONCE = 64;  // mostly all normal, as they are already
    const char *content = value->content().data();
    for (size_t from = 0; from < vocabulary.size(); from += AT_ONCE) {
        uint32_t types[AT_ONCE], others = 0;
        const size_t count = std::min(AT_ONCE, vocabulary.size() - from);
        std::memcpy(types, content + from * sizeof *types, count * sizeof *types);
        for (size_t i = 0; i < count; ++i) others |= types[i] ^ NORMAL_TYPE;
        for (size_t i = others ? 0 : count; i < count; ++i) {
            vocabulary.attributes[from + i] = types[i] < TOKEN_TYPES ? ATTRIBUTE_OF_TYPE[types[i]] : uint16_t(0);
        }
    }
}

void check_byte_tokens(const Metadata &file, const Vocabulary &vocabulary) {
    for_tokens_with(BYTE_TOKEN, vocabulary.attributes, [&](size_t i) {
        if ((*vocabulary.tokens)[i].size() >= 3) return;
        throw file.error(LIST, "token " + std::to_string(i) + " has the type BYTE but not the form <0xXX>");
    });
}

}  // namespace ggufbpe
