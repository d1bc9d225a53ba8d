#include "split/certainty.h"

namespace ggufbpe {

Groups::Groups(const Automaton &automaton, const std::vector<double> &weights, size_t most) {
    for (size_t column = 0; column < automaton.classes(); ++column) members_.push_back({static_cast<uint8_t>(column)});
    auto weight = [&](const std::vector<uint8_t> &group) {
        double sum = 0;
        for (uint8_t column : group) sum += weights[column];
        return sum;
    };
    auto differences = [&](uint8_t a, uint8_t b) {
        size_t count = 0;
        for (size_t state = 1; state < automaton.states(); ++state) {
            count += automaton.next(state, a) != automaton.next(state, b) ||
                     automaton.accepts(state, a) != automaton.accepts(state, b);
        }
        return static_cast<double>(count);
    };
    while (members_.size() > most) {
        double best = 1e300;
        size_t one = 0, other = 1;
        for (size_t i = 0; i < members_.size(); ++i) {
            for (size_t k = i + 1; k < members_.size(); ++k) {
                // Every window with one or the other tells less.
                double found = differences(members_[i][0], members_[k][0]) *
                               (weight(members_[i]) + weight(members_[k]));
                if (found < best) {
                    best = found;
                    one = i;
                    other = k;
                }
            }
        }
        members_[one].insert(members_[one].end(), members_[other].begin(), members_[other].end());
        members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(other));
    }
    members_.push_back({static_cast<uint8_t>(automaton.classes())});  // the end
}

std::vector<uint8_t> Groups::group_of() const {
    std::vector<uint8_t> result(256, 0);
    for (size_t group = 0; group < members_.size(); ++group) {
        for (uint8_t column : members_[group]) result[column] = static_cast<uint8_t>(group);
    }
    return result;
}

Explorer::Explorer(const Automaton &automaton, const Groups &groups, size_t length, size_t asked)
    : automaton_(automaton), groups_(groups), length_(length), asked_(asked), end_(groups.size() - 1) {
    // States in the middle of a match.
    std::vector<bool> reached(automaton.states(), false);
    std::vector<uint16_t> todo{Automaton::START};
    while (!todo.empty()) {
        uint16_t state = todo.back();
        todo.pop_back();
        for (size_t c = 0; c < automaton.classes(); ++c) {
            uint16_t next = automaton.next(state, c);
            if (next != Automaton::DEAD && !reached[next]) {
                reached[next] = true;
                todo.push_back(next);
            }
        }
    }
    for (size_t state = 0; state < reached.size(); ++state) {
        if (reached[state]) inside_.push_back(static_cast<uint16_t>(state));
    }
}

int Explorer::outcomes(const Window &window) const {
    if (window[0] == end_) return asked_ == 1 ? BOUNDARY : from_start(window, 1);
    int found = from_start(window, 0);
    for (uint16_t state : inside_) {
        found |= in_match(window, state);
        if (found == (BOUNDARY | NO_BOUNDARY)) break;
    }
    return found;
}

// What walking a window can give, as bits: bit 2 * end + alive, where the match may end last before window[end] (0:
// nowhere), and `alive` says that the automaton was still running at the end of the window.
uint32_t Explorer::walk(const Window &window, uint16_t state, size_t from, size_t at, size_t end) const {
    if (at == length_) return 1u << (2 * end + 1);
    uint32_t results = 0;
    for (uint8_t column : groups_[window[at]]) {
        size_t new_end = at > from && automaton_.accepts(state, column) ? at : end;
        uint16_t next = window[at] == end_ ? Automaton::DEAD : automaton_.next(state, column);
        results |= next == Automaton::DEAD ? 1u << (2 * new_end) : walk(window, next, from, at + 1, new_end);
    }
    return results;
}

// A match that began before the window and goes on over its first code point at least.
int Explorer::in_match(const Window &window, uint16_t state) const {
    uint32_t results = walk(window, state, 0, 0, 0);
    return alive(results) | after_end(window, results);
}

// A match may begin at window[from], or the code point there is left over.
int Explorer::from_start(const Window &window, size_t from) const {
    uint32_t results = walk(window, Automaton::START, from, from, 0);
    int found = alive(results) | after_end(window, results);
    if (results & 3) found |= left_over(window, from);
    return found;
}

int Explorer::alive(uint32_t results) { return results & 0xAAAAAAAAu ? NO_BOUNDARY : 0; }

// A match ends at the last place where it may: the last in the window, or one behind it.
int Explorer::after_end(const Window &window, uint32_t results) const {
    int found = 0;
    for (size_t end = 1; end <= length_; ++end) {
        if (!(results >> (2 * end) & 3)) continue;
        found |= end > asked_ ? NO_BOUNDARY : end == asked_ ? BOUNDARY : from_start(window, end);
    }
    return found;
}

// window[at] is in no match; so it goes with what is left over behind it.
int Explorer::left_over(const Window &window, size_t at) const {
    if (at + 1 < asked_) return from_start(window, at + 1);
    uint32_t results = walk(window, Automaton::START, asked_, asked_, 0);
    int found = results >> 2 ? BOUNDARY : 0;
    if (results & 1) found |= NO_BOUNDARY;
    if (results & 2) found |= BOUNDARY | NO_BOUNDARY;
    return found;
}

Verdict verdict(int outcomes) {
    return outcomes == 0 ? NEVER : outcomes == NO_BOUNDARY ? CERTAIN_NO : outcomes == BOUNDARY ? CERTAIN_YES : UNCERTAIN;
}

int certainty_of_pair(const Automaton &automaton, uint8_t first, uint8_t second) {
    const Groups columns(automaton);
    const std::vector<uint8_t> group_of = columns.group_of();
    return verdict(Explorer(automaton, columns, 2, 1).outcomes({group_of[first], group_of[second]}));
}

}  // namespace ggufbpe
