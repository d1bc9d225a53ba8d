// How work that takes long is interrupted.

#pragma once

#include <cstddef>
#include <functional>

namespace ggufbpe {

// Asked now and then in long work; may throw to end it (a pressed Ctrl-C). Whoever asks holds no lock: what is asked may
// run the handlers of signals, and these may do anything.
using Poll = std::function<void()>;

// For work that is not to be interrupted.
inline const Poll NO_POLL = [] {};

// Asks in loops of small steps, once in so many of them that it costs nothing and still comes every few milliseconds.
class Pace {
public:
    static constexpr size_t STEPS = size_t(1) << 20;

    explicit Pace(const Poll &poll) : poll_(poll) {}

    // `steps`: bytes that were looked at, or what else takes about as long.
    void count(size_t steps) {
        done_ += steps;
        if (done_ >= STEPS) ask();
    }

private:
    void ask() {
        done_ = 0;
        poll_();
    }

    const Poll &poll_;
    size_t done_ = 0;
};

}  // namespace ggufbpe
