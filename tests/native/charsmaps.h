// Charsmaps in sentencepiece's precompiled form, unit by unit: for what no compiler would write.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness.h"

// A double array in which places are chosen by the caller. A place is where children are: that of a byte is at the place xor the byte,
// and leads to the child's own place.
class CharsmapUnits {
public:
    static constexpr uint32_t BLOCK = 256;

    explicit CharsmapUnits(uint32_t blocks) : units_(size_t(blocks) * BLOCK) {}

    // Children of the root are at this place.
    void set_root(uint32_t place) { units_[0] = (units_[0] & 0x1FF) | base_bits(place); }

    // The unit of the child of `place` for a byte, which leads to the place `next`. If the bytes so far `are_key`, their value is that of
    // `next`. Overwrites the unit that is there.
    void add(uint32_t place, unsigned char byte, uint32_t next, bool are_key) {
        const uint32_t index = place ^ byte;
        units_[index] = byte | (are_key ? 0x100u : 0) | base_bits(index ^ next);
    }

    // Where in the strings the replacement begins of keys that end at `place`.
    void set_value(uint32_t place, uint32_t value) { units_[place] = 1u << 31 | value; }

    void set(uint32_t index, uint32_t unit) { units_[index] = unit; }
    const std::vector<uint32_t> &units() const { return units_; }

    // The file's array of bytes; `strings` are replacements, each with a NUL behind it.
    std::string data(const std::string &strings) const {
        std::string data;
        const auto append = [&](size_t number) {
            for (int shift = 0; shift < 32; shift += 8) data += static_cast<char>(number >> shift);
        };
        append(4 * units_.size());
        for (const uint32_t unit : units_) append(unit);
        return data + strings;
    }

private:
    // The bits of a unit for a number below 2^21, or below 2^29 if its lowest byte is 0.
    static uint32_t base_bits(uint32_t base) {
        if (base < 1u << 21) return base << 10;
        CHECK(base % 256 == 0 && base < 1u << 29);
        return base >> 8 << 10 | 0x200;
    }

    std::vector<uint32_t> units_;
};
