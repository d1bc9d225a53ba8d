#include "split/stage.h"

#include <algorithm>
#include <cstring>

#include "split/certainty.h"
#include "split/classes.h"

namespace ggufbpe {

namespace {

constexpr size_t SHORT = 48;   // code points; for fewer, walking is faster than windows, and needs no tables

}  // namespace

// Where the match that begins at `from` ends; `from` if there is none. A boundary in `prior` ends the piece.
size_t Stage::match(const uint8_t *columns, const uint8_t *prior, size_t count, size_t from) const {
    const Automaton &a = *automaton;
    const size_t end = a.classes();
    uint16_t state = Automaton::START;
    size_t last = from;
    for (size_t i = from;; ++i) {
        size_t c = prior && i > from && prior[i] ? end : columns[i];
        if (a.accepts(state, c)) last = i;
        if (c == end) break;
        state = a.next(state, c);
        if (state == Automaton::DEAD) break;
        // At `count` the block ends, where nothing goes on; the end itself was read as look-ahead.
        if (i == count) break;
    }
    return last;
}

// Marks the matches from `position` on until one ends behind `until`; returns where it stopped. `in_rest` says, before
// and after, that the code point before is in no match.
size_t Stage::walk(const uint8_t *columns, const uint8_t *prior, size_t count, size_t position, size_t until, bool &in_rest,
                   uint8_t *boundary) const {
    while (position < count && position <= until) {
        size_t end = match(columns, prior, count, position);
        if (end == position) {
            if (!in_rest) boundary[position] = 0xFF;
            in_rest = true;
            ++position;
        } else {
            boundary[position] = 0xFF;
            if (end < count) boundary[end] = 0xFF;
            position = end;
            in_rest = false;
        }
    }
    return position;
}

void Stage::run_automaton(const uint8_t *columns, const uint8_t *prior, size_t count, uint8_t *boundary,
                          Scratch &scratch) const {
    if (count < SHORT || !get_windows().usable()) {
        if (prior) {
            std::memcpy(boundary, prior, count);
        } else {
            std::memset(boundary, 0, count);
        }
        boundary[0] = 0xFF;
        bool in_rest = false;
        walk(columns, prior, count, 0, count, in_rest, boundary);
        return;
    }
    const uint8_t *narrow = columns;
    if (!get_windows().group_of().empty()) {
        uint8_t *groups = fitted(scratch.groups, count);
        look_up_each(columns, count + 1, get_windows().group_of().data(), automaton->classes() + 1, groups);
        groups[-3] = groups[-2] = groups[-1] = get_windows().end();
        narrow = groups;
    }
    // In pieces, for in a run of line breaks every place may be uncertain. Where a walk stops may be in a later piece.
    std::vector<uint32_t> &uncertain = scratch.uncertain;
    size_t done = 0;
    bool in_rest = false, is_boundary = false;  // before `done`
    for (size_t from = 0; from < count; from += PIECE) {
        const size_t end = std::min(from + PIECE, count);
        uncertain.clear();
        get_windows().mark(narrow, prior, from, end, boundary, uncertain);
        if (is_boundary && done >= from && done < end) boundary[done] = 0xFF;
        for (uint32_t place : uncertain) {
            if (place < done) continue;
            size_t begin = place;
            while (begin > done && !boundary[begin]) --begin;
            if (begin > done) in_rest = false;
            done = walk(columns, prior, count, begin, place, in_rest, boundary);
            is_boundary = !in_rest;
        }
    }
}

// ---- the steps of ggufbpe/split.py ------------------------------------------------------------------------

// Calls function(first, end) for each run of code points that are in a set and in one piece.
template <typename Function>
void Stage::each_run(const uint8_t *classes, const uint8_t *prior, size_t count, size_t set, Function function) const {
    for (size_t i = 0; i < count;) {
        if (!in(set, classes[i])) {
            ++i;
            continue;
        }
        size_t first = i++;
        while (i < count && in(set, classes[i]) && !(prior && prior[i])) ++i;
        function(first, i);
    }
}

void Stage::run_step(const uint8_t *classes, const uint8_t *columns, const uint8_t *prior, size_t count, uint8_t end_class,
                     uint8_t *boundary, Scratch &scratch) const {
    if (step == LETTERS_JOINED_BY_SPACES) {
        run_automaton(columns, prior, count, boundary, scratch);
        join_letters(classes, count, boundary);
        return;
    }
    if (prior) {
        std::memcpy(boundary, prior, count);
    } else {
        std::memset(boundary, 0, count);
    }
    boundary[0] = 0xFF;
    auto mark = [&](size_t i) {
        if (i < count) boundary[i] = 0xFF;
    };
    switch (step) {
        case DIGIT_GROUPS:
            each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                size_t size = end - first;
                for (size_t i = first + (size % 3 ? size % 3 : 3); i < end; i += 3) mark(i);
                mark(end);
            });
            return;
        case THOUSANDS:
            each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                for (size_t i = first + (end - first) % 3; i < end; i += 3) mark(i);
            });
            return;
        case TRAILING_WHITE_SPACE:
            each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                bool ends_piece = end < count ? prior && prior[end] : classes[count] == end_class || (prior && prior[count]);
                if (ends_piece) mark(first);
            });
            return;
        case BLOCKS_OF_WHITE_SPACE:  // set 0: white space but line breaks; set 1: all white space
            each_run(classes, prior, count, 0, [&](size_t first, size_t end) {
                bool goes_on = !(prior && prior[end]) && in(1, classes[end]);
                if (end - first < 1025 || goes_on) return;
                for (size_t i = first; i < end; i += 512) mark(i);
            });
            return;
        default:
            return;
    }
}

// Words of letters that a single space parts are one. Set 0: letters; set 1: the space.
void Stage::join_letters(const uint8_t *classes, size_t count, uint8_t *boundary) const {
    bool open = false;
    for (size_t start = 0; start < count;) {
        size_t end = start + 1;
        while (end < count && !boundary[end]) ++end;
        bool continues = in(1, classes[start]) && start + 1 < end && in(0, classes[start + 1]);
        if (start && open && continues) {
            boundary[start] = 0;
        } else {
            bool letters = in(0, classes[start]) || (start + 1 < end && in(0, classes[start + 1]));
            open = letters && !is_contraction(classes, start, end);
        }
        start = end;
    }
}

bool Stage::is_contraction(const uint8_t *classes, size_t start, size_t end) const {
    uint16_t state = Automaton::START;
    for (size_t i = start; i < end; ++i) {
        state = contraction->next(state, classes[i]);
        if (state == Automaton::DEAD) return false;
    }
    return contraction->accepts(state, contraction->classes());
}

// ---- pairs of classes ------------------------------------------------------------------------------------

// Whether no match of this stage has the two classes one behind the other, nor looks past the second.
bool Stage::parts(uint8_t first, uint8_t second) const {
    auto both_in = [&](size_t a, size_t b) { return in(a, first) && in(b, second); };
    switch (step) {
        case DIGIT_GROUPS:
        case THOUSANDS:
            return !both_in(0, 0);
        case TRAILING_WHITE_SPACE:
            return !in(0, first);
        case BLOCKS_OF_WHITE_SPACE:
            return !both_in(0, 1);
        case LETTERS_JOINED_BY_SPACES:
            if (in(1, second)) return false;
            break;
        default:
            break;
    }
    const Automaton &a = *automaton;
    for (size_t state = 1; state < a.states(); ++state) {
        uint16_t between = a.next(state, column_of[first]);
        if (a.next(between, column_of[second]) != Automaton::DEAD) return false;
        // Nor may a look-ahead tell the second from the end of the text, which it sees where the text was cut.
        if (a.accepts(between, column_of[second]) != a.accepts(between, a.classes())) return false;
    }
    return true;
}

// 1: a boundary for certain, 0: none for certain, 2: it depends.
int Stage::boundary_between(uint8_t first, uint8_t second) const {
    switch (step) {
        case DIGIT_GROUPS:
            return in(0, first) && !in(0, second);
        case THOUSANDS:
            return in(0, second) ? 2 : 0;
        case TRAILING_WHITE_SPACE:
            return in(0, second) ? 2 : 0;
        case BLOCKS_OF_WHITE_SPACE:
            return in(0, second) ? 2 : 0;
        default: {
            int verdict = certainty_of_pair(*automaton, column_of[first], column_of[second]);
            return verdict == 3 ? 2 : verdict;
        }
    }
}

}  // namespace ggufbpe
