// What the classes around a place tell about it: whether a match begins or ends there, whatever else the text is.
//
//     Automaton, Groups -> Explorer -> what a window of classes tells -> windows.h, stage.h
//
// Found by running the automaton over the window from every state that it can be in.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "split/automaton.h"

namespace ggufbpe {

// What can be at the place asked about: bits, so that several ways can be or-ed.
constexpr int NO_BOUNDARY = 1, BOUNDARY = 2;

// The columns of an automaton in groups, at most `most` of them: rare ones that differ little go together.
class Groups {
public:
    explicit Groups(const Automaton &automaton) : Groups(automaton, {}, automaton.classes()) {}

    Groups(const Automaton &automaton, const std::vector<double> &weights, size_t most);

    size_t size() const { return members_.size(); }
    const std::vector<uint8_t> &operator[](size_t group) const { return members_[group]; }

    std::vector<uint8_t> group_of() const;

private:
    std::vector<std::vector<uint8_t>> members_;
};

constexpr size_t WIDEST = 5;
using Window = std::array<uint8_t, WIDEST>;

// Runs the automaton over windows, from every state that it can be in. Where a group has several columns, all of them
// are tried, which can only make more windows uncertain.
class Explorer {
public:
    Explorer(const Automaton &automaton, const Groups &groups, size_t length, size_t asked);

    // The possible outcomes at window[asked], where before the window anything may have been. A window that begins with
    // the end value stands at the beginning of a piece.
    int outcomes(const Window &window) const;

private:
    uint32_t walk(const Window &window, uint16_t state, size_t from, size_t at, size_t end) const;
    int in_match(const Window &window, uint16_t state) const;
    int from_start(const Window &window, size_t from) const;
    static int alive(uint32_t results);
    int after_end(const Window &window, uint32_t results) const;
    int left_over(const Window &window, size_t at) const;

    const Automaton &automaton_;
    const Groups &groups_;
    size_t length_, asked_, end_;
    std::vector<uint16_t> inside_;
};

// What a window tells.
enum Verdict : uint8_t { CERTAIN_NO, CERTAIN_YES, UNCERTAIN, NEVER };

Verdict verdict(int outcomes);

// Whether a match can begin or end between two classes in one way only, whatever is around them: 1 a boundary for
// certain, 0 none for certain, 2 uncertain, 3 the two never stand together.
int certainty_of_pair(const Automaton &automaton, uint8_t first, uint8_t second);

}  // namespace ggufbpe
