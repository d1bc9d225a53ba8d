// The words of a block that the cache lacks: encoded together, then cached.

#include <algorithm>

#include "bpe/bpe_scratch.h"

namespace ggufbpe {

namespace {

constexpr size_t FETCHED_AHEAD = 24;  // words whose slots are fetched before they are looked at

}  // namespace

// New words often repeat: finds the distinct ones among those that are missing.
void BPEModel::find_different(Scratch &scratch) {
    size_t size = 64;
    while (size < 2 * scratch.missing.size()) size *= 2;
    std::vector<uint32_t> &slots = scratch.slots;  // a small hash table of places in `words`, plus 1
    slots.assign(size, 0);
    scratch.words.clear();
    scratch.word_keys.clear();
    for (Missing &missing : scratch.missing) {
        size_t at = missing.key.hash() >> 32 & (size - 1);
        for (;; at = (at + 1) & (size - 1)) {
            if (!slots[at]) {
                scratch.words.push_back(missing.word);
                scratch.word_keys.push_back(missing.key);
                slots[at] = static_cast<uint32_t>(scratch.words.size());
                break;
            }
            const size_t seen = slots[at] - 1u;
            if (scratch.word_keys[seen].low == missing.key.low && scratch.word_keys[seen].high == missing.key.high &&
                (missing.key.is_inline() || are_equal(scratch.words[seen].data, missing.word.data, missing.word.size))) {
                break;
            }
        }
        missing.same_as = slots[at] - 1u;
    }
}

// Takes the distinct words that the former table has from there; the others are left to be encoded.
void BPEModel::find_in_former(Scratch &scratch) const {
    const WordTable *former = scratch.tables.old_generation.get();
    scratch.new_founds.resize(scratch.words.size());
    scratch.to_encode.clear();
    for (size_t k = 0; k < scratch.words.size(); ++k) {
        const WordKey &key = scratch.word_keys[k];
        if (former && k + FETCHED_AHEAD < scratch.words.size()) former->prefetch(former->bucket(scratch.word_keys[k + FETCHED_AHEAD].hash()));
        if (!former || !former->find(key, former->bucket(key.hash()), scratch.words[k].data, scratch.new_founds[k])) {
            scratch.to_encode.push_back(static_cast<uint32_t>(k));
        }
    }
}

// Encodes the words that are not in the table, and puts them there.
void BPEModel::encode_missing(Scratch &scratch, const Poll &poll) const {
    find_different(scratch);
    find_in_former(scratch);
    std::vector<Merger::Word> &words = scratch.words;
    const size_t count = scratch.to_encode.size();
    const bool all = count == words.size();
    if (!all) {
        scratch.words_to_encode.clear();
        for (const uint32_t k : scratch.to_encode) scratch.words_to_encode.push_back(words[k]);
    }
    count_misses(count);
    scratch.merge.ids.clear();
    scratch.results.resize(count);
    merger(poll).encode_many(all ? words.data() : scratch.words_to_encode.data(), count, scratch.results.data(), scratch.merge, poll);
    scratch.writer.write_to(*scratch.tables.young_generation);
    bool keeps = true;
    for (size_t k = 0, encoded = 0; k < words.size(); ++k) {
        if (k + FETCHED_AHEAD < words.size()) {
            const WordTable &table = *scratch.tables.young_generation;
            table.prefetch(table.bucket(scratch.word_keys[k + FETCHED_AHEAD].hash()));
        }
        WordTable::Found &found = scratch.new_founds[k];
        if (encoded < count && scratch.to_encode[encoded] == k) {
            const Merger::Result &result = scratch.results[encoded++];
            found = cache_or_rotate(words[k], scratch.word_keys[k], scratch.merge.ids.data() + result.start, result.count, scratch, keeps);
        } else {
            found = cache_or_rotate(words[k], scratch.word_keys[k], found, scratch, keeps);
        }
    }
    scratch.writer.count_kept();
}

// Puts the ids of missing words, which were just encoded, between those written from `begin` to `end`: from the last to the first,
// since all move up. Returns where the ids end.
int32_t *BPEModel::insert_missing(const Scratch &scratch, int32_t *begin, int32_t *end) {
    int32_t *to = end;
    for (const Missing &missing : scratch.missing) to += scratch.new_founds[missing.same_as].count();
    int32_t *const all = to;
    for (auto missing = scratch.missing.rbegin(); missing != scratch.missing.rend(); ++missing) {
        to = std::move_backward(begin + missing->place, end, to);
        end = begin + missing->place;
        const WordTable::Found &found = scratch.new_founds[missing->same_as];
        int32_t few[4];
        const int32_t *const ids = found.ids(few);
        to = std::copy_backward(ids, ids + found.count(), to);
    }
    return all;
}

// Replaces a full table. False while another thread is about to replace it: then new words are not kept.
bool BPEModel::take_next_tables(Scratch &scratch) const {
    WordTables next = next_tables(scratch);
    if (next.young_generation == scratch.tables.young_generation) return false;
    scratch.replaced.push_back(std::move(scratch.tables));
    scratch.tables = std::move(next);
    scratch.writer.write_to(*scratch.tables.young_generation);
    drop_outdated_tables();
    return true;
}

// Puts the ids of a word into the table, if the word is short enough and the table `keeps` more; the answer is valid until the
// next words are encoded.
WordTable::Found BPEModel::cache_or_rotate(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count,
                                Scratch &scratch, bool &keeps) const {
    WordTable::Found found;
    if (insert(word, key, ids, count, scratch, keeps, found)) return found;
    scratch.long_ids.emplace_back(2 + count);
    auto *record = reinterpret_cast<WordTable::Record *>(scratch.long_ids.back().data());
    record->size = 0;
    record->count = static_cast<uint32_t>(count);
    std::copy(ids, ids + count, reinterpret_cast<int32_t *>(record + 1));
    return {reinterpret_cast<uint64_t>(record), WordTable::IN_RECORD};
}

// The same for a word found in the former table, which this thread holds until the next words are encoded.
WordTable::Found BPEModel::cache_or_rotate(const Merger::Word &word, const WordKey &key, const WordTable::Found &former,
                                Scratch &scratch, bool &keeps) const {
    WordTable::Found found;
    int32_t few[4];
    return insert(word, key, former.ids(few), former.count(), scratch, keeps, found) ? found : former;
}

bool BPEModel::insert(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count, Scratch &scratch,
                      bool &keeps, WordTable::Found &found) const {
    if (!keeps || word.size > WordTable::LONGEST) return false;
    const auto insert_now = [&] {
        const size_t bucket = scratch.tables.young_generation->bucket(key.hash());
        return scratch.writer.insert(key, bucket, word.data, word.size, ids, count, found);
    };
    if (insert_now()) return true;
    keeps = take_next_tables(scratch) && insert_now();
    return keeps;
}

}  // namespace ggufbpe
