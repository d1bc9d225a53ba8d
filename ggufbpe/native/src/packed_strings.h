// An array of strings as it stands in a little-endian GGUF, each string after its length, and what is kept of one in a file.
//
//     bytes of a model's file -> PackedStrings -> their hash is that of an array that was read before?
//         yes -> the Strings and the index that were made then; or none, until somebody asks for the strings
//         no  -> scan() (string_array.h)

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "keyed_hash.h"
#include "memory.h"
#include "poll.h"
#include "string_array.h"
#include "table_file.h"

namespace ggufbpe {

class PackedStrings {
public:
    PackedStrings(const Strings &strings, const Poll &poll);

    // `count` strings, in `size` bytes of an open file from `offset` on, and their digest. Null if these cannot be read.
    static std::shared_ptr<const PackedStrings> read(int descriptor, uint64_t offset, size_t size, uint64_t count,
                                                     const HashKey &secret, Digest &digest);

    // The digest that PackedStrings of `strings` have, without making these.
    static Digest digest(const Strings &strings, const HashKey &secret, const Poll &poll);
    static size_t size(const Strings &strings);

    uint64_t count() const { return count_; }
    const char *data() const { return bytes_.data(); }
    size_t size() const { return size_; }
    Digest digest(const HashKey &secret) const;

    // The strings, which must be sound. Throws std::runtime_error if they are not.
    Strings strings(const Poll &poll) const;

private:
    PackedStrings(size_t size, uint64_t count) : size_(size), count_(count) { bytes_.room(size); }

    Buffer<char> bytes_;
    size_t size_;
    uint64_t count_;
};

// An array that was read before, and was sound.
class KnownStrings {
public:
    // A file that knows the array again. It has the strings themselves if they are indexed and all different: tokens are
    // looked up at once, and merges hardly ever. `digest` is that of the packed strings.
    static std::string write(const Strings &strings, const Digest &digest, const HashKey &secret, const Digest &key);

    explicit KnownStrings(std::shared_ptr<const TableFile> file);

    // The bytes at `offset` of an open file, of which `left` may be read, if they are this array of `count` strings; else null.
    std::shared_ptr<const PackedStrings> read(int descriptor, uint64_t offset, uint64_t left, uint64_t count,
                                              const HashKey &secret) const;

    const Digest &digest() const { return facts_.digest; }
    bool has_strings() const { return facts_.has_strings; }
    Strings strings() const;

private:
    struct Facts {
        Digest digest;
        uint64_t size, count, has_strings;
    };

    TableReader reader_;
    Facts facts_;
};

}  // namespace ggufbpe
