#include "bpe/long_words.h"

#include <algorithm>
#include <functional>

#include "machine.h"

namespace ggufbpe {

namespace {

constexpr size_t WORTH_QUEUE = 512;       // symbols; for fewer, searching all ranks is faster than a queue
constexpr size_t WORTH_ROWS = 1024;       // symbols; from here on, all pairs of a rank are merged together
constexpr size_t MERGES_A_POLL = 1 << 20;    // merges
constexpr size_t SORTS_A_SYMBOL = 32;     // how often a place may be sorted, on average, before rows are given up
constexpr uint32_t NOWHERE = UINT32_MAX;  // no place in a word

void push(std::vector<uint64_t> &queue, uint64_t item) {
    queue.push_back(item);
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
}
uint64_t pop(std::vector<uint64_t> &queue) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const uint64_t item = queue.back();
    queue.pop_back();
    return item;
}

// Where the lowest rank is, the leftmost of equal ones. Two simple loops, which compilers turn into vector instructions.
ALWAYS_INLINE uint32_t place_of_lowest_of_many_by_any(const uint32_t *ranks, size_t count) {
    uint32_t lowest = ranks[0];
    for (size_t i = 1; i < count; ++i) lowest = std::min(lowest, ranks[i]);
    constexpr size_t BLOCK = 32;
    size_t start = 0;
    for (; start + BLOCK <= count; start += BLOCK) {
        uint32_t is_here = 0;
        for (size_t i = 0; i < BLOCK; ++i) is_here |= ranks[start + i] == lowest;
        if (is_here) break;
    }
    while (ranks[start] != lowest) ++start;
    return static_cast<uint32_t>(start);
}

#if GGUFBPE_X86
WITH_AVX2 uint32_t place_of_lowest_of_many_by_avx2(const uint32_t *ranks, size_t count) {
    return place_of_lowest_of_many_by_any(ranks, count);
}
uint32_t place_of_lowest_of_many(const uint32_t *ranks, size_t count) {
    return has_avx2() ? place_of_lowest_of_many_by_avx2(ranks, count) : place_of_lowest_of_many_by_any(ranks, count);
}
#else
uint32_t place_of_lowest_of_many(const uint32_t *ranks, size_t count) { return place_of_lowest_of_many_by_any(ranks, count); }
#endif

}  // namespace

size_t SymbolChain::bytes() const {
    return symbols_.bytes() + next_.bytes() + before_.bytes() + next_in_row_.bytes() + before_in_row_.bytes() +
           merges_.bytes() + ranks_.bytes() + queue_.capacity() * sizeof(uint64_t) + rows_.capacity() * sizeof(Row) +
           places_.capacity() * sizeof(uint32_t);
}

size_t SymbolChain::merge(const MergeTable &table, const Word &word, const Poll &poll) {
    Symbol *const symbols = symbols_.room(word.size + 1);
    count_ = table.write_symbols(word, symbols, poll);
    next_.room(count_);
    before_.room(count_);
    merges_.room(count_);
    Pace pace(poll);
    for (size_t i = 0; i < count_; ++i) {
        pace.count(8);
        next_[i] = static_cast<uint32_t>(i + 1);
        before_[i] = i ? static_cast<uint32_t>(i - 1) : NOWHERE;
        merges_[i] = merge_of_pair_at(table, i);
    }
    if (count_ < WORTH_QUEUE) {
        merge_by_search(table);
    } else if (count_ < WORTH_ROWS || !merge_by_rank(table, poll)) {
        merge_by_queue(table, poll);
    }
    size_t kept = 0;
    for (size_t at = 0; at < count_; at = next_[at]) {
        pace.count(1);
        symbols[kept] = symbols[at];
        before_[kept++] = static_cast<uint32_t>(at);
    }
    return kept;
}

Merge SymbolChain::merge_of_pair_at(const MergeTable &table, size_t at) const {
    return next_[at] < count_ ? table.merge(symbols_[at], symbols_[next_[at]]) : NO_MERGE;
}

// Makes one symbol of the pair at a place. The caller updates the merges of the two pairs that it is then in.
void SymbolChain::join_pair(uint32_t at) {
    const uint32_t right = next_[at], after = next_[right];
    symbols_[at] = merges_[at].result;
    merges_[right] = NO_MERGE;
    next_[at] = after;
    if (after < count_) before_[after] = at;
}

// Searches for the lowest rank anew before each merge. Quadratic in the length, but few instructions a symbol and no
// unpredictable branch; a queue has one at each of its levels.
void SymbolChain::merge_by_search(const MergeTable &table) {
    uint32_t *const ranks = ranks_.room(count_);
    for (size_t i = 0; i < count_; ++i) ranks[i] = merges_[i].rank;
    const auto update_pair = [&](uint32_t at) {
        merges_[at] = merge_of_pair_at(table, at);
        ranks[at] = merges_[at].rank;
    };
    for (;;) {
        const uint32_t at = place_of_lowest_of_many(ranks, count_);
        if (ranks[at] == Merge::NO_RANK) return;
        ranks[next_[at]] = Merge::NO_RANK;
        join_pair(at);
        update_pair(at);
        if (before_[at] != NOWHERE) update_pair(before_[at]);
    }
}

// A priority queue of pairs. An item is rank and place in one number; it is stale if the pair at its place has another rank
// than when it was pushed.
void SymbolChain::merge_by_queue(const MergeTable &table, const Poll &poll) {
    queue_.clear();
    Pace pace(poll);
    const auto item_of = [](Merge merge, size_t at) { return uint64_t(merge.rank) << 32 | at; };
    for (size_t at = 0; at < count_; at = next_[at]) {
        pace.count(1);
        if (merges_[at].exists()) queue_.push_back(item_of(merges_[at], at));
    }
    std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
    const auto update_pair = [&](uint32_t at) {
        merges_[at] = merge_of_pair_at(table, at);
        if (merges_[at].exists()) push(queue_, item_of(merges_[at], at));
    };
    for (size_t popped = 1; !queue_.empty(); ++popped) {
        if (popped % MERGES_A_POLL == 0) poll();
        const uint64_t item = pop(queue_);
        const uint32_t at = static_cast<uint32_t>(item);
        if (!merges_[at].exists() || merges_[at].rank != item >> 32) continue;
        join_pair(at);
        update_pair(at);
        if (before_[at] != NOWHERE) update_pair(before_[at]);
    }
}

void SymbolChain::add_to_row(uint32_t at) {
    const uint64_t rank = merges_[at].rank;
    Row &row = rows_[rank];
    if (row.first == NOWHERE) {
        row.first = at;
        row.is_sorted = true;
        if (!row.is_queued) {
            row.is_queued = true;
            push(queue_, rank);
        }
    } else if (at < row.first) {  // stays sorted: where tokens share a score, a merge makes another pair of its own rank here
        next_in_row_[at] = row.first;
        before_in_row_[row.first] = at;
        before_in_row_[at] = NOWHERE;
        row.first = at;
        return;
    } else {
        row.is_sorted = row.is_sorted && row.last < at;
        next_in_row_[row.last] = at;
    }
    before_in_row_[at] = row.first == at ? NOWHERE : row.last;
    next_in_row_[at] = NOWHERE;
    row.last = at;
}

void SymbolChain::remove_from_row(uint32_t at) {
    Row &row = rows_[merges_[at].rank];
    const uint32_t before = before_in_row_[at], next = next_in_row_[at];
    (before == NOWHERE ? row.first : next_in_row_[before]) = next;
    (next == NOWHERE ? row.last : before_in_row_[next]) = before;
}

// Returns how many places were sorted.
size_t SymbolChain::sort_row(Row &row, Pace &pace) {
    places_.clear();
    for (uint32_t at = row.first; at != NOWHERE; at = next_in_row_[at]) {
        pace.count(1);
        places_.push_back(at);
    }
    if (places_.size() < Pace::STEPS / 16) {
        std::sort(places_.begin(), places_.end());
    } else {
        std::sort(places_.begin(), places_.end(), [&](uint32_t a, uint32_t b) {
            pace.count(1);
            return a < b;
        });
    }
    row.first = row.last = NOWHERE;
    for (uint32_t at : places_) {
        pace.count(16);
        before_in_row_[at] = row.last;
        next_in_row_[at] = NOWHERE;
        (row.last == NOWHERE ? row.first : next_in_row_[row.last]) = at;
        row.last = at;
    }
    row.is_sorted = true;
    return places_.size();
}

// The pairs of one rank are a row, in the order of their places: all of them are merged in one pass through the word, so the
// time per symbol does not grow with the word, and memory is read in order. False, with the chain as far as it got, if rows
// would have to be sorted again and again; trained merges do not cause that.
bool SymbolChain::merge_by_rank(const MergeTable &table, const Poll &poll) {
    struct EmptyRows {  // for the next word, whatever happens to this one
        std::vector<Row> &rows;
        bool are_empty = false;
        ~EmptyRows() {
            if (!are_empty) rows.clear();
        }
    } guard{rows_};
    Pace pace(poll);
    if (rows_.size() != table.rank_count()) {
        rows_.clear();
        rows_.reserve(table.rank_count());
        in_pieces(table.rank_count(), poll, [&](size_t, size_t end) { rows_.resize(end); });
    }
    next_in_row_.room(count_);
    before_in_row_.room(count_);
    queue_.clear();
    const auto set_merge = [&](uint32_t at, Merge merge) {
        if (merges_[at].exists()) remove_from_row(at);
        merges_[at] = merge;
        if (merge.exists()) add_to_row(at);
    };
    for (size_t i = 0; i < count_; ++i) {
        pace.count(4);
        if (merges_[i].exists()) add_to_row(static_cast<uint32_t>(i));
    }
    size_t merged = 0, may_sort = SORTS_A_SYMBOL * count_;
    while (!queue_.empty()) {
        const uint64_t rank = queue_.front();
        Row &row = rows_[rank];
        if (row.first == NOWHERE) {
            row.is_queued = false;
            pop(queue_);
            continue;
        }
        if (!row.is_sorted) {
            const size_t sorted = sort_row(row, pace);
            if (sorted > may_sort) return false;
            may_sort -= sorted;
        }
        while (row.first != NOWHERE && row.is_sorted && queue_.front() == rank) {
            if (++merged % MERGES_A_POLL == 0) poll();
            const uint32_t at = row.first, right = next_[at];
            remove_from_row(at);
            if (merges_[right].exists()) remove_from_row(right);
            join_pair(at);
            merges_[at] = NO_MERGE;
            // In the order that keeps rows sorted: new places go to the front of this row, to the end of others.
            const Merge merge = merge_of_pair_at(table, at);
            const bool is_next = merge.exists() && merge.rank == rank;
            if (is_next) set_merge(at, merge);
            if (before_[at] != NOWHERE) set_merge(before_[at], merge_of_pair_at(table, before_[at]));
            if (!is_next) set_merge(at, merge);
        }
    }
    guard.are_empty = true;
    return true;
}

}  // namespace ggufbpe
