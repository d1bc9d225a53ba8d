// What the classes around a place tell about it: whether a match begins or ends there, whatever else the text is.
//
//     Automaton, ColumnGroups -> WindowExplorer -> what a window of classes tells -> windows.h, stage.h
//
// Found by running the automaton over the window from every state that it can be in.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "split/automaton.h"

namespace ggufbpe {

// What a window tells about the place in it that is asked about. Some windows cannot occur: no text leads to them.
enum class Certainty : uint8_t { NO_BOUNDARY, BOUNDARY, UNCERTAIN, IMPOSSIBLE };

// The columns of an automaton in groups: columns that are rare and differ little share one. The last group is the end of
// the text.
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

// Runs the automaton over windows, from every state that it can be in. Where a group has several columns, all of them
// are tried, which can only make more windows uncertain.
//
// Windows are best asked about in their order: what is known after the groups that a window shares with the one before is
// not worked out again.
class WindowExplorer {
public:
    // For windows of `length` groups, asked about the place before window[asked].
    WindowExplorer(const Automaton &automaton, const ColumnGroups &groups, size_t length, size_t asked);

    // Before the window anything may have been, unless it begins with the end value: then it stands at the beginning of a
    // piece.
    Certainty certainty(const Window &window);

private:
    // What may be at the place, as bits, so that outcomes of several ways can be or-ed.
    using Outcomes = uint8_t;
    static constexpr Outcomes NO_BOUNDARY = 1, BOUNDARY = 2, NOT_ASKED = 4;

    // Where the last match may have ended, as bits: before window[i], or one of these.
    using Ends = uint32_t;
    static constexpr size_t NO_MATCH = 0;                      // it began with the window, and has not ended
    static constexpr size_t BEFORE_WINDOW = WIDEST_WINDOW + 1;  // it began earlier, and has not ended

    // One way on which the automaton may be after some groups of a window.
    struct Way {
        uint16_t state;
        uint8_t end;
        bool operator<(const Way &other) const { return state != other.state ? state < other.state : end < other.end; }
        bool operator==(const Way &other) const { return state == other.state && end == other.end; }
    };
    // After some groups: the ways that go on, and where matches ended on those that do not.
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
    Window last_window_ = {};
    size_t shared_ = 0;                        // how many groups of the last window steps_ has
    std::vector<Step> steps_;                  // after so many groups of the last window
    std::vector<std::vector<Outcomes>> from_;  // outcomes_from() of what is behind each place, as far as asked for
};

// What two neighbouring columns tell about the place between them. It refers to the automaton.
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
