#include "tokenizer/boundaries.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tokenizer/byte_set.h"
#include "tokenizer/sorted_places.h"

namespace ggufbpe {

namespace {

bool closes(unsigned char byte) { return byte == '"' || byte == '\'' || byte == ')' || byte == ']'; }

bool is_line_of_markdown(BoundaryLevel::Kind kind) {
    return kind == BoundaryLevel::HEADING || kind == BoundaryLevel::RULE || kind == BoundaryLevel::FENCED_BLOCK;
}

bool is_of_definitions(BoundaryLevel::Kind kind) {
    return kind == BoundaryLevel::DEFINITION || kind == BoundaryLevel::INNER_DEFINITION;
}

bool is_found_in_advance(BoundaryLevel::Kind kind) { return is_line_of_markdown(kind) || is_of_definitions(kind); }

bool is_blank(unsigned char byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }

}  // namespace

bool BoundaryLevel::of_name(const std::string &name, BoundaryLevel &level) {
    const std::pair<const char *, Kind> kinds[] = {
        {"word", WORD}, {"line", LINE}, {"sentence", SENTENCE}, {"paragraph", PARAGRAPH}, {"fenced block", FENCED_BLOCK},
        {"rule", RULE}, {"definition", DEFINITION}, {"inner definition", INNER_DEFINITION}};
    for (const auto &[known, kind] : kinds) {
        if (name != known) continue;
        level.kind = kind;
        return true;
    }
    if (name.size() != 9 || name.compare(0, 8, "heading ") || name[8] < '1' || name[8] > '6') return false;
    level.kind = HEADING;
    level.depth = static_cast<size_t>(name[8] - '0');
    return true;
}

Boundaries::Boundaries(const unsigned char *text, size_t size, std::vector<BoundaryLevel> levels, bool at_start,
                       const Poll &poll)
    : text_(text), size_(size), levels_(std::move(levels)), at_start_(at_start) {
    Pace pace(poll);
    const auto has_level = [&](auto is_it) {
        return std::any_of(levels_.begin(), levels_.end(), [&](const BoundaryLevel &level) { return is_it(level.kind); });
    };
    has_fences_ = has_level([](BoundaryLevel::Kind kind) { return kind == BoundaryLevel::FENCED_BLOCK; });
    if (has_level(is_line_of_markdown)) find_lines_of_markdown(pace);
    if (has_level(is_of_definitions)) find_definitions(pace);
    if (!fences_.empty()) drop_places_in_fences();
}

size_t Boundaries::last(size_t number, size_t start, size_t end, Pace &pace) {
    BoundaryLevel &level = levels_[number];
    if (level.kind == BoundaryLevel::WORD) {
        size_t place = end;
        while (place > start && !is_between_words(place)) --place;
        pace.count(end - place);
        return place;
    }
    if (level.kind != BoundaryLevel::GIVEN && !is_found_in_advance(level.kind)) return search_back(level, start, end, pace);
    level.near = first_from(level.places.data(), level.places.size(), end + 1, level.near);
    return level.near ? std::max(level.places[level.near - 1], start) : start;
}

size_t Boundaries::first(size_t number, size_t start, size_t end, Pace &pace) {
    BoundaryLevel &level = levels_[number];
    if (level.kind == BoundaryLevel::WORD) {
        return find_first(start, end, pace, [&](size_t place) { return is_between_words(place); });
    }
    if (level.kind != BoundaryLevel::GIVEN && !is_found_in_advance(level.kind)) return first_near(level, start, end, pace);
    level.near = first_from(level.places.data(), level.places.size(), start, level.near);
    return level.near < level.places.size() ? std::min(level.places[level.near], end) : end;
}

bool Boundaries::is_between_words(size_t place) const {
    const bool is_before = place < size_ && is_blank_or_break(text_[place]), is_behind = place > 0 && is_blank_or_break(text_[place - 1]);
    return at_start_ ? is_before && !is_behind : is_behind && !is_before;
}

// ---- near a place ----

// As last(). What was searched before is not searched again: parts that follow one another ask for much the same text.
size_t Boundaries::search_back(BoundaryLevel &level, size_t start, size_t end, Pace &pace) {
    if (start > level.to || end < level.from) {
        level.from = last_near(level, start, end, pace);
        level.to = end;
        level.is_place = level.from > start;
        return level.from;
    }
    if (end > level.to) {
        const size_t above = last_near(level, level.to, end, pace);
        if (above > level.to) {
            level.from = above;
            level.is_place = true;
        }
        level.to = end;
    }
    if (!level.is_place && start < level.from) {
        level.from = last_near(level, start, level.from, pace);
        level.is_place = level.from > start;
    }
    return level.is_place ? std::max(level.from, start) : start;
}

size_t Boundaries::last_near(const BoundaryLevel &level, size_t start, size_t end, Pace &pace) {
    for (;;) {
        const size_t place = last_of_all(level, start, end, pace);
        if (place == start || level.in_fences || !is_in_fence(place)) return place;
        end = *(std::upper_bound(fences_.begin(), fences_.end(), place) - 1) - 1;
        if (end <= start) return start;
    }
}

// The same, within fenced blocks, too.
size_t Boundaries::last_of_all(const BoundaryLevel &level, size_t start, size_t end, Pace &pace) {
    const size_t least = least_byte(level, start + 1, pace);
    for (size_t above = std::min(end + 1, size_); above > least;) {
        if (level.kind == BoundaryLevel::SENTENCE && above > tail_start_ && above <= tail_end_) {  // there are no marks
            above = tail_start_;
            continue;
        }
        const size_t first = above - std::min(above - least, ByteSet::PLACES);
        pace.count(ByteSet::PLACES);
        for (uint64_t left = bytes_of(level, first, above - first); left;) {
            const size_t bit = highest_bit(left), place = place_at(level, first + bit, pace);
            if (place <= end) return std::max(place, start);
            left ^= uint64_t(1) << bit;
        }
        above = first;
    }
    return start;
}

size_t Boundaries::first_near(const BoundaryLevel &level, size_t start, size_t end, Pace &pace) {
    for (;;) {
        const size_t place = first_of_all(level, start, end, pace);
        if (place == end || level.in_fences || !is_in_fence(place)) return place;
        const auto fence_end = std::upper_bound(fences_.begin(), fences_.end(), place);
        if (fence_end == fences_.end() || *fence_end >= end) return end;
        start = *fence_end;
    }
}

size_t Boundaries::first_of_all(const BoundaryLevel &level, size_t start, size_t end, Pace &pace) {
    for (size_t at = least_byte(level, start, pace); at < end; at += ByteSet::PLACES) {
        if (level.kind == BoundaryLevel::SENTENCE && at >= tail_start_ && at < tail_end_) {
            at = tail_end_;
            if (at >= end) break;
        }
        pace.count(ByteSet::PLACES);
        for (uint64_t left = bytes_of(level, at, std::min(ByteSet::PLACES, end - at)); left; left &= left - 1) {
            const size_t place = place_at(level, at + lowest_bit(left), pace);
            if (place != NONE && place >= start) return std::min(place, end);
        }
    }
    return end;
}

// Which of up to 64 bytes may have a boundary. Boundaries are in the order of their bytes, and never before them.
uint64_t Boundaries::bytes_of(const BoundaryLevel &level, size_t start, size_t size) {
    // The ideographic marks are U+3002, U+FF01 and U+FF1F, and need no space behind them.
    static const ByteSet marks{{'.', '.'}, {'!', '!'}, {'?', '?'}, {0xE3, 0xE3}, {0xEF, 0xEF}}, breaks{{'\n', '\n'}};
    const ByteSet &set = level.kind == BoundaryLevel::SENTENCE ? marks : breaks;
    if (found_.set != &set || found_.start != start) {  // else another level asked for them
        found_ = {&set, start, 0};
        set.find(text_ + start, std::min(ByteSet::PLACES, size_ - start), &found_.bytes);
    }
    return size < ByteSet::PLACES ? found_.bytes & ((uint64_t(1) << size) - 1) : found_.bytes;
}

// No byte before this one has a boundary at `place` or behind it.
size_t Boundaries::least_byte(const BoundaryLevel &level, size_t place, Pace &pace) {
    if (level.kind != BoundaryLevel::SENTENCE) return at_start_ || place == 0 ? place : place - 1;
    if (place <= tail_start_ || place > tail_end_) {
        size_t start = place;
        while (start > 0 && start != tail_end_ && (closes(text_[start - 1]) || is_blank_or_break(text_[start - 1]))) --start;
        pace.count(place - start);
        if (start != tail_end_) tail_start_ = start;
        tail_end_ = place;
    }
    return tail_start_ - std::min<size_t>(tail_start_, 3);
}

// The boundary that a byte has; NONE if it has none.
size_t Boundaries::place_at(const BoundaryLevel &level, size_t at, Pace &pace) {
    if (last_.kind != level.kind || last_.at != at) {
        const size_t place = level.kind == BoundaryLevel::SENTENCE
                                 ? sentence_at(at, pace)
                                 : line_at(at, level.kind == BoundaryLevel::PARAGRAPH, pace);
        last_ = {level.kind, at, place};
    }
    return last_.place;
}

// A line break is a boundary if it is the last one of a run of white space, or the first one if `at_start_`.
size_t Boundaries::line_at(size_t at, bool is_paragraph, Pace &pace) const {
    const auto has_break_before = [&] {
        size_t end = at;
        while (end > 0 && is_blank(text_[end - 1])) --end;
        pace.count(at - end);
        return end > 0 && text_[end - 1] == '\n';
    };
    const auto has_break_behind = [&] {
        size_t next = at + 1;
        while (next < size_ && is_blank(text_[next])) ++next;
        pace.count(next - at);
        return next < size_ && text_[next] == '\n';
    };
    if (at_start_) return !has_break_before() && (!is_paragraph || has_break_behind()) ? at : NONE;
    return (!is_paragraph || has_break_before()) && !has_break_behind() ? at + 1 : NONE;
}

size_t Boundaries::sentence_at(size_t at, Pace &pace) const {
    const bool is_latin = text_[at] < 0x80;
    if (!is_latin && !has(at, "\xE3\x80\x82") && !has(at, "\xEF\xBC\x81") && !has(at, "\xEF\xBC\x9F")) return NONE;
    // What may stand between a mark and the white space that separates two sentences is closed with the first one.
    size_t start = at + (is_latin ? 1 : 3);
    if (is_latin) start = first_behind(start, pace, [](unsigned char byte) { return !closes(byte); });
    if (is_latin && (start == size_ || !is_blank_or_break(text_[start]))) return NONE;
    const size_t end = first_behind(start, pace, [](unsigned char byte) { return !is_blank_or_break(byte); });
    // Before a small letter, a period belongs to an abbreviation.
    if (is_latin && end < size_ && text_[end] >= 'a' && text_[end] <= 'z') return NONE;
    return at_start_ ? start : end;
}

bool Boundaries::has(size_t at, const char *word) const {
    while (*word && at < size_ && text_[at] == static_cast<unsigned char>(*word)) ++word, ++at;
    return !*word;
}

}  // namespace ggufbpe
