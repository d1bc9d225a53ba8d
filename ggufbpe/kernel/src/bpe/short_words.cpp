// Words of few symbols: many at once, each in a lane, by searching the lowest rank anew for each merge.

#include "bpe/merger.h"

#include <algorithm>
#include <cstring>

#include "machine.h"

namespace ggufbpe {

namespace {

constexpr uint32_t NO_RANK = PairTable::NO_RANK;
constexpr size_t LANES = 16;  // words that go forward in turn
constexpr size_t FEW = 16;    // symbols whose ranks are two vectors

}  // namespace

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
    Lanes all{words, results, scratch, poll, 0, 0, {}};
    while (all.running < LANES && next_word(scratch.lanes[all.running], all)) {
        all.lanes[all.running] = &scratch.lanes[all.running];
        ++all.running;
    }
    while (all.running) (this->*one_turn)(all);
}

}  // namespace ggufbpe
