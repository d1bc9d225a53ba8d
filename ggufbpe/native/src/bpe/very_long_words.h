// Words of more than a few pages, merged in windows, so that they take only the memory of a window.

#pragma once

#include <cstddef>

#include "bpe/long_words.h"
#include "bpe/merge_table.h"
#include "bpe/word.h"
#include "ids.h"
#include "poll.h"

namespace ggufbpe {

// Ids of a word; or only their number, if ids are dropped once they are certain.
struct CertainIds {
    Ids &ids;
    const bool are_dropped;
    size_t dropped = 0;
};

bool is_very_long(size_t size);

// Appends the ids of a very long word. False, with nothing appended, if windows are of no use.
bool merge_in_windows(const MergeTable &table, const Word &word, SymbolChain &chain, CertainIds &to, const Poll &poll);

}  // namespace ggufbpe
