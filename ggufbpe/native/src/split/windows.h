// Word boundaries from five neighbouring code points, many at a time.
//
// Whether a word begins between two code points is nearly always certain from their classes, those of two before and
// of one after them, whatever the rest of the text is: a space after a letter begins a word, a letter after a letter
// does not. Which windows of five classes are certain, and how, is found by running the automaton from every state
// that it can be in. The answer becomes a few products of sets ("this class, then one of those, ..."), eight of them
// to a byte: a window is looked up with at most five table lookups and four ANDs, for 32 code points at a time if the
// processor has byte shuffles. Uncertain windows are left to the automaton (stage.cpp).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "split/automaton.h"

namespace ggufbpe {

class Windows {
public:
    static constexpr size_t MOST_COLUMNS = 15;  // and the end of the text: 16 values, a byte shuffle's

    // `weights` says how frequent the columns are, roughly: it decides which are grouped if there are too many. `column_of` has
    // the column of each class, and of the end of the text.
    Windows(const Automaton &automaton, const std::vector<double> &weights, const std::vector<uint8_t> &column_of);

    // False if there would be too many products.
    bool usable() const { return usable_; }

    // If there are more than MOST_COLUMNS classes: the group of each, to be looked up before mark(). Classes of one column share
    // a group, and if there are too many columns, those that differ least do. Empty if classes can be used directly.
    const std::vector<uint8_t> &group_of() const { return group_of_; }
    uint8_t end() const { return end_; }  // the value of the end of the text

    // For each code point from `from` to `count`: boundary[i] becomes 0xFF if a match certainly begins or ends before it, else
    // 0 (prior boundaries included); uncertain places are appended to `uncertain`. `values`, which are classes or groups, is
    // readable from -3 to count + 32; before the first code point there are three end values. `prior` may be null: then only the
    // first code point is a boundary; else it is readable from -2 to count + 32, and a piece begins where it is 0xFF. `boundary`
    // from `count` to count + 31 may be overwritten.
    void mark(const uint8_t *values, const uint8_t *prior, size_t from, size_t count, uint8_t *boundary,
              std::vector<uint32_t> &uncertain) const;

    // Products of five sets, eight to a byte: a window is in one of them if the AND of the five bytes is not 0.
    struct Group {
        alignas(16) uint8_t table[5][16] = {};
    };

private:
    bool matters(size_t place, size_t values) const;

    bool usable_ = false;
    size_t places_ = 5;  // of a window that matter: all, all but the first (4), or those beside the place asked about (2)
    uint8_t end_ = 0;
    std::vector<uint8_t> group_of_;
    std::vector<Group> certain_;    // windows with a boundary in the middle
    std::vector<Group> uncertain_;  // uncertain windows
};

}  // namespace ggufbpe
