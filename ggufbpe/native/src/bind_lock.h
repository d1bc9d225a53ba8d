// When a call holds the interpreter's lock (the GIL), and when it releases the lock for other threads.
//
// Releasing the lock lets other threads run. Taking it back takes as long as its holder likes: a thread that runs Python
// code gives it up after 5 ms (sys.getswitchinterval). So a call asks for it seldom: to look at signals, and to make Python
// objects of its results. And if the lock proved hard to get lately, a call keeps it at first: most calls are done before
// another thread would have got it anyway.

#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fork.h"
#include "poll.h"
#include "stable_abi.h"

namespace ggufbpe {

// A thread that wants the lock when the interpreter has begun to end is ended where it stands (before Python 3.14); with
// glibc by unwinding its stack, which C++ does not survive. It is stopped here instead, until the process ends.
class StopsUnwinding {
public:
    ~StopsUnwinding();
    void done() { is_done_ = true; }

private:
    bool is_done_ = false;
};

// Runs work(), which may run Python code and so release the lock and retake it: a garbage collection is enough for that, and a
// new list for a garbage collection. It throws nothing, and has nothing to destroy.
template <typename Work>
auto in_python(Work work) {
    StopsUnwinding stopped;
    if constexpr (std::is_void_v<decltype(work())>) {
        work();
        stopped.done();
    } else {
        const auto found = work();
        stopped.done();
        return found;
    }
}

// The interpreter's lock during one call, which begins and ends with it held.
class InterpreterLock {
public:
    // For a call about so many bytes.
    explicit InterpreterLock(size_t bytes);
    ~InterpreterLock();
    InterpreterLock(const InterpreterLock &) = delete;
    InterpreterLock &operator=(const InterpreterLock &) = delete;

    // To be called now and then during the work. Releases the lock if the call has had it for long, and lets a pressed Ctrl-C
    // end the work (nb::python_error).
    void poll();

    // Whether it is time to make Python objects of the results so far.
    bool is_due_to_take();

    static uint64_t requests();  // how often all calls together took it back

    bool take();  // false if it was held
    void release();

private:
    using Clock = std::chrono::steady_clock;

    const bool is_short_;       // then the lock is held throughout
    const bool runs_handlers_;  // of signals; only the main thread does
    PyThreadState *state_ = nullptr;  // while the lock is not held
    uint32_t counted_after_ = 0;      // how many forks this call was counted
    Clock::time_point begun_, looked_at_signals_, made_objects_;
};

// The Poll of work that keeps the lock.
extern const Poll LOOK_AT_SIGNALS;

// Releases the lock for the duration of a block.
class Unlocked {
public:
    Unlocked();
    ~Unlocked();
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

private:
    PyThreadState *state_;
};

// A lock for threads that have released the interpreter's lock. Unlike a Mutex it may be held for long, so a fork does not
// wait for it: in the child of a fork during that time it cannot be had.
class LongLock {
public:
    void lock();  // throws std::runtime_error in that child
    void unlock() { holder_.store(NOBODY, std::memory_order_release); }

private:
    static constexpr uint64_t NOBODY = 0;

    std::atomic<uint64_t> holder_{NOBODY};  // the process that holds it: fork_count() + 1
};

}  // namespace ggufbpe
