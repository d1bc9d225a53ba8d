#include "bpe/word_group.h"

#include <algorithm>

namespace ggufbpe {

void WordGroup::fetch(const WordTable &table, const unsigned char *text, size_t readable, const uint32_t *starts, size_t count) {
    table_ = &table;
    text_ = text;
    starts_ = starts;
    count_ = count;
    if (!count) return;
    if (readable - starts[count - 1] >= WordKey::READ) {
        fetch([](const unsigned char *word, size_t size) { return WordKey::of_readable(word, size); });
    } else {
        fetch([&](const unsigned char *word, size_t size) {
            return WordKey::of(word, size, readable - static_cast<size_t>(word - text));
        });
    }
}

template <typename KeyOf>
void WordGroup::fetch(KeyOf key_of) {
    const WordTable &table = *table_;
    const unsigned char *const text = text_;
    const uint32_t *const starts = starts_;
    const size_t count = count_;
    size_t start = starts[0];
    for (size_t i = 0; i < count; ++i) {
        const size_t end = starts[i + 1];
        const WordKey key = key_of(text + start, end - start);
        const WordTable::Bucket &bucket = table[table.bucket(key.hash())];
        prefetch(&bucket);
        keys_[i] = key;
        buckets_[i] = &bucket;
        start = end;
    }
}

size_t WordGroup::write_known(int32_t *&to) const {
    const size_t count = count_;
    int32_t *next = to;
    size_t word = 0;
    for (; word < count; ++word) {
        WordTable::Found found;
        if (WordTable::find_quickly(keys_[word], *buckets_[word], found)) {
            found.write_ids(next);
            next += found.third >> 32;
            continue;
        }
        WordTable::Found further;
        if (!find_further(word, further)) break;
        next = further.copy_ids(next);
    }
    to = next;
    return word;
}

size_t WordGroup::find_known(size_t word, WordTable::Found *to) const {
    for (const size_t count = count_; word < count; ++word, ++to) {
        WordTable::Found found;
        if (WordTable::find_quickly(keys_[word], *buckets_[word], found)) {
            *to = found;
        } else if (!find_further(word, *to)) {
            break;
        }
    }
    return word;
}

bool WordGroup::find_further(size_t word, WordTable::Found &found) const {
    return table_->find_further(keys_[word], *buckets_[word], data(word), found);
}

}  // namespace ggufbpe
