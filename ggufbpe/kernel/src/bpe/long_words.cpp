// Words of many symbols: by a queue, and longer ones rank by rank.

#include "bpe/merger.h"

#include <algorithm>

namespace ggufbpe {

namespace {

constexpr size_t LONG_WORD = 1024;      // symbols; from here on all pairs of a rank are merged together
constexpr size_t POLL_EVERY = 1 << 20;  // merges
constexpr uint32_t NOWHERE = UINT32_MAX;  // no place in a word

}  // namespace

// The symbols of a word into scratch.symbols, which are as many as is returned; scratch.before says where each began, in
// symbols that were not merged yet. A long word is a chain of symbols: a symbol's place is where it began, and each knows
// its neighbours' places.
size_t Merger::merge_long(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    uint32_t *symbols = scratch.symbols.room(size + 1);
    const size_t count = write_symbols(word, size, symbols);
    scratch.next.room(count);
    scratch.before.room(count);
    scratch.values.room(count);
    for (size_t i = 0; i < count; ++i) {
        scratch.next[i] = static_cast<uint32_t>(i + 1);
        scratch.before[i] = static_cast<uint32_t>(i - 1);
        scratch.values[i] = i + 1 < count ? pair(symbols[i], symbols[i + 1]) : NONE;
    }
    if (count < LONG_WORD || !merge_by_rank(count, scratch, poll)) merge_by_queue(count, scratch, poll);
    size_t kept = 0;
    for (size_t at = 0; at < count; at = scratch.next[at]) {
        symbols[kept] = symbols[at];
        scratch.before[kept++] = static_cast<uint32_t>(at);
    }
    return kept;
}

// A priority queue of pairs: n log n in the length of the word. An item of the queue is rank and left place in one
// number; it is stale when the pair at its place has another rank by now.
void Merger::merge_by_queue(size_t count, Scratch &scratch, const Poll &poll) const {
    uint32_t *symbols = scratch.symbols.data();
    Buffer<uint32_t> &next = scratch.next, &before = scratch.before;
    Buffer<uint64_t> &values = scratch.values;
    std::vector<uint64_t> &heap = scratch.heap;
    heap.clear();
    auto item_of = [](uint64_t value, size_t at) { return (value >> 32) << 32 | at; };
    for (size_t at = 0; at < count; at = next[at]) {
        if (values[at] != NONE) heap.push_back(item_of(values[at], at));
    }
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
    auto update = [&](uint32_t at) {
        values[at] = next[at] < count ? pair(symbols[at], symbols[next[at]]) : NONE;
        if (values[at] == NONE) return;
        heap.push_back(item_of(values[at], at));
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    };
    for (size_t turn = 1; !heap.empty(); ++turn) {
        if (turn % POLL_EVERY == 0) poll();
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const uint64_t item = heap.back();
        heap.pop_back();
        const uint32_t at = static_cast<uint32_t>(item);
        if (values[at] == NONE || values[at] >> 32 != item >> 32) continue;
        join(at, count, scratch);
        update(at);
        if (before[at] != NOWHERE) update(before[at]);
    }
}

// Makes one symbol of the pair at a place. The values of the pairs that it is in are left to the caller.
void Merger::join(uint32_t at, size_t count, Scratch &scratch) const {
    const uint32_t right = scratch.next[at], behind = scratch.next[right];
    scratch.symbols[at] = static_cast<uint32_t>(scratch.values[at]);
    scratch.values[right] = NONE;
    scratch.next[at] = behind;
    if (behind < count) scratch.before[behind] = at;
}

// The pairs of one rank, in the order of their places: all of them are merged in one go through the word, so the time
// for a symbol does not grow with the word, and memory is read in order. A pair is in the row of its rank as long as it
// stands. False, with nothing lost, where rows have to be sorted again and again, as no trained merges make it happen.
bool Merger::merge_by_rank(size_t count, Scratch &scratch, const Poll &poll) const {
    uint32_t *symbols = scratch.symbols.data();
    Buffer<uint32_t> &next = scratch.next, &before = scratch.before;
    Buffer<uint32_t> &row_next = scratch.row_next, &row_before = scratch.row_before;
    Buffer<uint64_t> &values = scratch.values;
    std::vector<uint64_t> &ranks = scratch.heap;  // a queue of ranks that have a row
    struct Rows {  // empty again whatever happens
        std::vector<Row> &rows;
        ~Rows() {
            if (!done) rows.clear();
        }
        bool done = false;
    } guard{scratch.rows};
    scratch.rows.resize(rank_count_);
    row_next.room(count);
    row_before.room(count);
    ranks.clear();

    auto append = [&](uint32_t at) {
        const uint64_t rank = values[at] >> 32;
        Row &row = scratch.rows[rank];
        if (row.first == NOWHERE) {
            row.first = at;
            row.is_sorted = true;
            if (!row.is_queued) {
                row.is_queued = true;
                ranks.push_back(rank);
                std::push_heap(ranks.begin(), ranks.end(), std::greater<>());
            }
        } else {
            row.is_sorted = row.is_sorted && row.last < at;
            row_next[row.last] = at;
        }
        row_before[at] = row.first == at ? NOWHERE : row.last;
        row_next[at] = NOWHERE;
        row.last = at;
    };
    auto remove = [&](uint32_t at) {
        Row &row = scratch.rows[values[at] >> 32];
        const uint32_t one = row_before[at], other = row_next[at];
        (one == NOWHERE ? row.first : row_next[one]) = other;
        (other == NOWHERE ? row.last : row_before[other]) = one;
    };
    auto update = [&](uint32_t at) {
        if (values[at] != NONE) remove(at);
        values[at] = next[at] < count ? pair(symbols[at], symbols[next[at]]) : NONE;
        if (values[at] != NONE) append(at);
    };
    auto sort = [&](Row &row) {
        std::vector<uint32_t> &places = scratch.places;
        places.clear();
        for (uint32_t at = row.first; at != NOWHERE; at = row_next[at]) places.push_back(at);
        std::sort(places.begin(), places.end());
        row.first = row.last = NOWHERE;
        for (uint32_t at : places) {
            row_before[at] = row.last;
            row_next[at] = NOWHERE;
            (row.last == NOWHERE ? row.first : row_next[row.last]) = at;
            row.last = at;
        }
        row.is_sorted = true;
        return places.size();
    };

    for (size_t i = 0; i < count; ++i) {
        if (values[i] != NONE) append(static_cast<uint32_t>(i));
    }
    size_t turn = 0, may_sort = 32 * count;
    while (!ranks.empty()) {
        const uint64_t rank = ranks.front();
        Row &row = scratch.rows[rank];
        if (row.first == NOWHERE) {
            row.is_queued = false;
            std::pop_heap(ranks.begin(), ranks.end(), std::greater<>());
            ranks.pop_back();
            continue;
        }
        if (!row.is_sorted) {
            const size_t sorted = sort(row);
            if (sorted > may_sort) return false;
            may_sort -= sorted;
        }
        while (row.first != NOWHERE && row.is_sorted && ranks.front() == rank) {
            if (++turn % POLL_EVERY == 0) poll();
            const uint32_t at = row.first, right = next[at];
            remove(at);
            if (values[right] != NONE) remove(right);
            join(at, count, scratch);
            values[at] = NONE;
            if (before[at] != NOWHERE) update(before[at]);
            update(at);
        }
    }
    guard.done = true;
    return true;
}

}  // namespace ggufbpe
