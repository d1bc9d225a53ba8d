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

const ByteSet BREAKS{{'\n', '\n'}};

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
    take_line_of_markdown(0, pace);
    BREAKS.each(text_, size_, pace, [&](size_t at) { take_line_of_markdown(at + 1, pace); });
}

void Boundaries::take_line_of_markdown(size_t start, Pace &pace) {
    static const ByteSet firsts{{'#', '#'}, {'*', '*'}, {'-', '-'}, {'_', '_'}, {'`', '`'}, {'~', '~'}};
    size_t at = start, depth = 0;
    while (at < size_ && at < start + 3 && text_[at] == ' ') ++at;
    if (at >= size_ || !firsts.has(text_[at])) return;
    while (at + depth < size_ && text_[at + depth] == '#') ++depth;
    pace.count(depth);
    const bool is_heading = at == start && depth > 0 && has(at + depth, " "), is_ruled = at == start && is_rule(at);
    const size_t mark = has_fences_ && (has(at, "```") || has(at, "~~~")) ? at : NONE;
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
    BREAKS.each(text_, size_, pace, [&](size_t at) {
        if (!at_start_) {
            if (at > 0 && (text_[at - 1] == '\n' || text_[at - 1] == '\r')) take_definition(at, pace);
            return;
        }
        const size_t start = end_before(at, pace, [](unsigned char byte) { return byte != '\r'; });
        if (start == 0 || text_[start - 1] != '\n') take_definition(start, pace);
    });
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
        auto fence = fences_.begin();
        const auto is_inside = [&](size_t place) {
            while (fence != fences_.end() && *fence <= place) ++fence;
            return (fence - fences_.begin()) % 2;
        };
        level.places.erase(std::remove_if(level.places.begin(), level.places.end(), is_inside), level.places.end());
    }
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
