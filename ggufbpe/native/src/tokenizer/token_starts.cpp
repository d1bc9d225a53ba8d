#include "tokenizer/token_starts.h"

#include <algorithm>
#include <iterator>

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
      is_utf8_(text.is_valid || (lengths.size && is_utf8(text.data, text.size, poll))) {}

size_t TokenStarts::before(size_t place) {
    auto &known = known_[place % std::size(known_)];
    if (known.place == place) return known.number;
    while (encoded_ < place && encode_next()) {}
    const size_t *const starts = starts_.data();
    const size_t count = starts_.size();
    const auto distance = [&](size_t number) {
        if (number < forgotten_ || number >= forgotten_ + count) return SIZE_MAX;
        const size_t start = starts[number - forgotten_];
        return start < place ? place - start : start - place;
    };
    size_t &near = near_[distance(near_[1]) < distance(near_[0])];
    near = forgotten_ + first_from(starts, count, place, std::min(near < forgotten_ ? 0 : near - forgotten_, count));
    known = {place, near};
    return near;
}

size_t TokenStarts::operator[](size_t number) {
    while (number >= forgotten_ + starts_.size() && encode_next()) {}
    if (number >= forgotten_ + starts_.size()) return text_.size;
    if (number < forgotten_) return 0;
    near_[1] = number;
    return starts_[number - forgotten_];
}

// ---- blocks ----

// Adds the tokens of the next block; false if there is none.
bool TokenStarts::encode_next() {
    const size_t from = encoded_;
    if (from >= text_.size) return false;
    const auto needed = std::lower_bound(starts_.begin(), starts_.end(), needed_from_);
    if (needed - starts_.begin() > starts_.end() - needed) {
        forgotten_ += static_cast<size_t>(needed - starts_.begin());
        starts_.erase(starts_.begin(), needed);
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
// behind a special token, U+FFFD for an undecodable byte) and some for less, the lengths of all may add up by chance. So `end`
// is brought forward: before a special token, or else soon behind it. Between words, nothing needs to add up.
bool TokenStarts::ends_before_changes(size_t from, size_t &end) {
    constexpr size_t SHORT = 128, NEAR_BY = 256;
    if (!lengths_.size || !is_utf8_) return false;
    const SplitPointRules &rules = places_.rules();
    if (lengths_.are_of_words || (!rules.strips && !rules.is_kept_behind)) return true;
    auto special = SplitPoints::first_special(special_, from);
    if (special == special_.end() || special->first >= end) return true;
    const size_t other = special->first;
    for (size_t at = other; at > from + SHORT && other - at < NEAR_BY; --at) {
        pace_.count(Pace::LOOKUP);
        if (!places_.is_place(text_.data, text_.size, at, special_, poll_)) continue;
        end = at;
        return true;
    }
    size_t at = special->second;  // behind the special tokens, as soon as there is none for a while
    while (++special != special_.end() && special->first < at + SHORT) at = special->second;
    if (at < end) end = std::min(end, next_place(at));
    return false;
}

// Gives false if the tokens do not stand for the text from `from` to `end`, and then adds nothing.
bool TokenStarts::add_by_length(const Ids &ids, size_t from, size_t end) {
    if (end - from > INT32_MAX) return false;  // one unknown length is too much
    const size_t known = starts_.size();
    starts_.resize(known + ids.size());
    size_t *const to = starts_.data() + known;
    uint64_t at = from;
    in_pieces(ids.size(), poll_, [&](size_t first, size_t stop) {
        for (size_t i = first; i < stop; ++i) {
            to[i] = static_cast<size_t>(at);
            at += lengths_.of(ids.data()[i]);
        }
    });
    if (at != end) starts_.resize(known);
    return at == end;
}

// Gives false if it is not certain which tokens begin words, and then adds nothing. The first token of each word is marked, or is
// the unknown one, so there are at least as many marked ones as words; if there are as many, these are they.
bool TokenStarts::add_by_word(const Ids &ids, size_t from) {
    if (ids.size() > UINT32_MAX) return false;
    const size_t words = words_.places.size(), known = starts_.size();
    words_.places.resize(std::max(words, ids.size()));  // so that there is one for each token that may begin a word
    first_tokens_.resize(ids.size() + 1);
    const size_t *const word_starts = words_.places.data();
    uint32_t *const first_tokens = first_tokens_.data();
    starts_.resize(known + ids.size());
    size_t *const to = starts_.data() + known;
    size_t next = 0, between = from;  // the words that have begun; how far the text is ahead of the bytes of tokens
    uint64_t at = 0;
    in_pieces(ids.size(), poll_, [&](size_t first, size_t stop) {
        const LengthArray lengths = lengths_;  // in registers
        for (size_t i = first; i < stop; ++i) {
            const uint32_t length = lengths.of(ids.data()[i]);
            const size_t begins = length / LengthArray::BEGINS_WORD & 1;
            // Which tokens begin words is unpredictable. Compilers make a branch of a choice, but not of masks.
            between = ((from + word_starts[next] - at) & (0 - begins)) | (between & (begins - 1));
            first_tokens[next] = static_cast<uint32_t>(i);  // of a word that has not begun, until it does
            next += begins;
            to[i] = between + at;
            at += length & ~LengthArray::BEGINS_WORD;
        }
    });
    if (next != words) {
        starts_.resize(known);
        return false;
    }
    first_tokens[words] = static_cast<uint32_t>(ids.size());
    correct_rewritten_words(ids, from, to);
    return true;
}

// Corrects `to`, where tokens begin, in words whose tokens may stand for other bytes. The first one of each word is right.
void TokenStarts::correct_rewritten_words(const Ids &ids, size_t from, size_t *to) {
    for (const WordStarts::Rewritten &word : words_.rewritten) {
        const size_t first = first_tokens_[word.word], count = first_tokens_[word.word + 1] - first;
        pace_.count(1);
        if (count == 1) continue;
        const unsigned char *const start = text_.data + to[first];
        spans_.clear();
        spans_.origin = text_.data;
        encoder_.model().append_word_spans(start, from + word.end - to[first], ids.data() + first, count, spans_, pace_);
        for (size_t i = 0; i < count; ++i) to[first + i] = static_cast<size_t>(spans_.data()[i].start);
    }
}

void TokenStarts::add_by_span(const Text &block, const EncodeOptions &options) {
    const size_t from = static_cast<size_t>(block.data - text_.data);
    ids_.clear();
    spans_.clear();
    encoder_.encode_with_spans(block, options, ids_, spans_, poll_);
    const size_t known = starts_.size();
    starts_.resize(known + spans_.size());
    size_t furthest = 0;
    in_pieces(spans_.size(), poll_, [&](size_t first, size_t stop) {
        for (size_t i = first; i < stop; ++i) {
            furthest = std::max(furthest, static_cast<size_t>(std::max<int64_t>(spans_.data()[i].start, 0)));
            starts_[known + i] = from + furthest;
        }
    });
}

}  // namespace ggufbpe
