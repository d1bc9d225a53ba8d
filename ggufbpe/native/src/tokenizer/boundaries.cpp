#include "tokenizer/boundaries.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tokenizer/byte_set.h"
#include "tokenizer/sorted_places.h"

namespace ggufbpe {

namespace {

constexpr size_t NONE = SIZE_MAX;

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
    Pace pace(poll);
    for (BoundaryLevel &level : levels_) {
        switch (level.kind) {
            case BoundaryLevel::GIVEN:
            case BoundaryLevel::WORD: break;
            case BoundaryLevel::SENTENCE: find_sentences(level.places, pace); break;
            case BoundaryLevel::PARAGRAPH:
            case BoundaryLevel::DEFINITION:
            case BoundaryLevel::INNER_DEFINITION: at_blank_lines_.push_back(&level); break;
            case BoundaryLevel::FENCED_BLOCK: has_fences_ = true; [[fallthrough]];
            case BoundaryLevel::LINE:
            case BoundaryLevel::HEADING:
            case BoundaryLevel::RULE: at_breaks_.push_back(&level); break;
        }
    }
    if (at_breaks_.empty() && at_blank_lines_.empty()) return;
    find_runs(pace);
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
    level.near = first_from(level.places.data(), level.places.size(), end + 1, level.near);
    return level.near ? std::max(level.places[level.near - 1], start) : start;
}

size_t Boundaries::first(size_t number, size_t start, size_t end, Pace &pace) {
    BoundaryLevel &level = levels_[number];
    if (level.kind == BoundaryLevel::WORD) {
        return find_first(start, end, pace, [&](size_t place) { return is_between_words(place); });
    }
    level.near = first_from(level.places.data(), level.places.size(), start, level.near);
    return level.near < level.places.size() ? std::min(level.places[level.near], end) : end;
}

bool Boundaries::is_between_words(size_t place) const {
    const bool is_before = place < size_ && is_blank_or_break(text_[place]), is_behind = place > 0 && is_blank_or_break(text_[place - 1]);
    return at_start_ ? is_before && !is_behind : is_behind && !is_before;
}

size_t Boundaries::end_of_white_space(size_t at, Pace &pace) const {
    if (at >= size_ || !is_blank_or_break(text_[at])) return at;
    return find_first(at + 1, size_, pace, [&](size_t place) { return !is_blank_or_break(text_[place]); });
}

// ---- sentences ----

void Boundaries::find_sentences(std::vector<size_t> &places, Pace &pace) const {
    // The ideographic marks are U+3002, U+FF01 and U+FF1F, and need no space behind them.
    const ByteSet marks{{'.', '.'}, {'!', '!'}, {'?', '?'}, {0xE3, 0xE3}, {0xEF, 0xEF}};
    marks.each(text_, size_, pace, [&](size_t at) {
        const bool is_latin = text_[at] < 0x80;
        if (!is_latin && !has(at, "\xE3\x80\x82") && !has(at, "\xEF\xBC\x81") && !has(at, "\xEF\xBC\x9F")) return;
        // What may stand between a mark and the white space that separates two sentences is closed with the first one.
        size_t start = at + (is_latin ? 1 : 3);
        while (is_latin && start < size_ && closes(text_[start])) ++start;
        if (is_latin && (start == size_ || !is_blank_or_break(text_[start]))) return;
        const size_t end = end_of_white_space(start, pace);
        // Before a small letter, a period belongs to an abbreviation.
        if (is_latin && end < size_ && text_[end] >= 'a' && text_[end] <= 'z') return;
        places.push_back(at_start_ ? start : end);
    });
}

// ---- line breaks ----

void Boundaries::find_runs(Pace &pace) {
    if (has_fences_ && fence_mark(0) != NONE) take_fence(fence_mark(0), pace);
    const ByteSet breaks{{'\n', '\n'}}, spaces{{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}};
    uint64_t break_masks[ByteSet::MASKS], space_masks[ByteSet::MASKS];
    size_t done = 0;  // the end of the last run
    for (size_t chunk = 0; chunk < size_; chunk += ByteSet::MASKS * ByteSet::PLACES) {
        const size_t bytes = std::min(ByteSet::MASKS * ByteSet::PLACES, size_ - chunk);
        pace.count(bytes);
        breaks.find(text_ + chunk, bytes, break_masks);
        spaces.find(text_ + chunk, bytes, space_masks);
        for (size_t i = 0; i * ByteSet::PLACES < bytes; ++i) {
            const size_t base = chunk + i * ByteSet::PLACES;
            for (uint64_t left = break_masks[i]; left;) {
                const size_t bit = lowest_bit(left);
                if (base + bit >= done) {
                    const Run run = run_around(base, bit, break_masks[i], space_masks[i], done, pace);
                    take_run(run);
                    done = run.end;
                    const size_t mark = has_fences_ ? fence_mark(run.last_break + 1) : NONE;
                    if (mark != NONE) take_fence(mark, pace);
                }
                left = done - base >= ByteSet::PLACES ? 0 : left >> (done - base) << (done - base);
            }
        }
    }
}

// The white space around a line break, the first one after `done`. The masks are those of the 64 places from `base` on.
Boundaries::Run Boundaries::run_around(size_t base, size_t bit, uint64_t breaks, uint64_t spaces, size_t done, Pace &pace) const {
    const size_t at = base + bit;
    Run run{at, at + 1, at, at};
    const uint64_t behind = ~spaces >> bit, before = ~spaces & ((uint64_t(1) << bit) - 1);
    if (behind && base + bit + lowest_bit(behind) < size_) {
        run.end = at + lowest_bit(behind);
        run.last_break = base + highest_bit(breaks & ((uint64_t(2) << (run.end - 1 - base)) - 1));
    } else {
        run.end = end_of_white_space(at, pace);
        for (run.last_break = run.end - 1; text_[run.last_break] != '\n';) --run.last_break;
    }
    if (before) {
        run.start = std::max(done, base + highest_bit(before) + 1);
    } else {
        while (run.start > done && is_blank_or_break(text_[run.start - 1])) --run.start;
    }
    return run;
}

void Boundaries::drop_places_in_fences() {
    for (BoundaryLevel &level : levels_) {
        if (level.kind == BoundaryLevel::GIVEN || level.in_fences) continue;
        std::vector<size_t> &places = level.places;
        places.erase(std::remove_if(places.begin(), places.end(), [&](size_t place) { return is_in_fence(place); }), places.end());
    }
}

void Boundaries::take_run(const Run &run) {
    const size_t behind = run.last_break + 1;
    const auto take = [&](const std::vector<BoundaryLevel *> &levels) {
        for (BoundaryLevel *const level : levels) {
            if (is_at(*level, run)) level->places.push_back(at_start_ ? start_of_separator(level->kind, run) : behind);
        }
    };
    take(at_breaks_);
    if (run.first_break < run.last_break) take(at_blank_lines_);
}

// Whether a level has a boundary at a run of white space, which has a blank line in it for those of at_blank_lines_.
bool Boundaries::is_at(const BoundaryLevel &level, const Run &run) const {
    const size_t behind = run.last_break + 1;
    const bool is_indented = run.end > behind;
    switch (level.kind) {
        case BoundaryLevel::LINE:
        case BoundaryLevel::PARAGRAPH: return true;
        case BoundaryLevel::HEADING: {
            size_t at = behind;
            while (at < size_ && text_[at] == '#') ++at;
            return !is_indented && at - behind == level.depth && at < size_ && text_[at] == ' ';
        }
        case BoundaryLevel::FENCED_BLOCK: return fence_mark(behind) != NONE;
        case BoundaryLevel::RULE: return !is_indented && is_rule(behind);
        case BoundaryLevel::DEFINITION:
        case BoundaryLevel::INNER_DEFINITION: {
            const size_t start = start_of_separator(level.kind, run);
            const auto is_blank = [](unsigned char byte) { return byte == ' ' || byte == '\t'; };
            return std::count(text_ + start, text_ + behind, '\n') > 1 &&
                   is_indented == (level.kind == BoundaryLevel::INNER_DEFINITION) &&
                   std::all_of(text_ + behind, text_ + run.end, is_blank) && is_definition(run.end);
        }
        default: return false;
    }
}

// Where the separator begins that a run of white space has for a level.
size_t Boundaries::start_of_separator(BoundaryLevel::Kind kind, const Run &run) const {
    if (kind == BoundaryLevel::LINE || kind == BoundaryLevel::PARAGRAPH) return run.first_break;
    const bool has_returns = kind == BoundaryLevel::DEFINITION || kind == BoundaryLevel::INNER_DEFINITION;
    size_t start = run.last_break;  // of the line breaks that stand side by side at the end of the run
    while (start > run.start && (text_[start - 1] == '\n' || (has_returns && text_[start - 1] == '\r'))) --start;
    return start;
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
