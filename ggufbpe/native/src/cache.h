// The ids of words that were encoded before. Many threads read and write it at once.
//
// A word of up to 15 bytes is its own key, in two numbers with its length; a longer one is identified by a hash, and its bytes
// are compared. A slot is claimed by one atomic exchange, written, and published by one atomic store; then it never changes.
// Neither readers nor writers take a lock.
//
// The cache has two generations. A table that gets full is replaced by a larger one. At the largest size it becomes the old
// generation and is kept beside an empty one, the young generation, which takes words that are new or used again, until that is
// full, too: so words that were not used lately are forgotten.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>

#include "fork.h"
#include "machine.h"
#include "memory.h"
#include "string_array.h"

namespace ggufbpe {

// The key of a word.
struct WordKey {
    static constexpr size_t INLINE = 15;  // bytes

    alignas(16) uint64_t low;
    uint64_t high;  // the length is in its upper byte; 0xFF for a word longer than INLINE
    uint64_t hash() const { return hash_of(low, high); }
    bool is_inline() const { return high >> 56 != 0xFF; }

    static constexpr size_t READ = 16;  // bytes that are read at once if possible

    // `readable` is how many bytes may be read from `word` on.
    static WordKey of(const unsigned char *word, size_t size, size_t readable) {
        if (size > INLINE || readable >= READ) return of_readable(word, size);
        uint64_t low = 0, high = uint64_t(size) << 56;
        for (size_t i = 0; i < size; ++i) (i < 8 ? low : high) |= uint64_t(word[i]) << (8 * (i & 7));
        return {low, high};
    }

    // The key of a word from which on READ bytes may be read.
    static WordKey of_readable(const unsigned char *word, size_t size) {
        if (size > INLINE) return of_long(word, size);
        const uint64_t low = eight_bytes(word), high = eight_bytes(word + 8);
        return {low & FORMS.masks[size][0], (high & FORMS.masks[size][1]) | FORMS.lengths[size][1]};
    }

    // The same for this key; returns its hash.
    uint64_t set_to_readable(const unsigned char *word, size_t size) {
#if GGUFBPE_X86
        if (size <= INLINE) {
            const auto all = [](const void *from) { return static_cast<const __m128i *>(from); };
            const __m128i text = _mm_and_si128(_mm_loadu_si128(all(word)), _mm_load_si128(all(FORMS.masks[size])));
            const __m128i key = _mm_or_si128(text, _mm_load_si128(all(FORMS.lengths[size])));
            _mm_store_si128(reinterpret_cast<__m128i *>(this), key);
            const auto lower = [](__m128i both) { return static_cast<uint64_t>(_mm_cvtsi128_si64(both)); };
            return hash_of(lower(key), lower(_mm_unpackhi_epi64(key, key)));
        }
#elif GGUFBPE_WASM
        // Two halves that are stored one by one and then read at once would make each word wait for its store.
        if (size <= INLINE) {
            const v128_t text = wasm_v128_and(wasm_v128_load(word), wasm_v128_load(FORMS.masks[size]));
            const v128_t key = wasm_v128_or(text, wasm_v128_load(FORMS.lengths[size]));
            wasm_v128_store(this, key);
            return hash_of(static_cast<uint64_t>(wasm_i64x2_extract_lane(key, 0)), static_cast<uint64_t>(wasm_i64x2_extract_lane(key, 1)));
        }
#endif
        *this = of_readable(word, size);
        return hash();
    }

private:
    static uint64_t hash_of(uint64_t low, uint64_t high) { return multiply_and_fold(low ^ HASH_SEEDS[0], high ^ HASH_SEEDS[1]); }
    static WordKey of_long(const unsigned char *word, size_t size);

    // What is taken of the text and what the length adds to a key, for each size.
    struct alignas(16) Forms {
        uint64_t masks[INLINE + 1][2], lengths[INLINE + 1][2];
    };
    static const Forms FORMS;
};

class WordTable {
public:
    static constexpr size_t LONGEST = 1024;  // bytes; longer words are not cached

    // The ids of words that have more than three, or are longer than a key.
    struct Record {
        uint32_t size, count;
        const int32_t *ids() const { return reinterpret_cast<const int32_t *>(this + 1); }
        const unsigned char *bytes() const { return reinterpret_cast<const unsigned char *>(ids() + count); }
    };
    static constexpr uint64_t IN_RECORD = uint64_t(1) << 63;  // in `third`: first_two is the address of a Record

    // `slots` is a power of two; the table counts as full with records of `most_record_bytes`.
    WordTable(size_t slots, size_t most_record_bytes)
        : buckets_(slots / 2), mask_(slots / 2 - 1), most_record_bytes_(most_record_bytes) {}
    WordTable(const WordTable &) = delete;
    WordTable &operator=(const WordTable &) = delete;
    ~WordTable();

    // The result of a lookup.
    struct Found {
        uint64_t first_two, third;

        // Writes the ids that are not in a record; `to` has room for four.
        void write_ids(int32_t *to) const {
            if (IS_BIG_ENDIAN) {
                to[0] = static_cast<int32_t>(first_two);
                to[1] = static_cast<int32_t>(first_two >> 32);
                to[2] = static_cast<int32_t>(third);
            } else {
                std::memcpy(to, this, sizeof *this);  // the excess is overwritten later
            }
        }

        size_t count() const { return third & IN_RECORD ? record_of(*this).count : third >> 32; }

        // All ids. Those that are not in a record are written to `few`.
        const int32_t *ids(int32_t (&few)[4]) const {
            if (third & IN_RECORD) return record_of(*this).ids();
            write_ids(few);
            return few;
        }

        // Writes all ids; `to` has room for three more. Returns where they end.
        int32_t *copy_ids(int32_t *to) const {
            if (third & IN_RECORD) {
                const Record &record = record_of(*this);
                return std::copy(record.ids(), record.ids() + record.count, to);
            }
            write_ids(to);
            return to + (third >> 32);
        }
    };

    // Two slots in a cache line, their keys side by side. Zeros are an empty slot.
    struct alignas(64) Bucket {
        static constexpr size_t SLOTS = 2;
        struct Key {
            std::atomic<uint64_t> low, high;
        } keys[SLOTS];
        struct Value {
            std::atomic<uint64_t> first_two;  // ids 0 and 1
            std::atomic<uint64_t> third;      // id 2, and the number of ids in the upper half; or a Record
        } values[SLOTS];

        Found value(size_t slot) const {
            return {values[slot].first_two.load(std::memory_order_relaxed), values[slot].third.load(std::memory_order_relaxed)};
        }
    };

    static constexpr size_t SLOT_BYTES = sizeof(Bucket) / Bucket::SLOTS;

    // The bucket where a key is looked up first.
    size_t bucket(uint64_t hash) const { return hash & mask_; }
    const Bucket &operator[](size_t bucket) const { return buckets_[bucket]; }
    void prefetch(size_t bucket) const { ggufbpe::prefetch(&buckets_[bucket]); }

    // Looks a word up.
    bool find(const WordKey &key, size_t bucket, const unsigned char *word, Found &found) const {
        return find_quickly(key, buckets_[bucket], found) || find_further(key, buckets_[bucket], word, found);
    }

    // Looks up a word that has no record and is in its first bucket, as most are; false for any other. Both slots are compared
    // at once: which of them matches is unpredictable.
    static bool find_quickly(const WordKey &key, const Bucket &bucket, Found &found) {
        const auto differs = [&](const Bucket::Key &slot) {
            // First the upper half, which is written last: else a lower half of 0 may be that of a slot not yet written.
            const uint64_t high = slot.high.load(std::memory_order_acquire);
            return (high ^ key.high) | (slot.low.load(std::memory_order_relaxed) ^ key.low);
        };
        const uint64_t first = differs(bucket.keys[0]), second = differs(bucket.keys[1]);
        found = bucket.value(first != 0);
        return !(((first != 0) & (second != 0)) | (found.third >> 63));
    }

    // Looks up any word, whose first bucket is given. Not inline, so that a loop over many words stays in registers.
    bool find_further(const WordKey &key, const Bucket &first, const unsigned char *word, Found &found) const;

    // One thread's means to cache words: memory for records that only it uses.
    class Writer {
    public:
        void write_to(WordTable &table) {
            if (number_ == table.number_) return;
            table_ = &table;
            number_ = table.number_;
            left_ = 0;
        }

        // Caches the ids of a word; `found` is what find() will give. False if there is no room, so that the table should be
        // replaced.
        bool insert(const WordKey &key, size_t bucket, const unsigned char *word, size_t size, const int32_t *ids,
                    size_t count, Found &found);

        // Cached words are counted when they are many, or on request: the count is shared between writers.
        void count_kept();

    private:
        Record *new_record(size_t size, size_t count);

        WordTable *table_ = nullptr;
        uint64_t number_ = 0;  // of the table: another may be allocated at its address
        size_t kept_ = 0;
        uint64_t *next_ = nullptr;
        size_t left_ = 0;  // numbers of 8 bytes
    };

    static const Record &record_of(const Found &found) { return *reinterpret_cast<const Record *>(found.first_two); }

    // Copies all words to a larger table, which no other thread writes to.
    void copy_to(WordTable &larger) const;

    size_t used() const { return used_.load(std::memory_order_relaxed); }
    size_t slot_count() const { return Bucket::SLOTS * buckets_.size(); }
    size_t bytes() const { return buckets_.size() * sizeof(Bucket) + record_bytes_.load(std::memory_order_relaxed); }
    std::atomic<bool> retired{false};  // another table has taken its place

private:
    // Buckets where a key may be, from its own on, in steps of 1, 2, 3, …: neighbours fill up together, and even a table that
    // is half empty has many full ones in a row.
    static constexpr size_t MAX_PROBES = 16;

    static bool is_word(const Found &found, const unsigned char *word) {
        const Record &record = record_of(found);
        return are_equal(record.bytes(), word, record.size);  // longer than INLINE
    }
    static void copy_slot(const Bucket &bucket, size_t slot, WordTable &to, Writer &writer);

    // Memory of records; the chunks are a list, the newest first.
    struct Chunk {
        Chunk *older;
        uint64_t *content() { return reinterpret_cast<uint64_t *>(this + 1); }
    };
    static constexpr uint64_t CLAIMED = 1;  // in `high`: a thread is about to write the slot. No word is that long.

    static uint64_t next_number() {
        static std::atomic<uint64_t> last{0};
        return last.fetch_add(1, std::memory_order_relaxed) + 1;
    }

    const uint64_t number_ = next_number();  // no two tables have the same
    ZeroedArray<Bucket> buckets_;  // zeros are enough for atomics of integers
    size_t mask_;
    const size_t most_record_bytes_;
    alignas(64) std::atomic<size_t> used_{0};  // apart from the cache line that readers need
    std::atomic<size_t> record_bytes_{0};
    std::atomic<Chunk *> chunks_{nullptr};
};

// The tables in force.
struct WordTables {
    std::shared_ptr<WordTable> young_generation;
    std::shared_ptr<const WordTable> old_generation;  // holds words to be forgotten unless used again; may be null
};

class WordCache {
public:
    // At most this many bytes; while a table is being replaced, up to half as many more.
    explicit WordCache(size_t most_bytes) : most_bytes_(most_bytes / 2) { tables_.young_generation = new_table(FIRST_SLOTS); }

    WordTables tables() const {
        std::lock_guard<Mutex> lock(mutex_);
        return tables_;
    }

    // To be called by the thread that found `full` full: replaces it with a larger table, or puts an empty one beside it;
    // returns the tables in force. They still have `full` while another thread replaces it: no thread waits for the words to be
    // copied.
    WordTables replace(const std::shared_ptr<WordTable> &full);

    // Makes room for about `words` words, if the bound allows it and there are not many already.
    bool prepare_for(size_t words);  // whether another table is in force now

    void clear();
    size_t bytes() const;

private:
    static constexpr size_t FIRST_SLOTS = 2048;
    static constexpr size_t LEAST_RECORD_BYTES = 1 << 19;  // for a table that reaches the bound by its slots alone
    std::shared_ptr<WordTable> new_table(size_t slots) const {
        const size_t bytes = slots * WordTable::SLOT_BYTES;
        return std::make_shared<WordTable>(slots, std::max(most_bytes_ > bytes ? most_bytes_ - bytes : 0, LEAST_RECORD_BYTES));
    }
    WordTables put_in_place_of(const std::shared_ptr<WordTable> &replaced, WordTables next);

    const size_t most_bytes_;  // of one table
    Mutex growing_;  // held to replace a table; copying does not need the other lock
    mutable Mutex mutex_;
    WordTables tables_;
};

}  // namespace ggufbpe
