// How much threads have in common, counted: locks that are taken, locks that were held by another thread, and atomic writes to
// cache lines that several threads write, per megabyte of text. None of these depends on how many processors there are, so they
// say on two what 64 would wait for.
//
//     kernel, compiled for ThreadSanitizer -> its calls for each atomic access -> [this file, in place of its runtime] -> counts
//
//     program [THREADS]...

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>

#include "entries.h"

namespace {

using namespace ggufbpe;

constexpr size_t LINE = 64;        // bytes of a cache line
constexpr size_t LINES = 1 << 22;  // those that differ in their lowest bits are told apart
constexpr uint32_t SEVERAL = UINT32_MAX;

struct Counts {
    uint64_t locks = 0, waits = 0, writes = 0, busiest = 0;
};

std::atomic<bool> is_counting{false};
std::atomic<uint32_t> threads_begun{0};
std::atomic<uint64_t> locks{0}, waits{0};
// Of each line: who wrote it, or SEVERAL; and how often.
std::unique_ptr<std::atomic<uint32_t>[]> writers(new std::atomic<uint32_t>[LINES]);
std::unique_ptr<std::atomic<uint32_t>[]> writes(new std::atomic<uint32_t>[LINES]);

uint32_t this_thread() {
    thread_local const uint32_t number = threads_begun.fetch_add(1) + 1;
    return number;
}

void note_write(const volatile void *place) {
    if (!is_counting.load(std::memory_order_relaxed)) return;
    const size_t line = reinterpret_cast<uintptr_t>(place) / LINE % LINES;
    uint32_t none = 0;
    if (!writers[line].compare_exchange_strong(none, this_thread()) && none != this_thread()) writers[line] = SEVERAL;
    writes[line].fetch_add(1, std::memory_order_relaxed);
}

Counts count(const std::function<void()> &work) {
    for (size_t line = 0; line < LINES; ++line) writers[line] = writes[line] = 0;
    locks = waits = 0;
    is_counting = true;
    work();
    is_counting = false;
    Counts counts{locks, waits};
    for (size_t line = 0; line < LINES; ++line) {
        if (writers[line] != SEVERAL) continue;
        counts.writes += writes[line];
        counts.busiest = std::max<uint64_t>(counts.busiest, writes[line]);
    }
    return counts;
}

}  // namespace

// ---- what the compiler and std::mutex call ------------------------------------------------------------------------

extern "C" {

using Lock = int (*)(pthread_mutex_t *);

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    static const Lock try_lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_trylock"));
    const int result = try_lock(mutex);
    if (!is_counting.load(std::memory_order_relaxed)) return result;
    note_write(mutex);
    if (result == 0) locks.fetch_add(1, std::memory_order_relaxed);
    return result;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static const Lock lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    if (!is_counting.load(std::memory_order_relaxed)) return lock(mutex);
    if (pthread_mutex_trylock(mutex) == 0) return 0;
    waits.fetch_add(1, std::memory_order_relaxed);
    locks.fetch_add(1, std::memory_order_relaxed);
    return lock(mutex);
}

#define PLAIN_ACCESS(size)                       \
    void __tsan_read##size(void *) {}            \
    void __tsan_write##size(void *) {}           \
    void __tsan_unaligned_read##size(void *) {}  \
    void __tsan_unaligned_write##size(void *) {}
PLAIN_ACCESS(1)
PLAIN_ACCESS(2)
PLAIN_ACCESS(4)
PLAIN_ACCESS(8)
PLAIN_ACCESS(16)
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_read_range(void *, unsigned long) {}
void __tsan_write_range(void *, unsigned long) {}
void __tsan_vptr_update(void *, void *) {}
void __tsan_vptr_read(void *) {}
void __tsan_atomic_thread_fence(int) {}

#define CHANGE(bits, name, builtin)                                                                              \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *place, uint##bits##_t value, int) {     \
        note_write(place);                                                                                       \
        return builtin(place, value, __ATOMIC_SEQ_CST);                                                          \
    }
#define COMPARE(bits, name)                                                                                      \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile uint##bits##_t *place, uint##bits##_t *expected,  \
                                                      uint##bits##_t value, int, int) {                          \
        note_write(place);                                                                                       \
        return __atomic_compare_exchange_n(place, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
    }
#define ATOMIC_ACCESS(bits)                                                                                      \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *place, int) {                       \
        return __atomic_load_n(place, __ATOMIC_SEQ_CST);                                                         \
    }                                                                                                            \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *place, uint##bits##_t value, int) {                \
        note_write(place);                                                                                       \
        __atomic_store_n(place, value, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                            \
    CHANGE(bits, exchange, __atomic_exchange_n)                                                                  \
    CHANGE(bits, fetch_add, __atomic_fetch_add)                                                                  \
    CHANGE(bits, fetch_sub, __atomic_fetch_sub)                                                                  \
    CHANGE(bits, fetch_or, __atomic_fetch_or)                                                                    \
    COMPARE(bits, strong)                                                                                        \
    COMPARE(bits, weak)
ATOMIC_ACCESS(8)
ATOMIC_ACCESS(32)
ATOMIC_ACCESS(64)

}  // extern "C"

// ---- what is counted ----------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    std::vector<size_t> of_threads;
    for (int i = 1; i < argc; ++i) of_threads.push_back(static_cast<size_t>(std::atol(argv[i])));
    if (of_threads.empty()) of_threads = {2, 16, 64, 256};

    model::Vocabulary v;
    v.tokens = model::byte_alphabet();
    for (char a = 'a'; a < 'z'; ++a) {
        for (char b = 'a'; b < 'z'; ++b) {
            v.merges.push_back(std::string(1, a) + " " + b);
            v.tokens.push_back(std::string(1, a) + b);
        }
    }
    // Of 40,000 words some are frequent and most are rare.
    Random random(7);
    std::vector<std::string> words;
    for (size_t i = 0; i < 40000; ++i) {
        words.emplace_back(" ");
        for (size_t letters = 2 + random.below(9); letters > 0; --letters) words.back() += static_cast<char>('a' + random.below(25));
    }
    std::string text;
    while (text.size() < size_t(64) << 20) text += words[random.below(1 + random.below(1 + random.below(words.size())))];
    const Exact exact(text);
    const Text whole{exact.data(), exact.size(), true};
    std::vector<Text> batch;
    for (size_t at = 0; at < exact.size(); at += 2000) batch.push_back({exact.data() + at, std::min<size_t>(2000, exact.size() - at), true});
    const double megabytes = static_cast<double>(text.size()) / 1e6;

    std::printf("per megabyte of %.0f\n%-24s %8s %8s %8s %14s %14s\n", megabytes, "", "threads", "locks", "waits", "shared writes",
                "busiest line");
    const model::Made &made = model::made_entry("llama-bpe", false);
    for (const size_t threads : of_threads) {
        for (const bool is_batch : {false, true}) {
            const auto encoder = v.encoder(made.splitter, BPEModel::CACHE_BYTES);
            for (const char *pass : {"first", "later"}) {
                const Counts counts = count([&] {
                    if (is_batch) {
                        CHECK(model::batch_ids(*encoder, batch, {}, threads).size() == batch.size());
                    } else {
                        Ids ids;
                        encoder->encode(whole, {}, threads, ids, [] {});
                        CHECK(ids.size() > 0);
                    }
                });
                const auto per_megabyte = [&](uint64_t number) { return static_cast<double>(number) / megabytes; };
                std::printf("%-9s %-14s %8zu %8.1f %8.2f %14.1f %14.1f\n", is_batch ? "batch," : "one text,", pass, threads,
                            per_megabyte(counts.locks), per_megabyte(counts.waits), per_megabyte(counts.writes),
                            per_megabyte(counts.busiest));
            }
        }
    }
}
