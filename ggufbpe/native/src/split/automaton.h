// Patterns over classes of code points, and the automaton that matches one: an NFA by Thompson's construction, made into a DFA
// by subset construction and minimized (Moore).
//
//     pattern tree (ggufbpe/models/pretokenizers/pattern.py), sets of code points -> Alphabet, Automaton -> stage.h
//
// A pattern matches as in a backtracking matcher that tries alternatives in order: the first way that leads to a match is
// taken. Subset construction over *ordered* lists of places keeps that meaning: when a list reaches a match, the places after
// it can no longer win and are dropped. A condition on the next code point is decided while that code point is read, so "a
// match ends before this code point" belongs to the transition, not to the state.
//
// No text here: the automaton reads class numbers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ggufbpe {

// The class of a code point, one of "LMNPSW-": ggufbpe/_util/unicode_classes.py, class_of.
char class_letter(uint32_t code_point);

// The bit of a class in CharSet::Term::classes.
uint32_t class_bit(char letter);

// A set of code points: those in every one of its terms (ggufbpe/models/pretokenizers/pattern.py: CharSet).
struct CharSet {
    struct Term {
        bool negated = false;
        std::vector<std::pair<uint32_t, uint32_t>> ranges;  // both ends included
        uint32_t classes = 0;                               // bit i: the class CLASS_NAMES[i]
        bool contains(uint32_t code_point, uint32_t class_bit) const;
    };
    std::vector<Term> terms;
    bool contains(uint32_t code_point, char class_letter) const;
};

// The code points, sorted into classes that no set distinguishes. Classes are numbered from 0; fewer than 255.
class Alphabet {
public:
    explicit Alphabet(const std::vector<CharSet> &sets);

    size_t size() const { return members_.size(); }
    size_t sets() const { return members_[0].size(); }
    bool in_set(size_t class_number, size_t set) const { return members_[class_number][set]; }
    // Runs of code points of one class: (first code point, class), ascending.
    const std::vector<std::pair<uint32_t, uint8_t>> &runs() const { return runs_; }

private:
    std::vector<std::vector<bool>> members_;  // [class][set]
    std::vector<std::pair<uint32_t, uint8_t>> runs_;
};

// A pattern as numbers in prefix notation, from ggufbpe/models/pretokenizers/automaton_tables.py.
//   CHARS set | SEQUENCE count parts... | CHOICE count parts... | REPEAT least most part |
//   AHEAD negated set
using Program = std::vector<int32_t>;
enum ProgramCode : int32_t { CHARS = 0, SEQUENCE = 1, CHOICE = 2, REPEAT = 3, AHEAD = 4 };
constexpr int32_t NO_LIMIT = -1;  // the most of a REPEAT

// A deterministic automaton over classes. State 0 has died, state 1 is the start of a match.
class Automaton {
public:
    static constexpr uint16_t DEAD = 0, START = 1;

    // Throws std::invalid_argument for a program that is not well formed, matches nothing at all (the empty text), or
    // needs too many states.
    Automaton(const Program &program, const Alphabet &alphabet);

    size_t classes() const { return classes_; }  // without the end of the text, whose number is classes()
    size_t states() const { return next_.size() / (classes_ + 1); }
    // The state after reading a class.
    uint16_t next(size_t state, size_t class_number) const { return next_[state * (classes_ + 1) + class_number]; }
    // Whether a match longer than any before it may end before that class.
    bool accepts(size_t state, size_t class_number) const { return accepts_[state * (classes_ + 1) + class_number]; }

    // The same automaton with `columns` in place of the classes that it cannot distinguish; `column_of` gets the column of
    // each class.
    Automaton merged(std::vector<uint8_t> &column_of) const;
    // The same automaton over some of the classes, and the end.
    Automaton chosen(std::vector<size_t> classes) const;

private:
    Automaton() = default;
    void minimise();
    size_t classes_ = 0;
    std::vector<uint16_t> next_;    // [state][class]
    std::vector<uint8_t> accepts_;  // [state][class]
};

}  // namespace ggufbpe
