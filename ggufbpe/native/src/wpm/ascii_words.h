// Words of ASCII, 64 places at a time: letters and digits form words, every other visible character stands alone.

#pragma once

#include <cstddef>
#include <cstdint>

#include "words.h"

namespace ggufbpe {

// Adds words from `at` on, as long as there is only ASCII without control characters, no words of more than 64 bytes and 64
// bytes left; returns where they end, which is not inside a word.
size_t find_ascii_words(const unsigned char *text, size_t size, size_t at, Words &words);

}  // namespace ggufbpe
