// What models that cache words share: the table in force, its replacement, and looking up many words at once.
//
//     words -> cache.h -> ids
//                 ^ new words: the model
//
// It stands between TextModel and the models: bpe/, wpm/, ugm/, rwkv/.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cache.h"
#include "ids.h"
#include "text_model.h"
#include "word_group.h"
#include "words.h"

namespace ggufbpe {

class CachingModel : public TextModel {
public:
    void prepare_for(size_t bytes, const Poll &) const override {
        if (cache_.prepare_for(bytes / BYTES_A_NEW_WORD)) drop_outdated_tables();
    }
    size_t cache_bytes() const override { return cache_.bytes(); }
    uint64_t cache_misses() const override { return cache_misses_.load(std::memory_order_relaxed); }
    void clear_cache() const override {
        cache_.clear();
        drop_outdated_tables();
    }

protected:
    struct Scratch : TextModel::Scratch {
        WordTables tables;
        WordTable::Writer writer;
        Ids word_ids;  // of the last encoded word

        bool is_outdated() const { return tables.young_generation && tables.young_generation->retired.load(std::memory_order_acquire); }
        size_t bytes() const override { return TextModel::Scratch::bytes() + word_ids.bytes(); }
    };

    explicit CachingModel(size_t cache_bytes) : cache_(cache_bytes) {}

    void begin(TextModel::Scratch &scratch) const override {
        auto &own = static_cast<Scratch &>(scratch);
        if (!own.tables.young_generation || own.is_outdated()) own.tables = cache_.tables();
    }
    void end(TextModel::Scratch &scratch) const override {
        auto &own = static_cast<Scratch &>(scratch);
        if (own.is_outdated()) own.tables = {};
    }

    // Idle callers keep no replaced table: their next call may never come.
    void drop_outdated_tables() const {
        pool_.each_idle([](TextModel::Scratch &scratch) {
            auto &own = static_cast<Scratch &>(scratch);
            if (own.is_outdated()) own.tables = {};
        });
    }

    // The tables that replace those of the scratch, which are full. They are the same while another thread is replacing them:
    // then new words are not kept.
    WordTables next_tables(Scratch &scratch) const {
        scratch.writer.count_kept();
        return cache_.replace(scratch.tables.young_generation);
    }

    // Takes words to be looked up, of which memory before `end` may be read.
    void fetch(const Words &words, const unsigned char *end, Scratch &scratch, WordGroup &group) const {
        if (scratch.is_outdated()) scratch.tables = cache_.tables();
        group.fetch(*scratch.tables.young_generation, end, words);
        if (scratch.tables.old_generation) group.prefetch_in(*scratch.tables.old_generation);
    }

    // Puts the ids of one of these words into the table, or into the next one if it is full, in which the group is then looked up.
    void cache_or_rotate(const Words &words, size_t word, const unsigned char *end, const int32_t *ids, size_t count,
                         Scratch &scratch, WordGroup &group) const {
        const WordKey key = group.key(word);
        for (int turn = 0; turn < 2; ++turn) {
            WordTable &table = *scratch.tables.young_generation;
            WordTable::Found found;
            scratch.writer.write_to(table);
            if (scratch.writer.insert(key, table.bucket(key.hash()), words.starts[word], words.sizes[word], ids, count, found)) return;
            WordTables next = next_tables(scratch);
            if (next.young_generation == scratch.tables.young_generation) return;
            scratch.tables = std::move(next);
            group.fetch(*scratch.tables.young_generation, end, words);
            drop_outdated_tables();
        }
    }

    // Whether the former table has a word, whose ids are then in `scratch.word_ids`.
    static bool find_in_former(const WordKey &key, const unsigned char *word, Scratch &scratch) {
        const WordTable *const former = scratch.tables.old_generation.get();
        WordTable::Found found;
        if (!former || !former->find(key, former->bucket(key.hash()), word, found)) return false;
        int32_t few[4];
        scratch.word_ids.clear();
        scratch.word_ids.append(found.ids(few), found.count());
        return true;
    }

    void count_misses(uint64_t words) const { cache_misses_.fetch_add(words, std::memory_order_relaxed); }

    // The ids of words, of which memory before `end` may be read. For new ones, encode(word, size) leaves their ids in
    // `scratch.word_ids`. If spans are wanted, append_spans(word, size, ids, count) follows each.
    template <typename Encode, typename AppendSpans>
    void encode_words(const unsigned char *end, const Words &words, Scratch &scratch, Sink &ids, Encode encode,
                      AppendSpans append_spans) const;

    static constexpr size_t BYTES_A_NEW_WORD = 64;  // a long text gets room for one new word per so many bytes

    mutable WordCache cache_;

private:
    alignas(64) mutable std::atomic<uint64_t> cache_misses_{0};  // words that had to be encoded
};

template <typename Encode, typename AppendSpans>
void CachingModel::encode_words(const unsigned char *end, const Words &words, Scratch &scratch, Sink &ids, Encode encode,
                                AppendSpans append_spans) const {
    WordGroup group;
    fetch(words, end, scratch, group);
    uint64_t misses = 0;
    size_t counted = 0;
    int32_t few[4], unwanted[4 * Words::MOST];  // ids of known words that are only counted
    const bool has_spans = ids.spans(), only_counts = ids.only_counts();
    int32_t *to = only_counts ? unwanted : ids.room(4 * words.count);
    for (size_t i = 0; i < words.count; ++i) {
        if (!has_spans) i = group.write_known(i, false, to);
        if (i == words.count) break;
        const unsigned char *const word = words.starts[i];
        const size_t size = words.sizes[i];
        WordTable::Found found;
        if (has_spans && group.find_quickly(i, found)) {
            found.write_ids(to);
            append_spans(word, size, to, found.count());
            to += found.count();
            continue;
        }
        const bool may_be_known = size <= WordTable::LONGEST, is_known = may_be_known && group.find_further(i, word, found);
        if (!is_known && (!may_be_known || !find_in_former(group.key(i), word, scratch))) {
            encode(word, size);
            misses += may_be_known;
        }
        const int32_t *const word_ids = is_known ? found.ids(few) : scratch.word_ids.data();
        const size_t count = is_known ? found.count() : scratch.word_ids.size();
        if (!is_known && may_be_known) cache_or_rotate(words, i, end, word_ids, count, scratch, group);
        if (only_counts) {
            counted += count;
        } else {
            ids.advance(to);
            to = std::copy(word_ids, word_ids + count, ids.room(count + 4 * (words.count - i)));
        }
        if (has_spans) append_spans(word, size, word_ids, count);
    }
    if (only_counts) {
        ids.add(counted + static_cast<size_t>(to - unwanted));
    } else {
        ids.advance(to);
    }
    scratch.writer.count_kept();
    if (misses) count_misses(misses);
}

}  // namespace ggufbpe
