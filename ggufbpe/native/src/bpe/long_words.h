// One long word at a time: shorter ones by searching all ranks, longer ones in n log n or better.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bpe/merge_table.h"
#include "bpe/word.h"
#include "memory.h"
#include "poll.h"

namespace ggufbpe {

// A word as a chain of symbols. A symbol's place is where it began, counted in symbols before merging, and each knows the
// places of its neighbours. The memory, some 50 bytes a symbol, is reused for the next word.
class SymbolChain {
public:
    // A longer word has no places.
    static constexpr size_t LONGEST = size_t(1) << 27;  // symbols

    // Merges a word; returns how many symbols are left. They are in symbols(), their places in starts().
    size_t merge(const MergeTable &table, const Word &word, const Poll &poll);

    const Symbol *symbols() const { return symbols_.data(); }
    const uint32_t *starts() const { return before_.data(); }
    size_t bytes() const;

private:
    // The places of all pairs of one rank, linked through next_in_row_ and before_in_row_.
    struct Row {
        uint32_t first = UINT32_MAX, last = UINT32_MAX;
        bool is_sorted = true, is_queued = false;
    };

    void merge_by_search(const MergeTable &table);
    void merge_by_queue(const MergeTable &table, const Poll &poll);
    bool merge_by_rank(const MergeTable &table, const Poll &poll);
    void join_pair(uint32_t at);
    Merge merge_of_pair_at(const MergeTable &table, size_t at) const;
    void add_to_row(uint32_t at);
    void remove_from_row(uint32_t at);
    size_t sort_row(Row &row, Pace &pace);

    size_t count_ = 0;  // symbols at first
    Buffer<Symbol> symbols_;
    Buffer<uint32_t> next_, before_, next_in_row_, before_in_row_;
    Buffer<Merge> merges_;          // of a symbol and the next one
    Buffer<uint32_t> ranks_;        // of the same, if all of them are searched
    std::vector<uint64_t> queue_;   // a heap of rank and place, or of ranks that have a row
    std::vector<Row> rows_;         // by rank; empty ones between words
    std::vector<uint32_t> places_;  // of the row being sorted
};

}  // namespace ggufbpe
