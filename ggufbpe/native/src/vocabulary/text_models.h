// A vocabulary to what encodes texts.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "encoder.h"
#include "poll.h"
#include "split/splitter.h"
#include "text_model.h"
#include "vocabulary/vocabulary.h"

namespace ggufbpe {

// `splitter` is that of the vocabulary's pre-tokenizer, null in models without. `made` are the tables of merges if they were
// made before. std::invalid_argument for a vocabulary whose parts do not fit together.
std::shared_ptr<const TextModel> text_model(const Vocabulary &vocabulary, std::shared_ptr<const Splitter> splitter,
                                            size_t cache_bytes, const Poll &poll,
                                            std::shared_ptr<const TableFile> made = nullptr);
// `before` and `behind` are the tokens added to a text.
Encoder encoder_of(const Vocabulary &vocabulary, std::shared_ptr<const TextModel> model, std::vector<int32_t> before,
                   std::vector<int32_t> behind);

// Unigram models: what a text of a line break begins with, before the file's special ids are known; `none` if nothing is left.
int32_t unigram_line_break(const Vocabulary &vocabulary, int32_t unknown, int32_t none, const Poll &poll);

// PLaMo: the token of each byte, NO_TOKEN if there is none. Of several the last counts.
std::vector<int32_t> plamo_byte_tokens(const Vocabulary &vocabulary);

// The byte that a token of the form <0xXX> names, or -1.
int named_byte(std::string_view token);

}  // namespace ggufbpe
