#include "tokenizer/token_starts.h"

#include <algorithm>
#include <iterator>

#include "tokenizer/byte_set.h"
#include "tokenizer/sorted_places.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t BLOCK = 1 << 14;  // bytes that are encoded at a time; where lengths do not add up, once more

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
      unchanged_(encoder.model()),
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
    const bool may_add_up = ends_before_changes(from, end);
    const Text block{text_.data + from, end - from, text_.is_valid};
    const EncodeOptions options{false, parse_special_, true, !SplitPoints::begins_between(special_, from, end)};
    encoded_ = end;
    if (may_add_up) {
        ids_.clear();
        if (lengths_.are_of_words) {
            words_.clear(block.data);
            encoder_.encode_with_words(block, options, ids_, words_, poll_);
            if (add_by_word(ids_, from)) return true;
        } else {
            encoder_.encode(block, options, 1, ids_, poll_);
            if (add_by_length(ids_, from, end)) return true;
        }
    }
    add_by_span(block, options);
    return true;
}

size_t TokenStarts::end_of_block(size_t from, size_t size) {
    if (text_.size - from <= size + size / 4) return text_.size;
    return next_place(from + size);
}

// The first place from `from` on; the size of the text if there is none. What was searched is not searched again: blocks that
// end early begin in it.
size_t TokenStarts::next_place(size_t from) {
    if (from < searched_ || from > found_) {
        found_ = places_.next(text_.data, text_.size, from, special_, poll_);
        searched_ = from;
    }
    return found_;
}

// Whether no token of a block can stand for more bytes than it has in the text. Where some stand for more (a space that is put
// behind a special token, U+FFFD for an undecodable byte) and some for less, the lengths of all may add up by chance. So where
// the model changes a character, or there is a special token, `end` is brought forward: before that, or else soon behind it.
bool TokenStarts::ends_before_changes(size_t from, size_t &end) {
    constexpr size_t SHORT = 128, NEAR_BY = 256;
    if (!lengths_.size || !is_utf8_) return false;
    const SplitPointRules &rules = places_.rules();
    if (!rules.strips && !rules.is_kept_behind && !lengths_.are_of_words) return true;
    const auto unchanged_length = [&](size_t at, size_t size) {
        const auto special = SplitPoints::first_special(special_, at);
        if (special != special_.end()) size = std::min(size, special->first - at);
        return lengths_.are_of_words ? unchanged_.length(text_.data + at, size, pace_) : size;
    };
    const size_t other = from + unchanged_length(from, end - from);
    if (other == end) return true;
    for (size_t at = other; at > from + SHORT && other - at < NEAR_BY; --at) {
        pace_.count(Pace::LOOKUP);
        if (!places_.is_place(text_.data, text_.size, at, special_, poll_)) continue;
        end = at;
        return true;
    }
    size_t at = other;  // behind what is changed, as soon as nothing is for a while
    while (at < end) {
        const auto special = SplitPoints::first_special(special_, at);
        at = special != special_.end() && special->first == at ? special->second : at + 1;
        const auto to_character = [&](size_t place) {
            while (place < end && (text_.data[place] & 0xC0) == 0x80) ++place;
            return std::min(place, end);
        };
        at = to_character(at);
        const size_t size = to_character(at + SHORT) - at, ahead = unchanged_length(at, size);
        if (ahead == size) break;
        at += ahead;
    }
    if (at < end) end = std::min(end, next_place(at));
    return false;
}

// Both give false if the tokens do not stand for the text from `from` on, and then add nothing.
bool TokenStarts::add_by_length(const Ids &ids, size_t from, size_t end) {
    return add(ids, end - from, [&](const int32_t *some, size_t count, size_t *to, uint64_t at) {
        for (size_t i = 0; i < count; ++i) {
            to[i] = from + static_cast<size_t>(at);
            at += lengths_.of(some[i]);
        }
        return at;
    });
}

bool TokenStarts::add_by_word(const Ids &ids, size_t from) {
    const size_t words = words_.places.size();
    words_.places.resize(std::max(words, ids.size()));  // so that there is one for each token that may begin a word
    const size_t *const word_starts = words_.places.data();
    const size_t known = starts_.size();
    size_t next = 0, between = from;  // the words that have begun; how far the text is ahead of the bytes of tokens
    const bool add_up = add(ids, words_.bytes, [&](const int32_t *some, size_t count, size_t *to, uint64_t at) {
        const LengthArray lengths = lengths_;  // in registers
        for (size_t i = 0; i < count; ++i) {
            const uint32_t length = lengths.of(some[i]);
            const size_t begins = length / LengthArray::BEGINS_WORD & 1;
            // Which tokens begin words is unpredictable. Compilers make a branch of a choice, but not of masks.
            between = ((from + word_starts[next] - at) & (0 - begins)) | (between & (begins - 1));
            next += begins;
            to[i] = between + at;
            at += length & ~LengthArray::BEGINS_WORD;
        }
        return at;
    });
    if (add_up && next != words) starts_.resize(known);
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
