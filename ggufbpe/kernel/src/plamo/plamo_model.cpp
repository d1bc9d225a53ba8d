#include "plamo/plamo_model.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "plamo/segments.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t GROUP = 256;            // words whose slots are fetched together
constexpr size_t BYTES_A_NEW_WORD = 64;  // for a word in so many bytes of a long text, the cache is given room at once
constexpr uint32_t BYTE_ORDER_MARK = 0xFEFF;

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The code point at `p` and, in `length`, how many bytes it takes: up to 0x1FFFFF, which is what llama.cpp reads here.
uint32_t any_code_point_at(const unsigned char *p, const unsigned char *end, unsigned &length) {
    if (*p < 0xF4 || *p >= 0xF8 || end - p < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3])) {
        return code_point_at(p, end, length);
    }
    length = 4;
    return (*p & 7u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

// The code point of a character that is known to be one.
uint32_t code_point_of(const unsigned char *p, size_t size) {
    uint32_t c = size == 1 ? *p : *p & (0x7Fu >> size);
    for (size_t i = 1; i < size; ++i) c = c << 6 | (p[i] & 0x3Fu);
    return c;
}

// Bytes that are not UTF-8 as llama.cpp reads them: what cannot be decoded as U+FFFD, all else in its shortest form.
void rewrite(const unsigned char *p, const unsigned char *end, std::vector<unsigned char> &to, Pace &pace) {
    to.clear();
    while (p < end) {
        unsigned length;
        unsigned char written[4];
        const unsigned size = write_utf8(any_code_point_at(p, end, length), written);
        to.insert(to.end(), written, written + size);
        p += length;
        pace.count(length);
    }
}

}  // namespace

struct PlamoModel::Scratch : TextModel::Scratch {
    std::vector<unsigned char> rewritten;
    std::vector<int64_t> costs;  // of what is behind the last places, in a ring
    Buffer<int32_t> path;        // what is taken at each character, from the last to the first: a token, or IN_BYTES
    size_t characters = 0;       // of the path
    std::vector<int32_t> found;  // ids of a word
    Word words[GROUP];
    size_t word_count = 0;
    WordTables tables;
    WordTable::Writer writer;

    bool is_outdated() const { return tables.current && tables.current->retired.load(std::memory_order_acquire); }
    size_t bytes() const override {
        return TextModel::Scratch::bytes() + rewritten.capacity() + costs.capacity() * sizeof(int64_t) + path.bytes() +
               found.capacity() * sizeof(int32_t);
    }
};

// ---- loading ----

PlamoModel::PlamoModel(const Strings &tokens, const std::vector<int32_t> &scores, std::vector<int32_t> byte_tokens,
                       bool cuts_segments, size_t cache_bytes, const Poll &poll)
    : suffixes_(tokens, scores, poll), byte_tokens_(std::move(byte_tokens)), cuts_segments_(cuts_segments), cache_(cache_bytes) {
    if (byte_tokens_.size() != 256) throw std::invalid_argument("a token for each byte is needed");
    while (ring_ <= suffixes_.longest()) ring_ *= 2;
    find_joined(tokens, scores);
}

// What stands side by side in some token, or within a character. A token that ends a list also hides what is in front of it,
// so that no word ends there.
void PlamoModel::find_joined(const Strings &tokens, const std::vector<int32_t> &scores) {
    for (auto &row : joined_) row[2] = ~uint64_t(0);  // continuation bytes
    lengths_.resize(tokens.size());
    for (size_t id = 0; id < tokens.size(); ++id) {
        const std::string_view text = tokens[id];
        uint32_t characters = 0;
        for (const char byte : text) characters += !is_continuation(static_cast<unsigned char>(byte));
        lengths_[id] = {static_cast<uint32_t>(text.size()), characters};
        if (scores[id] == Suffixes::NOT_LOOKED_UP || text.empty()) continue;
        for (size_t i = 1; i < text.size(); ++i) {
            join(static_cast<unsigned char>(text[i - 1]), static_cast<unsigned char>(text[i]));
        }
        if (scores[id] != Suffixes::UNKNOWN_SCORE) continue;
        for (unsigned before = 0; before < 256; ++before) {
            join(static_cast<unsigned char>(before), static_cast<unsigned char>(text[0]));
        }
    }
}

// ---- caching ----

std::unique_ptr<TextModel::Scratch> PlamoModel::new_scratch() const { return std::make_unique<Scratch>(); }

void PlamoModel::begin(TextModel::Scratch &scratch) const {
    auto &own = static_cast<Scratch &>(scratch);
    if (!own.tables.current || own.is_outdated()) own.tables = cache_.tables();
    own.word_count = 0;
}

void PlamoModel::end(TextModel::Scratch &scratch) const {
    auto &own = static_cast<Scratch &>(scratch);
    if (own.is_outdated()) own.tables = {};
}

void PlamoModel::drop_outdated_tables() const {
    pool_.each_idle([](TextModel::Scratch &scratch) {
        auto &own = static_cast<Scratch &>(scratch);
        if (own.is_outdated()) own.tables = {};
    });
}

void PlamoModel::expect(size_t bytes) const {
    if (cache_.expect(bytes / BYTES_A_NEW_WORD)) drop_outdated_tables();
}

void PlamoModel::clear_cache() const {
    cache_.clear();
    drop_outdated_tables();
}

// Puts `scratch.found` into the cache.
void PlamoModel::keep(Word word, const WordKey &key, Scratch &scratch) const {
    WordTable::Found found;
    for (int turn = 0; turn < 2; ++turn) {
        scratch.writer.write_to(*scratch.tables.current);
        const size_t bucket = scratch.tables.current->bucket(key.hash());
        if (scratch.writer.insert(key, bucket, word.data, word.size, scratch.found.data(), scratch.found.size(), found)) return;
        scratch.writer.count_kept();
        WordTables next = cache_.replace(scratch.tables.current);
        if (next.current == scratch.tables.current) return;  // another thread is about to replace it
        scratch.tables = std::move(next);
        drop_outdated_tables();
    }
}

// ---- text to words ----

// Whether text may be cut at `p`, behind its beginning, whatever it is: behind ASCII, so that characters are told apart.
bool PlamoModel::may_cut(const unsigned char *p, const unsigned char *end) const {
    if (p[-1] >= 0x80) return false;
    unsigned length;
    unsigned char written[4];
    const uint32_t c = any_code_point_at(p, end, length);
    write_utf8(c, written);
    if (is_joined(p[-1], written[0]) || c == BYTE_ORDER_MARK) return false;  // which is left out only where a fragment begins
    return !cuts_segments_ || may_part_segments(p[-1], c);
}

void PlamoModel::divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const {
    const unsigned char *end = part.data + part.size;
    Pace pace(poll);
    for (const unsigned char *start = part.data; start < end;) {
        const unsigned char *cut = end;
        if (size_t(end - start) > size + size / 2) {
            const size_t left = find_first(size, size_t(end - start), pace, [&](size_t at) { return may_cut(start + at, end); });
            cut = start + left;
        }
        parts.push_back({part.token, start, size_t(cut - start)});
        start = cut;
    }
}

void PlamoModel::encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const {
    auto &own = static_cast<Scratch &>(scratch);
    Pace pace(poll);
    const unsigned char *p = part.data, *end = p + part.size;
    if (!is_utf8(p, part.size, poll)) {
        rewrite(p, end, own.rewritten, pace);
        p = own.rewritten.data();
        end = p + own.rewritten.size();
    }
    if (cuts_segments_) {
        Segments segments(p, end);
        for (;;) {
            const Segments::Segment segment = segments.next(pace);
            if (segment.start == segment.end) break;
            encode_segment({segment.start, size_t(segment.end - segment.start)}, end, own, ids, pace);
        }
    } else {
        unsigned length;
        if (p < end && any_code_point_at(p, end, length) == BYTE_ORDER_MARK) p += length;
        encode_segment({p, size_t(end - p)}, end, own, ids, pace);
    }
    encode_words(end, own, ids, pace);
}

// The words of a segment, which wait for more where they are few. Where they end cannot be predicted, so it is first found
// out for many bytes, then looked at.
void PlamoModel::encode_segment(Word segment, const unsigned char *end, Scratch &scratch, Sink &ids, Pace &pace) const {
    constexpr size_t AT_ONCE = 64;
    const unsigned char *start = segment.data, *stop = start + segment.size;
    const auto add = [&](const unsigned char *word_end) {
        scratch.words[scratch.word_count++] = {start, size_t(word_end - start)};
        if (scratch.word_count == GROUP) encode_words(end, scratch, ids, pace);
        start = word_end;
    };
    for (const unsigned char *p = start + 1; p < stop; p += AT_ONCE) {
        const size_t count = std::min(AT_ONCE, size_t(stop - p));
        uint64_t word_ends = 0;
        for (size_t i = 0; i < count; ++i) word_ends |= uint64_t(!is_joined(p[i - 1], p[i])) << i;
        for (; word_ends; word_ends &= word_ends - 1) add(p + lowest_bit(word_ends));
        pace.count(count);
        if (count < AT_ONCE) break;
    }
    if (start < stop) add(stop);
}

// The words that wait. Text may be read up to `end`.
void PlamoModel::encode_words(const unsigned char *end, Scratch &scratch, Sink &ids, Pace &pace) const {
    WordKey keys[GROUP];
    const size_t count = std::exchange(scratch.word_count, 0);
    if (scratch.is_outdated()) scratch.tables = cache_.tables();
    for (size_t i = 0; i < count; ++i) {
        keys[i] = WordKey::of(scratch.words[i].data, scratch.words[i].size, size_t(end - scratch.words[i].data));
        const WordTable &table = *scratch.tables.current;
        table.prefetch(table.bucket(keys[i].hash()));
    }
    for (size_t i = 0; i < count; ++i) {
        const Word &word = scratch.words[i];
        const bool may_be_known = word.size <= WordTable::LONGEST;
        const WordTable &table = *scratch.tables.current;
        WordTable::Found found;
        const bool is_current = may_be_known && table.find(keys[i], table.bucket(keys[i].hash()), word.data, found);
        bool is_known = is_current;
        if (!is_known && may_be_known && scratch.tables.former) {
            const WordTable &former = *scratch.tables.former;
            is_known = former.find(keys[i], former.bucket(keys[i].hash()), word.data, found);
        }
        if (is_known) {
            const size_t known = (found.third & ~WordTable::IN_RECORD) >> 32;
            const bool in_record = found.third & WordTable::IN_RECORD;
            if (is_current && !in_record && ids.has_room(4)) {
                if (int32_t *to = ids.room(4)) {
                    found.write_ids(to);
                    ids.advance(to + known);
                } else {
                    ids.add(known);
                }
                continue;
            }
            int32_t few[4];
            const int32_t *first = few;
            size_t size = known;
            if (in_record) {
                first = WordTable::record_of(found).ids();
                size = WordTable::record_of(found).count;
            } else {
                found.write_ids(few);
            }
            scratch.found.assign(first, first + size);
        } else {
            find_path(word, scratch, pace);
            follow_path(word, scratch, pace);
            cache_misses_.fetch_add(may_be_known, std::memory_order_relaxed);
        }
        if (may_be_known && !is_current) keep(word, keys[i], scratch);
        if (int32_t *to = ids.room(scratch.found.size())) {
            std::copy(scratch.found.begin(), scratch.found.end(), to);
            ids.advance(to + scratch.found.size());
        } else {
            ids.add(scratch.found.size());
        }
    }
    scratch.writer.count_kept();
}

// ---- a word to ids ----

// What is best at each place, from the last character to the first; of what costs the same the longest.
void PlamoModel::find_path(Word word, Scratch &scratch, Pace &pace) const {
    const size_t mask = ring_ - 1;
    scratch.costs.resize(ring_);
    int64_t *costs = scratch.costs.data();
    int32_t *path = scratch.path.room(word.size);
    costs[word.size & mask] = 0;
    uint32_t node = Suffixes::ROOT;
    size_t characters = 0;
    for (size_t at = word.size; at > 0;) {
        const size_t behind = at;
        while (is_continuation(word.data[--at])) {
        }
        const size_t length = behind - at;
        node = suffixes_.next(node, code_point_of(word.data + at, length));
        int64_t least = INT64_MAX;
        int32_t best = Suffixes::IN_BYTES;
        size_t steps = 1;
        const Suffixes::Step *step = &suffixes_.first(node);
        for (; step->token >= 0; ++steps) {
            const int64_t cost = costs[(at + step->size) & mask] - step->score;
            best = cost < least ? step->token : best;
            least = std::min(cost, least);
            step = &suffixes_.shorter(step->token);
        }
        if (step->token == Suffixes::IN_BYTES) {
            const int64_t cost = costs[(at + length) & mask] - Suffixes::UNKNOWN_SCORE;
            best = cost < least ? Suffixes::IN_BYTES : best;
            least = std::min(cost, least);
        }
        costs[at & mask] = least;
        path[characters++] = best;
        pace.count(steps);
    }
    scratch.characters = characters;
}

// The ids along the path, into `scratch.found`.
void PlamoModel::follow_path(Word word, Scratch &scratch, Pace &pace) const {
    const int32_t *path = scratch.path.data();
    std::vector<int32_t> &found = scratch.found;
    found.clear();
    size_t at = 0;
    for (size_t left = scratch.characters; left > 0;) {
        const int32_t token = path[left - 1];
        if (token >= 0) {
            const Length &length = lengths_[static_cast<size_t>(token)];
            found.push_back(token);
            at += length.bytes;
            left -= length.characters;
        } else {
            do found.push_back(byte_tokens_[word.data[at]]);
            while (++at < word.size && is_continuation(word.data[at]));
            --left;
        }
        pace.count(1);
    }
}

}  // namespace ggufbpe
