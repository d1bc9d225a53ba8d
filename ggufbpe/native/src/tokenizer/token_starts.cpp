#include "tokenizer/token_starts.h"

#include <algorithm>
#include <iterator>

#include "tokenizer/byte_set.h"
#include "tokenizer/sorted_places.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t BLOCK = 1 << 14;  // bytes that are encoded at a time; where lengths do not add up, once more

// How much of a text is ASCII without control characters except white space: all of it is in words, byte for byte, or between
// them.
size_t length_of_plain_ascii(const unsigned char *text, size_t size) {
    static const ByteSet others{{0, '\t' - 1}, {'\r' + 1, ' ' - 1}, {0x7F, 0xFF}};
    uint64_t found;
    for (size_t at = 0; at < size; at += ByteSet::PLACES) {
        others.find(text + at, std::min(ByteSet::PLACES, size - at), &found);
        if (found) return at + lowest_bit(found);
    }
    return size;
}

}  // namespace

TokenStarts::TokenStarts(const Encoder &encoder, const SplitPoints &places, const Text &text, const SpecialSpans &special,
                         LengthArray lengths, bool parse_special, const Poll &poll)
    : encoder_(encoder),
      places_(places),
      text_(text),
      special_(special),
      lengths_(lengths),
      parse_special_(parse_special),
      poll_(poll),
      pace_(poll),
      is_utf8_(text.is_valid || (lengths.size && is_utf8(text.data, text.size, poll))) {}

size_t TokenStarts::before(size_t place) {
    auto &known = known_[place % std::size(known_)];
    if (known.place == place) return known.number;
    while (encoded_ < place && encode_next()) {}
    const size_t *const starts = starts_.data() + unused_;
    const size_t first = forgotten_ + unused_, count = starts_.size() - unused_;
    const auto distance = [&](size_t number) {
        if (number < first || number >= first + count) return SIZE_MAX;
        const size_t start = starts[number - first];
        return start < place ? place - start : start - place;
    };
    size_t &near = near_[distance(near_[1]) < distance(near_[0])];
    near = first + first_from(starts, count, place, std::min(near < first ? 0 : near - first, count));
    known = {place, near};
    return near;
}

size_t TokenStarts::operator[](size_t number) {
    while (number >= forgotten_ + starts_.size() && encode_next()) {}
    if (number >= forgotten_ + starts_.size()) return text_.size;
    if (number < forgotten_ + unused_) return 0;
    near_[1] = number;
    return starts_[number - forgotten_];
}

void TokenStarts::forget_before(size_t place) { unused_ = before(place) - forgotten_; }

// ---- blocks ----

// Adds the tokens of the next block; false if there is none.
bool TokenStarts::encode_next() {
    const size_t from = encoded_;
    if (from >= text_.size) return false;
    if (unused_ > starts_.size() / 2) {
        starts_.erase(starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(unused_));
        forgotten_ += unused_;
        unused_ = 0;
    }
    size_t end = end_of_block(from, BLOCK);
    const bool may_add_up = (!lengths_.are_of_words || is_plain_up_to(from, end)) && this->may_add_up(from, end);
    const Text block{text_.data + from, end - from, text_.is_valid};
    const EncodeOptions options{false, parse_special_, true, !SplitPoints::begins_between(special_, from, end)};
    encoded_ = end;
    if (may_add_up) {
        ids_.clear();
        encoder_.encode(block, options, 1, ids_, poll_);
        if (lengths_.are_of_words ? add_by_word(ids_, from, end) : add_by_length(ids_, from, end)) return true;
    }
    add_by_span(block, options);
    return true;
}

size_t TokenStarts::end_of_block(size_t from, size_t size) const {
    if (text_.size - from <= size + size / 4) return text_.size;
    return places_.next(text_.data, text_.size, from + size, special_, poll_);
}

// Brings the end of a block forward, so that all of it is plain ASCII, or most of it is not; returns whether all is.
bool TokenStarts::is_plain_up_to(size_t from, size_t &end) {
    constexpr size_t SHORT = 64, NEAR_BY = 256;
    const size_t other = from + length_of_plain_ascii(text_.data + from, end - from);
    pace_.count(other - from);
    if (other == end) return true;
    for (size_t at = other; at > from + SHORT && other - at < NEAR_BY; --at) {
        pace_.count(Pace::LOOKUP);
        if (!places_.is_place(text_.data, text_.size, at, special_, poll_)) continue;
        end = at;
        return true;
    }
    size_t at = other;
    while (at < end && length_of_plain_ascii(text_.data + at, std::min(SHORT, end - at)) < SHORT) at += SHORT;
    pace_.count(at - other);
    if (at < end) end = std::min(end, places_.next(text_.data, text_.size, at, special_, poll_));
    return false;
}

// Whether no token can stand for more bytes than it has in the text. Where some stand for more (a space that is put behind a
// special token, U+FFFD for an undecodable byte) and some for less, the lengths of all may add up by chance.
bool TokenStarts::may_add_up(size_t from, size_t end) const {
    if (!lengths_.size || !is_utf8_) return false;
    const SplitPointRules &rules = places_.rules();
    const bool is_changed_behind = rules.strips || rules.is_kept_behind || lengths_.are_of_words;
    return !is_changed_behind || !SplitPoints::begins_between(special_, from, end);
}

// Both add nothing and give false if the tokens do not stand for the text from `from` to `end`.
bool TokenStarts::add_by_length(const Ids &ids, size_t from, size_t end) {
    return add(ids, end - from, [&](const int32_t *some, size_t count, size_t *to, uint64_t at) {
        for (size_t i = 0; i < count; ++i) {
            to[i] = from + static_cast<size_t>(at);
            at += lengths_.of(some[i]);
        }
        return at;
    });
}

bool TokenStarts::add_by_word(const Ids &ids, size_t from, size_t end) {
    const size_t words = find_words(text_.data + from, end - from);
    const size_t *const word_starts = words_.data();
    size_t next = 0, place = from;
    const bool add_up = add(ids, word_bytes_, [&](const int32_t *some, size_t count, size_t *to, uint64_t at) {
        for (size_t i = 0; i < count; ++i) {
            const uint32_t length = lengths_.of(some[i]), own = length & ~LengthArray::BEGINS_WORD;
            const size_t begins = length / LengthArray::BEGINS_WORD & 1;
            // Not a branch: which tokens begin words is unpredictable.
            place = begins ? from + word_starts[std::min(next, words)] : place;
            next += begins;
            to[i] = place;
            place += own;
            at += own;
        }
        return at;
    });
    return add_up && next == words;
}

// Adds the starts that write() gives for some ids at a time; `size` bytes is what their lengths must add up to.
template <typename Write>
bool TokenStarts::add(const Ids &ids, size_t size, Write write) {
    if (size > INT32_MAX) return false;  // one unknown length is too much
    const size_t count = starts_.size();
    starts_.resize(count + ids.size());
    uint64_t at = 0;
    in_pieces(ids.size(), poll_, [&](size_t first, size_t stop) {
        at = write(ids.data() + first, stop - first, starts_.data() + count + first, at);
    });
    if (at != size) starts_.resize(count);
    return at == size;
}

// Where words begin in plain ASCII, and how many bytes are in them: letters and digits form words, every other visible
// character stands alone.
size_t TokenStarts::find_words(const unsigned char *text, size_t size) {
    constexpr size_t SEVERAL = 8;
    constexpr uint64_t HIGHEST = uint64_t(1) << 63;  // there is one, so that a lowest bit is defined
    static const ByteSet joined{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, spaces{{'\t', '\r'}, {' ', ' '}};
    uint64_t in_words[ByteSet::MASKS], between[ByteSet::MASKS];
    words_.resize(size + 1 + SEVERAL);
    size_t *to = words_.data();
    word_bytes_ = size;
    uint64_t continues = 0;  // whether the last place was in a word
    for (size_t at = 0; at < size; at += ByteSet::MASKS * ByteSet::PLACES) {
        const size_t chunk = std::min(ByteSet::MASKS * ByteSet::PLACES, size - at);
        joined.find(text + at, chunk, in_words);
        spaces.find(text + at, chunk, between);
        for (size_t i = 0; i * ByteSet::PLACES < chunk; ++i) {
            const size_t left = chunk - i * ByteSet::PLACES;
            const uint64_t there = left < ByteSet::PLACES ? (uint64_t(1) << left) - 1 : ~uint64_t(0);
            uint64_t starts = ((in_words[i] & ~(in_words[i] << 1 | continues)) | ~(in_words[i] | between[i])) & there;
            continues = in_words[i] >> 63;
            word_bytes_ -= count_bits(between[i]);
            // Several at a time, since it is unpredictable how many there are.
            size_t *const end = to + count_bits(starts);
            while (starts) {
                for (size_t k = 0; k < SEVERAL; ++k, starts &= starts - 1) to[k] = at + i * ByteSet::PLACES + lowest_bit(starts | HIGHEST);
                to += SEVERAL;
            }
            to = end;
        }
        pace_.count(chunk);
    }
    *to = size;
    return static_cast<size_t>(to - words_.data());
}

void TokenStarts::add_by_span(const Text &block, const EncodeOptions &options) {
    const size_t from = static_cast<size_t>(block.data - text_.data);
    ids_.clear();
    spans_.clear();
    encoder_.encode_with_spans(block, options, ids_, spans_, poll_);
    size_t furthest = 0;
    for (size_t i = 0; i < spans_.size(); ++i) {
        pace_.count(1);
        furthest = std::max(furthest, static_cast<size_t>(std::max<int64_t>(spans_.data()[i].start, 0)));
        starts_.push_back(from + furthest);
    }
}

}  // namespace ggufbpe
