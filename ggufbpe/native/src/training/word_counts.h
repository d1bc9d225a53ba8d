// Counting the words of texts: ggufbpe/data/training/word_counts.py, compiled; the rules are written there.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "poll.h"
#include "split/splitter.h"

namespace ggufbpe {

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

}  // namespace ggufbpe
