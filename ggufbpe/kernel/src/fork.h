// What lets a process fork at any moment, whatever other threads do: no lock of ours is held at a fork.
//
// A child has one thread, and a lock that another thread held would be held for ever. So whoever holds a lock is inside a
// gate, and a fork first waits until nobody is. Sections behind the gate are short (milliseconds where a table is copied), and
// no Python code runs in them.
//
// But: threads that were at work are gone in the child, with what they had begun. Who shares work with them asks
// fork_count() whether it is still in the process where it began.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace ggufbpe {

// How many forks lie between the process that loaded this library and the one that asks.
uint64_t fork_count();

// How often a thread found a Mutex held by another one, and waited.
uint64_t lock_waits();

class ForkGate {
public:
    static void enter();
    static void leave();

    // To be called once, before there are threads.
    static void install();
};

// std::mutex behind the gate; to be used with std::lock_guard and std::unique_lock.
class Mutex {
public:
    void lock() {
        ForkGate::enter();
        if (!mutex_.try_lock()) wait();
    }
    bool try_lock() {
        ForkGate::enter();
        if (mutex_.try_lock()) return true;
        ForkGate::leave();
        return false;
    }
    void unlock() {
        mutex_.unlock();
        ForkGate::leave();
    }

private:
    void wait();

    std::mutex mutex_;
};

// What several threads write to during a call. Where the calling thread forks in the middle, nobody knows in which state
// the others left it, so the child does not even destroy it.
template <typename T>
class SharedWork {
public:
    template <typename... Arguments>
    explicit SharedWork(Arguments &&...arguments) : work_(new T(std::forward<Arguments>(arguments)...)) {}
    ~SharedWork() {
        if (begun_ == fork_count()) delete work_;
    }
    SharedWork(const SharedWork &) = delete;
    SharedWork &operator=(const SharedWork &) = delete;
    T &operator*() { return *work_; }
    T *operator->() { return work_; }

private:
    const uint64_t begun_ = fork_count();
    T *work_;
};

// Thrown where the other threads of a call are gone, since this is the child of a fork.
struct Forked {};

}  // namespace ggufbpe
