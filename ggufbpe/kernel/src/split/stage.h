// One stage of a splitter: classes to places where its matches begin and end, by an automaton or a step with a name.
//
//     classes, boundaries of the stage before -> Stage -> boundaries -> the next stage, or splitter.h
//
// Most places are told by windows (windows.h), the rest by walking the automaton.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lazy.h"
#include "memory.h"
#include "split/automaton.h"
#include "split/windows.h"

#if !defined(GGUFBPE_PIECE)
#define GGUFBPE_PIECE (1 << 17)  // tests take a short one
#endif

namespace ggufbpe {

constexpr size_t PIECE = GGUFBPE_PIECE;  // code points that are looked at together; what is kept of them is small then

// One stage over the classes of the whole entry.
struct Stage {
    enum Step { NONE, DIGIT_GROUPS, THOUSANDS, TRAILING_WHITE_SPACE, BLOCKS_OF_WHITE_SPACE, LETTERS_JOINED_BY_SPACES };

    // Memory of one caller at a time, to be used again.
    struct Scratch {
        Buffer<uint8_t> groups;
        std::vector<uint32_t> uncertain;  // code points
    };

    Step step = NONE;
    std::unique_ptr<Automaton> automaton;     // over columns; none for steps that only look at sets
    std::vector<uint8_t> column_of;           // of each class, and of the end
    std::vector<double> weights;              // of each column: how frequent it is
    bool is_identity = false;                 // columns are classes
    std::vector<std::vector<bool>> members;   // [set of the step][class]
    std::unique_ptr<Automaton> contraction;   // of letters_joined_by_spaces, over classes
    Lazy<Windows> windows;

    const Windows &get_windows() const {
        return windows.get([this] { return std::make_unique<Windows>(*automaton, weights); });
    }

    bool in(size_t set, uint8_t c) const { return members[set][c]; }

    size_t match(const uint8_t *columns, const uint8_t *prior, size_t count, size_t from) const;
    size_t walk(const uint8_t *columns, const uint8_t *prior, size_t count, size_t position, size_t until, bool &in_rest,
                uint8_t *boundary) const;
    void run_automaton(const uint8_t *columns, const uint8_t *prior, size_t count, uint8_t *boundary, Scratch &scratch) const;
    template <typename Function>
    void each_run(const uint8_t *classes, const uint8_t *prior, size_t count, size_t set, Function function) const;
    void run_step(const uint8_t *classes, const uint8_t *columns, const uint8_t *prior, size_t count, uint8_t end_class,
                  uint8_t *boundary, Scratch &scratch) const;
    void join_letters(const uint8_t *classes, size_t count, uint8_t *boundary) const;
    bool is_contraction(const uint8_t *classes, size_t start, size_t end) const;
    bool parts(uint8_t first, uint8_t second) const;
    int boundary_between(uint8_t first, uint8_t second) const;
};

}  // namespace ggufbpe
