// The boundaries that are found in advance, in one pass over the text: lines of Markdown, definitions, and fenced blocks.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tokenizer/boundaries.h"
#include "tokenizer/byte_set.h"

namespace ggufbpe {

namespace {

const char *const MODIFIERS[] = {"export ", "default ", "public ", "private ", "protected ", "static ", "abstract ", "final ",
                                 "async ", "unsafe ", "inline ", "const ", "virtual ", "template ", "template", "pub "};
const char *const KEYWORDS[] = {"def", "class", "func", "function", "fn", "impl", "struct", "enum", "trait", "interface",
                                "namespace", "module", "object", "type", "typedef", "union", "void", "int", "bool", "auto",
                                "CREATE", "template"};

// The words that begin with a byte.
template <size_t COUNT>
std::array<std::vector<const char *>, 128> by_first_byte(const char *const (&words)[COUNT]) {
    std::array<std::vector<const char *>, 128> found;
    for (const char *word : words) found[static_cast<unsigned char>(*word)].push_back(word);
    return found;
}

}  // namespace

// Where the last byte before a place that is_it() holds for ends; 0 if there is none.
template <typename IsIt>
size_t Boundaries::end_before(size_t at, Pace &pace, IsIt is_it) const {
    size_t end = at;
    while (end > 0 && !is_it(text_[end - 1])) --end;
    pace.count(at - end);
    return end;
}

// ---- Markdown ----

// Finds headings, rules, and fenced blocks with their ends.
void Boundaries::find_lines_of_markdown(Pace &pace) {
    static const ByteSet breaks{{'\n', '\n'}}, firsts{{'#', '#'}, {'*', '*'}, {'-', '-'}, {'_', '_'}}, marks{{'`', '`'}, {'~', '~'}};
    uint64_t at_breaks[ByteSet::MASKS], at_firsts[ByteSet::MASKS], at_marks[ByteSet::MASKS];
    uint64_t begins_line = 1, goes_on = 0;
    for (size_t chunk = 0; chunk < size_; chunk += ByteSet::MASKS * ByteSet::PLACES) {
        const size_t bytes = std::min(ByteSet::MASKS * ByteSet::PLACES, size_ - chunk);
        breaks.find(text_ + chunk, bytes, at_breaks);
        firsts.find(text_ + chunk, bytes, at_firsts);
        marks.find(text_ + chunk, bytes, at_marks);
        pace.count(bytes);
        for (size_t i = 0; i * ByteSet::PLACES < bytes; ++i) {
            const uint64_t at = at_marks[i];
            // Marks that two others follow, or may follow in the next 64 bytes.
            const uint64_t fences = at & ~(at << 1 | goes_on) & (at >> 1 | uint64_t(1) << 63) & (at >> 2 | uint64_t(3) << 62);
            uint64_t left = ((at_breaks[i] << 1 | begins_line) & at_firsts[i]) | fences;
            begins_line = at_breaks[i] >> 63;
            goes_on = at >> 63;
            for (; left; left &= left - 1) take_line_of(chunk + i * ByteSet::PLACES + lowest_bit(left), pace);
        }
    }
}

// Takes a line of Markdown with its first byte that is no space, if it is one.
void Boundaries::take_line_of(size_t at, Pace &pace) {
    size_t start = at, depth = 0;
    while (start > 0 && text_[start - 1] == ' ' && at - start < 3) --start;
    if (start > 0 && text_[start - 1] != '\n') return;
    while (at + depth < size_ && text_[at + depth] == '#') ++depth;
    pace.count(depth);
    const bool is_heading = depth > 0 && has(at + depth, " "), is_ruled = is_rule(at);
    const size_t mark = has_fences_ ? fence_mark(start) : NONE;
    if (!is_heading && !is_ruled && mark == NONE) return;
    for (BoundaryLevel &level : levels_) {
        const bool is_here = level.kind == BoundaryLevel::HEADING        ? is_heading && depth == level.depth
                             : level.kind == BoundaryLevel::RULE         ? is_ruled
                             : level.kind == BoundaryLevel::FENCED_BLOCK ? mark != NONE
                                                                         : false;
        if (!is_here || start == 0) continue;  // there is no line break before the first line
        const auto is_other = [](unsigned char byte) { return byte != '\n'; };
        level.places.push_back(at_start_ ? end_before(start, pace, is_other) : start);
    }
    if (mark != NONE) take_fence(mark, pace);
}

// ---- definitions ----

// Finds blank lines before definitions: the last byte of the line breaks that stand side by side, or the first one if
// `at_start_`.
void Boundaries::find_definitions(Pace &pace) {
    static const ByteSet breaks{{'\n', '\n'}}, breaks_and_returns{{'\n', '\n'}, {'\r', '\r'}};
    uint64_t at_breaks[ByteSet::MASKS], at_both[ByteSet::MASKS], goes_on = 0;
    for (size_t chunk = 0; chunk < size_; chunk += ByteSet::MASKS * ByteSet::PLACES) {
        const size_t bytes = std::min(ByteSet::MASKS * ByteSet::PLACES, size_ - chunk);
        breaks.find(text_ + chunk, bytes, at_breaks);
        breaks_and_returns.find(text_ + chunk, bytes, at_both);
        pace.count(bytes);
        for (size_t i = 0; i * ByteSet::PLACES < bytes; ++i) {
            const uint64_t behind_another = at_both[i] << 1 | goes_on;
            goes_on = at_both[i] >> 63;
            for (uint64_t left = at_start_ ? at_both[i] & ~behind_another : at_breaks[i] & behind_another; left; left &= left - 1) {
                take_definition(chunk + i * ByteSet::PLACES + lowest_bit(left), pace);
            }
        }
    }
}

void Boundaries::take_definition(size_t at, Pace &pace) {
    const auto is_other = [](unsigned char byte) { return byte != '\n' && byte != '\r'; };
    const size_t end = at_start_ ? first_behind(at, pace, is_other) : at + 1;
    if (end == size_ || text_[end - 1] != '\n') return;
    const size_t line = first_behind(end, pace, [](unsigned char byte) { return byte != ' ' && byte != '\t'; });
    if (!is_definition(line)) return;
    const size_t start = at_start_ ? at : end_before(at, pace, is_other);
    if (std::count(text_ + start, text_ + end, '\n') < 2) return;
    const BoundaryLevel::Kind kind = line > end ? BoundaryLevel::INNER_DEFINITION : BoundaryLevel::DEFINITION;
    for (BoundaryLevel &level : levels_) {
        if (level.kind == kind) level.places.push_back(at_start_ ? start : end);
    }
}

void Boundaries::drop_places_in_fences() {
    for (BoundaryLevel &level : levels_) {
        if (level.kind == BoundaryLevel::GIVEN || level.in_fences) continue;
        std::vector<size_t> &places = level.places;
        places.erase(std::remove_if(places.begin(), places.end(), [&](size_t place) { return is_in_fence(place); }), places.end());
    }
}

// Where the mark of a fenced block stands in the line that begins at a place; NONE if there is none.
size_t Boundaries::fence_mark(size_t line) const {
    size_t at = line;
    while (at < size_ && at < line + 3 && text_[at] == ' ') ++at;
    return has(at, "```") || has(at, "~~~") ? at : NONE;
}

// A line that opens a fenced block or closes it.
void Boundaries::take_fence(size_t mark, Pace &pace) {
    const auto is_end = [&](size_t place) { return text_[place] == '\n'; };
    const size_t rest = mark + 3, end = find_first(rest, size_, pace, is_end);
    if (end < size_ && std::find(text_ + rest, text_ + end, '`') == text_ + end) {
        const size_t behind = find_first(end, size_, pace, [&](size_t place) { return text_[place] != '\n'; });
        for (BoundaryLevel &level : levels_) {
            if (level.kind == BoundaryLevel::FENCED_BLOCK) level.places.push_back(at_start_ ? end : behind);
        }
    }
    if (!open_mark_) {
        open_mark_ = text_[mark];
        fences_.push_back(mark + 1);
    } else if (open_mark_ == text_[mark] && std::all_of(text_ + rest, text_ + end, [](unsigned char byte) {
                   return is_blank_or_break(byte) || byte == '\v' || byte == '\f';
               })) {
        open_mark_ = 0;
        fences_.push_back(rest);
    }
}

bool Boundaries::is_in_fence(size_t place) const {
    return (std::upper_bound(fences_.begin(), fences_.end(), place) - fences_.begin()) % 2;
}

bool Boundaries::is_rule(size_t at) const {
    if (!has(at, "---") && !has(at, "***") && !has(at, "___")) return false;
    at += 3;
    while (at < size_ && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    return has(at, "\n") || has(at, "\r\n");
}

bool Boundaries::is_definition(size_t at) const {
    static const auto keywords = by_first_byte(KEYWORDS), modifiers = by_first_byte(MODIFIERS);
    if (has(at, "@") || has(at, "#[")) return true;
    while (at < size_ && text_[at] < keywords.size()) {
        for (const char *keyword : keywords[text_[at]]) {
            const size_t end = at + std::strlen(keyword);
            if (has(at, keyword) && (has(end, " ") || has(end, "<"))) return true;
        }
        const auto &some = modifiers[text_[at]];
        const auto found = std::find_if(some.begin(), some.end(), [&](const char *word) { return has(at, word); });
        if (found != some.end()) {
            at += std::strlen(*found);
            continue;
        }
        if (!has(at, "pub(")) return false;
        size_t end = at + 4;
        while (end < size_ && text_[end] >= 'a' && text_[end] <= 'z') ++end;
        if (end == at + 4 || !has(end, ") ")) return false;
        at = end + 2;
    }
    return false;
}

}  // namespace ggufbpe
