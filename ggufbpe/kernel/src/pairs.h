// The merges of a vocabulary as a table: what two symbols become, and at which rank.
//
// A bucket is a cache line of four pairs. All four are compared, without a branch: whether two symbols have a merge is
// what nobody can foresee, and a wrong guess would cost more than the comparing. Most pairs have none, and a bit for
// each, in a set that is small enough to stay near, tells nearly all of those: their buckets are not fetched.

#pragma once

#include <cstddef>
#include <cstdint>

#include "memory.h"
#include "string_array.h"

namespace ggufbpe {

class PairTable {
public:
    static constexpr uint64_t NONE = ~uint64_t(0);  // the value of a pair without a merge

    PairTable() : PairTable(0) {}

    // Room for `count` pairs.
    explicit PairTable(size_t count) : seed_(hash_seed() | 1) {
        size_t buckets = 16;
        for (shift_ = 60; buckets * 4 * 3 < count * 5; --shift_) buckets *= 2;
        mask_ = buckets - 1;
        // One bucket more, which is always empty; and behind it the bits, in the same pages.
        buckets_ = ZeroedArray<Bucket>(buckets + 1 + buckets * BITS / 8 / sizeof(Bucket) + 1);
    }

    // Where a pair is to be looked up: in the empty bucket, if it surely has no merge.
    struct Query {
        uint64_t key, bucket;
    };

    // The first half of a look-up, to be followed by value() when the bucket has come.
    Query query(uint32_t left, uint32_t right) const {
        const uint64_t key = key_of(left, right), bit = bit_of(key);
        const bool may_be = bits()[bit / 64] >> (bit % 64) & 1;
        const uint64_t bucket = may_be ? bit / BITS : mask_ + 1;
#if defined(__GNUC__)
        __builtin_prefetch(&buckets_[bucket]);
#endif
        return {key, bucket};
    }

    // A value is rank << 32 | resulting symbol.
    uint64_t value(const Query &query) const {
        for (uint64_t at = query.bucket;; at = (at + 1) & mask_) {
            const Bucket &bucket = buckets_[at];
            uint64_t inverse = 0;  // an empty place has 0, so it makes no difference where it matches
            for (int i = 0; i < 4; ++i) inverse |= bucket.keys[i] == query.key ? bucket.inverses[i] : 0;
            if (inverse || !bucket.inverses[3]) return ~inverse;
        }
    }
    uint64_t value(uint32_t left, uint32_t right) const { return value(query(left, right)); }

    void prefetch(uint32_t left, uint32_t right) const {
#if defined(__GNUC__)
        __builtin_prefetch(&buckets_[bit_of(key_of(left, right)) / BITS], 1);
#endif
    }

    // Of two values for one pair the first counts. False where there was one.
    bool insert(uint32_t left, uint32_t right, uint64_t value) {
        const uint64_t key = key_of(left, right), bit = bit_of(key);
        bits()[bit / 64] |= uint64_t(1) << (bit % 64);
        for (uint64_t at = bit / BITS;; at = (at + 1) & mask_) {
            Bucket &bucket = buckets_[at];
            for (int i = 0; i < 4; ++i) {
                if (!bucket.inverses[i]) {
                    bucket.keys[i] = key;
                    bucket.inverses[i] = ~value;
                    return true;
                }
                if (bucket.keys[i] == key) return false;
            }
        }
    }

private:
    struct alignas(64) Bucket {
        uint64_t keys[4];
        uint64_t inverses[4];  // ~value; filled from the first on
    };
    const uint64_t *bits() const { return reinterpret_cast<const uint64_t *>(&buckets_[mask_ + 2]); }
    uint64_t *bits() { return reinterpret_cast<uint64_t *>(&buckets_[mask_ + 2]); }

    static uint64_t key_of(uint32_t left, uint32_t right) { return uint64_t(left) << 32 | right; }
    // The upper bits of the product depend on all of the key. The uppermost choose the bucket, five more a bit of it.
    uint64_t bit_of(uint64_t key) const { return key * seed_ >> (shift_ - 5); }

    static constexpr uint64_t BITS = 32;  // for a bucket
    uint64_t seed_;
    uint64_t mask_ = 0;
    int shift_ = 0;  // 64 - log2(buckets)
    ZeroedArray<Bucket> buckets_;
};

}  // namespace ggufbpe
