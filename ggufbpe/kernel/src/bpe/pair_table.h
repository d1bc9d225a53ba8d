// The merges of a vocabulary as a table: what two symbols become, and at which rank.
//
// A bucket is a cache line of eight pairs, eight bytes each. A pair of symbols is first mixed by a map that can be undone;
// its upper bits choose the bucket, and the rest of it stands in the entry, so that an entry in a bucket belongs to one
// pair only and nothing has to be compared elsewhere. All eight are compared, without a branch: whether two symbols have a
// merge is what nobody can foresee, and a wrong guess would cost more than the comparing. Most pairs have none, and a bit
// for each, in a set that is small enough to stay near, tells nearly all of those: their buckets are not fetched.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "machine.h"
#include "memory.h"
#include "string_array.h"

namespace ggufbpe {

class PairTable {
public:
    static constexpr uint32_t NO_RANK = UINT32_MAX;
    static constexpr uint64_t NONE = uint64_t(NO_RANK) << 32;  // the value of a pair without a merge

    struct Pair {
        uint32_t left, right, rank, result;
    };

    // Where a pair is to be looked up: in the empty bucket, if it surely has no merge.
    struct Query {
        uint64_t tag, bucket;
    };

private:
    static constexpr int IN_BUCKET = 8;
    static constexpr int REACH_BITS = 3;
    static constexpr int REACH = 1 << REACH_BITS;  // buckets where a pair may be: from its own on, in steps of 1, 2, 3, …
    static constexpr int BIT = 6;        // bits that choose a bit of the 64 for a bucket

    struct alignas(64) Bucket {
        // From the top: what is left of the mixed pair; which of the buckets that it may be in; rank + 1; the result, if there is room.
        uint64_t entries[IN_BUCKET];  // filled from the first on
    };

public:
    // The table as it is read. A loop has its own copy, which nothing that it writes can change.
    class Reader {
    public:
        // A number that is no symbol and has no merge.
        uint32_t no_symbol() const { return no_symbol_; }
        Query nothing() const { return {0, bucket_count_}; }

        // The first half of a look-up, to be followed by entry() when the bucket has come.
        Query query(uint32_t left, uint32_t right) const {
            Query query = place_of(left, right);
            const uint64_t may_be = bits_[query.bucket] >> (query.tag >> (64 - BIT)) & 1;
            query.bucket = bucket_count_ ^ ((query.bucket ^ bucket_count_) & (0 - may_be));  // a choice without a branch
            prefetch(&buckets_[query.bucket]);
            return query;
        }

        // What rank() and result() read; 0 where there is no merge.
        uint64_t entry(Query query) const {
            for (int turn = 0;; go_on(query, ++turn)) {
                uint64_t found = 0;  // an empty place is 0, so it makes no difference where it matches
                for (const uint64_t entry : buckets_[query.bucket].entries) {
                    found |= (entry & tag_bits_) == query.tag ? entry : 0;
                }
                if (is_end(query, turn) || found) return found;
            }
        }
#if GGUFBPE_X86
        __attribute__((target("avx2"), always_inline)) uint64_t entry_wide(Query query) const {
            for (int turn = 0;; go_on(query, ++turn)) {
                const auto *vectors = reinterpret_cast<const __m256i *>(buckets_[query.bucket].entries);
                const __m256i tag = _mm256_set1_epi64x(static_cast<long long>(query.tag));
                const __m256i tag_bits = _mm256_set1_epi64x(static_cast<long long>(tag_bits_));
                const __m256i first = _mm256_load_si256(vectors), second = _mm256_load_si256(vectors + 1);
                const __m256i found = _mm256_or_si256(
                    _mm256_and_si256(first, _mm256_cmpeq_epi64(_mm256_and_si256(first, tag_bits), tag)),
                    _mm256_and_si256(second, _mm256_cmpeq_epi64(_mm256_and_si256(second, tag_bits), tag)));
                const __m128i half = _mm_or_si128(_mm256_castsi256_si128(found), _mm256_extracti128_si256(found, 1));
                const __m128i one = _mm_or_si128(half, _mm_unpackhi_epi64(half, half));
                const auto entry = static_cast<uint64_t>(_mm_cvtsi128_si64(one));
                if (is_end(query, turn) || entry) return entry;
            }
        }
#endif
        uint32_t rank(uint64_t entry) const { return (static_cast<uint32_t>(entry >> rank_shift_) & rank_bits_) - 1; }
        uint32_t result(uint64_t entry) const {
            if (!results_) return static_cast<uint32_t>(entry) & result_bits_;
            return entry ? results_[rank(entry)] : 0;
        }

        // A value is rank << 32 | resulting symbol.
        uint64_t value(Query query) const {
            const uint64_t found = entry(query);
            return uint64_t(rank(found)) << 32 | result(found);
        }

    private:
        friend PairTable;

        // The pair as one number times an odd one, which makes of every pair another number of as many bits, at the top; its
        // upper bits depend on all of the pair.
        Query place_of(uint32_t left, uint32_t right) const {
            const uint64_t mixed = left * left_factor_ + right * right_factor_;
            return {mixed << bucket_bits_, mixed >> (64 - bucket_bits_)};
        }
        // Hardly any bucket is full, so this is asked before what nobody can foresee.
        bool is_end(Query query, int turn) const {
            return !buckets_[query.bucket].entries[IN_BUCKET - 1] || turn == REACH - 1;
        }
        void go_on(Query &query, int turn) const {
            query.tag += uint64_t(1) << reach_shift_;
            query.bucket = (query.bucket + static_cast<uint64_t>(turn)) & (bucket_count_ - 1);
        }

        const Bucket *buckets_ = nullptr;
        const uint64_t *bits_ = nullptr;
        const uint32_t *results_ = nullptr;  // by rank, where an entry has no room for the result
        uint64_t left_factor_ = 0, right_factor_ = 0, bucket_count_ = 0, tag_bits_ = 0;
        uint32_t no_symbol_ = 0, rank_bits_ = 0, result_bits_ = 0;
        int bucket_bits_ = 0, rank_shift_ = 0, reach_shift_ = 0;
    };

    PairTable() : PairTable({}, 0) {}

    // Symbols are below `symbol_count`, ranks rise. Of two entries for one pair the first counts.
    PairTable(const std::vector<Pair> &pairs, size_t symbol_count) {
        reader_.no_symbol_ = static_cast<uint32_t>(symbol_count);
        uint64_t odd = hash_seed() | 1;
        const size_t rank_count = pairs.empty() ? 0 : pairs.back().rank + size_t(1);
        int bucket_bits = 4;
        while ((size_t(IN_BUCKET) * 3 << bucket_bits) < pairs.size() * 5) ++bucket_bits;
        do {
            set_up(bucket_bits++, bits_of(symbol_count), bits_of(rank_count), rank_count, odd);
            odd *= 0x9E3779B97F4A7C15u;
        } while (!insert(pairs));
    }

    const Reader &reader() const { return reader_; }

private:
    static int bits_of(uint64_t number) {
        int bits = 0;
        for (; number; number >>= 1) ++bits;
        return bits;
    }

    void set_up(int bucket_bits, int symbol_bits, int rank_bits, size_t rank_count, uint64_t odd) {
        while (2 * symbol_bits < bucket_bits + BIT) ++symbol_bits;
        const auto width = [&] { return 2 * symbol_bits - bucket_bits + REACH_BITS + rank_bits; };
#if defined(GGUFBPE_RESULTS_APART)
        const bool has_results = false;  // tests: as with a million tokens and as many merges
#else
        const bool has_results = width() + symbol_bits <= 64;
#endif
        while (width() > 64) ++bucket_bits;  // only for more than 2^28 merges
        if (bucket_bits > 40) throw std::invalid_argument("more tokens and merges than there are numbers for");
        results_.assign(has_results ? 0 : rank_count, 0);
        const size_t bucket_count = size_t(1) << bucket_bits;
        // One bucket more, which is always empty; and behind it the bits, in the same pages.
        buckets_ = ZeroedArray<Bucket>();
        buckets_ = ZeroedArray<Bucket>(bucket_count + 1 + bucket_count / IN_BUCKET + 1);
        Reader &to = reader_;
        to.buckets_ = buckets_.data();
        to.bucket_count_ = bucket_count;
        to.bits_ = bits();
        to.results_ = has_results ? nullptr : results_.data();
        to.left_factor_ = odd << (64 - symbol_bits);
        to.right_factor_ = odd << (64 - 2 * symbol_bits);
        to.bucket_bits_ = bucket_bits;
        to.rank_shift_ = has_results ? symbol_bits : 0;
        to.reach_shift_ = 64 - (2 * symbol_bits - bucket_bits) - REACH_BITS;
        to.tag_bits_ = ~uint64_t(0) << to.reach_shift_;
        to.rank_bits_ = static_cast<uint32_t>((uint64_t(1) << rank_bits) - 1);
        to.result_bits_ = static_cast<uint32_t>((uint64_t(1) << symbol_bits) - 1);
    }

    // False if there was no room for one of them.
    bool insert(const std::vector<Pair> &pairs) {
        constexpr size_t AHEAD = 16;
        std::vector<uint8_t> used(reader_.bucket_count_, 0);  // entries of each bucket; small enough to stay near
        for (size_t i = 0; i < pairs.size(); ++i) {
            if (i + AHEAD < pairs.size()) {
                prefetch_to_write(&buckets_[reader_.place_of(pairs[i + AHEAD].left, pairs[i + AHEAD].right).bucket]);
            }
            if (!insert(pairs[i], used)) return false;
        }
        return true;
    }

    bool insert(const Pair &pair, std::vector<uint8_t> &used) {
        Query query = reader_.place_of(pair.left, pair.right);
        bits()[query.bucket] |= uint64_t(1) << (query.tag >> (64 - BIT));
        const uint64_t content = uint64_t(pair.rank + 1) << reader_.rank_shift_ | (results_.empty() ? pair.result : 0);
        for (int turn = 0; turn < REACH; reader_.go_on(query, ++turn)) {
            uint64_t (&entries)[IN_BUCKET] = buckets_[query.bucket].entries;
            bool is_there = false;
            for (const uint64_t entry : entries) is_there |= (entry != 0) & ((entry & reader_.tag_bits_) == query.tag);
            if (is_there) return true;
            uint8_t &count = used[query.bucket];
            if (count == IN_BUCKET) continue;
            entries[count++] = query.tag | content;
            if (!results_.empty()) results_[pair.rank] = pair.result;
            return true;
        }
        return false;
    }

    uint64_t *bits() { return reinterpret_cast<uint64_t *>(&buckets_[reader_.bucket_count_ + 1]); }

    Reader reader_;
    ZeroedArray<Bucket> buckets_;
    std::vector<uint32_t> results_;
};

}  // namespace ggufbpe
