#include "ugm/composition.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "unicode_composition.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

// Syllables of Hangul: a leading consonant, a vowel, and a trailing consonant or none.
constexpr uint32_t SYLLABLES = 0xAC00, LEADS = 0x1100, VOWELS = 0x1161, TRAILS = 0x11A7;
constexpr uint32_t LEAD_COUNT = 19, VOWEL_COUNT = 21, TRAIL_COUNT = 28, SYLLABLE_COUNT = LEAD_COUNT * VOWEL_COUNT * TRAIL_COUNT;
constexpr uint32_t FIRST = COMPOSING[0][0];  // of the characters that may change
constexpr uint32_t NONE = UINT32_MAX;

// Which blocks of 256 code points have characters that may change.
class Blocks {
public:
    Blocks() {
        for (const auto &run : COMPOSING) {
            for (uint32_t block = run[0] >> 8; block <= run[1] >> 8; ++block) has_some_[block] = true;
        }
    }
    bool has_some(uint32_t code_point) const { return has_some_[code_point >> 8]; }

private:
    std::array<bool, 0x1100> has_some_{};
};

// The combining class of a character that may change or combine with the one before it; NONE of any other.
uint32_t composing_class(uint32_t code_point) {
    static const Blocks blocks;
    if (code_point < FIRST || code_point > 0x10FFFF || !blocks.has_some(code_point)) return NONE;
    const auto *found = std::upper_bound(std::begin(COMPOSING), std::end(COMPOSING), code_point,
                                         [](uint32_t point, const auto &run) { return point < run[0]; });
    return found == std::begin(COMPOSING) || code_point > found[-1][1] ? NONE : found[-1][2];
}

uint32_t combining_class(uint32_t code_point) {
    const uint32_t found = composing_class(code_point);
    return found == NONE ? 0 : found;
}

struct Point {
    uint32_t code_point, combining;
};

// Appends the full canonical decomposition.
void decompose(uint32_t code_point, std::vector<Point> &to) {
    const uint32_t syllable = code_point - SYLLABLES;
    if (syllable < SYLLABLE_COUNT) {
        to.push_back({LEADS + syllable / (VOWEL_COUNT * TRAIL_COUNT), 0});
        to.push_back({VOWELS + syllable / TRAIL_COUNT % VOWEL_COUNT, 0});
        if (syllable % TRAIL_COUNT) to.push_back({TRAILS + syllable % TRAIL_COUNT, 0});
        return;
    }
    const auto *end = std::end(DECOMPOSITIONS);
    const auto *found =
        std::lower_bound(std::begin(DECOMPOSITIONS), end, code_point, [](const auto &row, uint32_t c) { return row[0] < c; });
    if (found == end || (*found)[0] != code_point) {
        to.push_back({code_point, combining_class(code_point)});
        return;
    }
    decompose((*found)[1], to);
    if ((*found)[2]) decompose((*found)[2], to);
}

// What two code points compose to; NONE if they do not.
uint32_t composition(uint32_t first, uint32_t second) {
    const uint32_t lead = first - LEADS, vowel = second - VOWELS;
    if (lead < LEAD_COUNT && vowel < VOWEL_COUNT) return SYLLABLES + (lead * VOWEL_COUNT + vowel) * TRAIL_COUNT;
    const uint32_t syllable = first - SYLLABLES, trail = second - TRAILS;
    if (syllable < SYLLABLE_COUNT && syllable % TRAIL_COUNT == 0 && trail > 0 && trail < TRAIL_COUNT) return first + trail;
    const auto *end = std::end(COMPOSITIONS);
    const auto *found = std::lower_bound(std::begin(COMPOSITIONS), end, first, [&](const auto &row, uint32_t) {
        return row[0] < first || (row[0] == first && row[1] < second);
    });
    return found != end && (*found)[0] == first && (*found)[1] == second ? (*found)[2] : NONE;
}

// Marks between two characters of class 0 in the order of their classes.
void reorder(std::vector<Point> &points) {
    const auto begins = [](const Point &point) { return point.combining == 0; };
    for (auto start = points.begin(); start != points.end();) {
        start = std::find_if_not(start, points.end(), begins);
        const auto end = std::find_if(start, points.end(), begins);
        std::stable_sort(start, end, [](const Point &a, const Point &b) { return a.combining < b.combining; });
        start = end;
    }
}

// Composes decomposed characters in place.
void compose_points(std::vector<Point> &points) {
    size_t kept = 0, starter = SIZE_MAX;
    uint32_t last_class = 0;  // of the last character kept after the starter
    for (const Point point : points) {
        if (starter != SIZE_MAX && (last_class < point.combining || starter == kept - 1)) {
            const uint32_t both = composition(points[starter].code_point, point.code_point);
            if (both != NONE) {
                points[starter].code_point = both;
                continue;
            }
        }
        if (point.combining == 0) starter = kept;
        last_class = point.combining;
        points[kept++] = point;
    }
    points.resize(kept);
}

// Writes a character, U+FFFD for a byte that is none.
size_t append(uint32_t code_point, std::vector<unsigned char> &to) {
    unsigned char bytes[4];
    const unsigned size = write_utf8(code_point, bytes);
    to.insert(to.end(), bytes, bytes + size);
    return size;
}

}  // namespace

bool is_composed(const unsigned char *p, size_t size, Pace &pace) {
    const unsigned char *const end = p + size;
    while (p < end) {
        if (*p < 0x80) {
            uint64_t word;
            size_t read = 1;
            if (end - p >= 8 && (std::memcpy(&word, p, 8), !(word & 0x8080808080808080u))) read = 8;
            p += read;
            pace.count(1);
            continue;
        }
        unsigned length;
        const uint32_t code_point = strict_code_point_at(p, end, length);
        if (length == 1 || composing_class(code_point) != NONE) return false;
        p += length;
        pace.count(length);
    }
    return true;
}

void compose(const unsigned char *p, size_t size, bool strict_utf8, std::vector<unsigned char> &to, ChangedText *changes,
             Pace &pace) {
    const unsigned char *const end = p + size;
    to.clear();
    to.reserve(size + size / 8);
    if (changes) changes->clear();
    std::vector<Point> part;
    while (p < end) {
        unsigned length;
        uint32_t code_point = code_point_at(p, end, length, strict_utf8);
        const unsigned char *next = p + length;
        unsigned next_length = 0;
        uint32_t following = next < end ? code_point_at(next, end, next_length, strict_utf8) : 0;
        const bool changes_itself = composing_class(code_point) != NONE;
        if (!changes_itself && (next == end || composing_class(following) == NONE)) {
            const size_t written = append(code_point, to);
            if (changes) changes->add(written, length);
            p = next;
            pace.count(length);
            continue;
        }
        part.clear();
        decompose(code_point, part);
        while (next < end && composing_class(following) != NONE) {
            decompose(following, part);
            next += next_length;
            if (next < end) following = code_point_at(next, end, next_length, strict_utf8);
            pace.count(4);
        }
        reorder(part);
        compose_points(part);
        size_t written = 0;
        for (const Point &point : part) written += append(point.code_point, to);
        if (changes) changes->add(written, static_cast<size_t>(next - p));
        pace.count(static_cast<size_t>(next - p));
        p = next;
    }
}

bool begins_composition(uint32_t code_point) {
    if (code_point - LEADS < LEAD_COUNT || code_point - SYLLABLES < SYLLABLE_COUNT) return true;
    const auto *end = std::end(COMPOSITIONS);
    const auto *found =
        std::lower_bound(std::begin(COMPOSITIONS), end, code_point, [](const auto &row, uint32_t c) { return row[0] < c; });
    return found != end && (*found)[0] == code_point;
}

}  // namespace ggufbpe
