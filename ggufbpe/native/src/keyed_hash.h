// A fast hash of large arrays under a secret key: what does not know the key can make no two inputs that share a hash.
//
// Four chains of products run side by side, 64 bytes a step, since one would wait for each of its multiplications.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "machine.h"

namespace ggufbpe {

using HashKey = std::array<uint64_t, 8>;
using Digest = std::array<uint64_t, 2>;

class KeyedHash {
public:
    explicit KeyedHash(const HashKey &key) : key_(key), chains_{key[4], key[5], key[6], key[7]} {}

    static constexpr size_t STEP = 64;

    // Adds an array, and where it ends.
    void add(const void *data, size_t size) {
        const size_t done = add_steps(data, size);
        add_end(static_cast<const char *>(data) + done, size - done, size);
    }

    // Adds an array in parts: add_steps() for each, which adds whole steps of it and returns how many bytes they are, and then
    // add_end() with the rest, which is less than a step, and the size of the array.
    size_t add_steps(const void *data, size_t size) {
        const auto *bytes = static_cast<const unsigned char *>(data);
        size_t at = 0;
        for (; at + STEP <= size; at += STEP) mix(bytes + at);
        return at;
    }
    void add_end(const void *rest, size_t bytes, size_t size) {
        unsigned char step[STEP] = {0};
        if (bytes) std::memcpy(step, rest, bytes);
        mix(step);
        const uint64_t end[STEP / 8] = {size};
        std::memcpy(step, end, sizeof step);
        mix(step);
    }

    Digest digest() const {
        Digest result = {key_[4], key_[5]};
        for (size_t i = 0; i < CHAINS; ++i) {
            result[0] = multiply_and_fold(result[0] ^ chains_[i], key_[i] | 1) + chains_[i];
            result[1] = multiply_and_fold(result[1] ^ chains_[i], key_[i + CHAINS] | 1) + chains_[i];
        }
        return result;
    }

private:
    static constexpr size_t CHAINS = STEP / 16;

    ALWAYS_INLINE void mix(const unsigned char *bytes) {
        for (size_t i = 0; i < CHAINS; ++i) {
            uint64_t low, high;
            std::memcpy(&low, bytes + 16 * i, 8);
            std::memcpy(&high, bytes + 16 * i + 8, 8);
            // `high` is added again, since a product of zero would forget it, and all before it.
            chains_[i] = multiply_and_fold(low ^ key_[i], high ^ chains_[i]) + (high ^ chains_[i]);
        }
    }

    HashKey key_;
    uint64_t chains_[CHAINS];
};

}  // namespace ggufbpe
