// Memory of callers, kept for the next call.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace ggufbpe {

// Threads are spread over places, so that they seldom meet however many there are; there is no lock.
template <typename Scratch>
class ScratchPool {
public:
    ScratchPool() = default;
    ScratchPool(const ScratchPool &) = delete;
    ScratchPool &operator=(const ScratchPool &) = delete;
    ~ScratchPool() { clear(); }

    // Where the calling thread looks first.
    static size_t own_place() {
        static std::atomic<size_t> threads{0};
        static constexpr size_t NONE = SIZE_MAX;
        thread_local size_t number = NONE;
        if (number == NONE) number = threads.fetch_add(1, std::memory_order_relaxed) % PLACES;
        return number;
    }

    // Null if there is none.
    std::unique_ptr<Scratch> take(size_t own) {
        for (size_t i = 0; i < TRIED; ++i) {
            std::atomic<Scratch *> &place = places_[(own + i) % PLACES].idle;
            if (!place.load(std::memory_order_relaxed)) continue;
            if (Scratch *taken = place.exchange(nullptr)) return std::unique_ptr<Scratch>(taken);
        }
        return nullptr;
    }

    // `settle` is called before other threads can see the scratch; again if each_idle() may have missed it.
    template <typename Settle>
    void give_back(std::unique_ptr<Scratch> scratch, size_t own, Settle settle) {
        for (size_t i = 0; i < TRIED; ++i) {
            std::atomic<Scratch *> &place = places_[(own + i) % PLACES].idle;
            uint64_t sweeps;
            do {
                sweeps = sweeps_.load();
                settle(*scratch);
                Scratch *none = nullptr;
                if (!place.compare_exchange_strong(none, scratch.get())) break;
                scratch.release();
                if (sweeps == sweeps_.load()) return;
                scratch.reset(place.exchange(nullptr));
            } while (scratch);
            if (!scratch) return;  // another thread has it
        }
    }

    template <typename Use>
    void each_idle(Use use) {
        ++sweeps_;
        for (size_t i = 0; i < PLACES; ++i) {
            std::unique_ptr<Scratch> taken(places_[i].idle.exchange(nullptr));
            if (taken) give_back(std::move(taken), i, use);  // which checks again for another sweep in the meantime
        }
    }

    void clear() {
        ++sweeps_;
        for (Place &place : places_) delete place.idle.exchange(nullptr);
    }

private:
    static constexpr size_t PLACES = 32, TRIED = 4;

    struct alignas(64) Place {
        std::atomic<Scratch *> idle{nullptr};
    };

    std::array<Place, PLACES> places_;
    std::atomic<uint64_t> sweeps_{0};
};

}  // namespace ggufbpe
