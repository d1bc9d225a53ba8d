// Where ids go: into memory, or, if only their number is wanted, nowhere. Their spans, or the starts of words, may go with them.

#pragma once

#include <cstddef>
#include <cstdint>

#include "ids.h"
#include "spans.h"
#include "words.h"

namespace ggufbpe {

class Sink {
public:
    Sink() = default;  // only counts
    explicit Sink(Ids &ids, Spans *spans = nullptr) : ids_(&ids), spans_(spans) {}
    Sink(Ids &ids, WordStarts &word_starts) : ids_(&ids), word_starts_(&word_starts) {}

    bool only_counts() const { return !ids_; }
    size_t count() const { return count_; }  // of ids that were only counted
    size_t size() const { return ids_ ? ids_->size() : count_; }
    Spans *spans() const { return spans_; }  // null unless each id's span is wanted, too
    // Null unless the starts of words are wanted, too, of a model that looks words up as they stand in the text (WordPiece).
    WordStarts *word_starts() const { return word_starts_; }

    void push(int32_t id) {
        if (ids_) {
            ids_->push(id);
        } else {
            ++count_;
        }
    }

    // Memory for `count` ids, and where they ended; null, and add() instead, if they are only counted.
    void reserve(size_t count, bool in_parallel) {
        if (ids_) ids_->reserve(count, in_parallel);
    }
    bool has_room(size_t count) const { return !ids_ || ids_->has_room(count); }
    int32_t *room(size_t count) { return ids_ ? ids_->room(count) : nullptr; }
    void advance(const int32_t *end) {
        if (ids_) ids_->advance(end);
    }
    void add(size_t count) { count_ += count; }

    // Forgets all ids but so many; there must be no spans.
    void truncate(size_t size) {
        if (ids_) {
            ids_->truncate(size);
        } else {
            count_ = size;
        }
    }

private:
    Ids *ids_ = nullptr;
    Spans *spans_ = nullptr;
    WordStarts *word_starts_ = nullptr;
    size_t count_ = 0;
};

}  // namespace ggufbpe
