#include "tokenizer/text_parts.h"

#include <algorithm>
#include <tuple>

#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t BLOCK = 1 << 14;  // bytes that are encoded at a time; where lengths do not add up, once more
constexpr size_t NEAR = 256;       // bytes in which a place is looked for
constexpr size_t UNKNOWN = SIZE_MAX;
constexpr size_t UNKNOWN_LENGTH = size_t(1) << (sizeof(size_t) * 8 - 2);  // adds up to no text's size

// The bytes of the character that begins at a place; 1 if none does.
size_t character_length(const unsigned char *text, size_t size, size_t place) {
    const size_t length = std::min(size - place, length_by_lead(text[place]));
    return is_utf8(text + place, length) ? length : 1;
}

}  // namespace

bool is_character_start(const unsigned char *text, size_t size, size_t place) {
    if (place == 0 || place >= size || (text[place] & 0xC0) != 0x80) return true;
    for (size_t first = place; first-- > 0 && place - first < 4;) {
        if ((text[first] & 0xC0) != 0x80) return character_length(text, size, first) <= place - first;
    }
    return true;
}

TextParts::TextParts(const Encoder &encoder, const SplitPoints &places, const Boundaries &boundaries, const Text &text,
                     LengthArray lengths, const PartOptions &options, const Poll &poll)
    : encoder_(encoder),
      places_(places),
      boundaries_(boundaries),
      text_(text),
      options_(options),
      poll_(poll),
      pace_(poll),
      scratch_(encoder.model()),
      special_(encoder.special_token_spans(text.data, text.size, options.parse_special, poll)) {
    find_token_starts(lengths);
}

std::vector<TextParts::Span> TextParts::spans() {
    std::vector<Span> found;
    for (size_t start = 0, done = 0; done < text_.size;) {
        pace_.count(64);
        size_t end = end_of_part(start, done);
        if (end <= done) {  // the overlap leaves no room for more
            start = done;
            end = end_of_part(start, done);
        }
        found.emplace_back(start, end);
        done = end;
        start = options_.overlap && end < text_.size ? overlapping(start, end) : end;
    }
    if (options_.strips) {
        for (Span &span : found) span = stripped(span);
        found.erase(std::remove_if(found.begin(), found.end(), [](const Span &span) { return span.first >= span.second; }),
                    found.end());
    }
    return found;
}

// ---- tokens ----

void TextParts::find_token_starts(LengthArray lengths) {
    starts_.reserve(text_.size / 4 + 16);
    const bool have_lengths = lengths.size && stands_for_itself();
    Ids ids;
    Spans spans;
    for (size_t from = 0, end; from < text_.size; from = end) {
        end = text_.size;
        if (end - from > BLOCK + BLOCK / 4) end = places_.next(text_.data, text_.size, from + BLOCK, special_, poll_);
        const Text block{text_.data + from, end - from, text_.is_valid};
        const EncodeOptions options{false, options_.parse_special, true};
        if (have_lengths) {
            ids.clear();
            encoder_.encode(block, options, 1, ids, poll_);
            if (add_starts_by_length(ids, lengths, from, end)) continue;
        }
        ids.clear();
        spans.clear();
        encoder_.encode_with_spans(block, options, ids, spans, poll_);
        size_t furthest = 0;
        for (size_t i = 0; i < spans.size(); ++i) {
            pace_.count(1);
            furthest = std::max(furthest, static_cast<size_t>(std::max<int64_t>(spans.data()[i].start, 0)));
            starts_.push_back(from + furthest);
        }
    }
}

// Whether no token can stand for more bytes than it has in the text. Where some stand for more (a space that is put behind a
// special token, U+FFFD for an undecodable byte) and some for less, the lengths of all may add up by chance.
bool TextParts::stands_for_itself() const {
    const SplitPointRules &rules = places_.rules();
    if (!special_.empty() && (rules.strips || rules.is_kept_behind)) return false;
    return text_.is_valid || is_utf8(text_.data, text_.size, poll_);
}

// False, and nothing, if the tokens do not stand for the text from `from` to `end`.
bool TextParts::add_starts_by_length(const Ids &ids, LengthArray lengths, size_t from, size_t end) {
    const size_t count = starts_.size();
    starts_.resize(count + ids.size());
    size_t *const to = starts_.data() + count;
    const int32_t *const from_ids = ids.data();
    size_t at = from;
    in_pieces(ids.size(), poll_, [&](size_t first, size_t stop) {
        for (size_t i = first; i < stop; ++i) {
            to[i] = at;
            const auto id = static_cast<uint32_t>(from_ids[i]);  // NO_TOKEN is beyond all
            const int32_t length = id < lengths.size ? lengths.data[id] : -1;
            at += length >= 0 ? static_cast<size_t>(length) : UNKNOWN_LENGTH;
        }
    });
    if (at == end) return true;
    starts_.resize(count);
    return false;
}

// The search begins where the last one ended, since places that are asked for are near each other.
size_t TextParts::tokens_before(size_t place) {
    size_t low = std::min(found_, starts_.size()), high = low, step = 1;
    while (low > 0 && starts_[low - 1] >= place) {
        high = low;
        low -= std::min(low, step);
        step *= 2;
    }
    for (step = 1; high < starts_.size() && starts_[high] < place; step *= 2) {
        low = high;
        high += std::min(starts_.size() - high, step);
    }
    const auto first = starts_.begin();
    found_ = static_cast<size_t>(std::lower_bound(first + static_cast<ptrdiff_t>(low), first + static_cast<ptrdiff_t>(high), place) - first);
    return found_;
}

size_t TextParts::count_alone(size_t start, size_t end, bool continues) {
    const Text part{text_.data + start, end - start, false};
    return encoder_.count(part, {false, options_.parse_special, continues}, *scratch_, poll_);
}

bool TextParts::has_at_most(size_t size, size_t start, size_t end) {
    if (start != start_) {
        start_ = start;
        place_ = place_behind(start, std::min(text_.size, start + NEAR));
        count_to_place_ = place_ == start ? 0 : UNKNOWN;
    }
    const size_t last = place_ && place_ <= end ? place_before(end, place_) : 0;
    if (!last) return count_alone(start, end, false) <= size;
    const size_t between = tokens_before(last) - tokens_before(place_);
    if (between > size) return false;
    if (options_.is_byte_level && text_.is_valid && between + (place_ - start) + (end - last) <= size &&
        is_character_start(text_.data, text_.size, start) && is_character_start(text_.data, text_.size, end)) {
        return true;  // a byte has at most one token
    }
    if (count_to_place_ == UNKNOWN) count_to_place_ = count_alone(start, place_, false);
    return count_to_place_ + between + (last < end ? count_alone(last, end, true) : 0) <= size;
}

// The first place from `start` on and before `end`; 0 if there is none. At 0, a text begins.
size_t TextParts::place_behind(size_t start, size_t end) const {
    if (start > 0 && options_.ignores_what_precedes && places_.is_place(text_.data, text_.size, start, special_, poll_)) {
        return start;
    }
    const size_t found = places_.next(text_.data, end, start + 1, special_, poll_);
    return found < end ? found : 0;
}

// The last place up to `end` and from `least` on, or the end of the text; 0 if there is none near the end.
size_t TextParts::place_before(size_t end, size_t least) const {
    if (end == text_.size) {
        // Nothing follows, so the tokens up to the end are those of the text.
        return end;
    }
    const size_t stop = std::max(least, end > NEAR ? end - NEAR : 0);
    for (size_t at = end; at >= stop && at > 0; --at) {
        if (places_.is_place(text_.data, text_.size, at, special_, poll_)) return at;
    }
    return 0;
}

bool TextParts::fits(size_t start, size_t end, size_t size) {
    if (options_.strips) std::tie(start, end) = stripped({start, end});
    if (start >= end) return true;
    pace_.count(end - start < 1024 ? 64 : (end - start) / 16);
    return has_at_most(size, start, end);
}

// ---- the end of a part ----

// How far a part from `start` reaches by the tokens of the whole text.
size_t TextParts::reach(size_t start) {
    const size_t last = tokens_before(start) + options_.size;
    return last < starts_.size() ? starts_[last] : text_.size;
}

// Where the part from `start` ends: after `done`, or at it if it cannot.
size_t TextParts::end_of_part(size_t start, size_t done) {
    size_t furthest = reach(start);
    if (furthest >= text_.size) {
        if (fits(start, text_.size, options_.size)) return text_.size;
        furthest = text_.size - 1;
    }
    if (furthest <= done) return end_of_characters(start, done);
    for (size_t level = 0; level < boundaries_.level_count(); ++level) {
        size_t end = boundaries_.last(level, done, furthest, pace_);
        while (end > done && !fits(start, end, options_.size)) end = boundaries_.last(level, done, end - 1, pace_);
        if (end > done) return end;
    }
    return end_of_tokens(start, done, furthest);
}

// The last place between two tokens of the whole text, and between two characters, that fits.
size_t TextParts::end_of_tokens(size_t start, size_t done, size_t furthest) {
    for (size_t i = tokens_before(furthest + 1); i > 0 && starts_[i - 1] > done; --i) {
        const size_t place = starts_[i - 1];
        if (is_character_start(text_.data, text_.size, place) && fits(start, place, options_.size)) return place;
    }
    return end_of_characters(start, done);
}

// The last character that fits; the first one if even that does not and there is nothing else in the part.
size_t TextParts::end_of_characters(size_t start, size_t done) {
    const auto behind = [&](size_t place) { return place + character_length(text_.data, text_.size, place); };
    const size_t first = behind(done);
    size_t end = done, place = first;
    while (fits(start, place, options_.size)) {
        end = place;
        if (end >= text_.size) break;
        place = behind(end);
    }
    return end == done && done == start ? first : end;
}

// Where the part after that of `start` and `end` begins, so that it repeats at most `overlap` tokens.
size_t TextParts::overlapping(size_t start, size_t end) {
    const size_t before = tokens_before(end), first = before - std::min(before, options_.overlap);
    const size_t least = std::max(first < starts_.size() ? starts_[first] : end, start + 1);
    for (size_t level = 0; level < boundaries_.level_count(); ++level) {
        size_t place = boundaries_.first(level, least, end, pace_);
        while (place < end && !fits(place, end, options_.overlap)) place = boundaries_.first(level, place + 1, end, pace_);
        if (place < end) return place;
    }
    for (size_t i = tokens_before(least); i < starts_.size() && starts_[i] < end; ++i) {
        const size_t place = starts_[i];
        if (is_character_start(text_.data, text_.size, place) && fits(place, end, options_.overlap)) return place;
    }
    return end;
}

TextParts::Span TextParts::stripped(Span span) const {
    auto [start, end] = span;
    while (start < end && is_blank_or_break(text_.data[start])) ++start;
    while (end > start && is_blank_or_break(text_.data[end - 1])) --end;
    return {start, end};
}

}  // namespace ggufbpe
