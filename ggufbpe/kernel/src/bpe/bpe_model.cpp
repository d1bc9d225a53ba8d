#include "bpe/bpe_model.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>

namespace ggufbpe {

namespace {

constexpr size_t GROUP = 256;              // words whose slots are fetched together
constexpr size_t FLUSH = 1 << 14;          // words that wait at most until the missing ones are encoded
constexpr size_t SPACED = 1 << 17;         // bytes of a text without its white space that are encoded at a time
constexpr size_t BYTES_A_NEW_WORD = 64;    // for a word in so many bytes of a long text, the cache is given room at once
constexpr size_t POLL_EVERY = 1 << 14;     // k-mers
constexpr size_t LONG_PIECE = 1 << 17;     // bytes of words that are worth a poll

size_t id_count(const WordTable::Found &found) {
    return found.third & WordTable::IN_RECORD ? WordTable::record_of(found).count : found.third >> 32;
}

}  // namespace

// A word that is not in the table.
struct BPEModel::Missing {
    Merger::Word word;
    WordKey key;
    size_t place;        // where it was looked for
    size_t same_as = 0;  // which of the different ones it is
};

struct BPEModel::Scratch : TextModel::Scratch {
    std::string changed;  // by own_steps.h
    Splitter::Scratch split;
    Merger::Scratch merge;
    WordTables tables;
    WordTable::Writer writer;
    std::vector<WordTables> replaced;  // in this block: what was found in them is still to be copied
    // Of the words that are looked up together: what they are, which ones are missing, and the different ones of these.
    std::vector<WordTable::Found> found;
    std::vector<Missing> missing;
    std::vector<uint32_t> slots;
    std::vector<Merger::Word> words;
    std::vector<WordKey> word_keys;
    std::vector<Merger::Result> results;
    std::vector<WordTable::Found> new_founds;
    std::vector<uint32_t> to_encode;          // which of the different ones are not in the former table either,
    std::vector<Merger::Word> words_to_encode;  // and these
    std::deque<std::vector<uint32_t>> long_ids;  // records of words that are not in a table

    bool is_outdated() const { return tables.current && tables.current->retired.load(std::memory_order_acquire); }
    size_t bytes() const override {
        return TextModel::Scratch::bytes() + changed.capacity() + split.bytes() + merge.bytes() +
               found.capacity() * sizeof(WordTable::Found);
    }
};

BPEModel::BPEModel(std::shared_ptr<const Strings> tokens, const Strings &merges, std::shared_ptr<const Splitter> splitter,
                   const MergeOptions &options, OwnStep own_step, size_t cache_bytes)
    : splitter_(std::move(splitter)),
      merger_(tokens, merges, options),
      escape_spaces_(options.escape_spaces),
      cache_(cache_bytes) {
    if (own_step == OwnStep::k_mers) k_mers_ = KMers::of(std::move(tokens));
    const bool lowers = own_step == OwnStep::lowered_words;
    if (lowers || own_step == OwnStep::spaced_words) {
        spaced_words_ = std::make_unique<SpacedWords>(lowers, escape_spaces_);
        splitter_ = splitter_->parted_at_white_space();
    }
    if (merger_.parts_at_spaces()) {
        splitter_ = splitter_->parted_at_spaces(merger_.joined_to_spaces());
        const AsciiGroups &groups = merger_.ascii_groups();
        if (groups.tell_apart()) splitter_ = splitter_->parted_between(groups.joined, groups.alone);
    }
}

BPEModel::~BPEModel() = default;

std::unique_ptr<TextModel::Scratch> BPEModel::new_scratch() const { return std::make_unique<Scratch>(); }

void BPEModel::begin(TextModel::Scratch &scratch) const {
    auto &own = static_cast<Scratch &>(scratch);
    if (!own.tables.current || own.is_outdated()) own.tables = cache_.tables();
}

void BPEModel::end(TextModel::Scratch &scratch) const {
    auto &own = static_cast<Scratch &>(scratch);
    own.replaced.clear();
    if (own.is_outdated()) own.tables = {};
}

void BPEModel::expect(size_t bytes) const { cache_.expect(bytes / BYTES_A_NEW_WORD); }

void BPEModel::clear_cache() const {
    cache_.clear();
    drop_outdated_tables();
}

void BPEModel::cut_fragments(const unsigned char *text, std::vector<Fragment> &fragments, const Poll &poll) const {
    if (k_mers_) k_mers_->cut(text, fragments, poll);
}

void BPEModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    const bool is_sequence = part.token == KMers::SEQUENCE;
    const bool is_divisible = !is_sequence || !escape_spaces_;  // k-mers are counted from the escaped text's beginning
    for (size_t start = 0; start < part.size;) {
        size_t end = part.size;
        if (is_divisible && part.size - start > size + size / 2) {
            if (is_sequence) {
                end = start + size / KMers::LENGTH * KMers::LENGTH;
            } else if (spaced_words_) {
                end = spaced_words_->cut(part.data, part.size, start + size, poll);
            } else {
                end = splitter_->cut(part.data, part.size, start + size, poll);
            }
        }
        parts.push_back({part.token, part.data + start, end - start});
        start = end;
    }
}

void BPEModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    if (part.token == KMers::SEQUENCE) {
        encode_k_mers(part, own, ids, poll);
    } else if (spaced_words_) {
        encode_spaced(part, own, ids, poll);
    } else {
        encode_text(part.data, part.size, own, ids, poll);
    }
}

void BPEModel::encode_k_mers(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const {
    const unsigned char *data = part.data;
    size_t size = part.size;
    if (escape_spaces_) {  // this comes first in llama.cpp, and a k-mer is six bytes of what it gives
        scratch.changed.clear();
        for (size_t i = 0; i < size; ++i) {
            if (data[i] == ' ') {
                scratch.changed += "\xE2\x96\x81";
            } else {
                scratch.changed += static_cast<char>(data[i]);
            }
        }
        data = reinterpret_cast<const unsigned char *>(scratch.changed.data());
        size = scratch.changed.size();
    }
    if (ids.only_counts()) return ids.add((size + KMers::LENGTH - 1) / KMers::LENGTH);
    size_t done = 0;
    for (size_t at = 0; at < size; at += KMers::LENGTH) {
        if (done++ % POLL_EVERY == 0) poll();
        ids.push(k_mers_->id(data + at, std::min(KMers::LENGTH, size - at)));
    }
}

// Text whose white space is dropped, so that it may be cut in the middle of a run of it.
void BPEModel::encode_spaced(const Part &part, Scratch &scratch, Sink &ids, const Poll &poll) const {
    for (size_t at = 0; at < part.size;) {
        const size_t end = part.size - at > SPACED ? spaced_words_->cut(part.data, part.size, at + SPACED, poll) : part.size;
        const unsigned char *data = part.data + at;
        size_t size = end - at;
        if (spaced_words_->lowers()) {
            spaced_words_->write_lower(data, size, scratch.changed, poll);
            data = reinterpret_cast<const unsigned char *>(scratch.changed.data());
            size = scratch.changed.size();
        }
        encode_text(data, size, scratch, ids, poll);
        at = end;
        poll();
    }
}

void BPEModel::encode_text(const unsigned char *text, size_t size, Scratch &scratch, Sink &ids, const Poll &poll) const {
    for (size_t start = 0; start < size;) {
        const size_t end = splitter_->block(text, size, start, scratch.split, poll);
        scratch.replaced.clear();
        if (scratch.is_outdated()) scratch.tables = cache_.tables();
        while (splitter_->words(scratch.split)) {
            // No text has more ids than bytes, but for a space that is written as U+2581, which may fall back to its three
            // bytes; a cached word is written four ids at a time.
            const size_t bytes = scratch.split.starts[scratch.split.word_count] - scratch.split.starts[0];
            int32_t *to = ids.room((escape_spaces_ ? 3 : 1) * bytes + 8);
            ids.advance(encode_words(text + start, size - start, scratch, to, ids, poll));
            if (bytes >= LONG_PIECE) poll();  // a block without a cut may be as long as the text
        }
        start = end;
        if (start < size) poll();
    }
}

// The words of a block, of which `readable` bytes may be read; returns where the ids end that were written from `to` on.
int32_t *BPEModel::encode_words(const unsigned char *text, size_t readable, Scratch &scratch, int32_t *to, Sink &ids,
                                const Poll &poll) const {
    const uint32_t *starts = scratch.split.starts.data();
    const size_t words = scratch.split.word_count;
    if (scratch.found.size() < FLUSH + GROUP) scratch.found.resize(FLUSH + GROUP);
    WordTable::Found *found = scratch.found.data();
    WordKey keys[GROUP];
    size_t buckets[GROUP];
    size_t kept = 0;  // words in `found` that wait for one that is missing
    scratch.missing.clear();
    const auto write_found = [&] {
        if (ids.only_counts()) {
            size_t count = 0;
            for (size_t i = 0; i < kept; ++i) count += id_count(found[i]);
            ids.add(count);
        } else {
            for (size_t i = 0; i < kept; ++i) {
                if (!(found[i].third & WordTable::IN_RECORD)) {
                    found[i].write_ids(to);
                    to += found[i].third >> 32;
                } else {
                    const WordTable::Record &record = WordTable::record_of(found[i]);
                    to = std::copy(record.ids(), record.ids() + record.count, to);
                }
            }
        }
        kept = 0;
    };
    const auto flush = [&] {
        encode_missing(scratch, poll);
        write_found();
        scratch.missing.clear();
        scratch.long_ids.clear();
    };
    for (size_t from = 0; from < words; from += GROUP) {
        const size_t group = std::min(GROUP, words - from);
        const WordTable &table = *scratch.tables.current;
        for (size_t i = 0; i < group; ++i) {
            const uint32_t start = starts[from + i];
            keys[i] = WordKey::of(text + start, starts[from + i + 1] - start, readable - start);
            buckets[i] = table.bucket(keys[i].hash());
            table.prefetch(buckets[i]);
        }
        for (size_t i = 0; i < group; ++i) {
            const unsigned char *word = text + starts[from + i];
            const size_t size = starts[from + i + 1] - starts[from + i];
            if (!table.find(keys[i], buckets[i], word, found[kept])) {
                if (spaced_words_ && spaced_words_->is_white_space(word, size)) continue;
                if (Merger::is_very_long(size)) {
                    flush();
                    to = encode_very_long(word, size, scratch, to, ids, poll);
                    continue;
                }
                scratch.missing.push_back({{word, size}, keys[i], kept});
            }
            ++kept;
        }
        if (scratch.missing.empty()) {
            write_found();
        } else if (kept >= FLUSH || from + group == words) {
            flush();
        }
    }
    return to;
}

// A word that is too long for the table, and for its ids to be kept twice.
int32_t *BPEModel::encode_very_long(const unsigned char *word, size_t size, Scratch &scratch, int32_t *to, Sink &ids,
                                    const Poll &poll) const {
    if (ids.only_counts()) {
        ids.add(merger_.count(word, size, scratch.merge, poll));
    } else {
        scratch.merge.ids.clear();
        merger_.encode(word, size, scratch.merge, poll);
        to = std::copy(scratch.merge.ids.data(), scratch.merge.ids.data() + scratch.merge.ids.size(), to);
    }
    scratch.merge.ids = Ids();
    return to;
}

// A new word often comes several times: finds the different ones of those that are missing.
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
                (missing.key.is_inline() || !std::memcmp(scratch.words[seen].data, missing.word.data, missing.word.size))) {
                break;
            }
        }
        missing.same_as = slots[at] - 1u;
    }
}

// Takes those of the different words that are in the former table from there; the others are left to be encoded.
void BPEModel::find_in_former(Scratch &scratch) const {
    const WordTable *former = scratch.tables.former.get();
    scratch.new_founds.resize(scratch.words.size());
    scratch.to_encode.clear();
    for (size_t k = 0; k < scratch.words.size(); ++k) {
        const WordKey &key = scratch.word_keys[k];
        if (!former || !former->find(key, former->bucket(key.hash()), scratch.words[k].data, scratch.new_founds[k])) {
            scratch.to_encode.push_back(static_cast<uint32_t>(k));
        }
    }
}

// The ids of the words that are not in the table, which are put there.
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
    cache_misses_.fetch_add(count, std::memory_order_relaxed);
    scratch.merge.ids.clear();
    scratch.results.resize(count);
    merger_.encode_many(all ? words.data() : scratch.words_to_encode.data(), count, scratch.results.data(), scratch.merge, poll);
    constexpr size_t AHEAD = 24;
    scratch.writer.write_to(*scratch.tables.current);
    bool keeps = true;
    for (size_t k = 0, encoded = 0; k < words.size(); ++k) {
        if (k + AHEAD < words.size()) {
            const WordTable &table = *scratch.tables.current;
            table.prefetch(table.bucket(scratch.word_keys[k + AHEAD].hash()));
        }
        WordTable::Found &found = scratch.new_founds[k];
        if (encoded < count && scratch.to_encode[encoded] == k) {
            const Merger::Result &result = scratch.results[encoded++];
            found = keep(words[k], scratch.word_keys[k], scratch.merge.ids.data() + result.start, result.count, scratch, keeps);
        } else {
            found = keep(words[k], scratch.word_keys[k], found, scratch, keeps);
        }
    }
    scratch.writer.count_kept();
    for (const Missing &missing : scratch.missing) scratch.found[missing.place] = scratch.new_founds[missing.same_as];
}

// Idle callers keep no table that was replaced: nobody knows when they will be asked again.
void BPEModel::drop_outdated_tables() const {
    pool_.each_idle([](TextModel::Scratch &scratch) {
        auto &own = static_cast<Scratch &>(scratch);
        if (own.is_outdated()) own.tables = {};
    });
}

// Instead of a table that is full. False while another thread is about to replace it: then what is new is not kept.
bool BPEModel::take_next_tables(Scratch &scratch) const {
    scratch.writer.count_kept();
    WordTables next = cache_.replace(scratch.tables.current);
    if (next.current == scratch.tables.current) return false;
    scratch.replaced.push_back(std::move(scratch.tables));
    scratch.tables = std::move(next);
    scratch.writer.write_to(*scratch.tables.current);
    drop_outdated_tables();
    return true;
}

// Puts the ids of a word into the table, if it is not too long for that and the table `keeps` what comes; the answer holds
// until the next are encoded.
WordTable::Found BPEModel::keep(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count,
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

// The same of a word that was found in the former table, which this thread has until the next are encoded.
WordTable::Found BPEModel::keep(const Merger::Word &word, const WordKey &key, const WordTable::Found &former,
                                Scratch &scratch, bool &keeps) const {
    WordTable::Found found;
    if (former.third & WordTable::IN_RECORD) {
        const WordTable::Record &record = WordTable::record_of(former);
        return insert(word, key, record.ids(), record.count, scratch, keeps, found) ? found : former;
    }
    int32_t ids[4];
    former.write_ids(ids);
    return insert(word, key, ids, id_count(former), scratch, keeps, found) ? found : former;
}

bool BPEModel::insert(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count, Scratch &scratch,
                      bool &keeps, WordTable::Found &found) const {
    if (!keeps || word.size > WordTable::LONGEST) return false;
    const auto insert_now = [&] {
        const size_t bucket = scratch.tables.current->bucket(key.hash());
        return scratch.writer.insert(key, bucket, word.data, word.size, ids, count, found);
    };
    if (insert_now()) return true;
    keeps = take_next_tables(scratch) && insert_now();
    return keeps;
}

}  // namespace ggufbpe
