// The innermost loops of encoding: words to keys, keys to slots of the cache, and slots to ids.
//
// Each loop is a function of its own, which the compiler can keep in registers.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cache.h"

namespace ggufbpe {

// Neighbouring words of a text, looked up together: while one is compared, the slots of the following ones arrive.
class WordGroup {
public:
    static constexpr size_t MOST = 256;

    // Takes `count` words, from starts[i] to starts[i + 1] in `text`, of which `readable` bytes may be read, and fetches their
    // slots. At most MOST; starts[count] is where the last one ends.
    void fetch(const WordTable &table, const unsigned char *text, size_t readable, const uint32_t *starts, size_t count);

    size_t size() const { return count_; }
    const unsigned char *data(size_t word) const { return text_ + starts_[word]; }
    size_t bytes(size_t word) const { return starts_[word + 1] - starts_[word]; }
    const WordKey &key(size_t word) const { return keys_[word]; }

    // Writes the ids of words from the first one on, until one is not in the table; returns which. `to` has room for an id per
    // byte, and for three more; afterwards it is where the ids end.
    size_t write_known(int32_t *&to) const;

    // Puts the results for words from `word` on to `found`, until one is not in the table; returns which.
    size_t find_known(size_t word, WordTable::Found *found) const;

private:
    template <typename KeyOf>
    void fetch(KeyOf key_of);
    bool find_further(size_t word, WordTable::Found &found) const;

    const WordTable *table_;
    const unsigned char *text_;
    const uint32_t *starts_;
    size_t count_;
    WordKey keys_[MOST];
    const WordTable::Bucket *buckets_[MOST];
};

}  // namespace ggufbpe
