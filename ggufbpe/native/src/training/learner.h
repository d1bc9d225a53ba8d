// Learning merges: ggufbpe/data/training/learn_merges.py, compiled; the rules are written there.
//
//     text -> split/ -> word_counts.h -> words with counts -> Learner -> merges
//
// Files and special tokens are handled in Python.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ids.h"
#include "poll.h"
#include "training/blocks.h"
#include "training/places.h"

namespace ggufbpe {

// Learns merges from words of symbols: see the class of this name in data/training/learn_merges.py.
class Learner {
public:
    enum class Ties { lowest_ids, lexicographic, first_seen };

    struct Merge {
        uint32_t left, right;
        int64_t frequency;
        uint32_t token;
    };

    struct Rules {
        size_t vocab_size;
        Ties ties;
        int64_t min_frequency;
        size_t max_token_length;
        std::unordered_set<std::string> forbidden;
    };

    struct Token {
        std::string text, raw;
        size_t length;
    };

    Learner(std::vector<Token> tokens, const std::vector<Merge> &known, Rules rules);

    // To be called in this order, once: only run() is repeated. What was interrupted by an exception cannot go on.
    void begin();
    void reserve(size_t words, size_t symbols);                          // in all words
    void add_word(const std::vector<uint32_t> &symbols, int64_t count);  // of two symbols or more
    void prepare(const Poll &poll);                                      // when all words are added
    bool run(double seconds);  // learns for about that long; false when nothing is left to learn

    const std::vector<Merge> &merges() const { return merges_; }

private:
    struct Word {
        uint32_t start = 0, size = 0;  // in symbols_
        int64_t count = 0;
    };

    static constexpr uint64_t NO_PAIR = UINT64_MAX;
    struct Pair {
        uint64_t key = NO_PAIR;
        int64_t count = 0;
        Places places;        // the pair may no longer be there
        uint32_t passed = 0;  // of `places`: the first ones, which certainly lack the pair
    };

    // What a merge changes on one side of its pair, by the symbol that stands there: how often, and in which words.
    class Side {
    public:
        void make_room(size_t symbols) { neighbours_.resize(symbols); }
        void add(uint32_t symbol, int64_t count, uint32_t word);
        const std::vector<uint32_t> &symbols() const { return symbols_; }
        int64_t count(uint32_t symbol) const { return neighbours_[symbol].count; }
        const std::vector<uint32_t> &words(uint32_t symbol);  // ascending, until the next call
        void clear();

    private:
        static constexpr uint32_t NONE = UINT32_MAX;
        struct Neighbour {
            int64_t count = 0;
            uint32_t first = NONE, last = NONE;  // in entries_
        };
        struct Entry {
            uint32_t word, next;
        };

        std::vector<Neighbour> neighbours_;  // by symbol
        std::vector<uint32_t> symbols_;      // those that stand there
        std::vector<Entry> entries_;
        std::vector<uint32_t> words_;
    };

    struct Candidate {
        int64_t count;
        uint64_t tie;
        uint32_t pair;  // index in pairs_
    };

    struct Known {
        size_t rank;
        uint32_t token;
    };

    static uint64_t key_of(uint32_t left, uint32_t right) { return uint64_t(left) << 32 | right; }
    uint32_t *symbols_of(const Word &word) { return reinterpret_cast<uint32_t *>(symbols_.data()) + word.start; }
    uint32_t pair_of(uint64_t key);
    void forget(uint32_t index);
    void grow();
    void compact();
    template <typename Visit>
    void for_each_place(const Poll &poll, Visit visit);
    void falls(uint64_t key, int64_t count);
    void rises(uint64_t key, int64_t count, const std::vector<uint32_t> &words);
    uint64_t tie_of(uint32_t index);
    uint64_t first_place(Pair &pair);
    bool is_worse(const Candidate &a, const Candidate &b) const;
    void push(uint32_t index);
    bool refill();
    bool learn(double seconds);
    bool is_allowed(uint64_t key) const;
    std::pair<uint32_t, bool> joined(uint32_t left, uint32_t right);
    void merge(uint32_t index);
    void merge_in(uint32_t word, uint32_t left, uint32_t right, uint32_t token);
    void change_counts(uint32_t left, uint32_t right, uint32_t token);
    void settle(const Places &words);
    void settle_in(uint32_t word, std::vector<std::pair<uint64_t, uint32_t>> &risen);

    Rules rules_;
    std::vector<Token> tokens_;
    std::unordered_map<std::string, uint32_t> ids_;
    std::unordered_map<uint64_t, Known> known_;
    Ids symbols_;
    size_t symbol_count_ = 0;  // of all words; the rest of symbols_ is unused
    std::vector<Word> words_;
    Blocks<Pair> pairs_;
    std::vector<uint32_t> free_pairs_;  // numbers of pairs that were forgotten
    std::vector<uint32_t> slots_;  // number of a pair plus one; 0 is free
    std::vector<Candidate> heap_;  // every pair that occurs at least floor_ times, and others
    int64_t floor_ = 0;
    Side before_, after_;
    std::vector<uint32_t> risen_;
    std::vector<Merge> merges_;
    bool has_begun_ = false, is_ready_ = false;
    bool has_uncounted_words_ = false;
    int64_t count_of_symbols_ = 0;  // in all text
};

}  // namespace ggufbpe
