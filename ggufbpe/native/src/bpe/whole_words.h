// Words that are one token as a whole, in models that ignore merges for them.

#pragma once

#include <cstdint>
#include <vector>

#include "bpe/merge_table.h"
#include "bpe/word.h"
#include "ids.h"
#include "poll.h"

namespace ggufbpe {

// The id of a word that is a token, Strings::NOT_FOUND for one that has to be merged. `written` is reusable memory.
int64_t find_whole_word(const MergeTable &table, const Word &word, std::vector<char> &written, const Poll &poll);

// The same for those of `words` whose numbers are given, which must be short words (short_words.h). Words that are found get
// their result, and their numbers are removed.
void find_whole_words(const MergeTable &table, const Word *words, std::vector<uint32_t> &numbers, WordIds *results, Ids &ids,
                      std::vector<char> &written);

}  // namespace ggufbpe
