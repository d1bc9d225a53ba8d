#include "bpe/very_long_words.h"

#include <algorithm>

#if !defined(GGUFBPE_WINDOW)
#define GGUFBPE_WINDOW (1 << 14)  // tests take a short one
#endif

namespace ggufbpe {

namespace {

constexpr size_t WINDOW = GGUFBPE_WINDOW;  // bytes; a longer word is very long

// Where one window ends and the next one begins.
struct Seam {
    size_t start = 0;                // of the next window, in the word
    size_t last_start = 0;           // of the last symbol before it
    Symbol last = 0, expected = 0;   // that symbol, and the one that the window found after it
    size_t id_count;                 // ids so far
};

// How many bytes a window may take of the rest: whole characters, unless symbols are bytes.
size_t window_size(const MergeTable &table, const Word &rest, size_t window) {
    size_t size = std::min(window, rest.size);
    if (table.options().byte_encode) return size;
    while (size < rest.size && (rest.data[size] & 0xC0) == 0x80) ++size;
    return size;
}

// How many of a window's symbols are kept: the text after the window may change those in its last sixteenth.
size_t count_kept(const SymbolChain &chain, size_t count) {
    const uint32_t limit = chain.starts()[count - 1] / 16 * 15;
    size_t kept = count;
    while (kept > 0 && (kept == count || chain.starts()[kept] > limit)) --kept;
    return kept;
}

}  // namespace

bool is_very_long(size_t size) { return size > WINDOW; }

// From left to right. Of a window's symbols those near its end, which the following text may change, are left to the next
// window.
//
// Why that is exact: merges in two neighbouring parts of a word happen as they would in each alone until one takes a symbol of
// both, and which of the two parts goes first does not depend on other parts. (A merge in a part is chosen once its rank is the
// lowest of all; if its rank is lower than that of the previous merge in its part, at once. So parts take turns by the highest
// rank so far, which each has by itself; equal ranks go from left to right.) Hence some symbols are the merged word if, and
// only if, every two neighbours are the merged form of their own text. Within a window they are; between windows the pair is
// merged separately. If its two symbols do not come out side by side, a larger window is taken.
bool merge_in_windows(const MergeTable &table, const Word &word, SymbolChain &chain, CertainIds &to, const Poll &poll) {
    Ids &ids = to.ids;
    Seam seam{0, 0, 0, 0, ids.size()}, former = seam;
    const size_t begun = seam.id_count;
    size_t window = WINDOW;
    while (window <= SymbolChain::LONGEST) {
        poll();
        const Word rest{word.data + seam.start, word.size - seam.start};
        const Word part{rest.data, window_size(table, rest, window)};
        const bool is_last = part.size == rest.size;
        const size_t count = chain.merge(table, part, poll);
        const Symbol first = chain.symbols()[0];
        if (seam.start && first != seam.expected) {
            const size_t first_size = count > 1 ? table.size_of_characters(part, chain.starts()[1]) : part.size;
            const Word pair{word.data + seam.last_start, seam.start + first_size - seam.last_start};
            const size_t pair_count = chain.merge(table, pair, poll);
            if (pair_count == 2 && chain.symbols()[0] == seam.last && chain.symbols()[1] == first) {
                seam.expected = first;
                continue;  // merges the window again, since the chain now holds the pair
            }
            if (former.start == seam.start) break;
            seam = former;
            ids.truncate(seam.id_count);
            window *= 2;
            continue;
        }
        const size_t kept = is_last ? count : count_kept(chain, count);
        if (kept == 0) {
            window *= 2;
            continue;
        }
        table.append_ids(part, chain.symbols(), chain.starts(), kept, ids, poll);
        if (is_last) return true;
        if (to.are_dropped) {  // the previous window is certain
            to.dropped += ids.drop_front(seam.id_count);
            seam.id_count = 0;
        }
        former = seam;
        seam.last_start = seam.start + table.size_of_characters(part, chain.starts()[kept - 1]);
        seam.start += table.size_of_characters(part, chain.starts()[kept]);
        seam.last = chain.symbols()[kept - 1];
        seam.expected = chain.symbols()[kept];
        seam.id_count = ids.size();
        window = std::max(WINDOW, window / 2);
    }
    ids.truncate(begun);
    to.dropped = 0;
    return false;
}

}  // namespace ggufbpe
