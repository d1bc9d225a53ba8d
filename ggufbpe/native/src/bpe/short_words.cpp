#include "bpe/short_words.h"

#include <algorithm>

#include "simd.h"

namespace ggufbpe {

namespace {

constexpr uint32_t NO_RANK = Merge::NO_RANK;
constexpr size_t LANES = 24;
constexpr size_t TWO_VECTORS = 16;  // ranks; most words have no more

// Where the lowest of the first `count` ranks is, the leftmost of equal ones; 0, which has no pair, if there is none.
ALWAYS_INLINE size_t place_of_lowest(const uint32_t *ranks, size_t count) {
    size_t place = 0;
    uint32_t lowest = NO_RANK;
    for (size_t i = 1; i < count; ++i) {
        const bool is_lower = ranks[i] < lowest;
        lowest = is_lower ? ranks[i] : lowest;
        place = is_lower ? i : place;
    }
    return place;
}

#if GGUFBPE_VECTORS

template <int VECTORS>
VECTOR_INLINE size_t place_of_lowest_in(const uint32_t *ranks) {
    Numbers all = load_numbers(ranks);
    for (int i = 1; i < VECTORS; ++i) all = lower(all, load_numbers(ranks + 8 * i));
    all = lowest(all);
    uint64_t places = 0;
    for (int i = 0; i < VECTORS; ++i) places |= uint64_t(equal_places(load_numbers(ranks + 8 * i), all)) << (8 * i);
    return lowest_bit(places);
}

// The same, over whole vectors: place 0 and those after the last pair have no rank.
VECTOR_INLINE size_t place_of_lowest_wide(const uint32_t *ranks, size_t count) {
    if (count <= TWO_VECTORS) return place_of_lowest_in<2>(ranks);
    return count <= 2 * TWO_VECTORS ? place_of_lowest_in<4>(ranks) : place_of_lowest_in<8>(ranks);
}

#endif

void set_merge(Lane &lane, size_t place, Merge merge) {
    lane.ranks[place] = merge.rank;
    lane.results[place] = merge.result;
}

// Merges the pair at a place, and fetches the merges of the two pairs that the new symbol is in.
ALWAYS_INLINE void merge_pair(Lane &lane, size_t place, const PairTable::Reader &pairs) {
    const auto next_alive = [&](size_t from) { return from + 1 + lowest_bit(lane.alive >> (from + 1)); };
    const size_t right = next_alive(place), after = next_alive(right);
    const size_t before = highest_bit(lane.alive & ((uint64_t(1) << place) - 1));
    lane.symbols[place] = lane.results[place];
    lane.ranks[right] = NO_RANK;
    lane.alive &= ~(uint64_t(1) << right);
    lane.left_at = static_cast<uint32_t>(before);
    lane.right_at = static_cast<uint32_t>(place);
    lane.left = pairs.fetch_filter(lane.symbols[before], lane.symbols[place]);
    lane.right = pairs.fetch_filter(lane.symbols[place], lane.symbols[after]);
}

class Lanes {
public:
    Lanes(const MergeTable &table, const Word *words, const uint32_t *numbers, size_t count, WordIds *results, Ids &ids,
          std::vector<Lane> &lanes)
        : table_(table), words_(words), next_(numbers), end_(numbers + count), results_(results), ids_(ids) {
        lanes.resize(LANES);
        while (running_ < LANES && start_next_word(lanes[running_])) {
            lanes_[running_] = &lanes[running_];
            ++running_;
        }
    }

    bool are_empty() const { return !running_; }

    // One merge in each lane, and a new word in those that are done. The results of the last merges are written in all lanes
    // before the first lane is searched: a wide load of data just stored in small pieces has to wait.
    void merge_once_in_each() {
        const PairTable::Reader pairs = table_.pairs();
        for (size_t i = 0; i < running_; ++i) {
            Lane &lane = *lanes_[i];
            if (lane.has_fetched_pairs) read_first_pairs(lane);
            set_merge(lane, lane.left_at, pairs.merge(lane.left));
            set_merge(lane, lane.right_at, pairs.merge(lane.right));
        }
        for (size_t i = 0; i < running_;) i += merge_or_end(i, place_of_lowest(lanes_[i]->ranks, lanes_[i]->count), pairs);
        fetch_buckets(pairs);
    }

#if GGUFBPE_VECTORS
    // The same once more: wide instructions are inlined only into a function that may have them.
    WITH_AVX2 void merge_once_in_each_wide() {
        const PairTable::Reader pairs = table_.pairs();
        for (size_t i = 0; i < running_; ++i) {
            Lane &lane = *lanes_[i];
            if (lane.has_fetched_pairs) read_first_pairs(lane);
            set_merge(lane, lane.left_at, pairs.merge(pairs.entry_wide(lane.left)));
            set_merge(lane, lane.right_at, pairs.merge(pairs.entry_wide(lane.right)));
        }
        for (size_t i = 0; i < running_;) i += merge_or_end(i, place_of_lowest_wide(lanes_[i]->ranks, lanes_[i]->count), pairs);
        fetch_buckets(pairs);
    }
#endif

private:
    // False if there is no word left.
    bool start_next_word(Lane &lane) {
        if (next_ == end_) return false;
        lane.number = *next_++;
        lane.word = words_[lane.number];
        start_word(lane);
        return true;
    }

    void start_word(Lane &lane) {
        const PairTable::Reader &pairs = table_.pairs();
        const Word &word = lane.word;
        const bool is_byte_level = table_.options().byte_encode;
        lane.left_at = lane.right_at = Lane::SPARE;  // nothing was merged yet
        lane.left = lane.right = pairs.query_of_nothing();
        lane.has_fetched_pairs = !is_byte_level;
        std::fill_n(lane.ranks, TWO_VECTORS, NO_RANK);  // so many take no call
        if (word.size > TWO_VECTORS) std::fill(lane.ranks + TWO_VECTORS, lane.ranks + Lane::PLACES, NO_RANK);
        if (is_byte_level) {
            lane.count = word.size;
            lane.symbols[1] = table_.symbol_of_byte(word.data[0]);
            for (size_t i = 1; i < lane.count; ++i) {
                lane.symbols[i + 1] = table_.symbol_of_byte(word.data[i]);
                set_merge(lane, i, table_.merge_of_bytes(word.data[i - 1], word.data[i]));
            }
        } else {
            lane.count = table_.write_symbols(word, lane.symbols + 1);
            for (size_t i = 1; i < lane.count; ++i) pairs.query(lane.symbols[i], lane.symbols[i + 1]);  // fetches
        }
        lane.symbols[0] = lane.symbols[lane.count + 1] = pairs.no_symbol();
        lane.alive = ~uint64_t(0) >> (SHORT_WORD - lane.count);
    }

    void read_first_pairs(Lane &lane) const {
        lane.has_fetched_pairs = false;
        for (size_t i = 1; i < lane.count; ++i) set_merge(lane, i, table_.merge(lane.symbols[i], lane.symbols[i + 1]));
    }

    // Continues in a lane whose lowest rank is at `place`. Returns how many lanes to go forward: 0 if another lane was moved
    // here, because there was no word left for this one.
    ALWAYS_INLINE size_t merge_or_end(size_t i, size_t place, const PairTable::Reader &pairs) {
        if (!place) return end_word(i);
        merge_pair(*lanes_[i], place, pairs);
        return 1;
    }

    // Fetches the buckets of the pairs that the last merges made.
    ALWAYS_INLINE void fetch_buckets(const PairTable::Reader &pairs) {
        for (size_t i = 0; i < running_; ++i) {
            lanes_[i]->left = pairs.fetch_bucket(lanes_[i]->left);
            lanes_[i]->right = pairs.fetch_bucket(lanes_[i]->right);
        }
    }

    size_t end_word(size_t i) {
        Lane &lane = *lanes_[i];
        write_ids(lane);
        if (start_next_word(lane)) return 1;
        lanes_[i] = lanes_[--running_];
        return 0;
    }

    ALWAYS_INLINE void write_ids(const Lane &lane) {
        const size_t start = ids_.size(), token_count = table_.tokens().size();
        int32_t *to = ids_.room(SHORT_WORD);
        bool are_tokens = true;
        const uint64_t places = lane.alive & ~(uint64_t(2) << lane.count) & ~uint64_t(1);
        for (uint64_t rest = places; rest; rest &= rest - 1) {
            const Symbol symbol = lane.symbols[lowest_bit(rest)];
            are_tokens &= symbol < token_count;
            *to++ = static_cast<int32_t>(symbol);
        }
        if (are_tokens) {
            ids_.advance(to);
        } else {
            Symbol symbols[SHORT_WORD];
            uint32_t starts[SHORT_WORD];
            size_t count = 0;
            for (uint64_t rest = places; rest; rest &= rest - 1) {
                starts[count] = static_cast<uint32_t>(lowest_bit(rest) - 1);
                symbols[count] = lane.symbols[starts[count] + 1];
                ++count;
            }
            table_.append_ids(lane.word, symbols, starts, count, ids_);
        }
        results_[lane.number] = {start, ids_.size() - start};
    }

    const MergeTable &table_;
    const Word *const words_;
    const uint32_t *next_, *const end_;  // numbers of words to come
    WordIds *const results_;
    Ids &ids_;
    size_t running_ = 0;
    Lane *lanes_[LANES];
};

}  // namespace

void merge_short_words(const MergeTable &table, const Word *words, const uint32_t *numbers, size_t count, WordIds *results,
                       Ids &ids, std::vector<Lane> &lanes) {
    Lanes all(table, words, numbers, count, results, ids, lanes);
#if GGUFBPE_VECTORS
    if (has_vectors()) {
        while (!all.are_empty()) all.merge_once_in_each_wide();
        return;
    }
#endif
    while (!all.are_empty()) all.merge_once_in_each();
}

}  // namespace ggufbpe
