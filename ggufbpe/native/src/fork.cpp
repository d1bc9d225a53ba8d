#include "fork.h"

#include <atomic>
#include <chrono>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define GGUFBPE_HAS_FORK 1
#endif

namespace ggufbpe {

namespace {

// Threads are spread over shards, so that entering adds to a number that other threads mostly do not use.
constexpr size_t SHARDS = 64;

struct alignas(64) Shard {
    std::atomic<int> inside{0};
};

Shard shards[SHARDS];
std::atomic<int> forking{0};  // threads that are about to fork
std::atomic<uint64_t> forks{0}, waits{0};

struct OwnThread {
    std::atomic<int> &inside;
    int depth = 0;  // of sections that this thread is in
};

OwnThread &own_thread() {
    static std::atomic<size_t> threads{0};
    thread_local OwnThread own{shards[threads.fetch_add(1, std::memory_order_relaxed) % SHARDS].inside};
    return own;
}

void wait_a_while() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

#if GGUFBPE_HAS_FORK

// The forking thread may itself be in a section, which it will leave in both processes.
void before_fork() {
    forking.fetch_add(1);
    const OwnThread &own = own_thread();
    for (Shard &shard : shards) {
        while (shard.inside.load() > (&shard.inside == &own.inside ? own.depth : 0)) wait_a_while();
    }
}

void after_fork_in_parent() { forking.fetch_sub(1); }

// Resets the counts: other threads, some of them on their way in when they saw the fork, cannot take theirs back here.
void after_fork_in_child() {
    const OwnThread &own = own_thread();
    for (Shard &shard : shards) shard.inside.store(&shard.inside == &own.inside ? own.depth : 0);
    forks.fetch_add(1);
    forking.store(0);
}

#endif

}  // namespace

uint64_t fork_count() { return forks.load(std::memory_order_relaxed); }
uint64_t lock_waits() { return waits.load(std::memory_order_relaxed); }

// The order is that of Dekker's algorithm: a thread announces that it is inside and then checks for a fork; the fork announces
// itself and then checks whether any thread is inside.
void ForkGate::enter() {
    OwnThread &own = own_thread();
    if (own.depth++) {
        own.inside.fetch_add(1, std::memory_order_relaxed);  // a thread inside may enter again, or none would get out
        return;
    }
    while (true) {
        own.inside.fetch_add(1);
        if (!forking.load()) return;
        own.inside.fetch_sub(1);
        wait_a_while();
    }
}

void ForkGate::leave() {
    OwnThread &own = own_thread();
    --own.depth;
    own.inside.fetch_sub(1, std::memory_order_release);
}

void ForkGate::install() {
#if GGUFBPE_HAS_FORK
    static const int installed = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    (void)installed;
#endif
}

void Mutex::wait() {
    waits.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
}

}  // namespace ggufbpe
