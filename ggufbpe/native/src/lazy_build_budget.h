// The budget of text that may be encoded before a model's table is built: somebody who opens a vocabulary for a few words
// should not wait for the table. Until then, words are encoded by looking up their pieces among the tokens.
//
// Used by spm/spm_model.h, wpm/wpm_model.h and ugm/ugm_model.h.

#pragma once

#include <atomic>
#include <cstddef>

namespace ggufbpe {

class LazyBuildBudget {
public:
    // Looking up so many bytes of Llama 2 takes half a millisecond longer than by its table, which takes four to build.
    static constexpr size_t MOST = size_t(1) << 13;

    // Whether `size` more bytes may be looked up.
    bool take(size_t size) const {
        if (size > MOST || taken_.load(std::memory_order_relaxed) > MOST - size) return false;
        taken_.fetch_add(size, std::memory_order_relaxed);
        return true;
    }

private:
    mutable std::atomic<size_t> taken_{0};
};

}  // namespace ggufbpe
