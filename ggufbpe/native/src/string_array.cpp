#include "string_array.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <random>
#include <stdexcept>
#include <type_traits>

#include "machine.h"

namespace ggufbpe {

namespace {

constexpr size_t STRINGS_AT_ONCE = 1 << 17;  // walked between two polls
constexpr size_t STEPS_A_STRING = 16;        // the cost of a short one, in bytes looked at
constexpr size_t PADDING = 16;  // bytes around the strings, so that copying and checking may overrun

// A mask of the bits that the numbers up to `count` take.
uint32_t mask_of_numbers(size_t count) {
    uint32_t mask = 0;
    while (mask < count) mask = mask << 1 | 1;
    return mask;
}

// A number that the process that runs now hardly shares with another one, where the system gives no random ones.
uint64_t number_of_process() {
    static uint64_t drawn = 0;
    const int local = 0;
    uint64_t number = ++drawn;
    const auto mix = [&](uint64_t more) { number = multiply_and_fold(number ^ more, 0x9E3779B97F4A7C15u) ^ more << 32; };
    mix(static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
    mix(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
    mix(reinterpret_cast<uintptr_t>(&local));
    mix(reinterpret_cast<uintptr_t>(&drawn));
    return number;
}

// An exception would end the process: this is called while the library is loaded.
uint64_t random_number() noexcept {
    try {
        std::random_device device;
        return uint64_t(device()) << 32 | device();
    } catch (const std::exception &) {  // as where a sandbox hides the system's random numbers
        return number_of_process();
    }
}

template <int width, bool big_endian>
uint64_t read_length(const char *p) {
    if (big_endian == IS_BIG_ENDIAN) {
        std::conditional_t<width == 4, uint32_t, uint64_t> value;
        std::memcpy(&value, p, width);
        return value;
    }
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) {
        int shift = 8 * (big_endian ? width - 1 - i : i);
        value |= uint64_t(static_cast<unsigned char>(p[i])) << shift;
    }
    return value;
}

// Goes from length to length; calls `note` with where the bytes are and how many, and stops if it says no.
template <int width, bool big_endian, typename Note>
Scan walk(const char *data, uint64_t size, uint64_t position, uint64_t count, Note note) {
    for (uint64_t i = 0; i < count; ++i) {
        if (position > size || size - position < uint64_t(width)) {
            return {Scan::Outcome::truncated, i, position, 0, false};
        }
        uint64_t length = read_length<width, big_endian>(data + position);
        if (length > size - position - width) return {Scan::Outcome::too_long, i, position, length, false};
        if (!note(position + width, length)) return {Scan::Outcome::ok, i, position, length, false};
        position += width + length;
    }
    return {Scan::Outcome::ok, count, position, 0, true};
}

template <typename Note>
Scan walk(const char *data, uint64_t size, uint64_t position, uint64_t count, int width, bool big_endian, Note note) {
    if (width == 4) {
        return big_endian ? walk<4, true>(data, size, position, count, note)
                          : walk<4, false>(data, size, position, count, note);
    }
    return big_endian ? walk<8, true>(data, size, position, count, note)
                      : walk<8, false>(data, size, position, count, note);
}

template <typename Note>
Scan walk(const char *data, uint64_t size, uint64_t position, uint64_t count, int width, bool big_endian, const Poll &poll,
          Note note) {
    Scan result{Scan::Outcome::ok, 0, position, 0, true};
    do {
        if (result.index) poll();
        const uint64_t few = std::min<uint64_t>(count - result.index, STRINGS_AT_ONCE), before = result.index;
        result = walk(data, size, result.position, few, width, big_endian, note);
        result.index += before;
        if (result.index < before + few) break;
    } while (result.index < count);
    return result;
}

// Whether p[first] to p[size - 1] continue as UTF-8 as the standard has it, without a NUL; the three bytes before them are
// looked at as well.
//
// Each byte is checked against the three before it, without a branch, so that the compiler can vectorize it: in text of many
// scripts, the next byte is unpredictable.
ALWAYS_INLINE bool goes_on_plain_by_any(const unsigned char *p, size_t first, size_t size) {
    for (size_t stop; first < size; first = stop) {
        stop = std::min(size, first + 4096);
        unsigned char bad = 0;
        for (size_t i = first; i < stop; ++i) {
            unsigned char byte = p[i], before = p[i - 1];
            unsigned char is_inside = (byte & 0xC0) == 0x80;
            unsigned char must_be = (before >= 0xC0) | (p[i - 2] >= 0xE0) | (p[i - 3] >= 0xF0);
            bad |= (is_inside ^ must_be) | (byte == 0) | (byte == 0xC0) | (byte == 0xC1) | (byte >= 0xF5);
            bad |= (before == 0xE0) & (byte < 0xA0);   // overlong
            bad |= (before == 0xED) & (byte >= 0xA0);  // a surrogate
            bad |= (before == 0xF0) & (byte < 0x90);   // overlong
            bad |= (before == 0xF4) & (byte >= 0x90);  // above U+10FFFF
        }
        if (bad) return false;
    }
    return true;
}

#if GGUFBPE_X86
WITH_AVX2 bool goes_on_plain_by_avx2(const unsigned char *p, size_t first, size_t size) {
    return goes_on_plain_by_any(p, first, size);
}

bool goes_on_plain(const unsigned char *p, size_t first, size_t size) {
    return has_avx2() ? goes_on_plain_by_avx2(p, first, size) : goes_on_plain_by_any(p, first, size);
}
#else
bool goes_on_plain(const unsigned char *p, size_t first, size_t size) { return goes_on_plain_by_any(p, first, size); }
#endif

// Whether `size` bytes are UTF-8 and have no NUL.
bool is_plain(const char *text, size_t size, const Poll &poll) {
    unsigned char head[3 + PADDING] = {0};  // the beginning, with the zeros before it that are not in the text
    size_t beginning = std::min(size, PADDING);
    std::memcpy(head + 3, text, beginning);
    if (!goes_on_plain(head, 3, 3 + beginning)) return false;
    const unsigned char *p = reinterpret_cast<const unsigned char *>(text);
    bool is_bad = false;
    in_pieces(size - beginning, poll, [&](size_t from, size_t end) {
        is_bad = is_bad || !goes_on_plain(p, beginning + from, beginning + end);
    });
    if (is_bad) return false;
    return size == 0 || !((p[size - 1] >= 0xC0) | (size > 1 && p[size - 2] >= 0xE0) | (size > 2 && p[size - 3] >= 0xF0));
}

}  // namespace

const uint64_t BYTES_SEEDS[2] = {random_number(), random_number()};
const uint64_t HASH_SEEDS[2] = {random_number(), random_number()};

void Strings::reserve(size_t count, size_t bytes) {
    own_ends_.reserve(count + 1);
    own_data_.reserve(bytes + PADDING);
    settle();
}

void Strings::add(std::string_view text) {
    if (text.size() > UINT32_MAX - byte_size()) throw std::length_error("strings of 4 GiB or more");
    slots_ = nullptr;
    own_data_.resize(byte_size());
    own_data_.insert(own_data_.end(), text.begin(), text.end());
    own_ends_.push_back(static_cast<uint32_t>(own_data_.size()));
    settle();
}

bool Strings::operator==(const Strings &other) const {
    return size_ == other.size_ && !std::memcmp(ends_, other.ends_, (size_ + 1) * sizeof *ends_) &&
           (!byte_size() || !std::memcmp(data_, other.data_, byte_size()));
}

Strings::Strings(TableReader &from) {
    size_t count;
    ends_ = from.array<uint32_t>(count);
    size_ = count - 1;
    data_ = from.array_of<char>(byte_size());
    std::copy_n(from.array_of<uint64_t>(seeds_.size()), seeds_.size(), seeds_.data());
    slots_ = from.array<uint32_t>(count);
    mask_ = count - 1;
    indexes_ = mask_of_numbers(size_);
    file_ = from.file();
}

void Strings::write(TableWriter &to) const {
    to.add(ends_, size_ + 1);
    to.add(data_, byte_size());
    to.add(seeds_.data(), seeds_.size());
    to.add(slots_, static_cast<size_t>(mask_ + 1));
}

int64_t Strings::index(const Poll &poll) {
    constexpr size_t AT_ONCE = 16;  // hashed before the first is looked up, so that the slots have arrived by then
    if (indexed()) return duplicate_;
    size_t count = size();
    size_t capacity = 16;
    while (capacity < 2 * count) capacity *= 2;
    ZeroedArray<uint32_t> slots(capacity);  // no one sees half a table, whatever a poll does
    const uint64_t mask = capacity - 1;
    const uint32_t indexes = mask_of_numbers(count);
    int64_t duplicate = NOT_FOUND;
    Pace pace(poll);
    uint64_t hashes[AT_ONCE];
    for (size_t first = 0; first < count; first += AT_ONCE) {
        size_t few = std::min(AT_ONCE, count - first);
        pace.count(ends_[first + few] - ends_[first] + few * STEPS_A_STRING);
        for (size_t i = 0; i < few; ++i) {
            std::string_view text = (*this)[first + i];
            hashes[i] = hash(text);
            ggufbpe::prefetch(&slots[hashes[i] & mask]);
        }
        for (size_t i = 0; i < few; ++i) {
            const uint32_t tag = static_cast<uint32_t>(hashes[i] >> 32) & ~indexes;
            for (uint64_t at = hashes[i] & mask;; at = (at + 1) & mask) {
                uint32_t &slot = slots[at];
                if (!slot) {
                    slot = tag | static_cast<uint32_t>(first + i + 1);
                    break;
                }
                if ((slot & ~indexes) == tag && (*this)[(slot & indexes) - 1] == (*this)[first + i]) {
                    if (duplicate == NOT_FOUND) duplicate = static_cast<int64_t>(first + i);
                    break;
                }
            }
        }
    }
    if (indexed()) return duplicate_;  // a poll let another thread finish first, and others may be searching its table
    own_slots_ = std::move(slots);
    mask_ = mask;
    indexes_ = indexes;
    duplicate_ = duplicate;
    slots_ = own_slots_.data();  // last: it says that the index is there
    return duplicate_;
}

Scan scan(const char *data, uint64_t size, uint64_t position, uint64_t count, int width, bool big_endian, Strings *into,
          const Poll &poll) {
    if (!into) return walk(data, size, position, count, width, big_endian, poll, [](uint64_t, uint64_t) { return true; });
    const auto walk_only = [&] { return scan(data, size, position, count, width, big_endian, nullptr, poll); };
    if (position > size || count > (size - position) / static_cast<uint64_t>(width)) return walk_only();  // which fails
    Scanner scanner(count, size - position - count * static_cast<uint64_t>(width));
    Scan result = scanner.add(data, size, position, count, width, big_endian, poll);
    if (result.outcome == Scan::Outcome::ok && result.index < count) {  // more than there is room for
        result = walk_only();
        result.plain = false;
        return result;
    }
    result.plain = result.plain && scanner.is_plain(poll);
    *into = scanner.take();
    return result;
}

Scanner::Scanner(uint64_t count, uint64_t bytes) : wanted_(count) {
    if (count >= UINT32_MAX) throw std::length_error("more strings than there are numbers for");
    strings_.own_ends_.reserve(static_cast<size_t>(std::min(count + 1, AT_FIRST / sizeof(uint32_t))));
    strings_.own_data_.resize(static_cast<size_t>(std::min(bytes, AT_FIRST)) + PADDING);
}

// Room for `bytes` of strings and for what copying may overrun. False if there can be none.
bool Scanner::make_room(uint64_t bytes) {
    constexpr uint64_t MOST = UINT32_MAX - PADDING;
    if (bytes > MOST) return false;
    strings_.own_data_.resize(static_cast<size_t>(std::min(std::max(bytes, 2 * uint64_t(strings_.own_data_.size())), MOST)) + PADDING);
    return true;
}

Scan Scanner::add(const char *data, uint64_t size, uint64_t position, uint64_t count, int width, bool big_endian,
                  const Poll &poll) {
    count = std::min(count, wanted_ - count_);
    const uint64_t possible = position < size ? (size - position) / static_cast<uint64_t>(width) : 0;
    count = std::min(count, possible + 1);  // one more than can be there says what is missing
    strings_.own_ends_.resize(static_cast<size_t>(count_ + 1 + count));
    uint32_t *ends = strings_.own_ends_.data() + count_;
    char *texts = strings_.own_data_.data();
    uint64_t room = strings_.own_data_.size() - PADDING, end = end_;
    bool cut = cut_;
    Pace pace(poll);
    Scan result = walk(data, size, position, count, width, big_endian, poll, [&](uint64_t at, uint64_t length) {
        if (length > room - end) {
            if (!make_room(end + length)) return false;
            texts = strings_.own_data_.data();
            room = strings_.own_data_.size() - PADDING;
        }
        if (length <= PADDING && size - at >= PADDING) {
            std::memcpy(texts + end, data + at, PADDING);  // the next one overwrites the excess
        } else {
            pace.count(length);
            std::memcpy(texts + end, data + at, length);
        }
        cut |= length && (data[at] & 0xC0) == 0x80;
        end += length;
        *++ends = static_cast<uint32_t>(end);
        return true;
    });
    count_ += result.index;
    strings_.own_ends_.resize(static_cast<size_t>(count_ + 1));
    end_ = static_cast<uint32_t>(end);
    cut_ = cut;
    return result;
}

bool Scanner::is_plain(const Poll &poll) const {
    return !cut_ && count_ == wanted_ && ggufbpe::is_plain(strings_.own_data_.data(), end_, poll);
}

}  // namespace ggufbpe
