// Something that is made when it is first asked for.
//
// Threads that ask at once may each make it; all get the one that is there first. So nobody waits for another, no lock is
// held while it is made, which a signal may interrupt, and a process that forks meanwhile has none to inherit.

#pragma once

#include <atomic>
#include <memory>

namespace ggufbpe {

template <typename T>
class Lazy {
public:
    Lazy() = default;
    ~Lazy() { delete made_.load(std::memory_order_relaxed); }
    Lazy(const Lazy &) = delete;
    Lazy &operator=(const Lazy &) = delete;

    // `make` gives a std::unique_ptr<T>. What it throws ends this call only.
    template <typename Make>
    const T &get(Make make) const {
        const T *made = made_.load(std::memory_order_acquire);
        if (made) return *made;
        std::unique_ptr<const T> own = make();
        if (!made_.compare_exchange_strong(made, own.get(), std::memory_order_acq_rel)) return *made;
        return *own.release();
    }

private:
    mutable std::atomic<const T *> made_{nullptr};
};

}  // namespace ggufbpe
