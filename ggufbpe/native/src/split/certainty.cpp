#include "split/certainty.h"

#include <algorithm>
#include <limits>
#include <utility>

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
                // Every window with one of the two says less once they share a group.
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

namespace {

// States from which a match, longer than any before, certainly comes: each class, and the end of the text, ends one or leads to
// such a state.
std::vector<bool> states_that_match(const Automaton &automaton) {
    std::vector<bool> result(automaton.states(), true);
    result[Automaton::DEAD] = false;
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (size_t state = 1; state < result.size(); ++state) {
            for (size_t c = 0; result[state] && c <= automaton.classes(); ++c) {
                if (automaton.accepts(state, c) || (c < automaton.classes() && result[automaton.next(state, c)])) continue;
                result[state] = false;
                is_changed = true;
            }
        }
    }
    return result;
}

}  // namespace

WindowExplorer::WindowExplorer(const Automaton &automaton, const ColumnGroups &groups, size_t length, size_t asked)
    : automaton_(automaton),
      groups_(groups),
      length_(length),
      asked_(asked),
      end_(groups.size() - 1),
      will_match_(states_that_match(automaton)),
      steps_(length + 1) {
    std::vector<bool> reached(automaton.states(), false);  // in the middle of a match
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
    steps_[0].ways.push_back({Automaton::START, NO_MATCH});
    for (size_t state = 0; state < reached.size(); ++state) {
        if (reached[state]) steps_[0].ways.push_back({static_cast<uint16_t>(state), BEFORE_WINDOW});
    }
    size_t windows = 1;
    from_.resize(length);
    for (size_t from = length; from-- > 1;) from_[from].assign(windows *= groups.size(), NOT_ASKED);
}

Certainty WindowExplorer::certainty(const Window &window) {
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

WindowExplorer::Outcomes WindowExplorer::outcomes(const Window &window) {
    if (window[0] == end_) return asked_ == 1 ? BOUNDARY : outcomes_from(window, 1);
    size_t at = 0;
    while (at < shared_ && window[at] == last_window_[at]) ++at;
    for (; at < length_; ++at) advance(window, 0, at, steps_[at], steps_[at + 1]);
    last_window_ = window;
    shared_ = length_;
    return outcomes_of(window, 0, steps_[length_]);
}

// A match may begin at window[from], or no match takes the code point there.
WindowExplorer::Outcomes WindowExplorer::outcomes_from(const Window &window, size_t from) {
    size_t number = 0;
    for (size_t at = from; at < length_; ++at) number = number * groups_.size() + window[at];
    Outcomes found = from_[from][number];
    if (found == NOT_ASKED) {
        found = outcomes_of(window, from, walk(window, from));
        from_[from][number] = found;
    }
    return found;
}

// The outcomes of the ways through a window from window[from] on. A way that continues after the window may end differently
// there, or not at all.
WindowExplorer::Outcomes WindowExplorer::outcomes_of(const Window &window, size_t from, const Step &last) {
    Outcomes found = last.ways.empty() ? 0 : NO_BOUNDARY;
    Ends ends = last.ends;
    for (const Way &way : last.ways) ends |= 1u << way.end;
    for (size_t end = from + 1; end <= length_; ++end) {
        if (!(ends >> end & 1)) continue;
        found |= end > asked_ ? NO_BOUNDARY : end == asked_ ? BOUNDARY : outcomes_from(window, end);
    }
    if (ends >> NO_MATCH & 1) found |= outcomes_unmatched(window, from);
    return found;
}

// No match takes window[at]. A run of such code points has no boundary inside.
WindowExplorer::Outcomes WindowExplorer::outcomes_unmatched(const Window &window, size_t at) {
    if (at + 1 < asked_) return outcomes_from(window, at + 1);
    const Step last = walk(window, asked_);
    Outcomes found = last.ends >> (NO_MATCH + 1) ? BOUNDARY : 0;
    if (last.ends >> NO_MATCH & 1) found |= NO_BOUNDARY;
    for (const Way &way : last.ways) {
        found |= BOUNDARY;
        if (way.end == NO_MATCH && !will_match_[way.state]) found |= NO_BOUNDARY;
    }
    return found;
}

// All ways that begin a match at window[from].
WindowExplorer::Step WindowExplorer::walk(const Window &window, size_t from) const {
    Step before, after;
    before.ways.push_back({Automaton::START, NO_MATCH});
    for (size_t at = from; at < length_; ++at) {
        advance(window, from, at, before, after);
        std::swap(before, after);
    }
    return before;
}

void WindowExplorer::advance(const Window &window, size_t from, size_t at, const Step &before, Step &after) const {
    after.ways.clear();
    after.ends = before.ends;
    for (const Way &way : before.ways) {
        for (uint8_t column : groups_[window[at]]) {
            const bool ends = at > from && automaton_.accepts(way.state, column);
            const uint8_t end = ends ? static_cast<uint8_t>(at) : way.end;
            const uint16_t next = window[at] == end_ ? Automaton::DEAD : automaton_.next(way.state, column);
            if (next == Automaton::DEAD) {
                after.ends |= 1u << end;
            } else {
                after.ways.push_back({next, end});
            }
        }
    }
    std::sort(after.ways.begin(), after.ways.end());
    after.ways.erase(std::unique(after.ways.begin(), after.ways.end()), after.ways.end());
}

}  // namespace ggufbpe
