// A vocabulary of ggufbpe/models/vocabulary.py for C++, without its strings.
#pragma once

#include <nanobind/nanobind.h>

#include "vocabulary/vocabulary.h"

namespace ggufbpe {

// What encoding needs of it. Throws std::invalid_argument for a tokenizer model that there is not.
Vocabulary vocabulary_of(nanobind::handle given);

}  // namespace ggufbpe
