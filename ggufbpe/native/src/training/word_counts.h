// Counting the words of texts: ggufbpe/data/training/word_counts.py, compiled; the rules are written there.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache.h"
#include "poll.h"
#include "split/splitter.h"
#include "training/blocks.h"

namespace ggufbpe {

// Words with counts, each with the place of its first occurrence.
class WordCounts {
public:
    WordCounts() : slots_(1 << 10) {}

    void add(std::string_view word, uint64_t count, uint64_t first);
    // The words from starts[i] to starts[i + 1] of `text`, each once; starts[count] is where the last one ends. Memory before
    // `end` may be read. `position` is that of the text.
    void add_each(const unsigned char *text, const unsigned char *end, const uint32_t *starts, size_t count, uint64_t position);

    uint32_t size() const { return words_.size(); }
    uint64_t first(uint32_t word) const { return words_[word].first; }  // in bytes of all text
    uint64_t count(uint32_t word) const { return words_[word].count; }
    std::string text(uint32_t word) const { return text_of(words_[word]); }
    size_t bytes() const;  // of all words, each once
    void close() { give_back(slots_); }  // nothing is added any more
    void give_back_before(uint32_t word) { words_.give_back_before(word); }  // the words before it are not used again

    // Calls take(text, count) for all words, in the order in which they were added. Their memory is given back on the way.
    template <typename Take>
    void take_each(Take take) {
        give_back(slots_);
        words_.take_each([&](const Word &word) { take(text_of(word), word.count); });
        give_back(long_words_), give_back(characters_);
    }

private:
    struct Word {
        WordKey key{0, 0};  // `low` of a long word is its hash, and the rest of `high` its place in long_words_
        uint64_t count = 0, first = 0;
    };
    struct LongWord {
        size_t offset, size;  // in characters_
    };

    static uint64_t hash_of(const WordKey &key) { return key.is_inline() ? key.hash() : key.low; }
    void add(const WordKey &key, uint64_t hash, std::string_view text, uint64_t count, uint64_t first);
    bool is(const Word &word, const WordKey &key, std::string_view text) const;
    std::string_view long_text(const Word &word) const;
    std::string text_of(const Word &word) const;
    void grow();

    Blocks<Word> words_;
    std::vector<LongWord> long_words_;
    std::vector<char> characters_;
    std::vector<uint32_t> slots_;  // number of a word plus one; 0 is free
};

// Counts the words of texts, on several threads. The result does not depend on their number.
class WordCounter {
public:
    explicit WordCounter(size_t threads) : tables_(threads ? threads : 1) {}

    // All throw std::logic_error after one of them was ended by an exception: only some words are counted then. Nothing can be
    // added or taken after take().
    void add(const Splitter &splitter, const unsigned char *text, size_t size, const Poll &poll);
    void add_word(std::string_view word, uint64_t count);
    WordCounts take(const Poll &poll);  // all words, in the order of first occurrence

private:
    void check_open() const;
    static void count(const Splitter &splitter, const unsigned char *text, size_t start, size_t end, uint64_t position,
                      WordCounts &table, const Poll &poll);

    std::vector<WordCounts> tables_;  // one a thread; the words of each are in the order of first occurrence
    uint64_t position_ = 0;
    bool is_open_ = true;
};

}  // namespace ggufbpe
