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

#include "poll.h"

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

    void add_word(const std::vector<uint32_t> &symbols, int64_t count);  // of two symbols or more
    void prepare(const Poll &poll);                                      // when all words are added
    bool run(double seconds);  // learns for about that long; false when nothing is left to learn

    const std::vector<Merge> &merges() const { return merges_; }

private:
    struct Word {
        size_t start;  // in symbols_
        uint32_t size;
        int64_t count;
    };

    struct Pair {
        uint64_t key;
        int64_t count = 0;
        uint64_t rises = 0;            // the number of the merge that last made it rise
        size_t passed = 0;             // of `words`: those before certainly lack the pair
        std::vector<uint32_t> words{};  // ascending; the pair may no longer be there
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
    uint32_t pair_of(uint64_t key);
    void grow();
    void stands(uint64_t key, int64_t count, uint32_t word);
    void leaves(uint64_t key, int64_t count) { pairs_[pair_of(key)].count -= count; }
    void rises(uint64_t key, int64_t count, uint32_t word);
    uint64_t tie_of(uint32_t pair);
    uint64_t first_place(Pair &pair);
    bool is_worse(const Candidate &a, const Candidate &b) const;
    void push(uint32_t pair);
    bool is_allowed(uint64_t key) const;
    std::pair<uint32_t, bool> joined(uint32_t left, uint32_t right);
    void merge(uint32_t index);
    void merge_in(uint32_t word, uint32_t left, uint32_t right, uint32_t token);
    void settle(uint32_t word);

    Rules rules_;
    std::vector<Token> tokens_;
    std::unordered_map<std::string, uint32_t> ids_;
    std::unordered_map<uint64_t, Known> known_;
    std::vector<uint32_t> symbols_;
    std::vector<Word> words_;
    std::vector<Pair> pairs_;
    std::vector<uint32_t> slots_;  // index in pairs_ plus one; 0 is free
    std::vector<Candidate> heap_;
    std::vector<uint32_t> risen_;
    std::vector<Merge> merges_;
    bool is_prepared_ = false;
};

}  // namespace ggufbpe
