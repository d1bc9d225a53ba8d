// A value made on first use.
//
// Threads that ask at the same time each make one, and the first is kept. There is no lock: a thread waiting for another could
// not be interrupted, and would wait forever in the child of a fork.

#pragma once

#include <atomic>
#include <memory>

namespace ggufbpe {

template <typename T>
class Lazy {
public:
    Lazy() = default;
    Lazy(const Lazy &) = delete;
    Lazy &operator=(const Lazy &) = delete;
    ~Lazy() { delete made_.load(); }

    // `make` returns a std::unique_ptr<T>. Its exceptions end this call only.
    template <typename Make>
    const T &get(Make make) const {
        const T *made = made_.load(std::memory_order_acquire);
        return made ? *made : keep(make());
    }

    bool is_made() const { return made_.load(std::memory_order_acquire); }

private:
    const T &keep(std::unique_ptr<T> own) const {
        const T *first = nullptr;
        if (made_.compare_exchange_strong(first, own.get(), std::memory_order_acq_rel)) first = own.release();
        return *first;
    }

    mutable std::atomic<const T *> made_{nullptr};
};

}  // namespace ggufbpe
