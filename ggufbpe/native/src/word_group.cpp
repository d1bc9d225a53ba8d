#include "word_group.h"

namespace ggufbpe {

namespace {

#if GGUFBPE_X86 && !GGUFBPE_THREAD_SANITIZER

// Both keys of a bucket are compared at once. They are atomics, read here as plain memory: x86 reads aligned numbers whole, and
// a key that is seen is complete, because its upper half is written last, and the lower half was 0 before; the ids, whose
// place depends on the comparison, are read after it.
WITH_AVX2 size_t write_by_vectors(const WordKey *keys, const WordTable::Bucket *const *buckets, size_t word, size_t count,
                                  int32_t *&to) {
    int32_t *next = to;
    for (; word < count; ++word) {
        const auto *const bucket = reinterpret_cast<const __m256i *>(buckets[word]);
        const __m256i key = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i *>(keys + word)));
        const __m256i equal = _mm256_cmpeq_epi64(key, _mm256_load_si256(bucket));
        const auto halves = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
        const unsigned slot = halves & halves >> 1 & 5;  // 1, 4, or 0 for neither
        const auto *const ids = reinterpret_cast<const int32_t *>(bucket + 1) + (slot & 4);
        const int32_t id_count = ids[3];
        if ((id_count | (static_cast<int32_t>(slot) - 1)) < 0) break;  // not found, or in a record
        _mm_storeu_si128(reinterpret_cast<__m128i *>(next), _mm_load_si128(reinterpret_cast<const __m128i *>(ids)));
        next += id_count;
    }
    to = next;
    return word;
}

#endif

}  // namespace

// `next` gives one word after the other; `last` is where the last one begins.
template <typename Next>
void WordGroup::fetch(const WordTable &table, const unsigned char *end, const unsigned char *last, size_t count, Next next) {
    table_ = &table;
    count_ = count;
    const auto fetch_all = [&](auto write_key) {
        for (size_t i = 0; i < count; ++i) {
            const auto [word, size] = next();
            const WordTable::Bucket &bucket = table[table.bucket(write_key(word, size, keys_[i]))];
            prefetch(&bucket);
            buckets_[i] = &bucket;
        }
    };
    if (static_cast<size_t>(end - last) >= WordKey::READ) {
        fetch_all([](const unsigned char *word, size_t size, WordKey &key) { return key.set_to_readable(word, size); });
    } else {
        fetch_all([&](const unsigned char *word, size_t size, WordKey &key) {
            key = WordKey::of(word, size, static_cast<size_t>(end - word));
            return key.hash();
        });
    }
}

void WordGroup::fetch(const WordTable &table, const unsigned char *end, const Words &words) {
    const unsigned char *const last = words.count ? words.starts[words.count - 1] : end;
    fetch(table, end, last, words.count, [&, i = size_t(0)]() mutable {
        const size_t word = i++;
        return Word{words.starts[word], words.sizes[word]};
    });
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

size_t WordGroup::write_known(size_t word, int32_t *&to) const {
    const size_t count = count_;
#if GGUFBPE_X86 && !GGUFBPE_THREAD_SANITIZER
    if (has_avx2()) return write_by_vectors(keys_, buckets_, word, count, to);
#endif
    int32_t *next = to;
    for (WordTable::Found found; word < count && find_quickly(word, found); ++word) {
        found.write_ids(next);
        next += found.third >> 32;
    }
    to = next;
    return word;
}

size_t WordGroup::find_known(size_t word, WordTable::Found *found) const {
    for (const size_t count = count_; word < count && find_quickly(word, *found); ++word) ++found;
    return word;
}

}  // namespace ggufbpe
