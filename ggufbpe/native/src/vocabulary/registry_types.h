// The types of registry.h: ggufbpe/models/pretokenizers/registry.py (PreTokenizer) and models/tokenizer_model.py
// (TokenizerModel) for C++, as far as loading asks for them.

#pragma once

#include <cstddef>
#include <cstdint>

namespace ggufbpe {

// What one name in tokenizer.ggml.pre stands for.
struct PreTokenizer {
    const char *name;
    const int32_t *numbers;  // sets and stages: pre_tokenizers.cpp
    size_t count;
    bool byte_encode, escape_whitespaces, clean_spaces, ignore_merges, add_bos, add_sep, no_default_bos, newline_runs,
        prepend_space, lowercase, always_add_bos;
};

constexpr size_t SPECIAL_ID_COUNT = 14;
enum SpecialId : size_t { BOS, EOS, EOT, EOM, UNK, SEP, PAD, MASK, FIM_PRE, FIM_SUF, FIM_MID, FIM_PAD, FIM_REP, FIM_SEP, NO_SPECIAL_ID };

constexpr int32_t NO_TOKEN = -1;

// What all vocabularies of one tokenizer.ggml.model share.
struct ModelKind {
    const char *name;
    const char *own_pre;  // in force whatever tokenizer.ggml.pre says; "" in most models
    bool has_pre_tokenizer, add_eos, add_space_prefix, has_scores, composes, keeps_first_attributes, refuses_short_byte_tokens,
        drops_white_space, has_sequences;
    SpecialId before[2], behind[2];         // what is added to a text: without the flag add_bos (add_eos), and with it
    int32_t default_ids[SPECIAL_ID_COUNT];  // of a file that names none
    PreTokenizer without;                   // the flags of a model that has no pre-tokenizers
};

// A special id: keys that set it, of which the later wins, and texts by which it is found if no key names it.
struct SpecialKind {
    const char *name;  // in messages
    const char *keys[4];
    const char *texts[16];
};

}  // namespace ggufbpe
