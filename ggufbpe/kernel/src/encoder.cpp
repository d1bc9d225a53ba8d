#include "encoder.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "threads.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t GROUP = 256;                // words whose slots are fetched together
constexpr size_t FLUSH = 1 << 14;            // words that wait at most until the missing ones are encoded
constexpr size_t PART = 1 << 17;             // bytes that one thread takes at a time of a long text: its ids stay in a cache
constexpr size_t PART_OF_K_MERS = PART / KMers::LENGTH * KMers::LENGTH;
constexpr size_t WORTH_SHARING = 2 * PART;   // bytes; a shorter text is for one thread
constexpr size_t SEARCHED = 1 << 20;         // bytes that one thread takes at a time to look for special tokens
constexpr size_t TEXTS = 1 << 15;            // bytes of short texts that one thread takes at a time
constexpr size_t LONG_TEXT = 1 << 20;        // bytes; for a longer one, the cache is given room at once,
constexpr size_t BYTES_A_NEW_WORD = 64;      // for a word in so many bytes
constexpr size_t BYTES_A_TOKEN = 3;          // at first, room is made for a token in so many
constexpr size_t IDLE_WORKERS = 64;          // kept for the next call
constexpr size_t SCRATCH_KEPT = 1 << 26;     // bytes; a worker whose memory grew beyond is not kept

size_t id_count(const WordTable::Found &found) {
    return found.third & WordTable::IN_RECORD ? WordTable::record_of(found).count : found.third >> 32;
}

}  // namespace

// A word that is not in the table.
struct Encoder::Missing {
    Merger::Word word;
    WordKey key;
    size_t place;        // where it was looked for
    size_t same_as = 0;  // which of the different ones it is
};

// What one thread needs at a time.
struct Encoder::Worker {
    std::vector<Fragment> fragments;
    std::string changed;  // by own_steps.h
    Splitter::Scratch split;
    Merger::Scratch merge;
    std::shared_ptr<WordTable> table;
    std::vector<std::shared_ptr<WordTable>> former;  // replaced in this block
    // Of the words that are looked up together: what they are, which ones are missing, and the different ones of these.
    std::vector<WordTable::Found> found;
    std::vector<Missing> missing;
    std::vector<uint32_t> slots;
    std::vector<Merger::Word> words;
    std::vector<WordKey> word_keys;
    std::vector<Merger::Result> results;
    std::vector<WordTable::Found> new_founds;
    std::deque<std::vector<uint32_t>> long_ids;  // records of words that are not in a table

    size_t bytes() const {
        return fragments.capacity() * sizeof(Fragment) + changed.capacity() + split.bytes() + merge.bytes() +
               found.capacity() * sizeof(WordTable::Found);
    }
};

// A worker for the time of a call.
class Encoder::Lease {
public:
    explicit Lease(const Encoder &encoder) : encoder_(encoder) {
        std::lock_guard<std::mutex> lock(encoder.workers_mutex_);
        if (!encoder.workers_.empty()) {
            worker_ = std::move(encoder.workers_.back());
            encoder.workers_.pop_back();
        }
        if (!worker_) worker_ = std::make_unique<Worker>();
        if (!worker_->table || worker_->table->retired.load(std::memory_order_acquire)) {
            worker_->table = encoder.cache_.table();
        }
    }
    ~Lease() {
        worker_->former.clear();
        if (worker_->bytes() > SCRATCH_KEPT) return;
        std::lock_guard<std::mutex> lock(encoder_.workers_mutex_);
        if (encoder_.workers_.size() < IDLE_WORKERS) encoder_.workers_.push_back(std::move(worker_));
    }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    Worker &operator*() { return *worker_; }

private:
    const Encoder &encoder_;
    std::unique_ptr<Worker> worker_;
};

Encoder::Encoder(std::shared_ptr<const Strings> tokens, std::shared_ptr<const Strings> texts, const Strings &merges,
                 std::shared_ptr<const Splitter> splitter, const MergeOptions &options, OwnStep own_step,
                 const std::vector<SpecialToken> &special, int32_t bos, int32_t eos, size_t cache_bytes)
    : tokens_(std::move(tokens)),
      texts_(std::move(texts)),
      splitter_(std::move(splitter)),
      merger_(tokens_, merges, options),
      escape_spaces_(options.escape_spaces),
      special_(special),
      bos_(bos),
      eos_(eos),
      cache_(cache_bytes) {
    if (own_step == OwnStep::k_mers) k_mers_ = KMers::of(tokens_);
    const bool lowers = own_step == OwnStep::lowered_words;
    if (lowers || own_step == OwnStep::spaced_words) {
        spaced_words_ = std::make_unique<SpacedWords>(lowers, escape_spaces_);
        splitter_ = splitter_->parted_at_white_space();
    }
    if (merger_.parts_at_spaces()) splitter_ = splitter_->parted_at_spaces(merger_.joined_to_spaces());
    for (const SpecialToken &token : special_) {
        if (token.id < 0 || size_t(token.id) >= texts_->size()) throw std::invalid_argument("a special token out of range");
    }
}

Encoder::~Encoder() = default;

const Partition &Encoder::partition(bool parse_special, const Poll &poll) const {
    return partitions_[parse_special].get([&] { return std::make_unique<Partition>(texts_, special_, parse_special, poll); });
}

// Bytes that are not UTF-8 as llama.cpp reads them: each that cannot be decoded becomes U+FFFD, overlong forms and
// surrogates are decoded. The overlong form of a space stays as it is where spaces are escaped, for it is not one of those.
std::vector<unsigned char> Encoder::rewrite(const unsigned char *text, size_t size, const Poll &poll) const {
    Pace pace(poll);
    std::vector<unsigned char> result;
    result.reserve(size + size / 4 + 16);
    for (size_t i = 0; i < size;) {
        unsigned length;
        const uint32_t code_point = code_point_at(text + i, text + size, length);
        unsigned char bytes[4];
        if (escape_spaces_ && code_point == ' ' && length > 1) {
            result.push_back(0xC0);
            result.push_back(0xA0);
        } else {
            const unsigned written = write_utf8(code_point, bytes);
            result.insert(result.end(), bytes, bytes + written);
        }
        i += length;
        pace.count(length);
    }
    return result;
}

// Appends the ids of a text, or counts them if `count` is given.
void Encoder::encode_alone(const Text &text, const EncodeOptions &options, Worker &worker, Ids &ids, size_t *count,
                           const Poll &poll) const {
    auto add = [&](int32_t token) {
        if (count) {
            ++*count;
        } else {
            ids.push(token);
        }
    };
    if (text.size >= LONG_TEXT && !count) ids.room(text.size / BYTES_A_TOKEN);
    if (options.add_special && bos_ >= 0) add(bos_);
    std::vector<Fragment> &fragments = worker.fragments;
    fragments.clear();
    if (special_.empty()) {
        if (text.size) fragments.push_back({-1, 0, text.size});
    } else {
        partition(options.parse_special, poll).split(text.data, text.size, fragments, poll);
    }
    if (k_mers_) k_mers_->cut(text.data, fragments, poll);
    encode_fragments(text, fragments, worker, ids, count, poll);
    if (options.add_special && eos_ >= 0) add(eos_);
}

// The parts of a text one after the other; what is not UTF-8 is first rewritten to be.
void Encoder::encode_fragments(const Text &text, const std::vector<Fragment> &fragments, Worker &worker, Ids &ids,
                               size_t *count, const Poll &poll) const {
    const bool is_valid = text.is_valid || is_utf8(text.data, text.size, poll);
    std::vector<unsigned char> rewritten;
    for (const Fragment &fragment : fragments) {
        Part part{fragment.token, text.data + fragment.start, fragment.end - fragment.start};
        if (!is_valid && part.token == -1) {
            rewritten = rewrite(part.data, part.size, poll);
            part = {-1, rewritten.data(), rewritten.size()};
        }
        encode_part(part, worker, ids, count, poll);
    }
}

// Appends the ids of a part, or counts them.
void Encoder::encode_part(const Part &part, Worker &worker, Ids &ids, size_t *count, const Poll &poll) const {
    if (part.token >= 0) {
        if (!count) return ids.push(part.token);
        ++*count;
    } else if (part.token == KMers::SEQUENCE) {
        encode_sequence(part, worker, ids, count, poll);
    } else if (spaced_words_) {
        encode_spaced(part, worker, ids, count, poll);
    } else {
        encode_fragment(part.data, part.size, worker, ids, count, poll);
    }
}

// The same of a sequence of k-mers.
void Encoder::encode_sequence(const Part &part, Worker &worker, Ids &ids, size_t *count, const Poll &poll) const {
    const unsigned char *data = part.data;
    size_t size = part.size;
    if (escape_spaces_) {  // this comes first in llama.cpp, and a k-mer is six bytes of what it gives
        worker.changed.clear();
        for (size_t i = 0; i < size; ++i) {
            if (data[i] == ' ') {
                worker.changed += "\xE2\x96\x81";
            } else {
                worker.changed += static_cast<char>(data[i]);
            }
        }
        data = reinterpret_cast<const unsigned char *>(worker.changed.data());
        size = worker.changed.size();
    }
    if (count) {
        *count += (size + KMers::LENGTH - 1) / KMers::LENGTH;
        return;
    }
    for (size_t at = 0; at < size; at += KMers::LENGTH) {
        if (at % PART_OF_K_MERS == 0) poll();
        ids.push(k_mers_->id(data + at, std::min(KMers::LENGTH, size - at)));
    }
}

// The same of text whose white space is dropped, even in the middle of a run of it.
void Encoder::encode_spaced(const Part &part, Worker &worker, Ids &ids, size_t *count, const Poll &poll) const {
    for (size_t at = 0; at < part.size;) {
        const size_t end = part.size - at > PART ? spaced_words_->cut(part.data, part.size, at + PART, poll) : part.size;
        const unsigned char *data = part.data + at;
        size_t size = end - at;
        if (spaced_words_->lowers()) {
            spaced_words_->write_lower(data, size, worker.changed, poll);
            data = reinterpret_cast<const unsigned char *>(worker.changed.data());
            size = worker.changed.size();
        }
        encode_fragment(data, size, worker, ids, count, poll);
        at = end;
        poll();
    }
}

namespace {

// Where the first character at or behind a place begins, if the bytes are UTF-8.
size_t character_at(const Text &text, size_t place) {
    for (int i = 0; i < 3 && place > 0 && place < text.size && (text.data[place] & 0xC0) == 0x80; ++i) ++place;
    return place;
}

}  // namespace

// The fragments of a text, and whether it is UTF-8; found by several threads.
std::vector<Fragment> Encoder::fragments_of(const Text &text, bool parse_special, size_t threads, bool &is_valid,
                                            const Poll &poll) const {
    const Partition *special = special_.empty() ? nullptr : &partition(parse_special, poll);
    std::vector<std::vector<Partition::Match>> found((text.size + SEARCHED - 1) / SEARCHED);
    std::atomic<bool> all_valid{true};
    on_threads(found.size(), threads, poll, [&](Turns &turns, const Poll &poll_here, bool) {
        for (size_t turn; turns.take(turn);) {
            const size_t start = turn * SEARCHED, end = std::min(start + SEARCHED, text.size);
            if (special) special->find(text.data, text.size, start, end, found[turn], poll_here);
            if (!text.is_valid && all_valid.load(std::memory_order_relaxed)) {
                const size_t first = character_at(text, start), last = character_at(text, end);
                if (!is_utf8(text.data + first, last - first)) all_valid.store(false, std::memory_order_relaxed);
            }
            poll_here();
        }
    });
    is_valid = all_valid;
    std::vector<Fragment> fragments;
    if (special) {
        std::vector<Partition::Match> matches;
        for (const auto &some : found) matches.insert(matches.end(), some.begin(), some.end());
        special->cut(text.data, text.size, matches, fragments, poll);
    } else if (text.size) {
        fragments.push_back({-1, 0, text.size});
    }
    if (k_mers_) k_mers_->cut(text.data, fragments, poll);
    return fragments;
}

// Where plain text may be cut at or behind `from` without changing an id; the size if there is no such place.
size_t Encoder::cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const {
    return spaced_words_ ? spaced_words_->cut(text, size, from, poll) : splitter_->cut(text, size, from);
}

std::vector<Encoder::Part> Encoder::parts_of(const Text &text, const std::vector<Fragment> &fragments, bool is_valid,
                                             std::vector<std::vector<unsigned char>> &rewritten,
                                             const Poll &poll) const {
    std::vector<Part> parts;
    parts.reserve(fragments.size());
    for (const Fragment &fragment : fragments) {
        if (fragment.token >= 0) {
            parts.push_back({fragment.token, nullptr, 0});
            continue;
        }
        const unsigned char *data = text.data + fragment.start;
        size_t size = fragment.end - fragment.start;
        const bool is_plain = fragment.token == -1;
        if (!is_valid && is_plain) {
            rewritten.push_back(rewrite(data, size, poll));
            data = rewritten.back().data();
            size = rewritten.back().size();
        }
        const bool is_divisible = is_plain || !escape_spaces_;  // k-mers are counted from the escaped text's beginning
        for (size_t start = 0; start < size;) {
            size_t end = size;
            if (is_divisible && size - start > PART + PART / 2) {
                end = is_plain ? cut(data, size, start + PART, poll) : start + PART_OF_K_MERS;
            }
            parts.push_back({fragment.token, data + start, end - start});
            start = end;
        }
    }
    return parts;
}

// The same as encode_alone, on several threads.
void Encoder::encode_shared(const Text &text, const EncodeOptions &options, size_t threads, Ids &ids, size_t *count,
                            const Poll &poll) const {
    bool is_valid;
    std::vector<std::vector<unsigned char>> rewritten;
    const std::vector<Fragment> fragments = fragments_of(text, options.parse_special, threads, is_valid, poll);
    const std::vector<Part> parts = parts_of(text, fragments, is_valid, rewritten, poll);
    // Neighbours together, so that a text of many small fragments is not taken apart.
    std::vector<std::pair<size_t, size_t>> spans;
    size_t first = 0, bytes = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
        bytes += parts[i].size + 16;
        if (bytes >= PART || i + 1 == parts.size()) {
            spans.emplace_back(first, i + 1);
            first = i + 1;
            bytes = 0;
        }
    }
    const bool has_bos = options.add_special && bos_ >= 0, has_eos = options.add_special && eos_ >= 0;
    if (!count) ids.room(text.size / BYTES_A_TOKEN + 2);
    if (!count && has_bos) ids.push(bos_);
    OrderedIds ordered(ids, spans.size());
    std::atomic<size_t> total{0};
    on_threads(spans.size(), threads, poll, [&](Turns &turns, const Poll &poll_here, bool) {
        Lease worker(*this);
        Ids made;
        size_t made_count = 0;
        for (size_t turn; turns.take(turn);) {
            const bool is_all = spans.size() == 1;
            if (!count && !is_all) made = ordered.spare();
            for (size_t i = spans[turn].first; i < spans[turn].second; ++i) {
                encode_part(parts[i], *worker, is_all ? ids : made, count ? &made_count : nullptr, poll_here);
            }
            if (!count && !is_all) ordered.put(turn, std::move(made));
            poll_here();
        }
        total += made_count;
    });
    if (!count && has_eos) ids.push(eos_);
    if (count) *count += total + has_bos + has_eos;
}

void Encoder::encode(const Text &text, const EncodeOptions &options, size_t threads, Ids &ids, const Poll &poll) const {
    if (text.size >= LONG_TEXT) cache_.expect(text.size / BYTES_A_NEW_WORD);
    if (threads > 1 && text.size >= WORTH_SHARING) {
        encode_shared(text, options, threads, ids, nullptr, poll);
    } else {
        Lease worker(*this);
        encode_alone(text, options, *worker, ids, nullptr, poll);
    }
}

size_t Encoder::count(const Text &text, const EncodeOptions &options, size_t threads, const Poll &poll) const {
    size_t count = 0;
    Ids none;
    if (threads > 1 && text.size >= WORTH_SHARING) {
        encode_shared(text, options, threads, none, &count, poll);
    } else {
        Lease worker(*this);
        encode_alone(text, options, *worker, none, &count, poll);
    }
    return count;
}

namespace {

// Texts that were encoded together.
struct Encoded {
    size_t first = 0;
    Ids ids;
    std::vector<size_t> ends;
};

// Those that wait to be taken, and the memory of those that were.
class Waiting {
public:
    void put(Encoded &&encoded) {
        std::lock_guard<std::mutex> lock(mutex_);
        waiting_.push_back(std::move(encoded));
    }
    bool get(Encoded &encoded) { return move_last(waiting_, encoded); }
    void give_back(Encoded &&encoded) {
        std::lock_guard<std::mutex> lock(mutex_);
        spare_.push_back(std::move(encoded));
    }
    Encoded spare() {
        Encoded encoded;
        move_last(spare_, encoded);
        return encoded;
    }

private:
    bool move_last(std::vector<Encoded> &from, Encoded &to) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (from.empty()) return false;
        to = std::move(from.back());
        from.pop_back();
        return true;
    }
    std::mutex mutex_;
    std::vector<Encoded> waiting_, spare_;
};

}  // namespace

void Encoder::encode_batch(const std::vector<Text> &texts, const EncodeOptions &options, size_t threads, const Take &take,
                           const Poll &poll) const {
    // Short texts in groups, long ones by themselves. Where there are few and long ones, each is shared out among the threads.
    std::vector<std::pair<size_t, size_t>> groups;
    size_t first = 0, bytes = 0, all_bytes = 0, longest = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
        bytes += texts[i].size + 64;
        all_bytes += texts[i].size;
        longest = std::max(longest, texts[i].size);
        if (bytes >= TEXTS || i + 1 == texts.size() || texts[i + 1].size >= TEXTS) {
            groups.emplace_back(first, i + 1);
            first = i + 1;
            bytes = 0;
        }
    }
    if (all_bytes >= LONG_TEXT) cache_.expect(all_bytes / BYTES_A_NEW_WORD);
    const bool few = groups.size() < 2 * threads && longest >= WORTH_SHARING;
    Waiting waiting;
    auto take_and_empty = [&](Encoded &encoded) {
        take(encoded.first, encoded.ids, encoded.ends);
        encoded.ids.clear();
        encoded.ends.clear();
    };
    Encoded other;
    on_threads(groups.size(), few ? 1 : threads, poll, [&](Turns &turns, const Poll &poll_here, bool is_caller) {
        std::optional<Lease> worker;
        if (!few) worker.emplace(*this);
        Encoded encoded;
        for (size_t turn; turns.take(turn);) {
            encoded.first = groups[turn].first;
            for (size_t i = encoded.first; i < groups[turn].second; ++i) {
                if (few) {
                    encode(texts[i], options, threads, encoded.ids, poll_here);
                } else {
                    encode_alone(texts[i], options, **worker, encoded.ids, nullptr, poll_here);
                }
                encoded.ends.push_back(encoded.ids.size());
            }
            if (is_caller) {
                take_and_empty(encoded);
                while (waiting.get(other)) {
                    take_and_empty(other);
                    waiting.give_back(std::move(other));
                }
            } else {
                waiting.put(std::move(encoded));
                encoded = waiting.spare();
            }
            poll_here();
        }
    });
    while (waiting.get(other)) take_and_empty(other);
}

void Encoder::encode_plain(const Text &text, Ids &ids, const Poll &poll) const {
    Lease worker(*this);
    std::vector<Fragment> fragments;
    if (text.size) fragments.push_back({-1, 0, text.size});
    if (k_mers_) k_mers_->cut(text.data, fragments, poll);
    encode_fragments(text, fragments, *worker, ids, nullptr, poll);
}

void Encoder::encode_fragment(const unsigned char *text, size_t size, Worker &worker, Ids &ids, size_t *count,
                              const Poll &poll) const {
    for (size_t start = 0; start < size;) {
        const size_t end = splitter_->block(text, size, start, worker.split);
        worker.former.clear();
        if (worker.table->retired.load(std::memory_order_acquire)) worker.table = cache_.table();
        while (splitter_->words(worker.split)) {
            // No text has more ids than bytes, but for a space that is written as U+2581, which may fall back to its three
            // bytes; a cached word is written four ids at a time.
            const size_t bytes = worker.split.starts[worker.split.word_count] - worker.split.starts[0];
            int32_t *to = count ? nullptr : ids.room((escape_spaces_ ? 3 : 1) * bytes + 8);
            to = encode_words(text + start, size - start, worker, to, count, poll);
            if (!count) ids.advance(to);
        }
        start = end;
        if (start < size) poll();
    }
}

// The words of a block, of which `readable` bytes may be read. If `count` is given, ids are counted and none are written.
int32_t *Encoder::encode_words(const unsigned char *text, size_t readable, Worker &worker, int32_t *to, size_t *count,
                               const Poll &poll) const {
    const uint32_t *starts = worker.split.starts.data();
    const size_t words = worker.split.word_count;
    if (worker.found.size() < FLUSH + GROUP) worker.found.resize(FLUSH + GROUP);
    WordTable::Found *found = worker.found.data();
    WordKey keys[GROUP];
    size_t buckets[GROUP];
    size_t kept = 0;  // words in `found` that wait for one that is missing
    worker.missing.clear();
    auto emit = [&] {
        for (size_t i = 0; i < kept; ++i) {
            if (count) {
                *count += id_count(found[i]);
            } else if (!(found[i].third & WordTable::IN_RECORD)) {
                std::memcpy(to, &found[i], 16);  // what is too much is written over
                to += found[i].third >> 32;
            } else {
                const WordTable::Record &record = WordTable::record_of(found[i]);
                to = std::copy(record.ids(), record.ids() + record.count, to);
            }
        }
        kept = 0;
    };
    auto flush = [&] {
        encode_missing(found, worker, poll);
        emit();
        worker.missing.clear();
        worker.long_ids.clear();
    };
    for (size_t from = 0; from < words; from += GROUP) {
        const size_t group = std::min(GROUP, words - from);
        const WordTable &table = *worker.table;
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
                    encode_very_long(word, size, worker, to, count, poll);
                    continue;
                }
                worker.missing.push_back({{word, size}, keys[i], kept});
            }
            ++kept;
        }
        if (worker.missing.empty()) {
            emit();
        } else if (kept >= FLUSH || from + group == words) {
            flush();
        }
    }
    return to;
}

// Encodes a word that is too long for the table, and for its ids to be kept twice.
void Encoder::encode_very_long(const unsigned char *word, size_t size, Worker &worker, int32_t *&to, size_t *count,
                               const Poll &poll) const {
    if (count) {
        *count += merger_.count(word, size, worker.merge, poll);
    } else {
        worker.merge.ids.clear();
        merger_.encode(word, size, worker.merge, poll);
        to = std::copy(worker.merge.ids.data(), worker.merge.ids.data() + worker.merge.ids.size(), to);
    }
    worker.merge.ids = Ids();
}

// Encodes the words that are not in the table, and puts them there.
void Encoder::encode_missing(WordTable::Found *found, Worker &worker, const Poll &poll) const {
    // A new word often comes several times: each is encoded once. `slots` is a small table of places in `words`, plus 1.
    size_t size = 64;
    while (size < 2 * worker.missing.size()) size *= 2;
    std::vector<uint32_t> &slots = worker.slots;
    slots.assign(size, 0);
    worker.words.clear();
    worker.word_keys.clear();
    for (Missing &missing : worker.missing) {
        size_t at = missing.key.hash() >> 32 & (size - 1);
        for (;; at = (at + 1) & (size - 1)) {
            if (!slots[at]) {
                worker.words.push_back(missing.word);
                worker.word_keys.push_back(missing.key);
                slots[at] = static_cast<uint32_t>(worker.words.size());
                break;
            }
            const size_t other = slots[at] - 1u;
            if (worker.word_keys[other].low == missing.key.low && worker.word_keys[other].high == missing.key.high &&
                (missing.key.is_inline() || !std::memcmp(worker.words[other].data, missing.word.data, missing.word.size))) {
                break;
            }
        }
        missing.same_as = slots[at] - 1u;
    }
    worker.merge.ids.clear();
    worker.results.resize(worker.words.size());
    merger_.encode_many(worker.words.data(), worker.words.size(), worker.results.data(), worker.merge, poll);
    worker.new_founds.resize(worker.words.size());
    constexpr size_t AHEAD = 24;
    std::optional<WordTable::Writer> writer(*worker.table);
    for (size_t k = 0; k < worker.words.size(); ++k) {
        if (k + AHEAD < worker.words.size()) worker.table->prefetch(worker.table->bucket(worker.word_keys[k + AHEAD].hash()));
        worker.new_founds[k] = keep(worker.words[k], worker.word_keys[k], worker.merge.ids.data() + worker.results[k].start,
                                    worker.results[k].count, worker, writer);
    }
    for (const Missing &missing : worker.missing) found[missing.place] = worker.new_founds[missing.same_as];
}

// Idle workers keep no table that was replaced: nobody knows when they will be asked again.
void Encoder::drop_retired_tables() const {
    std::lock_guard<std::mutex> lock(workers_mutex_);
    for (const std::unique_ptr<Worker> &worker : workers_) {
        if (worker->table && worker->table->retired.load(std::memory_order_acquire)) worker->table.reset();
    }
}

// Instead of a table that is full. False while another thread is about to replace it: then what is new is not kept.
bool Encoder::take_next_table(Worker &worker) const {
    auto next = cache_.replace(worker.table);
    if (next == worker.table) return false;
    worker.former.push_back(std::move(worker.table));  // what was found in it is still to be copied
    worker.table = std::move(next);
    drop_retired_tables();
    return true;
}

// Puts the ids of a word into the table, if it is not too long for that and `writer` may write; the answer holds until the
// next are encoded.
WordTable::Found Encoder::keep(const Merger::Word &word, const WordKey &key, const int32_t *ids, size_t count, Worker &worker,
                               std::optional<WordTable::Writer> &writer) const {
    if (writer && word.size <= WordTable::LONGEST) {
        WordTable::Found found;
        const uint64_t hash = key.hash();
        if (writer->insert(key, worker.table->bucket(hash), word.data, word.size, ids, count, found)) return found;
        writer.reset();
        if (take_next_table(worker)) {
            writer.emplace(*worker.table);
            if (writer->insert(key, worker.table->bucket(hash), word.data, word.size, ids, count, found)) return found;
        }
    }
    worker.long_ids.emplace_back(2 + count);
    auto *record = reinterpret_cast<WordTable::Record *>(worker.long_ids.back().data());
    record->size = 0;
    record->count = static_cast<uint32_t>(count);
    std::copy(ids, ids + count, reinterpret_cast<int32_t *>(record + 1));
    return {reinterpret_cast<uint64_t>(record), WordTable::IN_RECORD};
}

}  // namespace ggufbpe
