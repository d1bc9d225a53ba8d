#include "ugm/charsmap.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "utf8.h"

namespace ggufbpe {

namespace {

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

Charsmap::Charsmap(const std::string &data) {
    if (data.size() < 4) return;
    const auto byte = [&](size_t at) { return uint32_t(static_cast<unsigned char>(data[at])); };
    const auto number = [&](size_t at) { return byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24; };
    const size_t size = number(0);
    if (size > data.size() - 4) throw std::invalid_argument("the charsmap is shorter than it says");
    units_.resize(size / 4);
    for (size_t i = 0; i < units_.size(); ++i) units_[i] = number(4 + 4 * i);
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

Charsmap::Match Charsmap::search(const unsigned char *p, const unsigned char *end) const {
    size_t length = 0;
    uint32_t value = 0, index = base(units_[0]);
    for (const unsigned char *at = p; at < end && *at; ++at) {
        const auto unit_at = [&](uint32_t place) {
            if (place >= units_.size()) throw_damaged(p, static_cast<size_t>(at + 1 - p));
            return units_[place];
        };
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
    explicit Children(const std::vector<uint32_t> &units)
        : first_((units.size() | BLOCK) + 1, NONE), further_(units.size(), NONE) {
        for (uint32_t index = 0; index < units.size(); ++index) {
            const auto byte = static_cast<unsigned char>(units[index]);
            if (!byte || !is_child(units[index], byte)) continue;
            uint32_t &first = first_[index ^ byte];
            further_[index] = first;
            first = index;
        }
    }

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

// Whether some byte of 1 to `most`, which is 127 or 255, leads out of the map.
bool Charsmap::leads_out(uint32_t place, uint32_t most) const {
    const uint32_t last = place | most;
    return (last == place ? place ^ 1 : last) >= units_.size();
}

Charsmap::Survey Charsmap::survey() const {
    Survey found;
    if (units_.empty()) return found;
    const Children children(units_);
    std::vector<bool> seen(units_.size());
    std::vector<std::pair<uint32_t, uint32_t>> waiting{{base(units_[0]), 0}};  // where children are, and how deep: breadth first
    for (size_t i = 0; i < waiting.size(); ++i) {
        const auto [place, depth] = waiting[i];
        const bool is_root = depth == 0;
        if (leads_out(place, 255)) found.is_sound = false;
        children.each(place, [&, depth = depth](uint32_t index) {
            const uint32_t unit = units_[index], next = index ^ base(unit);
            const auto c = static_cast<unsigned char>(unit);
            if (!is_root) found.has_within[c] = true;
            if (unit & IS_KEY) {
                if (is_root) found.has_alone[c] = true;
                const Match match = next < units_.size() ? match_of(units_[next] & VALUE, 1) : Match{nullptr, 0, 1};
                if (match.text) {
                    const auto *text = reinterpret_cast<const unsigned char *>(match.text);
                    found.is_utf8 = found.is_utf8 && is_utf8(text, match.size);
                    found.growth = std::max(found.growth, double(match.size) / (depth + 1));
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
            if (!seen[index]) {
                seen[index] = true;
                waiting.emplace_back(next, depth + 1);
            }
        });
    }
    return found;
}

}  // namespace ggufbpe
