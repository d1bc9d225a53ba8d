#include "wpm/ascii_words.h"

#include "machine.h"
#include "simd.h"

namespace ggufbpe {

#if GGUFBPE_VECTORS

namespace {

constexpr size_t PLACES = 64;

// A byte has the bits that both its nibbles have. Some are for letters and digits, some for white space, and some for
// bytes left to other code: control characters and everything beyond ASCII.
enum : uint8_t {
    DIGITS = 1,         // 0 to 9
    FIRST_LETTERS = 2,  // a to o
    LAST_LETTERS = 4,   // p to z
    LINES = 8,          // tab to carriage return
    SPACE = 16,
    CONTROLS = 32,  // before tab and after carriage return
    OTHERS = 64,    // from U+0010 on, and from 0x80 on
    DELETE = 128,
    ALL_WORD = DIGITS | FIRST_LETTERS | LAST_LETTERS,
    ALL_SPACE = LINES | SPACE,
    ALL_OTHER = CONTROLS | OTHERS | DELETE,
};

constexpr uint8_t UPPER[16] = {
    LINES | CONTROLS, OTHERS, SPACE, DIGITS, FIRST_LETTERS, LAST_LETTERS, FIRST_LETTERS, LAST_LETTERS | DELETE,
    OTHERS,           OTHERS, OTHERS, OTHERS, OTHERS,        OTHERS,       OTHERS,        OTHERS,
};
constexpr uint8_t LOWER_NIBBLES[16] = {
    CONTROLS | OTHERS | SPACE | DIGITS | LAST_LETTERS,  // not FIRST_LETTERS: @ and `
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    CONTROLS | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    LINES | OTHERS | DIGITS | FIRST_LETTERS | LAST_LETTERS,
    LINES | OTHERS | FIRST_LETTERS | LAST_LETTERS,
    LINES | OTHERS | FIRST_LETTERS,
    LINES | OTHERS | FIRST_LETTERS,
    LINES | OTHERS | FIRST_LETTERS,
    CONTROLS | OTHERS | FIRST_LETTERS,
    CONTROLS | OTHERS | FIRST_LETTERS | DELETE,
};

// Which of 64 places are of which kind.
struct Kinds {
    uint64_t word, space, other;
};

VECTOR_INLINE void add_kinds(const unsigned char *text, const Shuffle &upper, const Shuffle &lower, int shift, Kinds &kinds) {
    const Bytes bytes = load(text);
    const Bytes bits = upper(upper_nibbles(bytes)) & lower(lower_nibbles(bytes));
    kinds.word |= uint64_t(highest_bits(is_not_zero(bits & repeat(ALL_WORD)))) << shift;
    kinds.space |= uint64_t(highest_bits(is_not_zero(bits & repeat(ALL_SPACE)))) << shift;
    kinds.other |= uint64_t(highest_bits(is_not_zero(bits & repeat(ALL_OTHER)))) << shift;
}

WITH_AVX2 size_t find_by_vectors(const unsigned char *text, size_t size, size_t at, Words &words) {
    const Shuffle upper(UPPER), lower(LOWER_NIBBLES);
    while (words.count < Words::GROUP && size - at >= PLACES) {
        Kinds kinds{0, 0, 0};
        add_kinds(text + at, upper, lower, 0, kinds);
        add_kinds(text + at + VECTOR_BYTES, upper, lower, VECTOR_BYTES, kinds);
        // A word before the end, or before bytes left to other code, may continue there.
        const size_t known = kinds.other ? lowest_bit(kinds.other) : PLACES;
        const uint64_t before = known == PLACES ? ~uint64_t(0) : (uint64_t(1) << known) - 1;
        const uint64_t between = ~kinds.word & before;
        if (!between) return at;
        const size_t whole = highest_bit(between) + 1;
        const uint64_t starts = kinds.word & ~(kinds.word << 1);
        const uint64_t alone = ~(kinds.word | kinds.space);
        uint64_t left = (starts | alone) & (~uint64_t(0) >> (PLACES - whole));
        while (left) {
            const size_t place = lowest_bit(left);
            left &= left - 1;
            const size_t length = lowest_bit(~(kinds.word >> place));
            words.add(text + at + place, length + !length);
        }
        at += whole;
        if (kinds.other) return at;
    }
    return at;
}

}  // namespace

#endif

size_t find_ascii_words(const unsigned char *text, size_t size, size_t at, Words &words) {
#if GGUFBPE_VECTORS
    if (has_vectors()) return find_by_vectors(text, size, at, words);
#endif
    (void)text, (void)size, (void)words;
    return at;
}

}  // namespace ggufbpe
