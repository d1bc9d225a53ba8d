// Words of more than a few pages, in windows.

#include "bpe/merger.h"

#include <algorithm>

#if !defined(GGUFBPE_WINDOW)
#define GGUFBPE_WINDOW (1 << 14)  // tests take a short one
#endif

namespace ggufbpe {

namespace {

constexpr size_t VERY_LONG_WORD = GGUFBPE_WINDOW;  // bytes; from here on a word is merged in windows of so many

}  // namespace

bool Merger::is_very_long(size_t size) { return size > VERY_LONG_WORD; }

// A very long word from left to right, in windows, so that the memory it takes is that of a window. Of a window's symbols
// those near its end, which what follows may change, are left to the next window.
//
// Why that is exact: merges go on in two neighbouring parts of a word as they would in each alone until one takes a symbol
// of both, and which of the two parts goes on first does not depend on other parts. (What is next in a part is chosen as
// soon as its rank is the lowest; if a rank is lower than the one before in its part, it is chosen at once. So parts take
// turns by the highest rank so far, which each knows by itself; equal ranks go from left to right.) Hence some symbols are
// what becomes of a word if, and only if, every two neighbours are what becomes of their own text. Within a window they
// are; between windows it is looked up. Where two do not stand side by side, a larger window is taken. False, with nothing
// written, if it was of no use.
bool Merger::merge_in_windows(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    struct Seam {
        size_t start = 0;             // of the window behind it
        size_t last_start = 0;        // of the symbol before it
        uint32_t last = 0, next = 0;  // that symbol, and the one that was expected behind it
        size_t ids;                   // how many there were
    };
    Seam seam{0, 0, 0, 0, scratch.ids.size()}, former = seam;
    const size_t begun = seam.ids;
    size_t window = VERY_LONG_WORD;
    while (window <= LONGEST_WORD) {
        poll();
        const unsigned char *const text = word + seam.start;
        const size_t rest = size - seam.start;
        size_t length = std::min(window, rest);
        if (!options_.byte_encode) {
            while (length < rest && (text[length] & 0xC0) == 0x80) ++length;
        }
        const size_t count = merge_long(text, length, scratch, poll);
        if (seam.start && scratch.symbols[0] != seam.next) {
            const uint32_t first = scratch.symbols[0];
            const size_t pair_end = seam.start + (count > 1 ? behind({text, length}, scratch.before[1]) : length);
            const size_t pair = merge_long(word + seam.last_start, pair_end - seam.last_start, scratch, poll);
            if (pair == 2 && scratch.symbols[0] == seam.last && scratch.symbols[1] == first) {
                seam.next = first;
                continue;  // once more, for scratch has the pair now
            }
            if (former.start == seam.start) break;
            seam = former;
            scratch.ids.truncate(seam.ids);
            window *= 2;
            continue;
        }
        size_t kept = count;
        if (length < rest) {
            const uint32_t most = scratch.before[count - 1] / 16 * 15;
            while (kept > 0 && (kept == count || scratch.before[kept] > most)) --kept;
            if (kept == 0) {
                window *= 2;
                continue;
            }
        }
        append_ids({text, length}, scratch.symbols.data(), scratch.before.data(), kept, scratch.ids);
        if (length == rest) return true;
        if (scratch.counts) {  // the window before stands
            scratch.dropped += scratch.ids.drop_front(seam.ids);
            seam.ids = 0;
        }
        former = seam;
        seam.last_start = seam.start + behind({text, length}, scratch.before[kept - 1]);
        seam.start += behind({text, length}, scratch.before[kept]);
        seam.last = scratch.symbols[kept - 1];
        seam.next = scratch.symbols[kept];
        seam.ids = scratch.ids.size();
        window = std::max(VERY_LONG_WORD, window / 2);
    }
    scratch.ids.truncate(begun);
    scratch.dropped = 0;
    return false;
}

}  // namespace ggufbpe
