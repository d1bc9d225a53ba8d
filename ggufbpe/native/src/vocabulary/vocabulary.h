// A vocabulary: everything that a tokenizer needs of a model file, as llama.cpp holds it after loading.
// ggufbpe/models/vocabulary.py for C++.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "string_array.h"
#include "vocabulary/registry_types.h"

namespace ggufbpe {

// The kind of a token; the values are llama.cpp's (include/llama.h: llama_token_attr).
enum TokenAttribute : uint16_t {
    UNKNOWN_TOKEN = 1,
    UNUSED_TOKEN = 2,
    NORMAL_TOKEN = 4,
    CONTROL_TOKEN = 8,
    USER_DEFINED_TOKEN = 16,
    BYTE_TOKEN = 32,
    LSTRIP_TOKEN = 128,
    RSTRIP_TOKEN = 256,
};

// Calls use(id) for the tokens with one of these attributes, in ascending order.
template <typename Use>
void for_tokens_with(unsigned flags, const std::vector<uint16_t> &attributes, Use use) {
    constexpr size_t AT_ONCE = 64;  // most tokens have none of them
    for (size_t from = 0, end; from < attributes.size(); from = end) {
        end = std::min(attributes.size(), from + AT_ONCE);
        unsigned any = 0;
        for (size_t i = from; i < end; ++i) any |= attributes[i];
        for (size_t i = any & flags ? from : end; i < end; ++i) {
            if (attributes[i] & flags) use(i);
        }
    }
}

// Something in a file that llama.cpp changes by itself: `Correction` in ggufbpe/models/vocabulary.py.
struct Correction {
    const char *id;       // for programs
    std::string what;     // for people
    int32_t token;        // that is changed, or NO_TOKEN
};

struct Vocabulary {
    const ModelKind *kind = nullptr;
    PreTokenizer pre{};              // with the flags in force; its name is "" in models without pre-tokenizers
    std::shared_ptr<Strings> tokens;  // their texts, by id
    std::shared_ptr<Strings> names;   // what they are looked up by, indexed; mostly the same
    bool has_merges = false;          // whether the file's merges are used
    std::shared_ptr<Strings> merges;  // "left right", by rank
    std::vector<uint16_t> attributes, first_attributes;  // first: before special tokens were found by their texts, in some models
    std::vector<float> scores;        // of each token, in models that have them; may be empty
    std::string charsmap;
    std::array<int32_t, SPECIAL_ID_COUNT> special_ids{};  // by SpecialId; NO_TOKEN if there is none
    std::vector<int32_t> end_of_generation;               // ascending
    std::vector<int32_t> special_tokens;                  // ascending: those that are found in texts
    bool add_bos = false, add_eos = false, add_sep = false, add_space_prefix = false, lowercase = true, strip_accents = true,
         remove_extra_whitespaces = false, nfc = false, strict_utf8 = true;
    std::vector<std::string> warnings;
    std::vector<Correction> corrections;

    size_t size() const { return tokens->size(); }
    int32_t id_of(const char *name) const { return static_cast<int32_t>(names->find(name)); }  // or NO_TOKEN
    const std::vector<uint16_t> &matched_by() const { return first_attributes.empty() ? attributes : first_attributes; }

    // The tokens that encoding adds before and after a text.
    std::vector<int32_t> before() const;
    std::vector<int32_t> behind() const;
};

}  // namespace ggufbpe
