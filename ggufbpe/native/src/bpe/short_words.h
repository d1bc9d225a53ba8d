// Many short words at once. In a short word, searching all ranks for the lowest before each merge is faster than a queue.
//
// Words take turns, one merge each, so that the memory one waits for is on its way while others work.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bpe/merge_table.h"
#include "bpe/word.h"
#include "ids.h"

namespace ggufbpe {

constexpr size_t SHORT_WORD = 62;  // bytes, so symbols at most: one bit each in a number, and one at either end

// A word being merged. Whatever its next step reads from memory was fetched in the step before.
//
// A symbol keeps its place when others are merged; `alive` has a bit for each that is left. Before the first symbol and after
// the last one stands no_symbol(), which has no merge with anything, so that no symbol lacks a neighbour.
struct Lane {
    static constexpr size_t PLACES = SHORT_WORD + 2;
    static constexpr uint32_t SPARE = PLACES - 1;  // no pair is ever here

    Word word;
    uint32_t number;               // of the word
    uint64_t alive;
    size_t count;                  // symbols at first
    uint32_t left_at, right_at;    // the two pairs that the last merge made,
    PairTable::Query left, right;  // and the lookups of their own merges
    bool has_fetched_pairs;        // at first: the merges of all pairs are still to be read
    alignas(64) uint32_t ranks[PLACES];  // of the merge of the symbol at a place and the next one
    alignas(64) Symbol results[PLACES];  // the results of these merges
    alignas(64) Symbol symbols[PLACES];  // the first at 1
};

// Merges those of `words` whose numbers are given, `count` of at most SHORT_WORD bytes each; appends their ids to `ids`
// and writes to results[number] where they are. `lanes` is reusable memory.
void merge_short_words(const MergeTable &table, const Word *words, const uint32_t *numbers, size_t count, WordIds *results,
                       Ids &ids, std::vector<Lane> &lanes);

}  // namespace ggufbpe
