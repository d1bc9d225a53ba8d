// Lets a process fork at any moment, whatever other threads do: none of our locks is held at a fork.
//
// A child has one thread, and a lock that another thread held would stay locked. So a thread that holds a lock is inside a
// gate, and a fork first waits until no thread is. Sections inside the gate are short (milliseconds where a table is copied),
// and no Python code runs in them.
//
// Threads that were working do not exist in the child, nor does their work. Code that shares work with them asks fork_count()
// whether it is still in the process where it began.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace ggufbpe {

// How many forks lie between the process that loaded this library and the calling one.
uint64_t fork_count();

// How often a thread waited for a Mutex held by another.
uint64_t lock_waits();

class ForkGate {
public:
    static void enter();
    static void leave();

    // To be called once, before there are threads.
    static void install();
};

// A std::mutex inside the gate; to be used with std::lock_guard and std::unique_lock.
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

// Data that several threads write to during a call. If the calling thread forks in the middle, the state in which the others
// left it is unknown, so the child does not even destroy it.
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

// Thrown if the other threads of a call are gone, because this is the child of a fork.
struct Forked {};

}  // namespace ggufbpe
