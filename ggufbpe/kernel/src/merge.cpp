#include "merge.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "machine.h"
#include "utf8.h"

#if !defined(GGUFBPE_WINDOW)
#define GGUFBPE_WINDOW (1 << 14)  // tests take a short one
#endif

namespace ggufbpe {

namespace {

constexpr uint32_t NO_RANK = PairTable::NO_RANK;
constexpr size_t LANES = 16;              // words that go forward in turn
constexpr size_t SHORT_WORD = 62;         // symbols; for fewer, looking through all ranks is faster than a queue
constexpr size_t FEW = 16;                // symbols whose ranks are two vectors
constexpr size_t LONG_WORD = 1024;        // symbols; from here on all pairs of a rank are merged together
constexpr size_t VERY_LONG_WORD = GGUFBPE_WINDOW;  // bytes; from here on a word is merged in windows of so many
constexpr size_t AT_ONCE = 32;            // words whose tokens are looked up together
constexpr size_t POLL_EVERY = 1 << 20;    // merges
constexpr size_t MOST_STRINGS = size_t(1) << 28;  // tokens, or merges
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

uint32_t last_character(std::string_view text) {
    size_t start = text.size() - 1;
    while (start > 0 && (text[start] & 0xC0) == 0x80) --start;
    const auto *p = reinterpret_cast<const unsigned char *>(text.data());
    unsigned length;
    return code_point_at(p + start, p + text.size(), length);
}

bool is_joined(std::string_view text, std::string_view left, std::string_view right) {
    return text.size() == left.size() + right.size() && text.substr(0, left.size()) == left &&
           text.substr(left.size()) == right;
}

bool starts_with_space(std::string_view text) { return text.compare(0, 3, "\xE2\x96\x81") == 0; }
bool ends_with_space(std::string_view text) {
    return text.size() >= 3 && text.compare(text.size() - 3, 3, "\xE2\x96\x81") == 0;
}

}  // namespace

Merger::Merger(std::shared_ptr<const Strings> tokens, const Strings &merges, const MergeOptions &options)
    : tokens_(std::move(tokens)), options_(options) {
    if (!tokens_->indexed()) throw std::invalid_argument("the tokens have no index");
    if (tokens_->size() >= MOST_STRINGS || merges.size() >= MOST_STRINGS) {
        throw std::invalid_argument("more tokens or merges than there are numbers for");
    }
    for (size_t id = 0; id < tokens_->size(); ++id) longest_token_ = std::max(longest_token_, (*tokens_)[id].size());
    const std::vector<PairTable::Pair> pairs = read(merges);
    prepare_characters();
    pairs_ = PairTable(pairs, symbol_count());
}

uint32_t Merger::symbol_of(std::string_view text, uint64_t hash, int64_t likely) {
    const int64_t id = tokens_->find_likely(text, hash, likely);
    if (id >= 0) return static_cast<uint32_t>(id);
    auto [found, is_new] = inner_symbols_.try_emplace(std::string(text), static_cast<uint32_t>(symbol_count()));
    if (is_new) inner_.emplace_back(text);
    return found->second;
}

// The symbols of all merges.
std::vector<PairTable::Pair> Merger::read(const Strings &merges) {
    rank_count_ = merges.size();
    if (options_.byte_encode) {
        byte_pairs_ = ZeroedArray<uint64_t>(65536);
        std::fill_n(byte_pairs_.data(), 65536, NONE);
    }
    std::vector<PairTable::Pair> pairs;
    pairs.reserve(merges.size());
    // In groups, so that what a group will look up is on its way while its hashes are made.
    struct Part {
        std::string_view text;
        uint64_t hash;
        int64_t likely;
        uint32_t symbol;
    };
    struct Item {
        uint32_t rank;
        bool is_guessed;
        Part left, right, merged;
    };
    // Merges mostly stand in the order of the tokens that they make, so what comes next is guessed first.
    const bool guesses = tokens_->are_different();
    size_t guess = 0;
    const auto makes = [&](const Item &item, size_t id) {
        return guesses && id < tokens_->size() && is_joined((*tokens_)[id], item.left.text, item.right.text);
    };
    std::vector<Item> items(AT_ONCE);
    std::vector<char> merged;  // texts of those that were not guessed
    for (size_t from = 0; from < merges.size(); from += AT_ONCE) {
        const size_t end = std::min(from + AT_ONCE, merges.size());
        size_t room = 0;
        for (size_t rank = from; rank < end; ++rank) room += merges[rank].size();
        if (merged.size() < room) merged.resize(room);
        char *to = merged.data();
        size_t count = 0;
        const auto each = [&](auto work) {
            for (size_t i = 0; i < count; ++i) {
                work(items[i].left);
                work(items[i].right);
                if (!items[i].is_guessed) work(items[i].merged);
            }
        };
        for (size_t rank = from; rank < end; ++rank) {
            // A merge is cut at its first space, not counting one that begins it.
            std::string_view text = merges[rank];
            size_t space = text.size() > 1 ? text.find(' ', 1) : std::string_view::npos;
            if (space == std::string_view::npos || space + 1 == text.size()) continue;
            Item &item = items[count++];
            item.rank = static_cast<uint32_t>(rank);
            item.left.text = text.substr(0, space);
            item.right.text = text.substr(space + 1);
            const size_t tried = makes(item, guess) ? guess : guess + 1;
            item.is_guessed = tried == guess || makes(item, tried);
            if (item.is_guessed) {
                item.merged.symbol = static_cast<uint32_t>(tried);
                guess = tried;
                continue;
            }
            item.merged.text = {to, text.size() - 1};
            to = std::copy(item.left.text.begin(), item.left.text.end(), to);
            to = std::copy(item.right.text.begin(), item.right.text.end(), to);
        }
        each([&](Part &part) {
            part.hash = hash_bytes(part.text.data(), part.text.size());
            tokens_->prefetch(part.hash);
        });
        each([&](Part &part) {
            part.likely = tokens_->likely(part.hash);
            tokens_->prefetch_end(part.likely);
        });
        each([&](Part &part) { tokens_->prefetch_text(part.likely); });
        each([&](Part &part) { part.symbol = symbol_of(part.text, part.hash, part.likely); });
        if (count) guess = items[count - 1].merged.symbol;
        for (size_t i = 0; i < count; ++i) {
            const Item &item = items[i];
            pairs.push_back({item.left.symbol, item.right.symbol, item.rank, item.merged.symbol});
            if (options_.byte_encode) {
                const int left = byte_of(item.left.text), right = byte_of(item.right.text);
                if (left < 0 || right < 0) continue;
                uint64_t &value = byte_pairs_[size_t(right) << 8 | size_t(left)];
                if (value == NONE) value = uint64_t(item.rank) << 32 | item.merged.symbol;
            } else if (starts_with_space(item.right.text) && !ends_with_space(item.left.text)) {
                joined_to_spaces_.push_back(last_character(item.left.text));
            }
        }
    }
    std::sort(joined_to_spaces_.begin(), joined_to_spaces_.end());
    joined_to_spaces_.erase(std::unique(joined_to_spaces_.begin(), joined_to_spaces_.end()), joined_to_spaces_.end());
    parts_at_spaces_ = options_.escape_spaces && !options_.byte_encode && !options_.ignore_merges &&
                       joined_to_spaces_.size() <= MOST_JOINED;
    return pairs;
}

void Merger::prepare_characters() {
    for (int byte = 0; byte < 256; ++byte) {
        if (options_.byte_encode) {
            std::string_view text(reinterpret_cast<const char *>(ALPHABET.text[byte]), ALPHABET.size[byte]);
            const uint64_t hash = hash_bytes(text.data(), text.size());
            byte_symbols_[byte] = symbol_of(text, hash, tokens_->likely(hash));
        } else {
            unsigned char text[4];
            uint32_t code_point = options_.escape_spaces && byte == ' ' ? ESCAPED_SPACE : static_cast<uint32_t>(byte);
            byte_symbols_[byte] = character(text, write_utf8(code_point, text));
        }
    }
}

// The symbol of a character that is no byte: its token, or what merges have of it; no_symbol() if nobody knows it.
uint32_t Merger::character(const unsigned char *at, unsigned size) const {
    std::string_view text(reinterpret_cast<const char *>(at), size);
    int64_t id = tokens_->find(text);
    if (id >= 0) return static_cast<uint32_t>(id);
    if (!inner_symbols_.empty()) {
        auto found = inner_symbols_.find(std::string(text));
        if (found != inner_symbols_.end()) return found->second;
    }
    return static_cast<uint32_t>(symbol_count());
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
            scratch.ids.push(static_cast<int32_t>(id));
            return;
        }
    }
    if (is_very_long(size) && merge_in_windows(word, size, scratch, poll)) return;
    if (size > LONGEST_WORD) {
        size_t characters = 0;
        for (size_t i = 0; i < size; ++i) characters += options_.byte_encode || (word[i] & 0xC0) != 0x80;
        if (characters > LONGEST_WORD) {
            throw std::length_error("the pre-tokenizer leaves a word of " + std::to_string(characters) +
                                    " characters, which takes " + std::to_string(60 * characters >> 30) +
                                    " GiB to merge; the limit is " + std::to_string(LONGEST_WORD));
        }
    }
    const size_t count = merge_long(word, size, scratch, poll);
    append_ids({word, size}, scratch.symbols.data(), scratch.before.data(), count, scratch.ids);
}

size_t Merger::count(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    scratch.ids.clear();
    scratch.dropped = 0;
    scratch.counts = true;
    struct Reset {
        bool &counts;
        ~Reset() { counts = false; }
    } reset{scratch.counts};
    encode(word, size, scratch, poll);
    return scratch.dropped + scratch.ids.size();
}

bool Merger::is_very_long(size_t size) { return size > VERY_LONG_WORD; }

// A word on its way. What its next step will read from memory was asked for in the one before.
//
// A symbol keeps its place when others are merged; `alive` has a bit for each that is still there. In front of the first
// and behind the last one stands no_symbol(), which has no merge with anything, so nobody has to ask whether a symbol has
// a neighbour.
struct Merger::Lane {
    static constexpr size_t PLACES = SHORT_WORD + 2;
    static constexpr uint32_t SPARE = PLACES - 1;  // where no pair ever stands

    Word word;
    size_t number;
    uint64_t alive;
    size_t count;                  // symbols at first
    uint32_t left_at, right_at;    // the pairs that the symbol is in that was made last
    PairTable::Query left, right;  // where they are looked up
    bool has_asked;                // for all pairs, whose values are still to be read
    alignas(64) uint32_t ranks[PLACES];    // of the symbol at a place and the next one
    alignas(64) uint32_t symbols[PLACES];  // the first at 1
    alignas(64) uint32_t merged[PLACES];   // what they become

    size_t next(size_t at) const { return at + 1 + lowest_bit(alive >> (at + 1)); }
    size_t before(size_t at) const { return highest_bit(alive & ((uint64_t(1) << at) - 1)); }
    void put(size_t at, uint64_t value) {
        ranks[at] = static_cast<uint32_t>(value >> 32);
        merged[at] = static_cast<uint32_t>(value);
    }
    void put(size_t at, uint64_t entry, const PairTable::Reader &pairs) {
        ranks[at] = pairs.rank(entry);
        merged[at] = pairs.result(entry);
    }

    // Merges the pair at a place, and asks for the pairs that it is in then.
    void merge(size_t at, const PairTable::Reader &pairs) {
        const size_t merged_in = next(at), behind = next(merged_in), before = this->before(at);
        symbols[at] = merged[at];
        ranks[merged_in] = NO_RANK;
        alive &= ~(uint64_t(1) << merged_in);
        left_at = static_cast<uint32_t>(before);
        right_at = static_cast<uint32_t>(at);
        left = pairs.query(symbols[before], symbols[at]);
        right = pairs.query(symbols[at], symbols[behind]);
    }
};

struct Merger::Lanes {
    const Word *words;
    Result *results;
    Scratch &scratch;
    const Poll &poll;
    size_t next = 0;  // in scratch.numbers
    size_t running = 0;
    Lane *lanes[LANES];
};

Merger::Scratch::Scratch() = default;
Merger::Scratch::~Scratch() = default;

// The numbers of all words into scratch.numbers, by their sizes: how often a loop goes round is then the same as for the
// word before, and the processor guesses it right.
void Merger::sort_by_size(const Word *words, size_t count, Scratch &scratch) {
    uint32_t place[SHORT_WORD + 3] = {0};
    const auto class_of = [](const Word &word) { return std::min(word.size, SHORT_WORD + 1); };
    for (size_t i = 0; i < count; ++i) ++place[class_of(words[i]) + 1];
    for (size_t size = 1; size < SHORT_WORD + 3; ++size) place[size] += place[size - 1];
    scratch.numbers.resize(count);
    for (size_t i = 0; i < count; ++i) scratch.numbers[place[class_of(words[i])]++] = static_cast<uint32_t>(i);
}

// Finds the words that are tokens as a whole, and takes them out of scratch.numbers. In groups, so that what a group will
// look up is on its way while its hashes are made.
void Merger::find_whole(const Word *words, Result *results, Scratch &scratch) const {
    constexpr size_t ROOM = 3 * SHORT_WORD + 4;
    struct Item {
        size_t size;
        uint64_t hash;
        int64_t likely;
    } items[AT_ONCE];
    scratch.written.resize(std::max(scratch.written.size(), AT_ONCE * ROOM));
    std::vector<uint32_t> &numbers = scratch.numbers;
    size_t left = 0;
    for (size_t from = 0; from < numbers.size(); from += AT_ONCE) {
        const size_t count = std::min(AT_ONCE, numbers.size() - from);
        for (size_t i = 0; i < count; ++i) {
            const Word &word = words[numbers[from + i]];
            Item &item = items[i];
            item.size = 0;
            if (word.size > SHORT_WORD || !may_be_whole(word.data, word.size)) continue;
            char *to = scratch.written.data() + i * ROOM;
            item.size = write(word.data, word.size, to);
            item.hash = hash_bytes(to, item.size);
            tokens_->prefetch(item.hash);
        }
        for (size_t i = 0; i < count; ++i) {
            items[i].likely = items[i].size ? tokens_->likely(items[i].hash) : -1;
            tokens_->prefetch_end(items[i].likely);
        }
        for (size_t i = 0; i < count; ++i) tokens_->prefetch_text(items[i].likely);
        for (size_t i = 0; i < count; ++i) {
            const uint32_t number = numbers[from + i];
            const std::string_view written{scratch.written.data() + i * ROOM, items[i].size};
            const int64_t id = tokens_->find_likely(written, items[i].hash, items[i].likely);
            if (id < 0) {
                numbers[left++] = number;
            } else {
                results[number] = {scratch.ids.size(), 1};
                scratch.ids.push(static_cast<int32_t>(id));
            }
        }
    }
    numbers.resize(left);
}

namespace {

// Where the lowest of the first `count` ranks is, the leftmost of equal ones; 0 if there is none. The first is none.
ALWAYS_INLINE size_t lowest(const uint32_t *ranks, size_t count) {
    size_t at = 0;
    uint32_t lowest = NO_RANK;
    for (size_t i = 1; i < count; ++i) {
        const bool lower = ranks[i] < lowest;
        lowest = lower ? ranks[i] : lowest;
        at = lower ? i : at;
    }
    return at;
}

#if GGUFBPE_X86

__attribute__((target("avx2"), always_inline)) inline __m256i lowest_of_all(__m256i ranks) {
    ranks = _mm256_min_epu32(ranks, _mm256_permute2x128_si256(ranks, ranks, 1));
    ranks = _mm256_min_epu32(ranks, _mm256_shuffle_epi32(ranks, 0x4E));
    return _mm256_min_epu32(ranks, _mm256_shuffle_epi32(ranks, 0xB1));
}
__attribute__((target("avx2"), always_inline)) inline uint64_t equal_places(__m256i ranks, __m256i rank) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(ranks, rank))));
}

template <int VECTORS>
__attribute__((target("avx2,bmi,bmi2"), always_inline)) inline size_t lowest_of_vectors(const uint32_t *ranks) {
    const auto *vectors = reinterpret_cast<const __m256i *>(ranks);
    __m256i lowest = _mm256_load_si256(vectors);
    for (int i = 1; i < VECTORS; ++i) lowest = _mm256_min_epu32(lowest, _mm256_load_si256(vectors + i));
    lowest = lowest_of_all(lowest);
    uint64_t places = 0;
    for (int i = 0; i < VECTORS; ++i) places |= equal_places(_mm256_load_si256(vectors + i), lowest) << (8 * i);
    return lowest_bit(places);
}

// The same, of all ranks that there may be; where all are none, the first is the lowest.
__attribute__((target("avx2,bmi,bmi2"), always_inline)) inline size_t lowest_wide(const uint32_t *ranks, size_t count) {
    if (count <= FEW) return lowest_of_vectors<2>(ranks);
    return count <= 2 * FEW ? lowest_of_vectors<4>(ranks) : lowest_of_vectors<8>(ranks);
}

#endif

}  // namespace

// Puts the next word that is not done at once into a lane. False if there is none.
bool Merger::next_word(Lane &lane, Lanes &all) const {
    Scratch &scratch = all.scratch;
    while (all.next < scratch.numbers.size()) {
        lane.number = scratch.numbers[all.next++];
        lane.word = all.words[lane.number];
        if (lane.word.size <= SHORT_WORD) {
            begin(lane);
            return true;
        }
        const size_t begun = scratch.ids.size();
        encode(lane.word.data, lane.word.size, scratch, all.poll);
        all.results[lane.number] = {begun, scratch.ids.size() - begun};
    }
    return false;
}

void Merger::begin(Lane &lane) const {
    const PairTable::Reader &pairs = pairs_.reader();
    lane.left_at = lane.right_at = Lane::SPARE;  // nothing was made yet
    lane.left = lane.right = pairs.nothing();
    lane.has_asked = !options_.byte_encode;
    std::memset(lane.ranks, 0xFF, lane.word.size <= FEW ? FEW * sizeof(uint32_t) : sizeof lane.ranks);
    if (options_.byte_encode) {
        const unsigned char *word = lane.word.data;
        lane.count = lane.word.size;
        lane.symbols[1] = byte_symbols_[word[0]];
        for (size_t i = 1; i < lane.count; ++i) {
            lane.symbols[i + 1] = byte_symbols_[word[i]];
            lane.put(i, byte_pairs_[size_t(word[i]) << 8 | word[i - 1]]);  // few enough to be near
        }
    } else {
        lane.count = write_symbols(lane.word.data, lane.word.size, lane.symbols + 1);
        for (size_t i = 1; i < lane.count; ++i) pairs.query(lane.symbols[i], lane.symbols[i + 1]);
    }
    lane.symbols[0] = lane.symbols[lane.count + 1] = pairs.no_symbol();
    lane.alive = ~uint64_t(0) >> (62 - lane.count);
}

// The values of all pairs at first, which begin() has asked for.
void Merger::read_pairs(Lane &lane) const {
    const PairTable::Reader &pairs = pairs_.reader();
    lane.has_asked = false;
    for (size_t i = 1; i < lane.count; ++i) {
        lane.put(i, pairs.value(pairs.query(lane.symbols[i], lane.symbols[i + 1])));
    }
}

// Writes the ids of a word in which nothing can be merged any more.
ALWAYS_INLINE void Merger::finish(Lane &lane, Lanes &all) const {
    Ids &ids = all.scratch.ids;
    const size_t begun = ids.size(), token_count = tokens_->size();
    int32_t *to = ids.room(SHORT_WORD);
    bool are_tokens = true;
    const uint64_t symbols = lane.alive & ~(uint64_t(2) << lane.count) & ~uint64_t(1);
    for (uint64_t rest = symbols; rest; rest &= rest - 1) {
        const uint32_t symbol = lane.symbols[lowest_bit(rest)];
        are_tokens &= symbol < token_count;
        *to++ = static_cast<int32_t>(symbol);
    }
    if (are_tokens) {
        ids.advance(to);
    } else {
        uint32_t left[SHORT_WORD], places[SHORT_WORD];
        size_t count = 0;
        for (uint64_t rest = symbols; rest; rest &= rest - 1) {
            places[count] = static_cast<uint32_t>(lowest_bit(rest) - 1);
            left[count] = lane.symbols[places[count] + 1];
            ++count;
        }
        append_ids(lane.word, left, places, count, ids);
    }
    all.results[lane.number] = {begun, ids.size() - begun};
}

// Ends the word of a lane, in which nothing can be merged any more. 0 if there is no other to begin: another lane is in
// this one's place then.
size_t Merger::end_word(Lanes &all, size_t i) const {
    Lane &lane = *all.lanes[i];
    finish(lane, all);
    if (next_word(lane, all)) return 1;
    all.lanes[i] = all.lanes[--all.running];
    return 0;
}

// Goes on in a lane when the lowest of its ranks was found, at `at`. 0 where end_word() is.
ALWAYS_INLINE size_t Merger::go_on(Lanes &all, size_t i, size_t at, const PairTable::Reader &pairs) const {
    if (!at) return end_word(all, i);
    all.lanes[i]->merge(at, pairs);
    return 1;
}

// One merge in each lane, and new words for those where there was none. What the last merges have led to is put into all
// lanes before the first is searched: what was just written in small pieces cannot be read in a large one without a wait.
void Merger::turn(Lanes &all) const {
    const PairTable::Reader pairs = pairs_.reader();
    for (size_t i = 0; i < all.running; ++i) {
        Lane &lane = *all.lanes[i];
        if (lane.has_asked) read_pairs(lane);
        lane.put(lane.left_at, pairs.entry(lane.left), pairs);
        lane.put(lane.right_at, pairs.entry(lane.right), pairs);
    }
    for (size_t i = 0; i < all.running;) i += go_on(all, i, lowest(all.lanes[i]->ranks, all.lanes[i]->count), pairs);
}

#if GGUFBPE_X86
// The same once more: what has wide instructions is inlined only into a function that may have them.
__attribute__((target("avx2,bmi,bmi2"))) void Merger::turn_wide(Lanes &all) const {
    const PairTable::Reader pairs = pairs_.reader();
    for (size_t i = 0; i < all.running; ++i) {
        Lane &lane = *all.lanes[i];
        if (lane.has_asked) read_pairs(lane);
        lane.put(lane.left_at, pairs.entry_wide(lane.left), pairs);
        lane.put(lane.right_at, pairs.entry_wide(lane.right), pairs);
    }
    for (size_t i = 0; i < all.running;) i += go_on(all, i, lowest_wide(all.lanes[i]->ranks, all.lanes[i]->count), pairs);
}
#endif

void Merger::encode_many(const Word *words, size_t count, Result *results, Scratch &scratch, const Poll &poll) const {
    void (Merger::*one_turn)(Lanes &) const = &Merger::turn;
#if GGUFBPE_X86
    if (has_avx2()) one_turn = &Merger::turn_wide;
#endif
    sort_by_size(words, count, scratch);
    if (options_.ignore_merges || options_.newline_runs) find_whole(words, results, scratch);
    scratch.lanes.resize(LANES);
    Lanes all{words, results, scratch, poll};
    while (all.running < LANES && next_word(scratch.lanes[all.running], all)) {
        all.lanes[all.running] = &scratch.lanes[all.running];
        ++all.running;
    }
    while (all.running) (this->*one_turn)(all);
}

// The symbols of a word into scratch.symbols, which are as many as is returned; scratch.before says where each began, in
// symbols that were not merged yet. A long word is a chain of symbols: a symbol's place is where it began, and each knows
// its neighbours' places.
size_t Merger::merge_long(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    uint32_t *symbols = scratch.symbols.room(size + 1);
    const size_t count = write_symbols(word, size, symbols);
    scratch.next.room(count);
    scratch.before.room(count);
    scratch.values.room(count);
    for (size_t i = 0; i < count; ++i) {
        scratch.next[i] = static_cast<uint32_t>(i + 1);
        scratch.before[i] = static_cast<uint32_t>(i - 1);
        scratch.values[i] = i + 1 < count ? pair(symbols[i], symbols[i + 1]) : NONE;
    }
    if (count < LONG_WORD || !merge_by_rank(count, scratch, poll)) merge_by_queue(count, scratch, poll);
    size_t kept = 0;
    for (size_t at = 0; at < count; at = scratch.next[at]) {
        symbols[kept] = symbols[at];
        scratch.before[kept++] = static_cast<uint32_t>(at);
    }
    return kept;
}

// How many bytes the first characters of a word take: as write_symbols() counts them.
size_t Merger::behind(const Word &word, size_t characters) const {
    if (options_.byte_encode) return characters;
    size_t at = 0;
    for (unsigned length; characters; --characters, at += length) code_point_at(word.data + at, word.data + word.size, length);
    return at;
}

// A very long word from left to right, in windows, so that the memory it takes is that of a window. Of a window's symbols
// those near its end, which what follows may change, are left to the next window.
//
// Why that is exact: merges go on in two neighbouring parts of a word as they would in each alone until one takes a symbol
// of both, and which of the two parts goes on first does not depend on other parts. (What is next in a part is chosen as
// soon as its rank is the lowest; if a rank is lower than the one before in its part, it is chosen at once. So parts take
// turns by the highest rank so far, which each knows by itself; equal ranks go from left to right.) Hence some symbols are
// what becomes of a word if, and only if, every two neighbours are what becomes of their own text. Within a window they
// are; between windows it is looked up. Where two do not stand side by side, a larger window is taken. False, with nothing
// written, if it was of no use.
bool Merger::merge_in_windows(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    struct Seam {
        size_t start = 0;             // of the window behind it
        size_t last_start = 0;        // of the symbol before it
        uint32_t last = 0, next = 0;  // that symbol, and the one that was expected behind it
        size_t ids;                   // how many there were
    };
    Seam seam{0, 0, 0, 0, scratch.ids.size()}, former = seam;
    const size_t begun = seam.ids;
    size_t window = VERY_LONG_WORD;
    while (window <= LONGEST_WORD) {
        poll();
        const unsigned char *const text = word + seam.start;
        const size_t rest = size - seam.start;
        size_t length = std::min(window, rest);
        if (!options_.byte_encode) {
            while (length < rest && (text[length] & 0xC0) == 0x80) ++length;
        }
        const size_t count = merge_long(text, length, scratch, poll);
        if (seam.start && scratch.symbols[0] != seam.next) {
            const uint32_t first = scratch.symbols[0];
            const size_t pair_end = seam.start + (count > 1 ? behind({text, length}, scratch.before[1]) : length);
            const size_t pair = merge_long(word + seam.last_start, pair_end - seam.last_start, scratch, poll);
            if (pair == 2 && scratch.symbols[0] == seam.last && scratch.symbols[1] == first) {
                seam.next = first;
                continue;  // once more, for scratch has the pair now
            }
            if (former.start == seam.start) break;
            seam = former;
            scratch.ids.truncate(seam.ids);
            window *= 2;
            continue;
        }
        size_t kept = count;
        if (length < rest) {
            const uint32_t most = scratch.before[count - 1] / 16 * 15;
            while (kept > 0 && (kept == count || scratch.before[kept] > most)) --kept;
            if (kept == 0) {
                window *= 2;
                continue;
            }
        }
        append_ids({text, length}, scratch.symbols.data(), scratch.before.data(), kept, scratch.ids);
        if (length == rest) return true;
        if (scratch.counts) {  // the window before stands
            scratch.dropped += scratch.ids.drop_front(seam.ids);
            seam.ids = 0;
        }
        former = seam;
        seam.last_start = seam.start + behind({text, length}, scratch.before[kept - 1]);
        seam.start += behind({text, length}, scratch.before[kept]);
        seam.last = scratch.symbols[kept - 1];
        seam.next = scratch.symbols[kept];
        seam.ids = scratch.ids.size();
        window = std::max(VERY_LONG_WORD, window / 2);
    }
    scratch.ids.truncate(begun);
    scratch.dropped = 0;
    return false;
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
        values[at] = next[at] < count ? pair(symbols[at], symbols[next[at]]) : NONE;
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
        values[at] = next[at] < count ? pair(symbols[at], symbols[next[at]]) : NONE;
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

// The ids of symbols. A symbol that is no token becomes its bytes; bytes without a token are dropped
// (src/llama-vocab.cpp: llm_tokenizer_bpe_session). `places` says which of the word's characters a symbol begins with.
void Merger::append_ids(const Word &word, const uint32_t *symbols, const uint32_t *places, size_t count, Ids &ids) const {
    const size_t token_count = tokens_->size();
    size_t place = 0, at = 0;  // a character, and where it begins
    for (size_t i = 0; i < count; ++i) {
        if (symbols[i] < token_count) {
            ids.push(static_cast<int32_t>(symbols[i]));
        } else if (symbols[i] < symbol_count()) {
            append_bytes(inner_[symbols[i] - token_count], ids);
        } else {  // a character that nobody knows
            at += behind({word.data + at, word.size - at}, places[i] - place);
            place = places[i];
            unsigned length;
            uint32_t code_point = code_point_at(word.data + at, word.data + word.size, length);
            if (options_.escape_spaces && word.data[at] == ' ') code_point = ESCAPED_SPACE;
            unsigned char bytes[4];
            const unsigned written = write_utf8(code_point, bytes);
            append_bytes({reinterpret_cast<const char *>(bytes), written}, ids);
        }
    }
}

// Of a byte-level symbol llama.cpp looks up single bytes of the UTF-8, so only ASCII ones can be found.
void Merger::append_bytes(std::string_view text, Ids &ids) const {
    for (char c : text) {
        int64_t id;
        if (options_.byte_encode) {
            id = static_cast<unsigned char>(c) < 0x80 ? tokens_->find(std::string_view(&c, 1)) : -1;
        } else {
            char name[8];
            std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(c));
            id = tokens_->find(name);
        }
        if (id >= 0) ids.push(static_cast<int32_t>(id));
    }
}

}  // namespace ggufbpe
