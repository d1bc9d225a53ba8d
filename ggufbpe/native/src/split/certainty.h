// Whether a match certainly begins or ends at a position, by the classes around it alone, whatever the rest of the text.
//
//     Automaton, ColumnGroups -> WindowExplorer -> certainty of a window of classes -> windows.h, stage.h
//
// Certainty is found by running the automaton (a DFA) over the window from every state that it can be in.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "split/automaton.h"

namespace ggufbpe {

// What a window says about the place asked about. Some windows are impossible: no text leads to them.
enum class Certainty : uint8_t { NO_BOUNDARY, BOUNDARY, UNCERTAIN, IMPOSSIBLE };

// The columns of an automaton in groups: rare columns that differ little share one. The last group is the end of the text.
class ColumnGroups {
public:
    explicit ColumnGroups(const Automaton &automaton) : ColumnGroups(automaton, {}, automaton.classes()) {}

    // At most `most` groups and the end. `weights` says how frequent each column is.
    ColumnGroups(const Automaton &automaton, const std::vector<double> &weights, size_t most);

    size_t size() const { return members_.size(); }
    const std::vector<uint8_t> &operator[](size_t group) const { return members_[group]; }

    // The group of each column, 256 entries.
    std::vector<uint8_t> group_of() const;

private:
    std::vector<std::vector<uint8_t>> members_;
};

constexpr size_t WIDEST_WINDOW = 5;
using Window = std::array<uint8_t, WIDEST_WINDOW>;  // groups

// Runs the automaton over windows, from every state that it can be in. If a group has several columns, all of them are
// tried, which can only make more windows uncertain.
//
// Windows are best asked about in order: results for the groups that a window shares with the previous one are reused.
class WindowExplorer {
public:
    // For windows of `length` groups, asked about the place before window[asked].
    WindowExplorer(const Automaton &automaton, const ColumnGroups &groups, size_t length, size_t asked);

    // Anything may come before the window, unless it begins with the end value: then it is at the beginning of a piece.
    Certainty certainty(const Window &window);

private:
    // The possible outcomes at the place, as bits, so that those of several ways can be or-ed.
    using Outcomes = uint8_t;
    static constexpr Outcomes NO_BOUNDARY = 1, BOUNDARY = 2, NOT_ASKED = 4;

    // Where the last match may have ended, as bits: before window[i], or one of these.
    using Ends = uint32_t;
    static constexpr size_t NO_MATCH = 0;                      // it began with the window, and has not ended
    static constexpr size_t BEFORE_WINDOW = WIDEST_WINDOW + 1;  // it began earlier, and has not ended

    // One state that the automaton may be in after some groups of a window.
    struct Way {
        uint16_t state;
        uint8_t end;
        bool operator<(const Way &other) const { return state != other.state ? state < other.state : end < other.end; }
        bool operator==(const Way &other) const { return state == other.state && end == other.end; }
    };
    // After some groups: the ways that continue, and where matches ended on those that do not.
    struct Step {
        std::vector<Way> ways;
        Ends ends = 0;
    };

    Outcomes outcomes(const Window &window);
    Outcomes outcomes_from(const Window &window, size_t from);
    Outcomes outcomes_of(const Window &window, size_t from, const Step &last);
    Outcomes outcomes_unmatched(const Window &window, size_t at);
    void advance(const Window &window, size_t from, size_t at, const Step &before, Step &after) const;
    Step walk(const Window &window, size_t from) const;

    const Automaton &automaton_;
    const ColumnGroups &groups_;
    const size_t length_, asked_, end_;
    const std::vector<bool> will_match_;  // of each state: whatever follows, a match ends there or later
    Window last_window_ = {};
    size_t shared_ = 0;                        // how many groups of the last window are in steps_
    std::vector<Step> steps_;                  // after so many groups of the last window
    std::vector<std::vector<Outcomes>> from_;  // outcomes_from() of each place, as far as known
};

// What two neighbouring columns say about the place between them. It refers to the automaton.
class PairExplorer {
public:
    explicit PairExplorer(const Automaton &automaton)
        : groups_(automaton), group_of_(groups_.group_of()), explorer_(automaton, groups_, 2, 1) {}
    PairExplorer(const PairExplorer &) = delete;
    PairExplorer &operator=(const PairExplorer &) = delete;

    Certainty certainty(uint8_t first, uint8_t second) { return explorer_.certainty({group_of_[first], group_of_[second]}); }

private:
    const ColumnGroups groups_;
    const std::vector<uint8_t> group_of_;
    WindowExplorer explorer_;
};

}  // namespace ggufbpe
