#include "training/word_counts.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "fork.h"
#include "machine.h"
#include "threads.h"

namespace ggufbpe {

namespace {

constexpr size_t SHARE = 1 << 17;  // bytes worth a thread
constexpr uint32_t MOST = UINT32_MAX - 1;

const unsigned char *bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char *>(text.data()); }

}  // namespace

void WordCounts::add(std::string_view word, uint64_t count, uint64_t first) {
    const WordKey key = WordKey::of(bytes_of(word), word.size(), word.size());
    add(key, hash_of(key), word, count, first);
}

// While a word is compared, the slots of the following ones arrive, and then the words in them.
void WordCounts::add_each(const unsigned char *text, const unsigned char *end, const uint32_t *starts, size_t count, uint64_t position) {
    constexpr size_t GROUP = 32;
    WordKey keys[GROUP];
    uint64_t hashes[GROUP];
    for (size_t done = 0; done < count; done += GROUP, starts += GROUP) {
        const size_t here = std::min(GROUP, count - done);
        const size_t mask = slots_.size() - 1;
        for (size_t i = 0; i < here; ++i) {
            const unsigned char *word = text + starts[i];
            keys[i] = WordKey::of(word, starts[i + 1] - starts[i], static_cast<size_t>(end - word));
            hashes[i] = hash_of(keys[i]);
            prefetch(&slots_[hashes[i] & mask]);
        }
        for (size_t i = 0; i < here; ++i) {
            const uint32_t slot = slots_[hashes[i] & mask];
            if (slot) prefetch_to_write(&words_[slot - 1]);
        }
        for (size_t i = 0; i < here; ++i) {
            const std::string_view word(reinterpret_cast<const char *>(text) + starts[i], starts[i + 1] - starts[i]);
            add(keys[i], hashes[i], word, 1, position + starts[i]);
        }
    }
}

void WordCounts::add(const WordKey &key, uint64_t hash, std::string_view text, uint64_t count, uint64_t first) {
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    for (; slots_[slot]; slot = (slot + 1) & mask) {
        Word &found = words_[slots_[slot] - 1];
        if (!is(found, key, text)) continue;
        found.count += count;
        return;
    }
    if (words_.size() >= MOST) throw std::length_error("there are more than 2^32 different words");
    Word &added = words_.add();
    added.key = key;
    added.count = count;
    added.first = first;
    if (!key.is_inline()) {
        added.key.high = uint64_t(0xFF) << 56 | long_words_.size();
        long_words_.push_back({characters_.size(), text.size()});
        characters_.insert(characters_.end(), text.begin(), text.end());
    }
    slots_[slot] = words_.size();
    if (2 * size_t(words_.size()) > slots_.size()) grow();
}

bool WordCounts::is(const Word &word, const WordKey &key, std::string_view text) const {
    if (word.key.low != key.low) return false;
    if (key.is_inline()) return word.key.high == key.high;
    return !word.key.is_inline() && long_text(word) == text;
}

std::string_view WordCounts::long_text(const Word &word) const {
    const LongWord &found = long_words_[word.key.high << 8 >> 8];
    return {characters_.data() + found.offset, found.size};
}

std::string WordCounts::text_of(const Word &word) const {
    if (!word.key.is_inline()) return std::string(long_text(word));
    std::string text(word.key.high >> 56, '\0');
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>((i < 8 ? word.key.low : word.key.high) >> (8 * (i & 7)));
    return text;
}

size_t WordCounts::bytes() const {
    size_t bytes = characters_.size();
    for (uint32_t i = 0; i < words_.size(); ++i) bytes += words_[i].key.is_inline() ? words_[i].key.high >> 56 : 0;
    return bytes;
}

void WordCounts::grow() {
    const size_t size = 2 * slots_.size();
    give_back(slots_);
    slots_.resize(size);
    for (uint32_t i = 0; i < words_.size(); ++i) {
        size_t slot = hash_of(words_[i].key) & (size - 1);
        while (slots_[slot]) slot = (slot + 1) & (size - 1);
        slots_[slot] = i + 1;
    }
}

void WordCounter::count(const Splitter &splitter, const unsigned char *text, size_t start, size_t end, uint64_t position,
                        WordCounts &table, const Poll &poll) {
    Splitter::Scratch scratch;
    while (start < end) {
        size_t next = splitter.block(text, end, start, scratch, poll);
        const unsigned char *block = text + start;
        while (splitter.words(scratch, poll)) {
            table.add_each(block, text + end, scratch.starts.data(), scratch.word_count, position + start);
            poll();
        }
        start = next;
        poll();
    }
}

void WordCounter::check_open() const {
    if (!is_open_) throw std::logic_error("nothing can be added any more: the words were taken, or adding was interrupted");
}

void WordCounter::add(const Splitter &splitter, const unsigned char *text, size_t size, const Poll &poll) {
    check_open();
    is_open_ = false;  // until the whole text is counted
    const size_t parts = std::min(tables_.size(), size / SHARE + 1);
    std::vector<size_t> bounds{0};
    for (size_t i = 1; i < parts; ++i) bounds.push_back(splitter.cut(text, size, std::max(bounds.back(), size / parts * i), poll));
    bounds.push_back(size);
    const uint64_t forks = fork_count();
    try {
        on_threads(parts, parts, poll, [&](WorkCounter &turns, const Poll &poll_here, bool) {
            for (size_t i; turns.take(i);) count(splitter, text, bounds[i], bounds[i + 1], position_, tables_[i], poll_here);
        });
    } catch (...) {
        if (fork_count() != forks) {  // the remains of lost threads are not even destroyed
            new std::vector<WordCounts>(std::move(tables_));
            tables_ = std::vector<WordCounts>(1);
        }
        throw;
    }
    position_ += size;
    is_open_ = true;
}

void WordCounter::add_word(std::string_view word, uint64_t count) {
    check_open();
    is_open_ = false;
    tables_[0].add(word, count, position_++);
    is_open_ = true;
}

WordCounts WordCounter::take(const Poll &poll) {
    check_open();
    is_open_ = false;
    if (tables_.size() == 1) return std::move(tables_[0]);
    using Next = std::pair<uint64_t, size_t>;  // where the next word of a table stands first, and which table
    std::vector<Next> heap;                    // the lowest on top
    std::vector<uint32_t> words(tables_.size());
    const auto push = [&](size_t table) {
        if (words[table] == tables_[table].size()) return;
        heap.emplace_back(tables_[table].first(words[table]), table);
        std::push_heap(heap.begin(), heap.end(), std::greater<Next>());
    };
    for (size_t i = 0; i < tables_.size(); ++i) {
        tables_[i].close();
        push(i);
    }
    WordCounts all;
    Pace pace(poll);
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), std::greater<Next>());
        const auto [first, from] = heap.back();
        heap.pop_back();
        WordCounts &table = tables_[from];
        const uint32_t word = words[from]++;
        all.add(table.text(word), table.count(word), first);
        table.give_back_before(words[from]);
        push(from);
        pace.count(2 * Pace::LOOKUP);
    }
    tables_.clear();
    return all;
}

}  // namespace ggufbpe
