// Memory for large tables and buffers: on a cache line, and in huge pages as long as the system has them at hand. With small
// pages lookups in a large table may also wait for the page's address, and a large buffer for the system to hand pages out one
// by one.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "fork.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <time.h>
#endif

namespace ggufbpe {

// Huge pages that were freed, kept for the next use of that size: the system takes long to hand out new ones. At most KEPT
// bytes stay here, those used last; the system may take their contents whenever it needs memory.
class HugePages {
public:
    static constexpr size_t SMALL_PAGE = 4096, PAGE = size_t(2) << 20, KEPT = size_t(16) << 20;
#if defined(__linux__)
    static constexpr size_t WORTH_IT = PAGE / 4;  // bytes; fewer are taken from the usual allocator
#else
    static constexpr size_t WORTH_IT = SIZE_MAX;
#endif

    struct Mapping {
        void *data = nullptr;
        size_t bytes = 0;  // whole pages
    };

    // What memory is for: tables that are looked up in any order, or what is written once from its beginning, with populate().
    enum class Use { looked_up, written_once };

    // At least `bytes`, of unknown content; `is_new` says that they are zeros. Throws std::bad_alloc.
    static Mapping take(size_t bytes, bool &is_new, Use use = Use::looked_up) {
        const size_t pages = whole_pages(bytes);
        Mapping taken = take_kept(pages, use == Use::looked_up ? pages / 2 : pages / 8);
        is_new = !taken.data;
#if defined(__linux__)
        const bool is_huge = may_be_huge() && come_quickly() && (use == Use::looked_up || pages >= MANY);
        if (taken.data) {
            ask_for(taken, is_huge);
            if (taken.bytes >= pages || grow(taken, bytes)) return taken;
            munmap(taken.data, taken.bytes);
        }
        is_new = true;
        taken = {addresses(pages), pages};
        if (!taken.data) throw std::bad_alloc();
        ask_for(taken, is_huge);
        if (is_huge && use == Use::looked_up) hand_out(taken, [&] { *static_cast<volatile char *>(taken.data) = 0; });
        return taken;
#else
        (void)use;
        throw std::bad_alloc();
#endif
    }

    // The same with whole pages for `bytes` and no more, so that who gives them back need not know more than `bytes`.
    static Mapping take_exactly(size_t bytes) {
        bool is_new;
        const Mapping taken = take(bytes, is_new);
        const size_t pages = whole_pages(bytes);
#if defined(__linux__)
        if (taken.bytes > pages) munmap(static_cast<char *>(taken.data) + pages, taken.bytes - pages);
#endif
        return {taken.data, pages};
    }
    static void give_back_exactly(void *data, size_t bytes) { give_back({data, whole_pages(bytes)}); }

    // Has the system hand out pages from `begun` up to `end` bytes and some more at once, which takes less time than one by one,
    // as they are written. Returns up to where.
    static size_t populate(const Mapping &mapping, size_t begun, size_t end) {
        constexpr size_t STEP = size_t(1) << 18;  // what was handed out is still in the cache when it is written
        end = std::min((end + STEP - 1) / STEP * STEP, mapping.bytes);
#if defined(__linux__)
#if !defined(MADV_POPULATE_WRITE)
        constexpr int MADV_POPULATE_WRITE = 23;  // since Linux 5.14; others refuse it
#endif
        for (size_t at = begun / SMALL_PAGE * SMALL_PAGE; at < end; at += STEP) {
            char *const data = static_cast<char *>(mapping.data) + at;
            bool is_refused = false;
            hand_out(mapping, [&] { is_refused = madvise(data, std::min(STEP, end - at), MADV_POPULATE_WRITE) != 0; });
            if (is_refused) ask_for(mapping, false);  // huge ones would be handed out where nobody takes the time
        }
#else
        (void)begun;
#endif
        return end;
    }

    // False for a second after handing out pages took a millisecond. A huge page that was in use before takes less time than a few
    // small ones; one that a virtual machine's host has yet to give takes milliseconds, several times that of as many small
    // ones, and those after it are like it: docs/kernel.md, "Memory".
    static bool come_quickly() { return now().count() >= slow_until().load(std::memory_order_relaxed); }
    static void note_time(std::chrono::nanoseconds taken) {
        if (taken >= SLOW) slow_until() = (now() + SLOW_FOR).count();
    }

    // The same memory with at least `bytes`, at another address; nothing is copied. False if the system cannot.
    static bool grow(Mapping &mapping, size_t bytes) {
#if defined(__linux__)
        const size_t pages = whole_pages(bytes);
        void *data = addresses(pages);
        if (!data) return false;
        if (mremap(mapping.data, mapping.bytes, pages, MREMAP_MAYMOVE | MREMAP_FIXED, data) == MAP_FAILED) {
            munmap(data, pages);
            return false;
        }
        mapping = {data, pages};
        return true;
#else
        (void)mapping, (void)bytes;
        return false;
#endif
    }

    // Gives the whole pages after the first `bytes` back to the system.
    static void cut(Mapping &mapping, size_t bytes) {
#if defined(__linux__)
        const size_t pages = whole_pages(bytes);
        if (pages >= mapping.bytes) return;
        munmap(static_cast<char *>(mapping.data) + pages, mapping.bytes - pages);
        mapping.bytes = pages;
#else
        (void)mapping, (void)bytes;
#endif
    }

    static void give_back(const Mapping &mapping) {
#if defined(__linux__)
        if (mapping.bytes > KEPT) {
            munmap(mapping.data, mapping.bytes);
            return;
        }
#if defined(MADV_FREE)
        madvise(mapping.data, mapping.bytes, MADV_FREE);  // unchanged when it is used again, unless the system needed it
#endif
        std::lock_guard<Mutex> lock(mutex());
        auto &kept = kept_ones();
        size_t free = KEPT;
        for (const Mapping &one : kept) free -= one.bytes;
        while (free < mapping.bytes) {
            free += kept.front().bytes;
            munmap(kept.front().data, kept.front().bytes);
            kept.erase(kept.begin());
        }
        kept.push_back(mapping);
#else
        (void)mapping;
#endif
    }

    // Gives all kept memory back to the system.
    static void release() {
#if defined(__linux__)
        std::lock_guard<Mutex> lock(mutex());
        for (const Mapping &one : kept_ones()) munmap(one.data, one.bytes);
        kept_ones().clear();
#endif
    }

private:
    using Nanoseconds = std::chrono::nanoseconds;

    static constexpr size_t MANY = 4 * PAGE;  // of what is written once: few would be more than is used
    static constexpr Nanoseconds SLOW = std::chrono::milliseconds(1), SLOW_FOR = std::chrono::seconds(1);

    static Nanoseconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }
    static std::atomic<int64_t> &slow_until() {  // in nanoseconds
        static std::atomic<int64_t> until{INT64_MIN};
        return until;
    }

    // A kept mapping of `pages` bytes or up to half as much more; else the largest smaller one of at least `fewest` bytes.
    static Mapping take_kept(size_t pages, size_t fewest) {
        std::lock_guard<Mutex> lock(mutex());
        auto &kept = kept_ones();
        const auto is_better = [&](const Mapping &one, const Mapping &other) {
            const bool fits = one.bytes >= pages, other_fits = other.bytes >= pages;
            if (fits != other_fits) return fits;
            return fits ? one.bytes <= other.bytes : one.bytes >= other.bytes;
        };
        auto best = kept.end();
        for (auto one = kept.begin(); one != kept.end(); ++one) {
            if (one->bytes < fewest || one->bytes > pages + pages / 2) continue;  // far too small or too large
            if (best == kept.end() || is_better(*one, *best)) best = one;
        }
        if (best == kept.end()) return {};
        const Mapping found = *best;
        kept.erase(best);
        return found;
    }

    static size_t whole_pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

#if defined(__linux__)
    // Of what size the pages are to be that the system has yet to hand out: a request that may be refused.
    static void ask_for(const Mapping &mapping, bool huge_ones) {
        madvise(mapping.data, mapping.bytes, huge_ones ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }

    // Runs `touch`, for which the system hands out pages of a mapping. If they come slowly, those still to come are small.
    template <typename Touch>
    static void hand_out(const Mapping &mapping, Touch touch) {
        const Nanoseconds begun = thread_time();
        touch();
        note_time(thread_time() - begun);
        if (!come_quickly()) ask_for(mapping, false);
    }

    // The host's work for this thread counts, and others that run in the meantime do not.
    static Nanoseconds thread_time() {
        timespec time;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
    }

    static bool may_be_huge() {
        static const bool may_be = [] {
            const char *const wanted = std::getenv("GGUFBPE_HUGE_PAGES");
            return !wanted || std::strcmp(wanted, "off") != 0;
        }();
        return may_be;
    }

    // `bytes` of addresses that begin where a huge page may; null if there are none.
    static void *addresses(size_t bytes) {
        void *mapped = mmap(nullptr, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return nullptr;
        size_t space = bytes + PAGE;
        void *data = mapped;
        std::align(PAGE, bytes, data, space);
        const size_t before = bytes + PAGE - space, behind = space - bytes;
        if (before) munmap(mapped, before);
        if (behind) munmap(static_cast<char *>(data) + bytes, behind);
        return data;
    }
#endif

    static Mutex &mutex() {
        static Mutex *one = new Mutex;  // never destroyed: tables may be freed at the very end
        return *one;
    }
    static std::vector<Mapping> &kept_ones() {
        static auto *kept = [] {
            auto *made = new std::vector<Mapping>;
            made->reserve(KEPT / PAGE + 1);  // so that freeing needs no memory
            return made;
        }();
        return *kept;
    }
};

// The bytes of `count` numbers. Throws std::bad_alloc for more than an array may have: 32 bits hold the size of many a text, but
// not four times that.
template <typename T>
size_t array_size(size_t count) {
    if (count > SIZE_MAX / 2 / sizeof(T)) throw std::bad_alloc();
    return count * sizeof(T);
}

template <typename T>
class ZeroedArray {
public:
    ZeroedArray() = default;
    explicit ZeroedArray(size_t count) : ZeroedArray(count, true) {}

    size_t size() const { return count_; }
    T &operator[](size_t index) { return data_.get()[index]; }
    const T &operator[](size_t index) const { return data_.get()[index]; }
    T *data() { return data_.get(); }
    const T *data() const { return data_.get(); }

protected:
    ZeroedArray(size_t count, bool zeroed) : count_(count), data_(allocate(count, zeroed)) {}

private:
    static constexpr size_t LINE = 64;
    struct Free {
        HugePages::Mapping mapping;  // empty if it came from operator new
        void operator()(T *data) const {
            if (mapping.data) {
                HugePages::give_back(mapping);
            } else {
                ::operator delete(static_cast<void *>(data), std::align_val_t(LINE));
            }
        }
    };

    static std::unique_ptr<T, Free> allocate(size_t count, bool zeroed) {
        const size_t bytes = array_size<T>(count);
        if (bytes >= HugePages::WORTH_IT) {
            bool is_new;
            const HugePages::Mapping mapping = HugePages::take(bytes, is_new);
            if (zeroed && !is_new) std::memset(mapping.data, 0, bytes);
            if (zeroed && is_new && !HugePages::come_quickly()) HugePages::populate(mapping, 0, bytes);  // a table, of small pages
            return {static_cast<T *>(mapping.data), Free{mapping}};
        }
        void *data = ::operator new(bytes ? bytes : 1, std::align_val_t(LINE));
        if (zeroed) std::memset(data, 0, bytes);
        return {static_cast<T *>(data), Free{}};
    }

    size_t count_ = 0;
    std::unique_ptr<T, Free> data_{nullptr, Free{}};
};

// Reusable memory, whose content is undefined until it is written. For plain numbers.
template <typename T>
class Buffer {
public:
    // Room for `count`; the content is lost if there is not enough.
    T *room(size_t count) {
        if (count > array_.size()) {
            array_ = Raw(0);
            array_ = Raw(count + count / 8);
        }
        return array_.data();
    }
    T *data() { return array_.data(); }
    const T *data() const { return array_.data(); }
    T &operator[](size_t index) { return array_[index]; }
    const T &operator[](size_t index) const { return array_[index]; }
    size_t bytes() const { return array_.size() * sizeof(T); }

private:
    struct Raw : ZeroedArray<T> {
        explicit Raw(size_t count) : ZeroedArray<T>(count, false) {}
    };
    Raw array_{0};
};

// For vectors of plain numbers: large ones are in huge pages, and what resize() adds is undefined until it is written.
template <typename T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <typename U>
    LargePages(const LargePages<U> &) {}

    T *allocate(size_t count) {
        const size_t bytes = array_size<T>(count);
        return static_cast<T *>(bytes < HugePages::WORTH_IT ? ::operator new(bytes) : HugePages::take_exactly(bytes).data);
    }
    void deallocate(T *data, size_t count) {
        const size_t bytes = count * sizeof(T);
        if (bytes < HugePages::WORTH_IT) {
            ::operator delete(data);
        } else {
            HugePages::give_back_exactly(data, bytes);
        }
    }
    template <typename U>
    void construct(U *place) {
        ::new (static_cast<void *>(place)) U;
    }
    template <typename U, typename Value>
    void construct(U *place, Value &&value) {
        ::new (static_cast<void *>(place)) U(std::forward<Value>(value));
    }
    friend bool operator==(const LargePages &, const LargePages &) { return true; }
    friend bool operator!=(const LargePages &, const LargePages &) { return false; }
};

template <typename T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace ggufbpe
