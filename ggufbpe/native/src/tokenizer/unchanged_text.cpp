#include "tokenizer/unchanged_text.h"

#include <algorithm>
#include <iterator>

#include "machine.h"
#include "tokenizer/byte_set.h"
#include "utf8.h"

namespace ggufbpe {

size_t UnchangedText::length(const unsigned char *text, size_t size, Pace &pace) {
    // Of ASCII, control characters are dropped unless they are white space.
    static const ByteSet others{{0, '\t' - 1}, {'\r' + 1, ' ' - 1}, {0x7F, 0xFF}};
    size_t known = 0;  // all before it is unchanged
    for (size_t at = 0; at < size; at += ByteSet::PLACES) {
        uint64_t found;
        others.find(text + at, std::min(ByteSet::PLACES, size - at), &found);
        for (; found; found &= found - 1) {
            const size_t place = at + lowest_bit(found);
            if (place < known) continue;
            pace.count(Pace::LOOKUP);
            unsigned length;
            if (is_changed(text + place, text + size, length)) return place;
            known = place + length;
        }
        pace.count(ByteSet::PLACES);
    }
    return size;
}

bool UnchangedText::is_changed(const unsigned char *text, const unsigned char *end, unsigned &length) {
    const uint32_t code_point = code_point_at(text, end, length);
    if (length == 1) return true;  // a control character, or a byte that is not UTF-8
    auto &known = known_[code_point % std::size(known_)];
    if (known.code_point != code_point) known = {code_point, model_.keeps_in_words(code_point)};
    return !known.is_unchanged;
}

}  // namespace ggufbpe
