// Metadata to a vocabulary, by llama.cpp's rules. ggufbpe/models/loading.py and the files around it are the same in Python, for
// the reference engine and for the words of errors.
//
//     gguf/metadata.h -> load() -> Vocabulary -> text_models.h -> Encoder
//                              \-> bind_loading.cpp -> ggufbpe/models/compiled_loading.py
//
// Source of every rule: src/llama-vocab.cpp, llama_vocab::impl::load, in its order.

#pragma once

#include <set>
#include <string>

#include "gguf/metadata.h"
#include "poll.h"
#include "vocabulary/vocabulary.h"

namespace ggufbpe {

// The tokenizer model of a name, or null.
const ModelKind *model_kind(const std::string &name);

// What an older state of llama.cpp does not know: models, pre-tokenizers, texts of special tokens, and rules by name
// (ggufbpe/_util/llama_cpp_states.py).
using Lacking = std::set<std::string>;

// The vocabulary without its merges. Throws LoadError if llama.cpp would refuse it, and what `poll` throws.
Vocabulary load(const Metadata &file, const Lacking &lacking, const Poll &poll);

// Steps of loading. token_table.cpp:
void read_tokens(const Metadata &file, Vocabulary &vocabulary, const Poll &poll);
void read_scores(const Metadata &file, Vocabulary &vocabulary);
void read_attributes(const Metadata &file, Vocabulary &vocabulary);
void check_byte_tokens(const Metadata &file, const Vocabulary &vocabulary);
// special_ids.cpp:
void set_special_ids(const Metadata &file, Vocabulary &vocabulary);
void find_special_tokens(Vocabulary &vocabulary, const Lacking &lacking);
void find_end_of_generation(Vocabulary &vocabulary, const Lacking &lacking);
void set_strip_attributes(const Metadata &file, const std::string &named_pre, Vocabulary &vocabulary);
// checks.cpp: what some models refuse
void check_model(const Metadata &file, Vocabulary &vocabulary, const Poll &poll);
bool has_line_break(const Vocabulary &vocabulary);

}  // namespace ggufbpe
