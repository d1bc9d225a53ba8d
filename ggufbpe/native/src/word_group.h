// The innermost loops of encoding: words to keys, keys to slots of the cache, and slots to ids.
//
//     words -> WordGroup -> ids
//                 ^ cache.h
//
// Each loop is a function of its own, which the compiler can keep in registers.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cache.h"
#include "words.h"

namespace ggufbpe {

// Words of a text, looked up together: while one is compared, the slots of the following ones arrive.
class WordGroup {
public:
    // Takes words, of which memory before `end` may be read, and fetches their slots.
    void fetch(const WordTable &table, const unsigned char *end, const Words &words);
    // The same for `count` words, from starts[i] to starts[i + 1] in `text`; starts[count] is where the last one ends.
    void fetch(const WordTable &table, const unsigned char *end, const unsigned char *text, const uint32_t *starts, size_t count);

    // Fetches the slots of words in another table, to be looked up there later.
    void prefetch_in(const WordTable &table) const;

    size_t size() const { return count_; }
    const WordKey &key(size_t word) const { return keys_[word]; }

    // Whether a word is in the table: in its first bucket and without a record, as most are; or anywhere else.
    bool find_quickly(size_t word, WordTable::Found &found) const {
        return WordTable::find_quickly(keys_[word], *buckets_[word], found);
    }
    bool find_further(size_t word, const unsigned char *data, WordTable::Found &found) const {
        return table_->find_further(keys_[word], *buckets_[word], data, found);
    }

    // Writes the ids of words from `word` on, until one is not found quickly; returns which. `to` has room for three ids a word,
    // and for one more; afterwards it is where the ids end. If there is room for all ids of each word and seven more, it may go on
    // `with_records`.
    size_t write_known(size_t word, bool with_records, int32_t *&to) const;

    // Puts the results for words from `word` on to `found`, until one is not in the table; returns which. They begin at starts[word]
    // in `text`.
    size_t find_known(size_t word, const unsigned char *text, const uint32_t *starts, WordTable::Found *found) const;

private:
    struct Word {
        const unsigned char *data;
        size_t size;
    };
    template <typename Next, typename WriteKey>
    void fetch_slots(Next next, WriteKey write_key);
    template <typename Next>
    void fetch_readable(Next next);
    template <typename Next>
    void fetch_by_vectors(Next next);
    template <typename Next>
    void fetch(const WordTable &table, const unsigned char *end, const unsigned char *last, size_t count, Next next);

    const WordTable *table_;
    size_t count_;
    WordKey keys_[Words::MOST];
    const WordTable::Bucket *buckets_[Words::MOST];
};

}  // namespace ggufbpe
