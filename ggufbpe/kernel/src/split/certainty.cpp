#include "split/certainty.h"

#include <limits>

namespace ggufbpe {

ColumnGroups::ColumnGroups(const Automaton &automaton, const std::vector<double> &weights, size_t most) {
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
        double least = std::numeric_limits<double>::infinity();
        size_t first = 0, second = 1;
        for (size_t i = 0; i < members_.size(); ++i) {
            for (size_t k = i + 1; k < members_.size(); ++k) {
                // Every window with one of the two tells less once they share a group.
                const double cost =
                    differences(members_[i][0], members_[k][0]) * (weight(members_[i]) + weight(members_[k]));
                if (cost < least) {
                    least = cost;
                    first = i;
                    second = k;
                }
            }
        }
        members_[first].insert(members_[first].end(), members_[second].begin(), members_[second].end());
        members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(second));
    }
    members_.push_back({static_cast<uint8_t>(automaton.classes())});  // the end
}

std::vector<uint8_t> ColumnGroups::group_of() const {
    std::vector<uint8_t> result(256, 0);
    for (size_t group = 0; group < members_.size(); ++group) {
        for (uint8_t column : members_[group]) result[column] = static_cast<uint8_t>(group);
    }
    return result;
}

WindowExplorer::WindowExplorer(const Automaton &automaton, const ColumnGroups &groups, size_t length, size_t asked)
    : automaton_(automaton), groups_(groups), length_(length), asked_(asked), end_(groups.size() - 1) {
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

Certainty WindowExplorer::certainty(const Window &window) const {
    switch (outcomes(window)) {
        case 0:
            return Certainty::IMPOSSIBLE;
        case NO_BOUNDARY:
            return Certainty::NO_BOUNDARY;
        case BOUNDARY:
            return Certainty::BOUNDARY;
        default:
            return Certainty::UNCERTAIN;
    }
}

WindowExplorer::Outcomes WindowExplorer::outcomes(const Window &window) const {
    if (window[0] == end_) return asked_ == 1 ? BOUNDARY : outcomes_from(window, 1);
    Outcomes found = outcomes_from(window, 0);
    for (uint16_t state : inside_) {
        found |= outcomes_in_match(window, state);
        if (found == (BOUNDARY | NO_BOUNDARY)) break;
    }
    return found;
}

WindowExplorer::WalkResults WindowExplorer::walk(const Window &window, uint16_t state, size_t from, size_t at,
                                                 size_t end) const {
    if (at == length_) return 1u << (2 * end + 1);
    WalkResults results = 0;
    for (uint8_t column : groups_[window[at]]) {
        size_t new_end = at > from && automaton_.accepts(state, column) ? at : end;
        uint16_t next = window[at] == end_ ? Automaton::DEAD : automaton_.next(state, column);
        results |= next == Automaton::DEAD ? 1u << (2 * new_end) : walk(window, next, from, at + 1, new_end);
    }
    return results;
}

// A match that began before the window and takes at least its first code point.
WindowExplorer::Outcomes WindowExplorer::outcomes_in_match(const Window &window, uint16_t state) const {
    return outcomes_after(window, walk(window, state, 0, 0, 0));
}

// A match may begin at window[from], or no match takes the code point there.
WindowExplorer::Outcomes WindowExplorer::outcomes_from(const Window &window, size_t from) const {
    const WalkResults results = walk(window, Automaton::START, from, from, 0);
    Outcomes found = outcomes_after(window, results);
    if (results & 3) found |= outcomes_unmatched(window, from);
    return found;
}

// The match goes on behind the window, or ends at the last place where it may.
WindowExplorer::Outcomes WindowExplorer::outcomes_after(const Window &window, WalkResults results) const {
    constexpr WalkResults RUNNING = 0xAAAAAAAAu;
    Outcomes found = results & RUNNING ? NO_BOUNDARY : 0;
    for (size_t end = 1; end <= length_; ++end) {
        if (!(results >> (2 * end) & 3)) continue;
        found |= end > asked_ ? NO_BOUNDARY : end == asked_ ? BOUNDARY : outcomes_from(window, end);
    }
    return found;
}

// No match takes window[at]. A run of such code points has no boundary inside.
WindowExplorer::Outcomes WindowExplorer::outcomes_unmatched(const Window &window, size_t at) const {
    if (at + 1 < asked_) return outcomes_from(window, at + 1);
    const WalkResults results = walk(window, Automaton::START, asked_, asked_, 0);
    Outcomes found = results >> 2 ? BOUNDARY : 0;
    if (results & 1) found |= NO_BOUNDARY;
    if (results & 2) found |= BOUNDARY | NO_BOUNDARY;
    return found;
}

Certainty certainty_of_pair(const Automaton &automaton, uint8_t first, uint8_t second) {
    const ColumnGroups groups(automaton);
    const std::vector<uint8_t> group_of = groups.group_of();
    return WindowExplorer(automaton, groups, 2, 1).certainty({group_of[first], group_of[second]});
}

}  // namespace ggufbpe
