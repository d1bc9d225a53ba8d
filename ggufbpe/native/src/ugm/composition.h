// Canonical composition (Unicode's NFC) of a text: ggufbpe/models/composition.py, compiled.
//
// A character that is not in the table COMPOSING never changes, and never combines with what is before it. So a text is
// composed in parts, each a character of that kind and those up to the next one.
//
// Source: src/unicode.cpp, unicode_cpts_normalize_nfc.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "poll.h"
#include "spans.h"

namespace ggufbpe {

// Whether a text is UTF-8 and has no character that may change.
bool is_composed(const unsigned char *p, size_t size, Pace &pace);

// Writes the composed text; bytes that are not UTF-8 become U+FFFD, and overlong forms, too, if UTF-8 is strict.
void compose(const unsigned char *p, size_t size, bool strict_utf8, std::vector<unsigned char> &to, ChangedText *changes,
             Pace &pace);

// Whether a character may combine with one after it.
bool begins_composition(uint32_t code_point);

}  // namespace ggufbpe
