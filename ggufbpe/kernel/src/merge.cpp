#include "merge.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "utf8.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(GGUFBPE_PORTABLE)
#include <immintrin.h>
#define GGUFBPE_X86 1
#endif

#if defined(__GNUC__)
#define ALWAYS_INLINE __attribute__((always_inline)) inline
#else
#define ALWAYS_INLINE inline
#endif

namespace ggufbpe {

namespace {

constexpr uint32_t NO_RANK = UINT32_MAX;
constexpr size_t LANES = 16;       // words that go forward in turn
constexpr size_t SHORT_WORD = 64;  // symbols; for fewer, looking through all values is faster than a queue
constexpr size_t VERY_LONG_WORD = 1024;   // symbols; from here on all pairs of a rank are merged together
constexpr size_t POLL_EVERY = 1 << 20;    // merges
constexpr uint32_t NOWHERE = UINT32_MAX;  // no place in a word
constexpr uint32_t ESCAPED_SPACE = 0x2581;
constexpr size_t MOST_JOINED = 100;  // characters that merges join to a space behind them

// GPT-2 writes each byte as one printable character (src/unicode.cpp: unicode_byte_to_utf8_map).
struct ByteAlphabet {
    uint16_t code_point[256];
    unsigned char text[256][2];
    uint8_t size[256];
    int16_t byte_of[0x200];  // by code point; -1 for none

    ByteAlphabet() {
        std::fill(std::begin(byte_of), std::end(byte_of), int16_t(-1));
        uint16_t other = 0x100;
        for (int byte = 0; byte < 256; ++byte) {
            bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            code_point[byte] = printable ? static_cast<uint16_t>(byte) : other++;
            unsigned char bytes[4];
            size[byte] = static_cast<uint8_t>(write_utf8(code_point[byte], bytes));
            std::memcpy(text[byte], bytes, 2);
            byte_of[code_point[byte]] = static_cast<int16_t>(byte);
        }
    }
};

const ByteAlphabet ALPHABET;

// The byte that a text of one character of GPT-2's alphabet stands for, or -1.
int byte_of(std::string_view text) {
    if (text.empty() || text.size() > 2) return -1;
    const auto *p = reinterpret_cast<const unsigned char *>(text.data());
    unsigned length;
    uint32_t code_point = code_point_at(p, p + text.size(), length);
    return length == text.size() && code_point < 0x200 ? ALPHABET.byte_of[code_point] : -1;
}

// Where the lowest of some values is, the leftmost of equal ones.
size_t lowest_of(const uint64_t *values, size_t count) {
    size_t at = 0;
    uint64_t lowest = values[0];
    for (size_t i = 1; i < count; ++i) {
        const bool lower = values[i] < lowest;
        lowest = lower ? values[i] : lowest;
        at = lower ? i : at;
    }
    return at;
}

uint32_t last_character(std::string_view text) {
    size_t start = text.size() - 1;
    while (start > 0 && (text[start] & 0xC0) == 0x80) --start;
    const auto *p = reinterpret_cast<const unsigned char *>(text.data());
    unsigned length;
    return code_point_at(p + start, p + text.size(), length);
}

bool starts_with_space(std::string_view text) { return text.compare(0, 3, "\xE2\x96\x81") == 0; }
bool ends_with_space(std::string_view text) {
    return text.size() >= 3 && text.compare(text.size() - 3, 3, "\xE2\x96\x81") == 0;
}

}  // namespace

Merger::Merger(std::shared_ptr<const Strings> tokens, const Strings &merges, const MergeOptions &options)
    : tokens_(std::move(tokens)), options_(options) {
    if (!tokens_->indexed()) throw std::invalid_argument("the tokens have no index");
    if (tokens_->size() >= UNKNOWN_CHAR / 2 || merges.size() >= UNKNOWN_CHAR / 2) {
        throw std::invalid_argument("more tokens or merges than there are numbers for");
    }
    for (size_t id = 0; id < tokens_->size(); ++id) longest_token_ = std::max(longest_token_, (*tokens_)[id].size());
    prepare_pairs(merges);
    prepare_characters();
}

uint32_t Merger::symbol_of(std::string_view text, uint64_t hash) {
    int64_t id = tokens_->find(text, hash);
    if (id >= 0) return static_cast<uint32_t>(id);
    auto [found, is_new] = inner_symbols_.try_emplace(std::string(text), static_cast<uint32_t>(symbol_count()));
    if (is_new) inner_.emplace_back(text);
    return found->second;
}

void Merger::prepare_pairs(const Strings &merges) {
    pairs_ = PairTable(merges.size());
    rank_count_ = merges.size();
    if (options_.byte_encode) {
        byte_pairs_ = ZeroedArray<uint64_t>(65536);
        std::fill_n(byte_pairs_.data(), 65536, NONE);
    }

    // In groups, so that what a group will look up is on its way while its hashes are made.
    constexpr size_t GROUP = 32;
    struct Item {
        uint32_t rank;
        std::string_view left, right;
        std::string merged;
        uint64_t left_hash, right_hash, merged_hash;
        uint32_t left_symbol, right_symbol, result;
    };
    std::vector<Item> items(GROUP);
    for (size_t from = 0; from < merges.size(); from += GROUP) {
        size_t count = 0;
        for (size_t rank = from; rank < std::min(from + GROUP, merges.size()); ++rank) {
            // A merge is cut at its first space, not counting one that begins it.
            std::string_view text = merges[rank];
            size_t space = text.size() > 1 ? text.find(' ', 1) : std::string_view::npos;
            if (space == std::string_view::npos || space + 1 == text.size()) continue;
            Item &item = items[count++];
            item.rank = static_cast<uint32_t>(rank);
            item.left = text.substr(0, space);
            item.right = text.substr(space + 1);
            item.merged.assign(item.left);
            item.merged.append(item.right);
            item.left_hash = hash_bytes(item.left.data(), item.left.size());
            item.right_hash = hash_bytes(item.right.data(), item.right.size());
            item.merged_hash = hash_bytes(item.merged.data(), item.merged.size());
            tokens_->prefetch(item.left_hash);
            tokens_->prefetch(item.right_hash);
            tokens_->prefetch(item.merged_hash);
        }
        for (size_t i = 0; i < count; ++i) {
            Item &item = items[i];
            item.left_symbol = symbol_of(item.left, item.left_hash);
            item.right_symbol = symbol_of(item.right, item.right_hash);
            item.result = symbol_of(item.merged, item.merged_hash);
            pairs_.prefetch(item.left_symbol, item.right_symbol);
        }
        for (size_t i = 0; i < count; ++i) {
            const Item &item = items[i];
            const uint64_t value = uint64_t(item.rank) << 32 | item.result;
            if (!pairs_.insert(item.left_symbol, item.right_symbol, value)) continue;
            if (options_.byte_encode) {
                int left = byte_of(item.left), right = byte_of(item.right);
                if (left >= 0 && right >= 0) byte_pairs_[size_t(left) << 8 | size_t(right)] = value;
            } else if (starts_with_space(item.right) && !ends_with_space(item.left)) {
                joined_to_spaces_.push_back(last_character(item.left));
            }
        }
    }
    std::sort(joined_to_spaces_.begin(), joined_to_spaces_.end());
    joined_to_spaces_.erase(std::unique(joined_to_spaces_.begin(), joined_to_spaces_.end()), joined_to_spaces_.end());
    parts_at_spaces_ = options_.escape_spaces && !options_.byte_encode && !options_.ignore_merges &&
                       joined_to_spaces_.size() <= MOST_JOINED;
}

void Merger::prepare_characters() {
    for (int byte = 0; byte < 256; ++byte) {
        if (options_.byte_encode) {
            std::string_view text(reinterpret_cast<const char *>(ALPHABET.text[byte]), ALPHABET.size[byte]);
            byte_symbols_[byte] = symbol_of(text, hash_bytes(text.data(), text.size()));
        } else {
            unsigned char text[4];
            uint32_t code_point = options_.escape_spaces && byte == ' ' ? ESCAPED_SPACE : static_cast<uint32_t>(byte);
            byte_symbols_[byte] = character(text, write_utf8(code_point, text));
        }
    }
}

// The symbol of a character that is no byte: its token, what merges have of it, or a number that no merge knows.
uint32_t Merger::character(const unsigned char *at, unsigned size) const {
    std::string_view text(reinterpret_cast<const char *>(at), size);
    int64_t id = tokens_->find(text);
    if (id >= 0) return static_cast<uint32_t>(id);
    if (!inner_symbols_.empty()) {
        auto found = inner_symbols_.find(std::string(text));
        if (found != inner_symbols_.end()) return found->second;
    }
    unsigned length;
    return UNKNOWN_CHAR | code_point_at(at, at + size, length);
}

bool Merger::may_be_whole(const unsigned char *word, size_t size) const {
    // Twice, for the one form that is shorter when it is written.
    if (!(options_.ignore_merges || options_.newline_runs) || size > 2 * longest_token_) return false;
    if (options_.ignore_merges) return true;
    for (size_t i = 0; i < size; ++i) {
        if (word[i] != '\n') return false;
    }
    return true;
}

// Writes a word as it is for merging, and a few bytes more; returns its size. There must be room for 3 * size + 4 bytes.
size_t Merger::write(const unsigned char *word, size_t size, char *to) const {
    const char *const begin = to;
    for (size_t i = 0; i < size; ++i) {
        if (options_.byte_encode) {
            std::memcpy(to, ALPHABET.text[word[i]], 2);
            to += ALPHABET.size[word[i]];
        } else if (options_.escape_spaces && word[i] == ' ') {
            std::memcpy(to, "\xE2\x96\x81", 3);
            to += 3;
        } else if (word[i] == 0xC0) {  // the space that is not to be escaped: see Encoder::rewrite
            *to++ = ' ';
            ++i;
        } else {
            *to++ = static_cast<char>(word[i]);
        }
    }
    return static_cast<size_t>(to - begin);
}

// Writes the symbols of a word, which are as many as it has bytes, or fewer.
size_t Merger::write_symbols(const unsigned char *word, size_t size, uint32_t *symbols) const {
    if (options_.byte_encode) {
        for (size_t i = 0; i < size; ++i) symbols[i] = byte_symbols_[word[i]];
        return size;
    }
    size_t count = 0;
    for (size_t i = 0; i < size;) {
        if (word[i] < 0x80) {
            symbols[count++] = byte_symbols_[word[i++]];
            continue;
        }
        unsigned length;
        uint32_t code_point = code_point_at(word + i, word + size, length);
        unsigned char text[4];
        symbols[count++] = character(text, write_utf8(code_point, text));
        i += length;
    }
    return count;
}

void Merger::encode(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    if (may_be_whole(word, size)) {
        scratch.written.resize(std::max(scratch.written.size(), 3 * size + 4));
        const size_t written = write(word, size, scratch.written.data());
        const int64_t id = tokens_->find({scratch.written.data(), written});
        if (id >= 0) {
            scratch.ids.push_back(static_cast<int32_t>(id));
            return;
        }
    }
    if (size > LONGEST_WORD) {
        size_t characters = 0;
        for (size_t i = 0; i < size; ++i) characters += options_.byte_encode || (word[i] & 0xC0) != 0x80;
        if (characters > LONGEST_WORD) {
            throw std::length_error("the pre-tokenizer leaves a word of " + std::to_string(characters) +
                                    " characters, which takes " + std::to_string(60 * characters >> 30) +
                                    " GiB to merge; the limit is " + std::to_string(LONGEST_WORD));
        }
    }
    uint32_t *symbols = scratch.symbols.room(size + 1);
    size_t count = write_symbols(word, size, symbols);
    if (count > SHORT_WORD) {
        count = merge_long(count, scratch, poll);
    } else if (count > 1) {
        uint64_t values[SHORT_WORD];
        if (options_.byte_encode) {
            for (size_t i = 0; i + 1 < count; ++i) values[i] = byte_pairs_[size_t(word[i]) << 8 | word[i + 1]];
        } else {
            for (size_t i = 0; i + 1 < count; ++i) values[i] = pairs_.value(symbols[i], symbols[i + 1]);
        }
        count = merge_short(count, symbols, values);
    }
    append_ids(symbols, count, scratch.ids);
}

// Looks for the lowest rank anew each time; of equal ranks the leftmost.
size_t Merger::merge_short(size_t count, uint32_t *symbols, uint64_t *values) const {
    while (count > 1) {
        const size_t at = lowest_of(values, count - 1);
        if (values[at] == NONE) break;
        symbols[at] = static_cast<uint32_t>(values[at]);
        --count;
        for (size_t i = at + 1; i < count; ++i) symbols[i] = symbols[i + 1];
        for (size_t i = at; i + 1 < count; ++i) values[i] = values[i + 1];
        if (at) values[at - 1] = pairs_.value(symbols[at - 1], symbols[at]);
        if (at + 1 < count) values[at] = pairs_.value(symbols[at], symbols[at + 1]);
    }
    return count;
}

// A word on its way. What its next step will read from memory was asked for in the one before.
//
// Symbols and pairs have an entry in front and some behind, so that a pair has neighbours in any case: NO_SYMBOL has no
// merge with anything, so nobody has to ask whether there is a neighbour.
struct Merger::Lane {
    static constexpr uint32_t NO_SYMBOL = UINT32_MAX;
    static constexpr size_t LAST_PLACE = SHORT_WORD + 31;

    const unsigned char *data;
    size_t size;
    size_t number;  // of the word
    enum State { LOOK_UP, READ_PAIRS, MERGE } state;
    uint64_t hash;       // LOOK_UP: of the written word
    size_t text_size;    // LOOK_UP: the written word
    size_t count;        // symbols
    size_t at;           // MERGE: the symbol that was made last
    PairTable::Query left, right;  // MERGE: the pairs that it is in
    uint64_t left_value, right_value;
    char text[3 * SHORT_WORD + 8];
    alignas(32) uint32_t symbols[SHORT_WORD + 32];  // the first at 1
    alignas(32) uint32_t ranks[SHORT_WORD + 32];    // of symbols[i] and symbols[i + 1]
    alignas(32) uint32_t merged[SHORT_WORD + 32];   // what they become

    void set(size_t i, uint64_t value) {
        ranks[i] = static_cast<uint32_t>(value >> 32);
        merged[i] = static_cast<uint32_t>(value);
    }
};

Merger::Scratch::Scratch() = default;
Merger::Scratch::~Scratch() = default;

// The first step of a word. False if it is done already, which a long one is.
bool Merger::start(Lane &lane, Scratch &scratch, const Poll &poll) const {
    if (lane.size > SHORT_WORD) {
        encode(lane.data, lane.size, scratch, poll);
        return false;
    }
    if (may_be_whole(lane.data, lane.size)) {
        lane.text_size = write(lane.data, lane.size, lane.text);
        lane.hash = hash_bytes(lane.text, lane.text_size);
        tokens_->prefetch(lane.hash);
        lane.state = Lane::LOOK_UP;
    } else {
        ask_for_pairs(lane);
    }
    return true;
}

void Merger::ask_for_pairs(Lane &lane) const {
    lane.state = Lane::READ_PAIRS;
    lane.count = write_symbols(lane.data, lane.size, lane.symbols + 1);
    lane.symbols[0] = Lane::NO_SYMBOL;
    std::fill_n(lane.symbols + 1 + lane.count, 8, Lane::NO_SYMBOL);
    if (options_.byte_encode) return;  // the pairs of bytes are few enough to be near
    for (size_t i = 1; i < lane.count; ++i) pairs_.query(lane.symbols[i], lane.symbols[i + 1]);
}

void Merger::read_pairs(Lane &lane) const {
    lane.state = Lane::MERGE;
    lane.at = Lane::LAST_PLACE;  // nothing was made yet; there, values of no merge are put in
    lane.left_value = lane.right_value = NONE;
    std::memset(lane.ranks, 0xFF, lane.count <= 14 ? sizeof lane.ranks / 4 : sizeof lane.ranks);
    if (options_.byte_encode) {
        for (size_t i = 1; i < lane.count; ++i) {
            lane.set(i, byte_pairs_[size_t(lane.data[i - 1]) << 8 | lane.data[i]]);
        }
    } else {
        for (size_t i = 1; i < lane.count; ++i) lane.set(i, pairs_.value(lane.symbols[i], lane.symbols[i + 1]));
    }
}

namespace {


// Merges the pair of lowest rank and returns its place, 0 if there is none. `last` is the place of the last pair.
size_t merge_lowest(uint32_t *symbols, uint32_t *ranks, uint32_t *merged, size_t last) {
    size_t at = 1;
    uint32_t lowest = ranks[1];
    for (size_t i = 2; i <= last; ++i) {
        const bool lower = ranks[i] < lowest;
        lowest = lower ? ranks[i] : lowest;
        at = lower ? i : at;
    }
    if (lowest == NO_RANK) return 0;
    symbols[at] = merged[at];
    for (size_t i = at; i <= last; ++i) {
        symbols[i + 1] = symbols[i + 2];
        ranks[i] = ranks[i + 1];
        merged[i] = merged[i + 1];
    }
    return at;
}

#if GGUFBPE_X86

// Eight of the entries behind those of `own`: each one's neighbour, the last one's from `following`.
__attribute__((target("avx2"), always_inline)) inline __m256i next_of(__m256i own, __m256i following) {
    const __m256i turn = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0);
    return _mm256_blend_epi32(_mm256_permutevar8x32_epi32(own, turn), _mm256_permutevar8x32_epi32(following, turn), 0x80);
}

// The same without loops of a length that varies, for up to 8 * VECTORS - 2 symbols; and the values of the pairs left and
// right of `made` are put in before. All of it in registers: what was just written in small pieces cannot be read at once
// in one large one without a wait.
template <int VECTORS>
__attribute__((target("avx2,bmi"), always_inline)) inline size_t merge_lowest_wide(uint32_t *symbols, uint32_t *ranks,
                                                                                   uint32_t *merged, size_t made,
                                                                                   uint64_t left, uint64_t right) {
    auto vectors_of = [](uint32_t *array) { return reinterpret_cast<__m256i *>(array); };
    const __m256i iota = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i rank[VECTORS + 1], result[VECTORS + 1], symbol[VECTORS + 1], place[VECTORS];
    const __m256i left_of = _mm256_set1_epi32(static_cast<int>(made) - 1), right_of = _mm256_set1_epi32(static_cast<int>(made));
    __m256i lowest = _mm256_set1_epi32(-1);
    rank[VECTORS] = result[VECTORS] = symbol[VECTORS] = lowest;
    for (int i = 0; i < VECTORS; ++i) {
        place[i] = _mm256_add_epi32(iota, _mm256_set1_epi32(8 * i));
        const __m256i is_left = _mm256_cmpeq_epi32(place[i], left_of), is_right = _mm256_cmpeq_epi32(place[i], right_of);
        rank[i] = _mm256_load_si256(vectors_of(ranks) + i);
        rank[i] = _mm256_blendv_epi8(rank[i], _mm256_set1_epi32(static_cast<int>(left >> 32)), is_left);
        rank[i] = _mm256_blendv_epi8(rank[i], _mm256_set1_epi32(static_cast<int>(right >> 32)), is_right);
        result[i] = _mm256_load_si256(vectors_of(merged) + i);
        result[i] = _mm256_blendv_epi8(result[i], _mm256_set1_epi32(static_cast<int>(left)), is_left);
        result[i] = _mm256_blendv_epi8(result[i], _mm256_set1_epi32(static_cast<int>(right)), is_right);
        symbol[i] = _mm256_load_si256(vectors_of(symbols) + i);
        lowest = _mm256_min_epu32(lowest, rank[i]);
    }
    lowest = _mm256_min_epu32(lowest, _mm256_permute2x128_si256(lowest, lowest, 1));
    lowest = _mm256_min_epu32(lowest, _mm256_shuffle_epi32(lowest, 0x4E));
    lowest = _mm256_min_epu32(lowest, _mm256_shuffle_epi32(lowest, 0xB1));
    if (static_cast<uint32_t>(_mm256_cvtsi256_si32(lowest)) == NO_RANK) return 0;
    uint32_t places = 0;
    for (int i = 0; i < VECTORS; ++i) {
        const __m256i equal = _mm256_cmpeq_epi32(lowest, rank[i]);
        places |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) << (8 * i);
    }
    const size_t at = static_cast<size_t>(__builtin_ctz(places));
    // The first symbol of the pair becomes what both become; what stands behind moves one place forward.
    const __m256i chosen = _mm256_set1_epi32(static_cast<int>(at));
    for (int i = 0; i < VECTORS; ++i) {
        const __m256i is_chosen = _mm256_cmpeq_epi32(place[i], chosen);
        const __m256i is_behind = _mm256_cmpgt_epi32(place[i], chosen);
        const __m256i moves = _mm256_or_si256(is_chosen, is_behind);
        __m256i kept = _mm256_blendv_epi8(symbol[i], result[i], is_chosen);
        kept = _mm256_blendv_epi8(kept, next_of(symbol[i], symbol[i + 1]), is_behind);
        _mm256_store_si256(vectors_of(symbols) + i, kept);
        kept = _mm256_blendv_epi8(rank[i], next_of(rank[i], rank[i + 1]), moves);
        _mm256_store_si256(vectors_of(ranks) + i, kept);
        kept = _mm256_blendv_epi8(result[i], next_of(result[i], result[i + 1]), moves);
        _mm256_store_si256(vectors_of(merged) + i, kept);
    }
    return at;
}

bool has_avx2() {
    static const bool found = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
    return found;
}

#endif

}  // namespace

// What a step reads before it merges. True when the word is done, and its ids are in scratch.ids; otherwise `ready` says
// whether there is something to merge in this step.
ALWAYS_INLINE bool Merger::prepare_step(Lane &lane, Scratch &scratch, bool &ready) const {
    ready = true;
    if (lane.state == Lane::MERGE) {
        lane.left_value = pairs_.value(lane.left);
        lane.right_value = pairs_.value(lane.right);
    } else if (lane.state == Lane::READ_PAIRS) {
        read_pairs(lane);
    } else {
        const int64_t id = tokens_->find({lane.text, lane.text_size}, lane.hash);
        if (id >= 0) {
            scratch.ids.push_back(static_cast<int32_t>(id));
            return true;
        }
        ask_for_pairs(lane);
        ready = options_.byte_encode;
        if (ready) read_pairs(lane);
    }
    return false;
}

// What a step does when a merge was made at a place, or none was. True when the word is done.
ALWAYS_INLINE bool Merger::finish_step(Lane &lane, Scratch &scratch, size_t at) const {
    if (!at) {
        append_ids(lane.symbols + 1, lane.count, scratch.ids);
        return true;
    }
    --lane.count;
    lane.at = at;
    lane.left = pairs_.query(lane.symbols[at - 1], lane.symbols[at]);
    lane.right = pairs_.query(lane.symbols[at], lane.symbols[at + 1]);
    return false;
}

ALWAYS_INLINE size_t Merger::merge_one(Lane &lane) const {
    lane.set(lane.at - 1, lane.left_value);
    lane.set(lane.at, lane.right_value);
    return merge_lowest(lane.symbols, lane.ranks, lane.merged, lane.count - 1);
}

bool Merger::step(Lane &lane, Scratch &scratch) const {
    bool ready;
    if (prepare_step(lane, scratch, ready)) return true;
    return ready && finish_step(lane, scratch, merge_one(lane));
}

#if GGUFBPE_X86
__attribute__((target("avx2,bmi"))) bool Merger::step_wide(Lane &lane, Scratch &scratch) const {
    bool ready;
    if (prepare_step(lane, scratch, ready)) return true;
    if (!ready) return false;
    size_t at;
    if (lane.count <= 14) {
        at = merge_lowest_wide<2>(lane.symbols, lane.ranks, lane.merged, lane.at, lane.left_value, lane.right_value);
    } else if (lane.count <= 30) {
        at = merge_lowest_wide<4>(lane.symbols, lane.ranks, lane.merged, lane.at, lane.left_value, lane.right_value);
    } else {
        at = merge_one(lane);
    }
    return finish_step(lane, scratch, at);
}
#endif

void Merger::encode_many(const Word *words, size_t count, Result *results, Scratch &scratch, const Poll &poll) const {
    bool (Merger::*one_step)(Lane &, Scratch &) const = &Merger::step;
#if GGUFBPE_X86
    if (has_avx2()) one_step = &Merger::step_wide;
#endif
    scratch.lanes.resize(LANES);
    Lane *lanes[LANES];
    size_t next = 0, running = 0;
    // Puts the next word that is not done at once into a lane.
    auto fill = [&](Lane &lane) {
        while (next < count) {
            lane.data = words[next].data;
            lane.size = words[next].size;
            lane.number = next++;
            const size_t begun = scratch.ids.size();
            if (start(lane, scratch, poll)) return true;
            results[lane.number] = {begun, scratch.ids.size() - begun};
        }
        return false;
    };
    while (running < LANES && fill(scratch.lanes[running])) {
        lanes[running] = &scratch.lanes[running];
        ++running;
    }
    while (running) {
        for (size_t i = 0; i < running;) {
            Lane &lane = *lanes[i];
            const size_t begun = scratch.ids.size();
            if ((this->*one_step)(lane, scratch)) {
                results[lane.number] = {begun, scratch.ids.size() - begun};
                if (!fill(lane)) {
                    lanes[i] = lanes[--running];
                    continue;
                }
            }
            ++i;
        }
    }
}

// A long word is a chain of symbols: a symbol's place is where it began, and each knows its neighbours' places.
size_t Merger::merge_long(size_t count, Scratch &scratch, const Poll &poll) const {
    uint32_t *symbols = scratch.symbols.data();
    scratch.next.room(count);
    scratch.before.room(count);
    scratch.values.room(count);
    for (size_t i = 0; i < count; ++i) {
        scratch.next[i] = static_cast<uint32_t>(i + 1);
        scratch.before[i] = static_cast<uint32_t>(i - 1);
        scratch.values[i] = i + 1 < count ? pairs_.value(symbols[i], symbols[i + 1]) : NONE;
    }
    if (count < VERY_LONG_WORD || !merge_by_rank(count, scratch, poll)) merge_by_queue(count, scratch, poll);
    size_t kept = 0;
    for (size_t at = 0; at < count; at = scratch.next[at]) symbols[kept++] = symbols[at];
    return kept;
}

// A priority queue of pairs: n log n in the length of the word. An item of the queue is rank and left place in one
// number; it is stale when the pair at its place has another rank by now.
void Merger::merge_by_queue(size_t count, Scratch &scratch, const Poll &poll) const {
    uint32_t *symbols = scratch.symbols.data();
    Buffer<uint32_t> &next = scratch.next, &before = scratch.before;
    Buffer<uint64_t> &values = scratch.values;
    std::vector<uint64_t> &heap = scratch.heap;
    heap.clear();
    auto item_of = [](uint64_t value, size_t at) { return (value >> 32) << 32 | at; };
    for (size_t at = 0; at < count; at = next[at]) {
        if (values[at] != NONE) heap.push_back(item_of(values[at], at));
    }
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
    auto update = [&](uint32_t at) {
        values[at] = next[at] < count ? pairs_.value(symbols[at], symbols[next[at]]) : NONE;
        if (values[at] == NONE) return;
        heap.push_back(item_of(values[at], at));
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    };
    for (size_t turn = 1; !heap.empty(); ++turn) {
        if (turn % POLL_EVERY == 0) poll();
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const uint64_t item = heap.back();
        heap.pop_back();
        const uint32_t at = static_cast<uint32_t>(item);
        if (values[at] == NONE || values[at] >> 32 != item >> 32) continue;
        join(at, count, scratch);
        update(at);
        if (before[at] != NOWHERE) update(before[at]);
    }
}

// Makes one symbol of the pair at a place. The values of the pairs that it is in are left to the caller.
void Merger::join(uint32_t at, size_t count, Scratch &scratch) const {
    const uint32_t right = scratch.next[at], behind = scratch.next[right];
    scratch.symbols[at] = static_cast<uint32_t>(scratch.values[at]);
    scratch.values[right] = NONE;
    scratch.next[at] = behind;
    if (behind < count) scratch.before[behind] = at;
}

// The pairs of one rank, in the order of their places: all of them are merged in one go through the word, so the time
// for a symbol does not grow with the word, and memory is read in order. A pair is in the row of its rank as long as it
// stands. False, with nothing lost, where rows have to be sorted again and again, as no trained merges make it happen.
bool Merger::merge_by_rank(size_t count, Scratch &scratch, const Poll &poll) const {
    uint32_t *symbols = scratch.symbols.data();
    Buffer<uint32_t> &next = scratch.next, &before = scratch.before;
    Buffer<uint32_t> &row_next = scratch.row_next, &row_before = scratch.row_before;
    Buffer<uint64_t> &values = scratch.values;
    std::vector<uint64_t> &ranks = scratch.heap;  // a queue of ranks that have a row
    struct Rows {  // empty again whatever happens
        std::vector<Row> &rows;
        ~Rows() {
            if (!done) rows.clear();
        }
        bool done = false;
    } guard{scratch.rows};
    scratch.rows.resize(rank_count_);
    row_next.room(count);
    row_before.room(count);
    ranks.clear();

    auto append = [&](uint32_t at) {
        const uint64_t rank = values[at] >> 32;
        Row &row = scratch.rows[rank];
        if (row.first == NOWHERE) {
            row.first = at;
            row.is_sorted = true;
            if (!row.is_queued) {
                row.is_queued = true;
                ranks.push_back(rank);
                std::push_heap(ranks.begin(), ranks.end(), std::greater<>());
            }
        } else {
            row.is_sorted = row.is_sorted && row.last < at;
            row_next[row.last] = at;
        }
        row_before[at] = row.first == at ? NOWHERE : row.last;
        row_next[at] = NOWHERE;
        row.last = at;
    };
    auto remove = [&](uint32_t at) {
        Row &row = scratch.rows[values[at] >> 32];
        const uint32_t one = row_before[at], other = row_next[at];
        (one == NOWHERE ? row.first : row_next[one]) = other;
        (other == NOWHERE ? row.last : row_before[other]) = one;
    };
    auto update = [&](uint32_t at) {
        if (values[at] != NONE) remove(at);
        values[at] = next[at] < count ? pairs_.value(symbols[at], symbols[next[at]]) : NONE;
        if (values[at] != NONE) append(at);
    };
    auto sort = [&](Row &row) {
        std::vector<uint32_t> &places = scratch.places;
        places.clear();
        for (uint32_t at = row.first; at != NOWHERE; at = row_next[at]) places.push_back(at);
        std::sort(places.begin(), places.end());
        row.first = row.last = NOWHERE;
        for (uint32_t at : places) {
            row_before[at] = row.last;
            row_next[at] = NOWHERE;
            (row.last == NOWHERE ? row.first : row_next[row.last]) = at;
            row.last = at;
        }
        row.is_sorted = true;
        return places.size();
    };

    for (size_t i = 0; i < count; ++i) {
        if (values[i] != NONE) append(static_cast<uint32_t>(i));
    }
    size_t turn = 0, may_sort = 32 * count;
    while (!ranks.empty()) {
        const uint64_t rank = ranks.front();
        Row &row = scratch.rows[rank];
        if (row.first == NOWHERE) {
            row.is_queued = false;
            std::pop_heap(ranks.begin(), ranks.end(), std::greater<>());
            ranks.pop_back();
            continue;
        }
        if (!row.is_sorted) {
            const size_t sorted = sort(row);
            if (sorted > may_sort) return false;
            may_sort -= sorted;
        }
        while (row.first != NOWHERE && row.is_sorted && ranks.front() == rank) {
            if (++turn % POLL_EVERY == 0) poll();
            const uint32_t at = row.first, right = next[at];
            remove(at);
            if (values[right] != NONE) remove(right);
            join(at, count, scratch);
            values[at] = NONE;
            if (before[at] != NOWHERE) update(before[at]);
            update(at);
        }
    }
    guard.done = true;
    return true;
}

void Merger::append_ids(const uint32_t *symbols, size_t count, std::vector<int32_t> &ids) const {
    const size_t token_count = tokens_->size();
    for (size_t i = 0; i < count; ++i) {
        if (symbols[i] < token_count) {
            ids.push_back(static_cast<int32_t>(symbols[i]));
        } else {
            append_fallback(symbols[i], ids);
        }
    }
}

// A symbol that is no token becomes its bytes; bytes without a token are dropped (src/llama-vocab.cpp:
// llm_tokenizer_bpe_session). Of a byte-level symbol llama.cpp looks up single bytes of the UTF-8, so only ASCII ones
// can be found.
void Merger::append_fallback(uint32_t symbol, std::vector<int32_t> &ids) const {
    std::string text;
    if (symbol & UNKNOWN_CHAR) {
        unsigned char bytes[4];
        unsigned size = write_utf8(symbol & ~UNKNOWN_CHAR, bytes);
        text.assign(reinterpret_cast<const char *>(bytes), size);
    } else {
        text = inner_[symbol - tokens_->size()];
    }
    for (char c : text) {
        int64_t id;
        if (options_.byte_encode) {
            id = static_cast<unsigned char>(c) < 0x80 ? tokens_->find(std::string_view(&c, 1)) : -1;
        } else {
            char name[8];
            std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(c));
            id = tokens_->find(name);
        }
        if (id >= 0) ids.push_back(static_cast<int32_t>(id));
    }
}

}  // namespace ggufbpe
