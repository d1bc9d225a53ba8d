// The merges of a vocabulary as a table: what two symbols become, and at which rank.
//
// A bucket is a cache line of eight entries, one for each pair. A pair of symbols is first mixed by an invertible map: its
// upper bits choose the bucket and the rest is stored in the entry, so an entry belongs to one pair only and nothing else has
// to be compared. All eight are compared without a branch: whether two symbols have a merge is unpredictable, and a
// mispredicted branch would cost more than the comparisons. Most pairs have none. A Bloom filter, one bit for each pair and small
// enough to stay in cache, rejects nearly all of those, and their buckets are not fetched.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simd.h"
#include "memory.h"
#include "poll.h"
#include "table_file.h"

namespace ggufbpe {

// The id of a token, or a number above the ids for a text that occurs in merges but is not a token.
using Symbol = uint32_t;

// What a pair of symbols becomes, and how early: the lowest rank goes first.
struct Merge {
    static constexpr uint32_t NO_RANK = UINT32_MAX;

    Symbol result;
    uint32_t rank;
    bool exists() const { return rank != NO_RANK; }
};
constexpr Merge NO_MERGE{0, Merge::NO_RANK};

class PairTable {
public:
    struct Pair {
        Symbol left, right;
        Merge merge;
    };

    // Where a pair is looked up. A pair that certainly has no merge is looked up in a bucket that is always empty.
    struct Query {
        uint64_t tag, bucket;
    };

    // The table's entry for a pair: all zeros if it has no merge.
    struct Entry {
        uint64_t bits;
    };

private:
    static constexpr int BUCKET_ENTRIES = 8;
    static constexpr int PROBE_BITS = 3;
    static constexpr int PROBES = 1 << PROBE_BITS;  // buckets where a pair may be: its own, then in steps of 1, 2, 3, …
    static constexpr int FILTER_BITS = 6;           // each bucket has 64 bits for the pairs that may be in it

    struct alignas(64) Bucket {
        // From the top: the rest of the mixed pair; the probe that finds it; rank + 1; the result, if there is room.
        uint64_t entries[BUCKET_ENTRIES];  // filled from the first one on
    };

public:
    // The table for reading. A loop takes its own copy, which the compiler can keep in registers.
    class Reader {
    public:
        // A symbol that is in no pair of the table.
        Symbol no_symbol() const { return no_symbol_; }
        Query query_of_nothing() const { return {0, bucket_count_}; }

        // A lookup has three steps, each of which fetches what the next one reads: fetch_filter(), fetch_bucket() and entry().
        Query fetch_filter(Symbol left, Symbol right) const {
            const Query query = first_probe(left, right);
            prefetch(&filters_[query.bucket]);
            return query;
        }

        Query fetch_bucket(Query query) const {
            const uint64_t may_be_there = filters_[query.bucket] >> (query.tag >> (64 - FILTER_BITS)) & 1;
            query.bucket = bucket_count_ ^ ((query.bucket ^ bucket_count_) & (0 - may_be_there));  // chosen without a branch
            prefetch(&buckets_[query.bucket]);
            return query;
        }

        // The first two steps of a lookup at once.
        Query query(Symbol left, Symbol right) const { return fetch_bucket(first_probe(left, right)); }

        Entry entry(Query query) const {
            for (int probe = 0;; move_to_probe(query, ++probe)) {
                uint64_t found = 0;  // an empty entry is 0, so its match does no harm
                for (const uint64_t entry : buckets_[query.bucket].entries) {
                    found |= (entry & tag_bits_) == query.tag ? entry : 0;
                }
                if (is_last_probe(query, probe) || found) return {found};
            }
        }
#if GGUFBPE_VECTORS
        VECTOR_INLINE Entry entry_wide(Query query) const {
            for (int probe = 0;; move_to_probe(query, ++probe)) {
                const uint64_t *entries = buckets_[query.bucket].entries;
                const WideNumbers tag = repeat_wide(query.tag), tag_bits = repeat_wide(tag_bits_);
                const WideNumbers first = load_wide(entries), second = load_wide(entries + BUCKET_ENTRIES / 2);
                const uint64_t found = or_of_all((first & is_equal(first & tag_bits, tag)) |
                                                 (second & is_equal(second & tag_bits, tag)));
                if (is_last_probe(query, probe) || found) return {found};
            }
        }
#endif
        uint32_t rank(Entry entry) const { return (static_cast<uint32_t>(entry.bits >> rank_shift_) & rank_bits_) - 1; }
        Symbol result(Entry entry) const {
            if (!results_) return static_cast<Symbol>(entry.bits) & result_bits_;
            return entry.bits ? results_[rank(entry)] : 0;
        }
        Merge merge(Entry entry) const { return {result(entry), rank(entry)}; }
        Merge merge(Query query) const { return merge(entry(query)); }

    private:
        friend PairTable;

        // The pair as one number, at the top of 64 bits, times an odd one: another number of as many bits for each pair, whose
        // upper bits depend on all of the pair.
        Query first_probe(Symbol left, Symbol right) const {
            const uint64_t mixed = left * left_factor_ + right * right_factor_;
            return {mixed << bucket_bits_, mixed >> (64 - bucket_bits_)};
        }
        // Hardly any bucket is full, so this branch is predictable; the one on the result is not, and comes after it.
        bool is_last_probe(Query query, int probe) const {
            return !buckets_[query.bucket].entries[BUCKET_ENTRIES - 1] || probe == PROBES - 1;
        }
        void move_to_probe(Query &query, int probe) const {
            query.tag += uint64_t(1) << probe_shift_;
            query.bucket = (query.bucket + static_cast<uint64_t>(probe)) & (bucket_count_ - 1);
        }

        const Bucket *buckets_ = nullptr;
        const uint64_t *filters_ = nullptr;
        const Symbol *results_ = nullptr;  // by rank, if an entry has no room for the result
        uint64_t left_factor_ = 0, right_factor_ = 0, bucket_count_ = 0, tag_bits_ = 0;
        Symbol no_symbol_ = 0;
        uint32_t rank_bits_ = 0, result_bits_ = 0;
        int bucket_bits_ = 0, rank_shift_ = 0, probe_shift_ = 0;
    };

    PairTable() : PairTable(Pairs(0), 0, NO_POLL) {}

    // Many pairs, in large pages: in fresh small ones, opening a model would spend much of its time on page faults.
    class Pairs {
    public:
        explicit Pairs(size_t room) : room_(room) { memory_.room(room); }
        size_t size() const { return size_; }
        const Pair &operator[](size_t index) const { return memory_[index]; }
        void add(const Pair &pair) {
            if (size_ == room_) grow();
            memory_[size_++] = pair;
        }

    private:
        void grow();

        Buffer<Pair> memory_;
        size_t size_ = 0, room_;
    };

    // Whether each pair has its own rank.
    enum class Ranks { RISING, SHARED };

    // Symbols are below `symbol_count`. Of equal pairs the first counts.
    PairTable(const Pairs &pairs, size_t symbol_count, const Poll &poll, Ranks ranks = Ranks::RISING);

    // The table that write() wrote.
    explicit PairTable(TableReader &from);
    void write(TableWriter &to) const;

    const Reader &reader() const { return reader_; }

private:
    void lay_out(int bucket_bits, int symbol_bits, int rank_bits, size_t rank_count, Ranks ranks, uint64_t odd);
    bool insert(const Pairs &pairs, const Poll &poll);
    bool insert(const Pair &pair, std::vector<uint8_t> &used);
    static size_t lines_of(size_t bucket_count) { return bucket_count + 1 + bucket_count / BUCKET_ENTRIES + 1; }
    uint64_t *filters() { return reinterpret_cast<uint64_t *>(&buckets_[reader_.bucket_count_ + 1]); }

    Reader reader_;
    ZeroedArray<Bucket> buckets_;
    std::vector<Symbol> results_;
    std::shared_ptr<const TableFile> file_;  // has the buckets and results of a table that was read
};

}  // namespace ggufbpe
