// Text to classes: the class number of every code point of a block, and a look-up of many at once.
//
// ASCII is looked up in a table of 128, 32 bytes at a time if the processor has byte shuffles; other code points are
// decoded, and looked up in a table, which is made on first use: of planes 0 and 1, since all of them would be 1.1 MB that a
// process's first text touches. What is behind these is searched for.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lazy.h"
#include "memory.h"
#include "poll.h"

namespace ggufbpe {

constexpr uint32_t ESCAPED_SPACE = 0x2581;
constexpr size_t MARGIN = 64;  // bytes before and after the data, which windows and wide loads may touch

// A buffer for `count` code points with a margin before and after.
inline uint8_t *with_margins(Buffer<uint8_t> &buffer, size_t count) { return buffer.room(count + 2 * MARGIN) + MARGIN; }

// to[i] = table[from[i]], where `width` is the number of values; both are in with_margins() buffers.
void look_up_each(const uint8_t *from, size_t count, const uint8_t *table, size_t width, uint8_t *to);

class ClassTable {
public:
    // `runs` are those of Alphabet::runs(). With `escape_spaces` the byte of a space has the class of U+2581.
    ClassTable(std::vector<std::pair<uint32_t, uint8_t>> runs, bool escape_spaces);

    const uint8_t *ascii() const { return ascii_; }  // of the first 128 code points
    uint8_t class_before(const unsigned char *text, size_t position) const;
    uint8_t class_at(const unsigned char *text, size_t size, size_t position) const;

    // Writes the class of every code point and returns how many there are. Unless all are ASCII, `offsets` gets the place of
    // each.
    size_t classify(const unsigned char *text, size_t size, uint8_t *classes, Buffer<uint32_t> &offsets, bool &is_ascii,
                    const Poll &poll) const;

private:
    using OfEach = std::array<uint8_t, 0x20000>;

    const uint8_t *wide() const;
    uint8_t class_of(uint32_t code_point) const;

    // Writes classes and offsets of characters of one to three bytes from `place` to `end` or up to 7 bytes beyond it; `place`
    // and `count` are moved behind them. Stops at other bytes, where eight ASCII characters follow each other, and within the
    // last 7 bytes of a text.
    void classify_mixed(const unsigned char *text, size_t size, size_t end, const uint8_t *wide, uint8_t *classes,
                        uint32_t *offsets, size_t &place, size_t &count) const;

    uint8_t ascii_[128] = {};
    std::vector<std::pair<uint32_t, uint8_t>> runs_;
    Lazy<OfEach> wide_;  // the class of each of these code points; made when the first non-ASCII one comes
};

}  // namespace ggufbpe
