// Which bytes of a text its tokens stand for.
//
//     [a TextModel] -> Spans, in bytes of what it encodes -> ChangedText -> Spans, in bytes of the original text
//
// A model gives them in the text that it sees; if that was changed before (encoder.h: bytes that are not UTF-8; a model's own
// steps), ChangedText maps them back. ggufbpe/_util/utf8.py (Offsets), compiled.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ids.h"
#include "poll.h"

namespace ggufbpe {

struct Span {
    int64_t start, end;  // bytes
};

// Spans that grow at the end, in the same kind of memory as ids.
class Spans {
public:
    // A model counts bytes from here: the beginning of what is encoded.
    const unsigned char *origin = nullptr;

    // Where the next spans are written, with room for `count`. advance() then says how many there are.
    Span *room(size_t count) { return reinterpret_cast<Span *>(memory_.room(count * UNITS)); }
    void advance(const Span *end) { memory_.advance(reinterpret_cast<const int32_t *>(end)); }

    // Room for `count` more that do not move.
    void reserve(size_t count) { memory_.reserve(count * UNITS, false); }

    void push(int64_t start, int64_t end) {
        Span *to = room(1);
        *to = {start, end};
        advance(to + 1);
    }
    void push(const unsigned char *start, size_t size) {
        const int64_t at = start - origin;
        push(at, at + static_cast<int64_t>(size));
    }
    void shrink() { memory_.shrink(); }
    void clear() { memory_.clear(); }

    size_t size() const { return memory_.size() / UNITS; }
    Span *data() { return room(0) - size(); }
    const Span *data() const { return reinterpret_cast<const Span *>(memory_.data()); }

private:
    static constexpr size_t UNITS = sizeof(Span) / sizeof(int32_t);

    Ids memory_;
};

// A text that was changed character by character, with the characters whose length changed.
class ChangedText {
public:
    // The next character: its bytes in the changed text, and in the source.
    void add(size_t size, size_t source_size) {
        if (size != source_size) changes_.push_back({end_, end_ + size, source_end_, source_end_ + source_size});
        end_ += size;
        source_end_ += source_size;
    }

    // Maps all spans from `first` on back to the source, which begins at `source_start` of another text. A span that begins or
    // ends within a changed character gets all of it.
    void lead_back(Spans &spans, size_t first, int64_t source_start, Pace &pace) const {
        size_t of_start = 0, of_end = 0;
        for (size_t i = first; i < spans.size(); ++i) {
            pace.count(4);
            Span &span = spans.data()[i];
            span.start = source_start + source_of(static_cast<size_t>(span.start), false, of_start);
            span.end = source_start + source_of(static_cast<size_t>(span.end), true, of_end);
        }
    }

    void clear() {
        changes_.clear();
        end_ = source_end_ = 0;
    }

private:
    struct Change {
        size_t start, end, source_start, source_end;
    };

    // `next` is the first change after the place asked for before, or further back.
    int64_t source_of(size_t place, bool is_end, size_t &next) const {
        while (next > 0 && changes_[next - 1].start > place) --next;
        while (next < changes_.size() && changes_[next].start <= place) ++next;
        size_t found = place;
        if (next > 0) {
            const Change &change = changes_[next - 1];
            if (place == change.start) {
                found = change.source_start;
            } else if (place < change.end) {
                found = is_end ? change.source_end : change.source_start;
            } else {
                found = change.source_end + (place - change.end);
            }
        }
        return static_cast<int64_t>(found);
    }

    std::vector<Change> changes_;
    size_t end_ = 0, source_end_ = 0;
};

}  // namespace ggufbpe
