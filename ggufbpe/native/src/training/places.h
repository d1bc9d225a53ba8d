#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace ggufbpe {

// The words in which a pair of symbols stands, by number, ascending. For a pair in one word, as most are, that word's number
// is in place of a pointer.
class Places {
public:
    Places() : size_(0), has_memory_(0) {}
    explicit Places(const std::vector<uint32_t> &words) : Places() {
        for (uint32_t word : words) note(word);
        make_room();
        for (uint32_t word : words) add(word);
    }
    Places(Places &&other) noexcept : Places() { swap(other); }
    Places &operator=(Places &&other) noexcept {
        swap(other);
        return *this;
    }
    ~Places() {
        if (has_memory_) delete[] words_.many;
    }

    static constexpr uint32_t MOST = (uint32_t(1) << 31) - 1;

    uint32_t size() const { return size_; }
    const uint32_t *begin() const { return has_memory_ ? words_.many : &words_.one; }
    const uint32_t *end() const { return begin() + size_; }

    // To fill them from words that are gone through twice: note() each of them, then make_room(), then add() each of them.
    // A word that comes several times in succession counts once.
    void note(uint32_t word) {
        assert(!has_memory_);
        if (size_ && words_.one == word) return;
        words_.one = word;
        ++size_;
    }
    void make_room() {
        if (size_ < 2) return;
        words_.many = new uint32_t[size_];
        has_memory_ = 1;
        size_ = 0;
    }
    void add(uint32_t word) {
        if (has_memory_ && (!size_ || words_.many[size_ - 1] != word)) words_.many[size_++] = word;
    }

    // Adds words that are ascending, too.
    void unite(const std::vector<uint32_t> &others) {
        std::vector<uint32_t> all;
        std::set_union(begin(), end(), others.begin(), others.end(), std::back_inserter(all));
        *this = Places(all);
    }

private:
    union Words {
        uint32_t *many = nullptr;
        uint32_t one;
    };

    void swap(Places &other) noexcept {
        std::swap(words_, other.words_);
        const uint32_t size = size_, has_memory = has_memory_;
        size_ = other.size_, has_memory_ = other.has_memory_;
        other.size_ = size & MOST, other.has_memory_ = has_memory & 1;
    }

    Words words_;
    uint32_t size_ : 31, has_memory_ : 1;
};

}  // namespace ggufbpe
