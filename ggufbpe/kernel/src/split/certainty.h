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
class WindowExplorer {
public:
    // For windows of `length` groups, asked about the place before window[asked].
    WindowExplorer(const Automaton &automaton, const ColumnGroups &groups, size_t length, size_t asked);

    // Before the window anything may have been, unless it begins with the end value: then it stands at the beginning of a
    // piece.
    Certainty certainty(const Window &window) const;

private:
    // What may be at the place, as bits, so that outcomes of several ways can be or-ed.
    using Outcomes = unsigned;
    static constexpr Outcomes NO_BOUNDARY = 1, BOUNDARY = 2;
    // What walking a window can give, as bits: bit 2 * end + is_running, where the match may end last before window[end]
    // (0: nowhere), and `is_running` says that the automaton had not died at the end of the window.
    using WalkResults = uint32_t;

    Outcomes outcomes(const Window &window) const;
    WalkResults walk(const Window &window, uint16_t state, size_t from, size_t at, size_t end) const;
    Outcomes outcomes_in_match(const Window &window, uint16_t state) const;
    Outcomes outcomes_from(const Window &window, size_t from) const;
    Outcomes outcomes_after(const Window &window, WalkResults results) const;
    Outcomes outcomes_unmatched(const Window &window, size_t at) const;

    const Automaton &automaton_;
    const ColumnGroups &groups_;
    size_t length_, asked_, end_;
    std::vector<uint16_t> inside_;  // states in the middle of a match
};

// What two neighbouring classes tell about the place between them.
Certainty certainty_of_pair(const Automaton &automaton, uint8_t first, uint8_t second);

}  // namespace ggufbpe
