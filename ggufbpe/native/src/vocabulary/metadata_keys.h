// Keys of GGUF metadata that hold the vocabulary (gguf-py/gguf/constants.py, Keys.Tokenizer).
#pragma once

namespace ggufbpe {

inline constexpr const char *MODEL = "tokenizer.ggml.model", *PRE = "tokenizer.ggml.pre", *LIST = "tokenizer.ggml.tokens",
                            *SCORES = "tokenizer.ggml.scores", *TYPES = "tokenizer.ggml.token_type",
                            *MERGES = "tokenizer.ggml.merges", *CHARSMAP = "tokenizer.ggml.precompiled_charsmap",
                            *ADD_BOS = "tokenizer.ggml.add_bos_token", *NFC = "tokenizer.ggml.normalizer.nfc";

}  // namespace ggufbpe
