// An array of strings from a GGUF file, with a lookup from a string to its index.
//
//     bytes of a file -> scan() -> Strings -> bpe/merge_table.h (token ids, merges), Python (texts, on demand)
//
// The bytes are copied once, in one piece, so that the file can be closed; no object is made for a string.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keyed_hash.h"
#include "machine.h"
#include "memory.h"
#include "poll.h"
#include "table_file.h"

namespace ggufbpe {

// Seeds of hashes: other numbers in every process.
extern const uint64_t BYTES_SEEDS[2];
inline uint64_t hash_seed() { return BYTES_SEEDS[0]; }

// A fast hash of bytes, good enough for a table. It differs from process to process, so that no file can be crafted whose
// strings all fall into one place of a table.
inline uint64_t hash_bytes(const char *data, size_t size, const uint64_t *seeds = BYTES_SEEDS) {
    const auto read = [](const char *from) {
        uint64_t value;
        std::memcpy(&value, from, 8);
        return value;
    };
    uint64_t hash = seeds[1] ^ size;
    while (size > 16) {
        hash = multiply_and_fold(read(data) ^ seeds[0], read(data + 8) ^ hash);
        data += 16;
        size -= 16;
    }
    uint64_t low = 0, high = 0;
    if (size >= 8) {
        low = read(data);
        high = read(data + size - 8);
    } else if (size >= 4) {
        uint32_t first, last;
        std::memcpy(&first, data, 4);
        std::memcpy(&last, data + size - 4, 4);
        low = uint64_t(first) << 32 | last;
    } else if (size) {
        const auto byte = [data](size_t at) { return uint64_t(static_cast<unsigned char>(data[at])); };
        low = byte(0) << 16 | byte(size / 2) << 8 | byte(size - 1);
    }
    return multiply_and_fold(low ^ seeds[0], high ^ hash ^ 0x8EBC6AF09C88C6E3u);
}

// hash_bytes for the standard's tables.
struct TextHash {
    size_t operator()(std::string_view text) const { return static_cast<size_t>(hash_bytes(text.data(), text.size())); }
};

// Seeds for hashes of numbers.
extern const uint64_t HASH_SEEDS[2];

struct Scan;

class Strings {
public:
    Strings() : Strings({}, {0}) {}
    // String i is `data` from ends[i] to ends[i + 1], the first of which is 0.
    Strings(LargeVector<char> data, LargeVector<uint32_t> ends) : own_data_(std::move(data)), own_ends_(std::move(ends)) {
        settle();
    }
    Strings(Strings &&) = default;
    Strings &operator=(Strings &&) = default;

    void reserve(size_t count, size_t bytes);
    void add(std::string_view text);  // std::length_error beyond 4 GiB

    size_t size() const { return size_; }
    size_t byte_size() const { return ends_[size_]; }
    std::string_view operator[](size_t index) const { return {data_ + ends_[index], size_t(ends_[index + 1] - ends_[index])}; }
    bool operator==(const Strings &other) const;

    // Adds all that the strings are to a hash.
    void add_to(KeyedHash &hash) const {
        hash.add(ends_, (size_ + 1) * sizeof *ends_);
        hash.add(data_, byte_size());
    }

    // The strings that write() wrote, with their index; both stay in the file.
    explicit Strings(TableReader &from);
    void write(TableWriter &to) const;

    static constexpr int64_t NOT_FOUND = -1;  // in place of an index

    // Builds the table for find(). Of equal strings the first counts. Returns the index of the first string that occurred
    // before, or NOT_FOUND if all are different. Does nothing the second time.
    int64_t index(const Poll &poll = NO_POLL);
    bool indexed() const { return slots_ != nullptr; }
    bool are_different() const { return duplicate_ == NOT_FOUND; }  // as index() found

    // What find() looks a text up by. The index of a file was made with the seeds of another process.
    uint64_t hash(std::string_view text) const { return hash_bytes(text.data(), text.size(), seeds_.data()); }

    // The index of `text`, or NOT_FOUND. Needs index().
    int64_t find(std::string_view text) const { return find(text, hash(text)); }
    int64_t find(std::string_view text, uint64_t hash) const {
        const uint32_t tag = tag_of(hash);
        for (uint64_t at = hash & mask_;; at = (at + 1) & mask_) {
            const uint32_t slot = slots_[at], index_plus_1 = slot & indexes_;
            if (!slot) return NOT_FOUND;
            if (slot - index_plus_1 == tag && is_equal((*this)[index_plus_1 - 1], text)) return index_plus_1 - int64_t(1);
        }
    }

    // Brings the slot that find() will look at into the cache.
    void prefetch(uint64_t hash) const { ggufbpe::prefetch(&slots_[hash & mask_]); }

    // To look up many strings, take each of these steps for all of them before the next: prefetch(); likely(), the index of the
    // string that find() will compare first, or NOT_FOUND if it certainly finds none; prefetch_end(), which fetches the place
    // of that string; prefetch_text(), the string; and find_likely(), which gives the result of find(). The prefetches take the
    // first string for NOT_FOUND, and there must be one.
    int64_t likely(uint64_t hash) const {
        const uint32_t tag = tag_of(hash);
        for (uint64_t at = hash & mask_; slots_[at]; at = (at + 1) & mask_) {
            if ((slots_[at] & ~indexes_) == tag) return (slots_[at] & indexes_) - int64_t(1);
        }
        return NOT_FOUND;
    }
    void prefetch_end(int64_t likely) const { ggufbpe::prefetch(&ends_[not_negative(likely)]); }
    void prefetch_text(int64_t likely) const { ggufbpe::prefetch(data_ + ends_[not_negative(likely)]); }
    int64_t find_likely(std::string_view text, uint64_t hash, int64_t likely) const {
        if (likely == NOT_FOUND) return NOT_FOUND;
        return is_equal((*this)[static_cast<size_t>(likely)], text) ? likely : find(text, hash);
    }

private:
    static size_t not_negative(int64_t index) { return static_cast<size_t>(index & ~(index >> 63)); }  // without a branch

    // Most strings are short, and calling memcmp takes longer than comparing them.
    static bool is_equal(std::string_view one, std::string_view other) {
        const size_t size = one.size();
        if (size != other.size()) return false;
        if (size > 16 || size < 2) return !std::memcmp(one.data(), other.data(), size);
        if (size >= 8) return is_equal<uint64_t>(one.data(), other.data(), size);
        if (size >= 4) return is_equal<uint32_t>(one.data(), other.data(), size);
        return is_equal<uint16_t>(one.data(), other.data(), size);
    }
    // The first bytes and the last ones, which may overlap.
    template <typename Number>
    static bool is_equal(const char *one, const char *other, size_t size) {
        Number a, b, c, d;
        std::memcpy(&a, one, sizeof a);
        std::memcpy(&b, other, sizeof b);
        std::memcpy(&c, one + size - sizeof c, sizeof c);
        std::memcpy(&d, other + size - sizeof d, sizeof d);
        return (a == b) & (c == d);
    }

    friend class Scanner;

    // What a slot has of a hash, in the bits that indexes leave.
    uint32_t tag_of(uint64_t hash) const { return static_cast<uint32_t>(hash >> 32) & ~indexes_; }

    // To be called when the vectors have changed.
    void settle() {
        data_ = own_data_.data();
        ends_ = own_ends_.data();
        size_ = own_ends_.size() - 1;
    }

    LargeVector<char> own_data_;         // may be longer than the strings
    LargeVector<uint32_t> own_ends_;
    ZeroedArray<uint32_t> own_slots_;
    const char *data_ = nullptr;  // these, or those of a file
    const uint32_t *ends_ = nullptr;  // ends_[i] is where string i begins
    const uint32_t *slots_ = nullptr;  // of the index: 0 is empty; in the bits of `indexes_` stands the index + 1, above them a tag
    size_t size_ = 0;
    std::shared_ptr<const TableFile> file_;
    uint64_t mask_ = 0;
    uint32_t indexes_ = 0;
    int64_t duplicate_ = NOT_FOUND;  // what index() returned
    std::array<uint64_t, 2> seeds_{{BYTES_SEEDS[0], BYTES_SEEDS[1]}};
};

// The result of scan() for an array of strings in a GGUF.
struct Scan {
    enum class Outcome {
        ok,
        truncated,  // the file ends inside the length of string `index`, at `position`
        too_long,   // the length of string `index`, at `position`, leads past the end of the file
    };
    Outcome outcome = Outcome::ok;
    uint64_t index = 0;
    uint64_t position = 0;  // where the string's length is; the end of the array if all is well
    uint64_t length = 0;
    bool plain = true;  // every string is UTF-8 and has no NUL, and `into` has room for them, which is 4 GiB
};

// Walks `count` strings, each a length of `width` bytes (4 or 8) and its bytes, from `position` of the `size` bytes at
// `data`. `into` may be null: then only lengths are checked. It holds the strings if they are plain, and is undefined if
// not; as room is made for all bytes that could follow, `size` should be where the array ends.
// Source of the layout: ggml/src/gguf.cpp.
Scan scan(const char *data, uint64_t size, uint64_t position, uint64_t count, int width, bool big_endian, Strings *into,
          const Poll &poll = NO_POLL);

// The same for an array that is read in blocks. Memory is taken as strings come, and little for what a count promises.
class Scanner {
public:
    // For `count` strings, of about `bytes` together.
    explicit Scanner(uint64_t count, uint64_t bytes);
    explicit Scanner(uint64_t count) : Scanner(count, count * USUAL_SIZE) {}

    // Adds the next of at most `count` strings, which begin at `position`, as far as they lie wholly in `data`. `index` is how
    // many these are; outcome, position and length say what the next one lacks.
    Scan add(const char *data, uint64_t size, uint64_t position, uint64_t count, int width, bool big_endian,
             const Poll &poll);

    // Whether all strings were added, and are UTF-8 without a NUL.
    bool is_plain(const Poll &poll) const;
    // The strings, which it then has no more of.
    Strings take() {
        strings_.settle();
        Strings taken = std::move(strings_);
        *this = Scanner(0);
        return taken;
    }

private:
    static constexpr uint64_t USUAL_SIZE = 12;           // bytes of a token, or a merge
    static constexpr uint64_t AT_FIRST = uint64_t(1) << 24;  // the most bytes that are taken before they are needed

    bool make_room(uint64_t bytes);

    Strings strings_;
    uint64_t wanted_, count_ = 0;
    uint32_t end_ = 0;
    bool cut_ = false;  // a string begins inside a character: two broken halves are not one whole
};

}  // namespace ggufbpe
