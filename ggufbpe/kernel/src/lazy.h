// Something that is made when it is first asked for, by one thread while others wait.
//
// std::call_once would do, but it costs some 20 ns even when all is done, which counts where a text is short.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>

namespace ggufbpe {

template <typename T>
class Lazy {
public:
    // `make` gives a std::unique_ptr<T>. What it throws ends this call only.
    template <typename Make>
    const T &get(Make make) const {
        const T *made = made_.load(std::memory_order_acquire);
        return made ? *made : wait(make);
    }

private:
    template <typename Make>
    const T &wait(Make make) const {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!owner_) {
            owner_ = make();
            made_.store(owner_.get(), std::memory_order_release);
        }
        return *owner_;
    }

    mutable std::mutex mutex_;
    mutable std::unique_ptr<const T> owner_;
    mutable std::atomic<const T *> made_{nullptr};
};

}  // namespace ggufbpe
