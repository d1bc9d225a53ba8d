// The piece of a token: the bytes that it stands for in a text. ggufbpe/models/pieces.py for C++.
//
// Source: src/llama-vocab.cpp, token_to_piece.

#pragma once

#include <cstdint>
#include <string>

#include "vocabulary/vocabulary.h"

namespace ggufbpe {

// `id` must be in the vocabulary. Unless `special`, control and unknown tokens are empty.
std::string piece_of(const Vocabulary &vocabulary, int32_t id, bool special);

}  // namespace ggufbpe
