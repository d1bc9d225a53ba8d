// Learning merges: ggufbpe/data/training, compiled.
//
//     text -> split/ -> WordCounter -> words with counts -> Learner -> merges
//
// Both do exactly what data/training/word_counts.py and data/training/learn_merges.py do; the rules are written there.
//
// Files and special tokens are handled in Python.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "poll.h"
#include "split/splitter.h"

namespace ggufbpe {

// The cost of a place in a hash table and of a comparison, in steps of a Pace.
constexpr size_t LOOKUP = 64, COMPARISON = 8;

// Words with counts, each with the place of its first occurrence.
class WordCounts {
public:
    struct Word {
        uint64_t first;  // in bytes of all text
        uint64_t count;
        uint64_t hash;
        size_t offset;  // in the characters
        size_t size;
    };

    void add(std::string_view word, uint64_t count, uint64_t first);
    std::string_view text(const Word &word) const { return {characters_.data() + word.offset, word.size}; }
    const std::vector<Word> &words() const { return words_; }
    void sort(const Poll &poll);  // by `first`; nothing can be added after it

private:
    void grow();

    std::vector<char> characters_;
    std::vector<Word> words_;
    std::vector<uint32_t> slots_;  // index in words_ plus one; 0 is free
};

// Counts the words of texts, on several threads. The result does not depend on their number.
class WordCounter {
public:
    explicit WordCounter(size_t threads) : tables_(threads ? threads : 1) {}

    // All throw std::logic_error after an exception from poll ended one of them: only some words are counted then. Nothing can
    // be added after finish().
    void add(const Splitter &splitter, const unsigned char *text, size_t size, const Poll &poll);
    void add_word(std::string_view word, uint64_t count);
    const WordCounts &finish(const Poll &poll);  // all words, in the order of first occurrence

private:
    void check_open() const;
    static void count(const Splitter &splitter, const unsigned char *text, size_t start, size_t end, uint64_t position,
                      WordCounts &table, const Poll &poll);

    std::vector<WordCounts> tables_;  // one a thread, until they are put together
    uint64_t position_ = 0;
    bool is_open_ = true, is_finished_ = false;
};

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
