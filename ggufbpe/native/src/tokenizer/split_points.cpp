#include "tokenizer/split_points.h"

#include <algorithm>

#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t FIRST_STEP = 48;  // bytes before the wanted end where a place is looked for first

}  // namespace

SplitPoints::SplitPoints(const Vocabulary &vocabulary, const Encoder &encoder, const Splitter *splitter, bool parse_special)
    : encoder_(encoder), splitter_(splitter), parse_special_(parse_special) {
    for (const int32_t id : vocabulary.special_tokens) {
        rules_.strips = rules_.strips || vocabulary.attributes[static_cast<size_t>(id)] & (LSTRIP_TOKEN | RSTRIP_TOKEN);
        rules_.around = std::max(rules_.around, (*vocabulary.tokens)[static_cast<size_t>(id)].size());
    }
    // After a special token a space is put before the text, which then continues nothing.
    rules_.is_kept_behind = rules_.strips || (!vocabulary.kind->has_pre_tokenizer && vocabulary.add_space_prefix);
    rules_.is_before_space = vocabulary.kind->drops_white_space;
    rules_.escapes_spaces = vocabulary.pre.escape_whitespaces;
    rules_.has_sequences = vocabulary.kind->has_sequences;
}

size_t SplitPoints::in_words(const unsigned char *text, size_t size, size_t start, const Poll &poll) const {
    const size_t from = std::max<size_t>(start, 1);
    if (from >= size || rules_.has_sequences) return size;
    return splitter_ ? splitter_->cut(text, size, from, poll) : encoder_.model().cut(text, size, from, poll);
}

// Whether white space allows a place.
bool SplitPoints::is_free(const unsigned char *text, size_t size, size_t at) const {
    if (!is_between_utf8(text, size, at)) return false;
    const bool is_escaped = rules_.escapes_spaces && text[at] == ' ';
    if (rules_.is_before_space && (!is_c_space(text[at]) || is_escaped)) return false;
    return !((rules_.strips || rules_.is_before_space) && is_c_space(text[at - 1]));
}

SplitPoints::SpecialSpans::const_iterator SplitPoints::first_special(const SpecialSpans &special, size_t place) {
    const auto begins_before = [](const std::pair<size_t, size_t> &span, size_t at) { return span.first < at; };
    return std::lower_bound(special.begin(), special.end(), place, begins_before);
}

bool SplitPoints::begins_between(const SpecialSpans &special, size_t start, size_t end) {
    const auto found = first_special(special, start);
    return found != special.end() && found->first < end;
}

// Whether one of the special tokens in a text extends across a place.
bool SplitPoints::is_crossed(const SpecialSpans &special, size_t at) const {
    if (special.empty()) return false;
    for (auto span = first_special(special, at - std::min(at, rules_.around)); span != special.end() && span->first < at; ++span) {
        if (at < span->second + rules_.is_kept_behind) return true;
    }
    return false;
}

template <typename IsPlace>
size_t SplitPoints::first(const unsigned char *text, size_t size, size_t start, const Poll &poll, IsPlace is_place) const {
    size_t at = start;
    Pace pace(poll);
    while ((at = in_words(text, size, at, poll)) < size && !is_place(at)) {
        ++at;
        pace.count(32 + 2 * rules_.around);
    }
    return at;
}

size_t SplitPoints::next(const unsigned char *text, size_t size, size_t start, const Poll &poll) const {
    return first(text, size, start, poll, [&](size_t at) {
        if (!is_free(text, size, at)) return false;
        const size_t from = at - std::min(at, rules_.around), end = std::min(size, at + rules_.around);
        return !is_crossed(encoder_.special_token_spans(text + from, end - from, parse_special_, poll), at - from);
    });
}

size_t SplitPoints::next(const unsigned char *text, size_t size, size_t start, const SpecialSpans &special,
                         const Poll &poll) const {
    return first(text, size, start, poll, [&](size_t at) { return is_free(text, size, at) && !is_crossed(special, at); });
}

bool SplitPoints::is_place(const unsigned char *text, size_t size, size_t at, const SpecialSpans &special,
                           const Poll &poll) const {
    if (at >= size) return false;
    // No model looks further than to the end of the character behind a place, or at two spaces; the rest of the text would be
    // searched for the next place.
    const size_t end = at + (text[at] == ' ' ? 2 : length_by_lead(text[at]));
    if (in_words(text, std::min(size, end), at, poll) != at) return false;
    return is_free(text, size, at) && !is_crossed(special, at);
}

size_t SplitPoints::last(const unsigned char *text, size_t size, size_t end, const Poll &poll) const {
    size_t above = std::min(end + 1, size);
    for (size_t step = FIRST_STEP; above > 1; step *= 4) {
        const size_t first = above > step ? above - step : 1;
        const size_t at = next(text, size, first, poll);
        if (at < above) return at;
        above = first;
    }
    return 0;
}

}  // namespace ggufbpe
