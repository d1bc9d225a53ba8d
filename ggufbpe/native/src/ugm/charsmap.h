// sentencepiece's precompiled map from byte sequences to others: ggufbpe/models/charsmap.py, compiled.
//
// It comes from a file, and every index in it is checked before it is used.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "poll.h"

namespace ggufbpe {

class Charsmap {
public:
    // `data` is empty, or the size of the double array in bytes, the array, and strings that end in NUL.
    Charsmap(const std::string &data, const Poll &poll);

    struct Match {
        const char *text;  // the replacement
        size_t size;
        size_t length;  // of what is replaced; 0: nothing is
    };

    // The longest key that the bytes from `p` to `end` begin with. Throws std::invalid_argument where the search leads out of
    // the map: llama.cpp ends with an exception there.
    Match longest(const unsigned char *p, const unsigned char *end, Pace &pace) const {
        return first_[*p] ? search(p, end, pace) : Match{nullptr, 0, 0};
    }

    // Whether bytes stand in what text is replaced by.
    bool writes(const char *bytes) const { return strings_.find(bytes) != std::string::npos; }

    // What all keys have in common; survey() finds it in a time that grows with the size of the file's array.
    struct Survey {
        bool is_sound = true;           // no text leads out of it
        bool is_utf8 = true;            // all replacements are
        double growth = 1;              // bytes that one byte becomes at most
        bool begins[256] = {};          // bytes that a key of two or more begins with
        bool begins_ascii[256] = {};    // the same, if the second one is ASCII
        bool has_alone[256] = {};       // bytes that are a key
        bool has_within[256] = {};      // bytes that stand in a key, but not at its beginning
    };
    Survey survey(const Poll &poll) const;

private:
    static uint32_t base(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
    static bool is_child(uint32_t unit, unsigned char byte) { return (unit & 0x800000FF) == byte; }
    static constexpr uint32_t IS_KEY = 0x100, VALUE = 0x7FFFFFFF;

    class Children;
    class Endings;

    bool leads_out(uint32_t place, uint32_t most) const;
    Match search(const unsigned char *p, const unsigned char *end, Pace &pace) const;
    Match match_of(uint32_t value, size_t length) const;  // its text is null if the replacement does not end

    std::vector<uint32_t> units_;
    std::string strings_;
    bool first_[256] = {};  // whether a search may lead somewhere
};

}  // namespace ggufbpe
