// How long work is interrupted.

#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>

namespace ggufbpe {

// Called now and then in long work; may throw to end it (a pressed Ctrl-C). The caller must hold no lock: the poll may run
// signal handlers, and these may do anything.
using Poll = std::function<void()>;

// For work that must not be interrupted.
inline const Poll NO_POLL = [] {};

// Polls in loops of small steps, so seldom that it costs nothing and often enough to come every few milliseconds.
class Pace {
public:
    static constexpr size_t STEPS = size_t(1) << 20;
    static constexpr size_t LOOKUP = 32;  // the steps of finding a token
    static constexpr size_t OBJECT = 64;  // the steps of making or reading an object of Python

    explicit Pace(const Poll &poll) : poll_(poll) {}

    // `steps`: bytes that were looked at, or anything that takes about as long.
    void count(size_t steps) {
        done_ += steps;
        if (done_ >= STEPS) ask();
    }

    const Poll &poll() const { return poll_; }

private:
    void ask() {
        done_ = 0;
        poll_();
    }

    const Poll &poll_;
    size_t done_ = 0;
};

// Calls work(from, end) for pieces of `count` steps, in order, and polls between them.
template <typename Work>
void in_pieces(size_t count, const Poll &poll, Work work) {
    for (size_t from = 0; from < count; from += Pace::STEPS) {
        if (from) poll();
        work(from, std::min(from + Pace::STEPS, count));
    }
}

// The first number from `from` on for which is_it(number) holds; `end` if there is none. Polls, however far that is.
template <typename IsIt>
size_t find_first(size_t from, size_t end, Pace &pace, IsIt is_it) {
    while (from < end) {
        const size_t begun = from, stop = from + std::min(end - from, Pace::STEPS);
        while (from < stop && !is_it(from)) ++from;
        pace.count(from - begun);
        if (from < stop) break;
    }
    return from;
}

}  // namespace ggufbpe
