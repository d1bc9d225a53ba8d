#include "plamo/segments.h"

#include <algorithm>
#include <cstring>

#include "machine.h"
#include "unicode_classes.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr char MARKER[] = "<|plamo:";
constexpr size_t MARKER_SIZE = sizeof MARKER - 1;
constexpr size_t LONGEST_BODY = 64;  // characters
constexpr char BOUNDARY[] = "\xEE\xB8\x80";  // U+EE00

size_t character_size(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

// The first byte is the lowest.
uint64_t eight_bytes(const unsigned char *p) {
    uint64_t bytes;
    std::memcpy(&bytes, p, 8);
    return IS_BIG_ENDIAN ? swap_bytes(bytes) : bytes;
}

// How many of the next eight bytes are characters that begin no run or marker to be cut out. Reads eleven bytes.
size_t plain_bytes(const unsigned char *p) {
    constexpr uint64_t ONES = 0x0101010101010101u, HIGH = 0x8080808080808080u;
    const uint64_t here = eight_bytes(p), next = eight_bytes(p + 1), third = eight_bytes(p + 2), fourth = eight_bytes(p + 3);
    const uint64_t differ = here ^ next;
    const uint64_t in_four = differ | (next ^ third) | (third ^ fourth), in_spaces = differ | (here ^ ONES * ' ');
    const uint64_t begun = here ^ ONES * '<';
    // (x - ONES) & ~x has the highest bit of the first byte that is zero.
    const uint64_t zeros = ((in_four - ONES) & ~in_four) | ((in_spaces - ONES) & ~in_spaces) | ((begun - ONES) & ~begun);
    const uint64_t found = (here | zeros) & HIGH;
    return found ? lowest_bit(found) / 8 : 8;
}

// Whether two characters of this size are the same; the last bytes differ most.
bool are_same(const unsigned char *one, const unsigned char *other, size_t size) {
    while (size && one[size - 1] == other[size - 1]) --size;
    return !size;
}

bool is_boundary(const unsigned char *p, const unsigned char *end) {
    return *p == 0xEE && end - p >= 3 && !std::memcmp(p, BOUNDARY, 3);
}

// White space to llama.cpp, and to Python, which counts four more characters.
bool is_white_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
    const size_t behind = size_t(std::upper_bound(CLASS_STARTS, CLASS_STARTS + CLASS_RUNS, c) - CLASS_STARTS);
    return CLASS_LETTERS[behind - 1] == 'W';
}

// The size of a text that looks like a special token; 0 if it does not.
size_t marker_size(const unsigned char *p, const unsigned char *end) {
    if (*p != '<' || size_t(end - p) < MARKER_SIZE || std::memcmp(p, MARKER, MARKER_SIZE)) return 0;
    const unsigned char *at = p + MARKER_SIZE;
    for (size_t count = 0; at < end && count < LONGEST_BODY && *at != '|'; ++count) {
        unsigned length;
        if (is_white_space(code_point_at(at, end, length))) return 0;
        at += character_size(*at);
    }
    return end - at >= 2 && at[0] == '|' && at[1] == '>' ? size_t(at + 2 - p) : 0;
}

}  // namespace

Segments::Segment Segments::next(Pace &pace) {
    const unsigned char *start = at_;
    while (at_ < end_) {
        if (at_ > start && at_ == marker_end_) break;
        if (at_ >= marker_end_ && end_ - at_ > 11) {
            const size_t plain = plain_bytes(at_);
            at_ += plain;
            pace.count(plain);
            if (plain) continue;
        }
        if (is_boundary(at_, end_)) {
            if (at_ > start) break;
            start = at_ += sizeof BOUNDARY - 1;
            continue;
        }
        if (const size_t size = marker_size(at_, end_)) {
            if (at_ > start) break;
            marker_end_ = at_ + size;
        }
        const unsigned char *behind = run_end(pace);
        const size_t count = size_t(behind - at_) / character_size(*at_);
        const bool is_apart = (count >= 4 && *at_ != '\n') || (count >= 2 && *at_ == ' ');
        if (is_apart && at_ > start) break;
        at_ = behind;
        if (is_apart) break;
    }
    return {start, at_};
}

// Where the run of the character here ends.
const unsigned char *Segments::run_end(Pace &pace) const {
    const size_t size = character_size(*at_);
    const unsigned char *behind = at_ + size;
    while (size_t(end_ - behind) >= size && are_same(at_, behind, size) && behind != marker_end_ &&
           !(*behind == '<' && marker_size(behind, end_))) {
        behind += size;
    }
    pace.count(size_t(behind - at_));
    return behind;
}

}  // namespace ggufbpe
