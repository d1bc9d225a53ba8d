#include "tokenizer/boundaries.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace ggufbpe {

namespace {

constexpr size_t NONE = SIZE_MAX;

bool is_break(unsigned char byte) { return byte == '\r' || byte == '\n'; }
bool closes(unsigned char byte) { return byte == '"' || byte == '\'' || byte == ')' || byte == ']'; }

const char *const MODIFIERS[] = {"export ", "default ", "public ", "private ", "protected ", "static ", "abstract ", "final ",
                                 "async ", "unsafe ", "inline ", "const ", "virtual ", "template ", "template", "pub "};
const char *const KEYWORDS[] = {"def", "class", "func", "function", "fn", "impl", "struct", "enum", "trait", "interface",
                                "namespace", "module", "object", "type", "typedef", "union", "void", "int", "bool", "auto",
                                "CREATE", "template"};

}  // namespace

// White space with line breaks in it.
struct Boundaries::Run {
    size_t start, end;               // of the white space
    size_t first_break, last_break;  // its first and last line break
};

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
    bool is_needed = false;
    for (const BoundaryLevel &level : levels_) {
        has_fences_ = has_fences_ || level.kind == BoundaryLevel::FENCED_BLOCK;
        is_needed = is_needed || (level.kind != BoundaryLevel::GIVEN && level.kind != BoundaryLevel::WORD);
    }
    Pace pace(poll);
    if (!is_needed) return;
    for (BoundaryLevel &level : levels_) {
        if (level.kind == BoundaryLevel::SENTENCE) find_sentences(level.places, pace);
    }
    find_places(pace);
}

size_t Boundaries::last(size_t number, size_t start, size_t end, Pace &pace) const {
    const BoundaryLevel &level = levels_[number];
    if (level.kind == BoundaryLevel::WORD) {
        size_t place = end;
        while (place > start && !is_between_words(place)) --place;
        pace.count(end - place);
        return place;
    }
    const auto after = std::upper_bound(level.places.begin(), level.places.end(), end);
    return after == level.places.begin() ? start : std::max(*(after - 1), start);
}

size_t Boundaries::first(size_t number, size_t start, size_t end, Pace &pace) const {
    const BoundaryLevel &level = levels_[number];
    if (level.kind == BoundaryLevel::WORD) {
        return find_first(start, end, pace, [&](size_t place) { return is_between_words(place); });
    }
    const auto found = std::lower_bound(level.places.begin(), level.places.end(), start);
    return found == level.places.end() ? end : std::min(*found, end);
}

bool Boundaries::is_between_words(size_t place) const {
    const bool is_before = place < size_ && is_blank_or_break(text_[place]), is_behind = place > 0 && is_blank_or_break(text_[place - 1]);
    return at_start_ ? is_before && !is_behind : is_behind && !is_before;
}

// ---- sentences ----

// Calls take(place) for each place of a byte.
template <typename Take>
void Boundaries::each(unsigned char byte, Pace &pace, Take take) const {
    for (size_t at = 0; at < size_;) {
        const size_t stop = std::min(size_, at + Pace::STEPS);
        const auto *found = static_cast<const unsigned char *>(std::memchr(text_ + at, byte, stop - at));
        const size_t next = found ? static_cast<size_t>(found - text_) + 1 : stop;
        pace.count((next - at) / 16 + 1);
        at = next;
        if (found) take(at - 1);
    }
}

void Boundaries::find_sentences(std::vector<size_t> &places, Pace &pace) const {
    // What may stand between a mark and the white space that separates two sentences is closed with the first one.
    const auto take = [&](size_t start, bool is_latin) {
        while (is_latin && start < size_ && closes(text_[start])) ++start;
        const size_t end = find_first(start, size_, pace, [&](size_t place) { return !is_blank_or_break(text_[place]); });
        // Before a small letter, a period belongs to an abbreviation.
        if (is_latin && (start == end || (end < size_ && text_[end] >= 'a' && text_[end] <= 'z'))) return;
        places.push_back(at_start_ ? start : end);
    };
    for (const unsigned char mark : {'.', '!', '?'}) each(mark, pace, [&](size_t at) { take(at + 1, true); });
    // The ideographic ones need no space behind them.
    each(0xE3, pace, [&](size_t at) {
        if (has(at, "\xE3\x80\x82")) take(at + 3, false);
    });
    each(0xEF, pace, [&](size_t at) {
        if (has(at, "\xEF\xBC\x81") || has(at, "\xEF\xBC\x9F")) take(at + 3, false);
    });
    std::sort(places.begin(), places.end());
}

// ---- line breaks ----

void Boundaries::find_places(Pace &pace) {
    if (has_fences_ && fence_mark(0) != NONE) take_fence(fence_mark(0), pace);
    size_t at = 0;
    while (at < size_) {
        const size_t stop = std::min(size_, at + Pace::STEPS);
        const auto *found = static_cast<const unsigned char *>(std::memchr(text_ + at, '\n', stop - at));
        pace.count((found ? static_cast<size_t>(found - text_) + 1 : stop) - at);
        if (!found) {
            at = stop;
            continue;
        }
        Run run;
        run.first_break = run.last_break = run.start = static_cast<size_t>(found - text_);
        while (run.start > at && is_blank_or_break(text_[run.start - 1])) --run.start;
        run.end = find_first(run.first_break + 1, size_, pace, [&](size_t place) {
            if (text_[place] == '\n') run.last_break = place;
            return !is_blank_or_break(text_[place]);
        });
        take_run(run);
        at = run.end;
        const size_t mark = has_fences_ ? fence_mark(run.last_break + 1) : NONE;
        if (mark != NONE) take_fence(mark, pace);
    }
    for (BoundaryLevel &level : levels_) {
        if (level.kind == BoundaryLevel::GIVEN) continue;
        std::vector<size_t> &places = level.places;
        places.erase(std::unique(places.begin(), places.end()), places.end());
        if (fences_.empty() || level.in_fences) continue;
        places.erase(std::remove_if(places.begin(), places.end(), [&](size_t place) { return is_in_fence(place); }), places.end());
    }
}

void Boundaries::take_run(const Run &run) {
    const size_t behind = run.last_break + 1;
    const bool is_indented = run.end > behind;
    size_t breaks = run.last_break;  // where the line breaks begin that stand side by side at the end of the run
    while (breaks > run.start && text_[breaks - 1] == '\n') --breaks;
    for (BoundaryLevel &level : levels_) {
        size_t start = breaks;
        bool is_there = false;
        switch (level.kind) {
            case BoundaryLevel::LINE:
            case BoundaryLevel::PARAGRAPH:
                start = run.first_break;
                is_there = level.kind == BoundaryLevel::LINE || run.first_break < run.last_break;
                break;
            case BoundaryLevel::HEADING: {
                size_t at = behind;
                while (at < size_ && text_[at] == '#') ++at;
                is_there = !is_indented && at - behind == level.depth && at < size_ && text_[at] == ' ';
                break;
            }
            case BoundaryLevel::FENCED_BLOCK: is_there = fence_mark(behind) != NONE; break;
            case BoundaryLevel::RULE: is_there = !is_indented && is_rule(behind); break;
            case BoundaryLevel::DEFINITION:
            case BoundaryLevel::INNER_DEFINITION: {
                size_t count = 1;
                for (start = run.last_break; start > run.start && is_break(text_[start - 1]);) count += text_[--start] == '\n';
                const auto is_blank = [](unsigned char byte) { return byte == ' ' || byte == '\t'; };
                is_there = count > 1 && is_indented == (level.kind == BoundaryLevel::INNER_DEFINITION) &&
                           std::all_of(text_ + behind, text_ + run.end, is_blank) && is_definition(run.end);
                break;
            }
            default: break;
        }
        if (is_there) level.places.push_back(at_start_ ? start : behind);
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
    if (has(at, "@") || has(at, "#[")) return true;
    for (;;) {
        for (const char *keyword : KEYWORDS) {
            const size_t end = at + std::strlen(keyword);
            if (has(at, keyword) && (has(end, " ") || has(end, "<"))) return true;
        }
        const auto *const found = std::find_if(std::begin(MODIFIERS), std::end(MODIFIERS), [&](const char *word) { return has(at, word); });
        if (found != std::end(MODIFIERS)) {
            at += std::strlen(*found);
            continue;
        }
        if (!has(at, "pub(")) return false;
        size_t end = at + 4;
        while (end < size_ && text_[end] >= 'a' && text_[end] <= 'z') ++end;
        if (end == at + 4 || !has(end, ") ")) return false;
        at = end + 2;
    }
}

bool Boundaries::has(size_t at, const char *word) const {
    const size_t length = std::strlen(word);
    return at <= size_ && size_ - at >= length && !std::memcmp(text_ + at, word, length);
}

}  // namespace ggufbpe
