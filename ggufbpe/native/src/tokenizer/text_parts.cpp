#include "tokenizer/text_parts.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t NEAR = 256;       // bytes in which a place is looked for
constexpr size_t UNKNOWN = SIZE_MAX;

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

TextParts::TextParts(const Encoder &encoder, const SplitPoints &places, Boundaries &boundaries, const Text &text,
                     LengthArray lengths, const PartOptions &options, const Poll &poll)
    : encoder_(encoder),
      places_(places),
      boundaries_(boundaries),
      text_(text),
      options_(options),
      poll_(poll),
      pace_(poll),
      scratch_(encoder.model()),
      special_(encoder.special_token_spans(text.data, text.size, options.parse_special, poll)),
      starts_(encoder, places, text, special_, lengths, options.parse_special, poll),
      counts_(text.size) {}

std::vector<TextParts::Span> TextParts::spans() {
    std::vector<Span> found;
    for (size_t start = 0, done = 0; done < text_.size;) {
        pace_.count(64);
        starts_.forget_before(start - (start > 0));
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

size_t TextParts::count_alone(size_t start, size_t end, bool continues) {
    const Text part{text_.data + start, end - start, false};
    return counts_.of(part.data, part.size, continues, [&] {
        const EncodeOptions options{false, options_.parse_special, continues, !SplitPoints::begins_between(special_, start, end)};
        return encoder_.count(part, options, *scratch_, poll_);
    });
}

bool TextParts::has_at_most(size_t size, size_t start, size_t end) {
    if (start != start_) {
        start_ = start;
        place_ = place_behind(start, std::min(text_.size, start + NEAR));
        before_place_ = place_ ? starts_.before(place_) : 0;
        count_to_place_ = place_ <= start ? 0 : UNKNOWN;
    }
    const size_t last = place_ && place_ <= end ? place_before(end, place_) : 0;
    if (!last) return count_alone(start, end, false) <= size;
    const size_t between = starts_.before(last) - before_place_;
    if (between > size) return false;
    if (between + most_tokens(start, place_) + most_tokens(last, end) <= size) return true;
    if (count_to_place_ == UNKNOWN) count_to_place_ = count_alone(start, place_, false);
    return count_to_place_ + between + (last < end ? count_alone(last, end, true) : 0) <= size;
}

// What a piece of the text has at most by itself; MANY if that is not known.
size_t TextParts::most_tokens(size_t start, size_t end) const {
    constexpr size_t MANY = SIZE_MAX / 4;
    if (start >= end) return 0;
    const bool is_whole = text_.is_valid && is_character_start(text_.data, text_.size, start) &&
                          is_character_start(text_.data, text_.size, end);
    if (options_.has_words_of_patterns) return is_whole && options_.is_byte_level ? end - start : MANY;
    // A space may be put before the text, and behind special tokens. Each byte of U+2581 for a space, and of U+FFFD for an
    // undecodable byte, may be a token.
    if (SplitPoints::begins_between(special_, start, end)) return MANY;
    return is_whole && options_.is_byte_level ? end - start + 1 : 3 * (end - start) + 3;
}

// The first place from `start` on and before `end`, or before ignored white space that is there; 0 if there is none. At 0, a text begins.
size_t TextParts::place_behind(size_t start, size_t end) {
    if (start > 0 && options_.has_words_of_patterns && is_place(start)) {
        return start;
    }
    if (start > 1 && options_.ignored.find(static_cast<char>(text_.data[start - 1])) != std::string_view::npos &&
        !SplitPoints::begins_between(special_, start - 1, start + 1) && is_place(start - 1)) {
        return start - 1;
    }
    const size_t found = places_.next(text_.data, end, start + 1, special_, poll_);
    return found < end ? found : 0;
}

bool TextParts::is_place(size_t at) {
    auto &known = known_[at % std::size(known_)];
    if (known.at != at) known = {at, places_.is_place(text_.data, text_.size, at, special_, poll_)};
    return known.is_place;
}

// The last place up to `end` and from `least` on, or the end of the text; 0 if there is none near the end.
size_t TextParts::place_before(size_t end, size_t least) {
    if (end == text_.size) {
        // Nothing follows, so the tokens up to the end are those of the text.
        return end;
    }
    const size_t stop = std::max(least, end > NEAR ? end - NEAR : 0);
    for (size_t at = end; at >= stop && at > 0; --at) {
        if (is_place(at)) return at;
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
    return starts_[starts_.before(start) + options_.size];
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
    for (size_t i = starts_.before(furthest + 1); i > 0 && starts_[i - 1] > done; --i) {
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
    const size_t before = starts_.before(end), first = before - std::min(before, options_.overlap);
    const size_t least = std::max(starts_[first], start + 1);
    for (size_t level = 0; level < boundaries_.level_count(); ++level) {
        size_t place = boundaries_.first(level, least, end, pace_);
        while (place < end && !fits(place, end, options_.overlap)) place = boundaries_.first(level, place + 1, end, pace_);
        if (place < end) return place;
    }
    for (size_t i = starts_.before(least), place; (place = starts_[i]) < end; ++i) {
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
