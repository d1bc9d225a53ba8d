#include "training/word_counts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "fork.h"
#include "threads.h"
#include "training/mixed_bits.h"

namespace ggufbpe {

namespace {

constexpr size_t COMPARISON = 8;  // in steps of a Pace

uint64_t hash_of(std::string_view text) {
    uint64_t hash = text.size();
    const char *data = text.data();
    size_t rest = text.size();
    for (; rest > 8; data += 8, rest -= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        hash = mixed(hash ^ word);
    }
    uint64_t word = 0;
    std::memcpy(&word, data, rest);
    return mixed(hash ^ word);
}

constexpr size_t SHARE = 1 << 17;  // bytes worth a thread

}  // namespace

void WordCounts::add(std::string_view word, uint64_t count, uint64_t first) {
    if (2 * (words_.size() + 1) > slots_.size()) grow();
    uint64_t hash = hash_of(word);
    size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    for (; slots_[slot]; slot = (slot + 1) & mask) {
        Word &found = words_[slots_[slot] - 1];
        if (found.hash == hash && text(found) == word) {
            found.count += count;
            found.first = std::min(found.first, first);
            return;
        }
    }
    if (words_.size() >= std::numeric_limits<uint32_t>::max() - 1) throw std::length_error("too many distinct words");
    words_.push_back({first, count, hash, characters_.size(), word.size()});
    characters_.insert(characters_.end(), word.begin(), word.end());
    slots_[slot] = static_cast<uint32_t>(words_.size());
}

void WordCounts::grow() {
    slots_.assign(std::max<size_t>(1 << 10, 2 * slots_.size()), 0);
    size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < words_.size(); ++i) {
        size_t slot = words_[i].hash & mask;
        while (slots_[slot]) slot = (slot + 1) & mask;
        slots_[slot] = static_cast<uint32_t>(i + 1);
    }
}

void WordCounts::sort(const Poll &poll) {
    slots_ = {};
    Pace pace(poll);
    std::sort(words_.begin(), words_.end(), [&](const Word &a, const Word &b) {
        pace.count(COMPARISON);
        return a.first < b.first;
    });
}

void WordCounter::count(const Splitter &splitter, const unsigned char *text, size_t start, size_t end, uint64_t position,
                        WordCounts &table, const Poll &poll) {
    Splitter::Scratch scratch;
    while (start < end) {
        size_t next = splitter.block(text, end, start, scratch, poll);
        const char *block = reinterpret_cast<const char *>(text) + start;
        while (splitter.words(scratch, poll)) {
            for (size_t i = 0; i < scratch.word_count; ++i) {
                size_t from = scratch.starts[i], to = scratch.starts[i + 1];
                table.add({block + from, to - from}, 1, position + start + from);
            }
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
    tables_[0].add(word, count, position_++);
}

const WordCounts &WordCounter::finish(const Poll &poll) {
    WordCounts &all = tables_[0];
    if (is_finished_) return all;
    check_open();
    is_open_ = false;
    Pace pace(poll);
    for (size_t i = 1; i < tables_.size(); ++i) {
        for (const auto &word : tables_[i].words()) {
            all.add(tables_[i].text(word), word.count, word.first);
            pace.count(Pace::LOOKUP + word.size);
        }
    }
    tables_.resize(1);
    all.sort(poll);
    is_finished_ = true;
    return all;
}

}  // namespace ggufbpe
