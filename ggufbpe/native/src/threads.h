// Work shared by several threads, and ids put in the order of the text, whichever thread has them first.
//
//     parts -> [on_threads] -> a part on each thread -> [OrderedIds] -> ids
//
// No pool: a thread starts in less time than 20 KB of text take, and a process that forks has none to lose. Threads start
// each other, so that the last of 64 is the sixth in its row, not the 63rd of the caller's.

#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fork.h"
#include "machine.h"
#include "poll.h"
#include "sink.h"

namespace ggufbpe {

// The remaining turns, for all threads that share them.
class WorkCounter {
public:
    explicit WorkCounter(size_t count) : count_(count) {}

    // The next one; false if there is none, or when all must stop.
    bool take(size_t &turn) {
        if (stopped()) return false;
        turn = next_.fetch_add(1, std::memory_order_relaxed);
        return turn < count_;
    }
    void stop() { stop_.store(true, std::memory_order_relaxed); }
    bool stopped() const { return stop_.load(std::memory_order_relaxed); }

private:
    const size_t count_;
    std::atomic<size_t> next_{0};
    std::atomic<bool> stop_{false};
};

// Calls run(turns, poll, is_caller) on up to `threads` threads, including the calling one; each takes turns, of which there
// are `count`, until none is left, and calls its poll in between. When all have stopped, an exception of the calling thread is
// thrown, since it may be a signal's, or else the first one. In the
// child of a fork during a poll the other threads are gone, and Forked is thrown: data that they may have written to must be
// SharedWork.
template <typename Run>
void on_threads(size_t count, size_t threads, const Poll &poll, Run run) {
    if (threads <= 1 || count <= 1) {
        WorkCounter turns(count);
        run(turns, poll, true);
        return;
    }
    struct Stopped {};
    struct State {
        explicit State(size_t count) : turns(count) {}
        WorkCounter turns;
        std::mutex error_mutex;
        std::exception_ptr error;
        std::vector<std::thread> started;  // the first is the caller's place, and stays empty
    };
    SharedWork<State> state(count);
    state->started.resize(std::min(threads, count));
    const uint64_t forks = fork_count();
    const auto run_here = [&](const Poll &poll_here, bool is_caller) {
        try {
            run(state->turns, poll_here, is_caller);
        } catch (...) {
            if (fork_count() != forks) throw;  // in the child there is no thread to lock out or to wait for
            std::lock_guard<std::mutex> lock(state->error_mutex);
            if (!state->error || is_caller) state->error = std::current_exception();
            state->turns.stop();
        }
    };
    const Poll look_at_stop = [&] {
        if (state->turns.stopped()) throw Stopped();
    };
    const Poll look_at_forks = [&] {  // made before there are threads, since it takes memory
        poll();
        if (fork_count() != forks) throw Forked();
    };
    // Of the threads from `place`, which is the calling one, up to `end`, the middle one starts the second half.
    const std::function<void(size_t, size_t)> start_others = [&](size_t place, size_t end) {
        try {
            for (size_t middle; end - place > 1; end = middle) {
                middle = place + (end - place) / 2;
                state->started[middle] = std::thread([&, middle, end] {
                    start_others(middle, end);
                    run_here(look_at_stop, false);
                });
            }
        } catch (const std::exception &) {
            // Fewer threads than asked for do the same.
        }
    };
    start_others(0, state->started.size());
    run_here(look_at_forks, true);
    // One that starts others stands before them: once it is joined, what it wrote is seen here.
    for (std::thread &thread : state->started) {
        if (thread.joinable()) thread.join();
    }
    if (state->error) std::rethrow_exception(state->error);
}

// Runs work(threads). If a poll forks in the middle, the child has lost the other threads and their work: it does
// the work once more, alone.
template <typename Work>
void though_forked(size_t threads, Work work) {
    try {
        work(threads);
    } catch (const Forked &) {
        work(size_t(1));
    }
}

// Appends the ids of parts in order. A part's ids are copied by the thread that brings them, while they are in its cache; if
// the part before is missing, they wait, and the thread that brings that one copies them.
class OrderedIds {
public:
    OrderedIds(Sink &to, size_t parts) : to_(to), waiting_(parts), is_waiting_(parts, false) {}

    // Returns empty ids for the next part, in memory that was used before if there is any.
    Ids put(size_t part, Ids &&ids) {
        std::unique_lock<std::mutex> lock(mutex_);
        waiting_[part] = std::move(ids);
        is_waiting_[part] = true;
        while (!growing_ && next_ < waiting_.size() && is_waiting_[next_]) {
            Ids one = std::move(waiting_[next_++]);
            if (!to_.has_room(one.size())) grow(one.size(), lock);
            int32_t *place = to_.room(one.size());
            to_.advance(place + one.size());
            ++copying_;
            lock.unlock();
            if (one.size()) copy_past_caches(place, one.data(), one.size() * sizeof(int32_t));
            one.clear();
            lock.lock();
            if (--copying_ == 0) none_copies_.notify_all();
            spare_.push_back(std::move(one));
        }
        if (spare_.empty()) return Ids();
        Ids found = std::move(spare_.back());
        spare_.pop_back();
        return found;
    }

private:
    // The ids may move: not while others copy to them. In the meantime no part gets a place.
    void grow(size_t count, std::unique_lock<std::mutex> &lock) {
        growing_ = true;
        none_copies_.wait(lock, [&] { return copying_ == 0; });
        to_.room(count);
        growing_ = false;
    }

    Sink &to_;
    std::mutex mutex_;
    std::condition_variable none_copies_;
    std::vector<Ids> waiting_;
    std::vector<bool> is_waiting_;
    std::vector<Ids> spare_;
    size_t next_ = 0;     // the first part that has no place yet
    size_t copying_ = 0;  // threads that copy
    bool growing_ = false;
};

}  // namespace ggufbpe
