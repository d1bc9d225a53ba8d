// One stage of a splitter: classes to places where its matches begin and end, by an automaton or a named step.
//
//     classes, boundaries of the previous stage -> Stage -> boundaries -> the next stage, or splitter.h
//
// Most places are decided by windows (windows.h), the rest by walking the automaton.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lazy.h"
#include "memory.h"
#include "poll.h"
#include "split/automaton.h"
#include "split/certainty.h"
#include "split/windows.h"

#if !defined(GGUFBPE_PIECE)
#define GGUFBPE_PIECE (1 << 17)  // tests take a short one
#endif

namespace ggufbpe {

constexpr size_t PIECE = GGUFBPE_PIECE;  // code points looked at together, so that the data about them stays small
constexpr uint8_t BOUNDARY = 0xFF;       // the flag of a place where a match begins or ends; others have 0

class Stage {
public:
    // From ggufbpe/models/pretokenizers/automaton_tables.py: `rule` is empty or a program, `step` empty or the name of a step of
    // ggufbpe/models/pretokenizers/splitter.py; `sets` and `extra` are what the step needs.
    struct Rule {
        Program rule;
        std::string step;
        std::vector<int32_t> sets;
        Program extra;
    };

    // A block of text as a stage sees it.
    struct Block {
        const uint8_t *classes;  // of each code point; then of the one after the block, or the end of the text
        const uint8_t *prior;    // the boundaries that are known before; may be null
        size_t count;            // code points
        bool ends_text;
    };

    // Memory of one caller at a time, reused between calls.
    struct Scratch {
        Buffer<uint8_t> groups;
        std::vector<uint32_t> uncertain;  // code points

        size_t bytes() const { return groups.bytes(); }
    };

    // Appends to `meaning`, for each class of the alphabet, what the class means to this stage. Throws std::invalid_argument if
    // the rule cannot be compiled.
    Stage(const Rule &rule, const Alphabet &alphabet, std::vector<std::vector<int>> &meaning);

    // To be called first: each class of the entry stands for classes of the alphabet that mean the same to all stages, of which
    // `representatives` has one. `ascii` are the classes of the first 128 code points.
    void set_classes(const Rule &rule, const Alphabet &alphabet, const std::vector<size_t> &representatives);
    void set_weights(const uint8_t *ascii);

    // Writes a flag for each code point. Memory in `boundary` after the end of the block may be overwritten.
    void run(const Block &block, uint8_t *boundary, Scratch &scratch, const Poll &poll) const;

    // Whether no match of this stage has the two classes side by side, nor looks past the second.
    bool separates(uint8_t first, uint8_t second) const;
    Certainty certainty_between(uint8_t first, uint8_t second);

private:
    enum class Step { NONE, DIGIT_GROUPS, THOUSANDS, TRAILING_WHITE_SPACE, BLOCKS_OF_WHITE_SPACE, LETTERS_JOINED_BY_SPACES };

    const Windows &windows() const {
        return windows_.get([this] { return std::make_unique<Windows>(*automaton_, weights_, column_of_); });
    }
    bool is_in(size_t set, uint8_t class_number) const { return members_[set][class_number]; }

    void run_automaton(const Block &block, uint8_t *boundary, Scratch &scratch, const Poll &poll) const;
    size_t match_end(const Block &block, size_t from, Pace &pace) const;
    size_t mark_matches(const Block &block, size_t position, size_t until, bool &is_unmatched, uint8_t *boundary,
                        Pace &pace) const;
    template <typename Function>
    void for_each_run(const Block &block, size_t set, const Poll &poll, Function function) const;
    void mark_steps(const Block &block, uint8_t *boundary, const Poll &poll) const;
    void join_letters(const Block &block, uint8_t *boundary, const Poll &poll) const;
    bool is_contraction(const uint8_t *classes, size_t start, size_t end) const;

    Step step_ = Step::NONE;
    std::unique_ptr<Automaton> automaton_;    // over columns; none for steps that only look at sets
    std::unique_ptr<PairExplorer> pairs_;     // made on first use
    std::vector<uint8_t> alphabet_columns_;   // the column of each class of the alphabet
    std::vector<uint8_t> column_of_;          // of each class, and of the end
    std::vector<double> weights_;             // of each column: how frequent it is
    std::vector<std::vector<uint8_t>> members_;  // [set of the step][class]: whether it is in it
    std::unique_ptr<Automaton> contraction_;  // of letters_joined_by_spaces, over classes
    Lazy<Windows> windows_;
};

}  // namespace ggufbpe
