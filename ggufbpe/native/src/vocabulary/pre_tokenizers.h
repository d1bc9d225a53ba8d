// The pre-tokenizers of registry.h: ggufbpe/models/pretokenizers/ for C++.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "split/automaton.h"
#include "split/splitter.h"
#include "vocabulary/registry_types.h"

namespace ggufbpe {

// The entry of a name in tokenizer.ggml.pre, or null.
const PreTokenizer *pre_tokenizer(const std::string &name);

// The splitter of an entry. Throws std::invalid_argument for numbers that make none.
std::shared_ptr<const Splitter> splitter_of(const PreTokenizer &entry);

// A set as numbers: how many terms it has, then for each: whether it is negated, classes as bits, how many ranges, then low
// and high of each. Throws std::invalid_argument for a set that ends too early.
CharSet set_of(const std::vector<uint32_t> &numbers);

}  // namespace ggufbpe
