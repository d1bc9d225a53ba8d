#include "word_group.h"

#include <cstring>

#include "simd.h"

namespace ggufbpe {

namespace {

#if (GGUFBPE_X86 && !GGUFBPE_THREAD_SANITIZER) || GGUFBPE_WASM

#define GGUFBPE_WRITE_BY_VECTORS 1

// slot_of() compares both keys of a bucket at once: 3 if the first one is the key, 12 if the second one is, or 0.
#if GGUFBPE_X86

VECTOR_INLINE void copy_four(const int32_t *from, int32_t *to) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
}

VECTOR_INLINE void copy_eight(const int32_t *from, int32_t *to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from)));
}

// The keys are atomics, read here as plain memory: x86 reads aligned numbers whole, and a key that is seen is complete, because
// its upper half is written last, and the lower half was 0 before. That leaves keys whose lower half is 0, of words that begin
// with NULs: they rely on a key's 16 aligned bytes being read whole, too, which Intel and AMD promise of processors with AVX for
// loads of 16 bytes, but not of 32. The ids, whose place depends on the comparison, are read after it.
VECTOR_INLINE int slot_of(const WordKey &key, const WordTable::Bucket &bucket) {
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(&key)));
    const __m256i halves = _mm256_cmpeq_epi64(twice, _mm256_load_si256(reinterpret_cast<const __m256i *>(&bucket)));
    const __m256i equal = _mm256_and_si256(halves, _mm256_shuffle_epi32(halves, 0x4E));  // all of a key or nothing
    return _mm256_movemask_pd(_mm256_castsi256_pd(equal));
}

#else

VECTOR_INLINE void copy_four(const int32_t *from, int32_t *to) { wasm_v128_store(to, wasm_v128_load(from)); }

VECTOR_INLINE void copy_eight(const int32_t *from, int32_t *to) {
    copy_four(from, to);
    copy_four(from + 4, to + 4);
}

// There is one thread.
VECTOR_INLINE int slot_of(const WordKey &key, const WordTable::Bucket &bucket) {
    const v128_t one = wasm_v128_load(&key);
    const int first = wasm_i64x2_all_true(wasm_i64x2_eq(one, wasm_v128_load(&bucket.keys[0])));
    const int second = wasm_i64x2_all_true(wasm_i64x2_eq(one, wasm_v128_load(&bucket.keys[1])));
    return 3 * first | 12 * second;
}

#endif

WITH_AVX2 size_t write_by_vectors(const WordKey *keys, const WordTable::Bucket *const *buckets, size_t count, bool with_records,
                                  int32_t *&to) {
    int32_t *next = to;
    const WordTable::Bucket *const *at = buckets, *const *const end = buckets + count;
    for (; at != end; ++at, ++keys) {
        const int slot = slot_of(*keys, **at);
        const auto *const ids = reinterpret_cast<const int32_t *>((*at)->values) + (slot & 4);  // of the first or the second slot
        int32_t id_count;
        std::memcpy(&id_count, ids + 3, sizeof id_count);
        if ((id_count | (slot - 1)) >= 0) {
            copy_four(ids, next);
            next += id_count;
        } else {
            if (!slot || !with_records || !keys->is_inline()) break;
            const WordTable::Record &record = WordTable::record_of((*at)->value(slot != 3));
            for (size_t i = 0; i < record.count; i += 8) copy_eight(record.ids() + i, next + i);
            next += record.count;
        }
    }
    to = next;
    return static_cast<size_t>(at - buckets);
}

#endif

}  // namespace

// Writes the keys of words and their buckets' places, and fetches these. `next` gives one word after the other, and
// write_key(data, size, key) returns the hash.
template <typename Next, typename WriteKey>
ALWAYS_INLINE void WordGroup::fetch_slots(Next next, WriteKey write_key) {
    const WordTable &table = *table_;
    WordKey *key = keys_;
    for (const WordTable::Bucket **bucket = buckets_, **const end = buckets_ + count_; bucket != end; ++bucket, ++key) {
        const Word word = next();
        *bucket = &table[table.bucket(write_key(word.data, word.size, *key))];
        prefetch(*bucket);
    }
}

template <typename Next>
ALWAYS_INLINE void WordGroup::fetch_readable(Next next) {
    fetch_slots(next, [](const unsigned char *word, size_t size, WordKey &key) { return key.set_to_readable(word, size); });
}

#if GGUFBPE_X86
template <typename Next>
WITH_AVX2 void WordGroup::fetch_by_vectors(Next next) {
    fetch_readable(next);
}
#endif

// `last` is where the last word begins.
template <typename Next>
void WordGroup::fetch(const WordTable &table, const unsigned char *end, const unsigned char *last, size_t count, Next next) {
    table_ = &table;
    count_ = count;
    if (static_cast<size_t>(end - last) >= WordKey::READ) {
#if GGUFBPE_X86
        if (has_avx2()) return fetch_by_vectors(next);
#endif
        return fetch_readable(next);
    }
    fetch_slots(next, [end](const unsigned char *word, size_t size, WordKey &key) {
        key = WordKey::of(word, size, static_cast<size_t>(end - word));
        return key.hash();
    });
}

void WordGroup::fetch(const WordTable &table, const unsigned char *end, const Words &words) {
    const unsigned char *const last = words.count ? words.starts[words.count - 1] : end;
    fetch(table, end, last, words.count, [starts = words.starts, sizes = words.sizes]() mutable { return Word{*starts++, *sizes++}; });
}

void WordGroup::fetch(const WordTable &table, const unsigned char *end, const unsigned char *text, const uint32_t *starts,
                      size_t count) {
    const unsigned char *const last = count ? text + starts[count - 1] : end;
    fetch(table, end, last, count, [text, ends = starts + 1, start = size_t(starts[0])]() mutable {
        const size_t begun = start;
        start = *ends++;
        return Word{text + begun, start - begun};
    });
}

void WordGroup::prefetch_in(const WordTable &table) const {
    for (size_t i = 0; i < count_; ++i) table.prefetch(table.bucket(keys_[i].hash()));
}

size_t WordGroup::write_known(size_t word, bool with_records, int32_t *&to) const {
    const size_t count = count_;
#ifdef GGUFBPE_WRITE_BY_VECTORS
    if (has_vectors()) return word + write_by_vectors(keys_ + word, buckets_ + word, count - word, with_records, to);
#endif
    static_cast<void>(with_records);
    int32_t *next = to;
    for (WordTable::Found found; word < count && find_quickly(word, found); ++word) {
        found.write_ids(next);
        next += found.third >> 32;
    }
    to = next;
    return word;
}

size_t WordGroup::find_known(size_t word, const unsigned char *text, const uint32_t *starts, WordTable::Found *to) const {
    for (const size_t count = count_; word < count; ++word, ++to) {
        WordTable::Found found;
        if (find_quickly(word, found)) {
            *to = found;
        } else if (!find_further(word, text + starts[word], *to)) {
            break;
        }
    }
    return word;
}

}  // namespace ggufbpe
