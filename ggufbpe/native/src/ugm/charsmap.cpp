#include "ugm/charsmap.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t STEPS_A_UNIT = 8;  // the cost of one in a survey, in bytes looked at

[[noreturn]] void throw_damaged(const unsigned char *seen, size_t size) {
    static constexpr char DIGITS[] = "0123456789abcdef";
    std::string bytes;
    for (size_t i = 0; i < std::min<size_t>(size, 16); ++i) {
        bytes += DIGITS[seen[i] >> 4];
        bytes += DIGITS[seen[i] & 15];
    }
    throw std::invalid_argument("the charsmap of the model is damaged: the bytes " + bytes + " of the text lead out of it");
}

}  // namespace

Charsmap::Charsmap(const std::string &data, const Poll &poll) {
    if (data.size() < 4) return;
    const auto byte = [&](size_t at) { return uint32_t(static_cast<unsigned char>(data[at])); };
    const auto number = [&](size_t at) { return byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24; };
    const size_t size = number(0);
    if (size > data.size() - 4) throw std::invalid_argument("the charsmap is shorter than it says");
    units_.resize(size / 4);
    in_pieces(units_.size(), poll, [&](size_t from, size_t end) {
        for (size_t i = from; i < end; ++i) units_[i] = number(4 + 4 * i);
    });
    strings_ = data.substr(4 + size);
    if (units_.empty()) return;
    for (uint32_t c = 1; c < 256; ++c) {
        const size_t index = base(units_[0]) ^ c;
        first_[c] = index >= units_.size() || is_child(units_[index], static_cast<unsigned char>(c));
    }
}

Charsmap::Match Charsmap::match_of(uint32_t value, size_t length) const {
    const size_t end = value < strings_.size() ? strings_.find('\0', value) : std::string::npos;
    if (end == std::string::npos) return {nullptr, 0, length};
    return {strings_.data() + value, end - value, length};
}

Charsmap::Match Charsmap::search(const unsigned char *p, const unsigned char *end, Pace &pace) const {
    size_t length = 0;
    uint32_t value = 0, index = base(units_[0]);
    for (const unsigned char *at = p; at < end && *at; ++at) {
        const auto unit_at = [&](uint32_t place) {
            if (place >= units_.size()) throw_damaged(p, static_cast<size_t>(at + 1 - p));
            return units_[place];
        };
        pace.count(1);
        index ^= *at;
        const uint32_t unit = unit_at(index);
        if (!is_child(unit, *at)) break;
        index ^= base(unit);
        if (unit & IS_KEY) {
            length = static_cast<size_t>(at + 1 - p);
            value = unit_at(index) & VALUE;
        }
    }
    if (!length) return {nullptr, 0, 0};
    const Match found = match_of(value, length);
    if (!found.text) throw_damaged(p, length);
    return found;
}

// The children of each place, in lists: most places have one of the 255 that are possible.
class Charsmap::Children {
public:
    Children(const std::vector<uint32_t> &units, Pace &pace)
        : first_((units.size() | BLOCK) + 1, NONE), further_(units.size(), NONE) {
        for (uint32_t index = 0; index < units.size(); ++index) {
            pace.count(STEPS_A_UNIT);
            const auto byte = static_cast<unsigned char>(units[index]);
            if (!byte || !is_child(units[index], byte)) continue;
            uint32_t &first = first_[index ^ byte];
            further_[index] = first;
            first = index;
        }
    }

    // Places from here on have no children.
    size_t places() const { return first_.size(); }

    template <typename Take>
    void each(uint32_t place, Take take) const {
        if (place >= first_.size()) return;
        for (uint32_t index = first_[place]; index != NONE; index = further_[index]) take(index);
    }

private:
    static constexpr uint32_t NONE = UINT32_MAX;
    static constexpr size_t BLOCK = 255;  // a place and its children differ in these bits only

    std::vector<uint32_t> first_;    // by place
    std::vector<uint32_t> further_;  // by child: another one of the same place
};

// Where the string ends that begins at each byte of the strings, and whether that string is UTF-8. All bytes are looked at once, from the
// last to the first: any number of keys may have the same replacement, or parts of it.
class Charsmap::Endings {
public:
    static constexpr size_t NONE = SIZE_MAX;

    Endings(const std::string &strings, Pace &pace)
        : strings_(strings), by_block_(strings.size() / BLOCK + 2, NONE), is_utf8_(strings.size()) {
        const auto *const data = reinterpret_cast<const unsigned char *>(strings.data());
        size_t end = NONE;
        for (size_t at = strings.size(); at-- > 0;) {
            pace.count(1);
            if (!data[at]) end = at;
            if (at % BLOCK == 0) by_block_[at / BLOCK] = end;
            if (end == NONE) continue;
            const size_t character = data[at] < 0x80 ? 1 : data[at] < 0xE0 ? 2 : data[at] < 0xF0 ? 3 : 4;
            is_utf8_[at] = at == end || (character <= end - at && ggufbpe::is_utf8(data + at, character) && is_utf8_[at + character]);
        }
    }

    // The place of the NUL that ends the string that begins at `start`; NONE if there is none.
    size_t end_of(size_t start) const {
        if (start >= strings_.size()) return NONE;
        const size_t block_end = std::min((start / BLOCK + 1) * BLOCK, strings_.size());
        const size_t in_block = std::string_view(strings_).substr(start, block_end - start).find('\0');
        return in_block == std::string_view::npos ? by_block_[start / BLOCK + 1] : start + in_block;
    }
    bool is_utf8(size_t start) const { return is_utf8_[start]; }

private:
    static constexpr size_t BLOCK = 64;

    const std::string &strings_;
    std::vector<size_t> by_block_;  // the end of the string at the first byte of each block
    std::vector<bool> is_utf8_;
};

// Whether some byte of 1 to `most`, which is 127 or 255, leads out of the map.
bool Charsmap::leads_out(uint32_t place, uint32_t most) const {
    const uint32_t last = place | most;
    return (last == place ? place ^ 1 : last) >= units_.size();
}

Charsmap::Survey Charsmap::survey(const Poll &poll) const {
    Survey found;
    if (units_.empty()) return found;
    Pace pace(poll);
    const Children children(units_, pace);
    const Endings endings(strings_, pace);
    // Places where children are, and how many bytes lead there: breadth first, so that these are the fewest. Each is visited once, except
    // that of the root, which may also be met within keys.
    std::vector<std::pair<uint32_t, uint32_t>> waiting{{base(units_[0]), 0}};
    std::vector<bool> is_met(children.places());
    for (size_t i = 0; i < waiting.size(); ++i) {
        const auto [place, depth] = waiting[i];
        const bool is_root = depth == 0;
        if (leads_out(place, 255)) found.is_sound = false;
        children.each(place, [&, depth = depth](uint32_t index) {
            pace.count(STEPS_A_UNIT);
            const uint32_t unit = units_[index], next = index ^ base(unit);
            const auto c = static_cast<unsigned char>(unit);
            if (!is_root) found.has_within[c] = true;
            if (unit & IS_KEY) {
                if (is_root) found.has_alone[c] = true;
                const size_t value = next < units_.size() ? units_[next] & VALUE : SIZE_MAX;
                const size_t end = endings.end_of(value);
                if (end != Endings::NONE) {
                    found.is_utf8 = found.is_utf8 && endings.is_utf8(value);
                    found.growth = std::max(found.growth, double(end - value) / (depth + 1));
                } else {
                    found.is_sound = false;
                }
            }
            if (is_root) {
                found.begins[c] = leads_out(next, 255);
                found.begins_ascii[c] = leads_out(next, 127);
                children.each(next, [&](uint32_t further) {
                    found.begins[c] = true;
                    found.begins_ascii[c] = found.begins_ascii[c] || (units_[further] & 0xFF) < 0x80;
                });
            }
            if (next >= children.places()) {
                found.is_sound = false;  // all bytes lead out
            } else if (!is_met[next]) {
                is_met[next] = true;
                waiting.emplace_back(next, depth + 1);
            }
        });
    }
    return found;
}

}  // namespace ggufbpe
