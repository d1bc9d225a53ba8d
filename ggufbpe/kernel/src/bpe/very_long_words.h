// Words of more than a few pages, in windows, so that the memory they take is that of a window.

#pragma once

#include <cstddef>

#include "bpe/long_words.h"
#include "bpe/merge_table.h"
#include "bpe/word.h"
#include "ids.h"
#include "poll.h"

namespace ggufbpe {

// Ids of a word; or how many, when those that are certain are dropped on the way.
struct CertainIds {
    Ids &ids;
    const bool are_dropped;
    size_t dropped = 0;
};

bool is_very_long(size_t size);

// Appends the ids of a very long word. False, with nothing appended, if windows were of no use.
bool merge_in_windows(const MergeTable &table, const Word &word, SymbolChain &chain, CertainIds &to, const Poll &poll);

}  // namespace ggufbpe
