// What a normal token stands for. plain_piece in ggufbpe/models/tokenizer_model.py for C++.
//
// Source: src/llama-vocab.cpp, token_to_piece and llama_decode_text.

#pragma once

#include <string>
#include <string_view>

namespace ggufbpe {

// `is_byte_level`: tokens are written in GPT-2's alphabet; otherwise U+2581 stands for a space.
std::string plain_piece(std::string_view text, bool is_byte_level);

}  // namespace ggufbpe
