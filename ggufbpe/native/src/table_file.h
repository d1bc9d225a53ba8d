// Tables that an earlier process made, from a file: arrays one after the other, used where they lie.
//
//     bpe/merge_table.h -> TableWriter -> ggufbpe/native/table_cache.py -> a file -> TableFile -> TableReader -> bpe/merge_table.h
//
// The file is read as a whole and not mapped: a mapped one that somebody shortens would end the process. Nothing of it is
// looked at before its checksum is right. The checksum and the file's key are hashes under a secret of the user, so a file
// that was damaged, is of another vocabulary or build, or was written by somebody else, is none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "keyed_hash.h"
#include "memory.h"

namespace ggufbpe {

// Reads `size` bytes of an open file from `offset` on, and adds those from `unhashed` on to a hash. False if the file ends
// before, or an error occurs.
bool read_all(int descriptor, uint64_t offset, char *to, size_t size, size_t unhashed, KeyedHash &hash);

// What a file begins with. The checksum is of all that follows it.
struct TableFileHead {
    static constexpr char FORM[32] = "ggufbpe tables, form 1\n";

    Digest checksum, key;
    char form[sizeof FORM];
};
constexpr size_t TABLE_ALIGNMENT = 64;  // of each array in a file, and of the file in memory
static_assert(sizeof(TableFileHead) == TABLE_ALIGNMENT, "arrays are aligned");

class TableWriter {
public:
    TableWriter() : content_(sizeof(TableFileHead), '\0') {}

    template <typename T>
    void add(const T *data, size_t count) {
        static_assert(std::is_trivially_copyable<T>::value, "only what its bytes are");
        const uint64_t number = count;
        content_.append(reinterpret_cast<const char *>(&number), sizeof number);
        align();
        if (count) content_.append(reinterpret_cast<const char *>(data), count * sizeof(T));
        align();
    }

    // The whole file.
    std::string finish(const HashKey &secret, const Digest &key);

private:
    void align() { content_.resize((content_.size() + TABLE_ALIGNMENT - 1) / TABLE_ALIGNMENT * TABLE_ALIGNMENT); }

    std::string content_;
};

// The content of a file whose checksum and key are right.
class TableFile {
public:
    // Reads `size` bytes of an open file. Null if they are not a file of this key, or cannot be read.
    static std::shared_ptr<const TableFile> read(int descriptor, size_t size, const HashKey &secret, const Digest &key);

    const char *data() const { return content_.data(); }
    size_t size() const { return size_; }

private:
    Buffer<char> content_;
    size_t size_ = 0;
};

// Gives the arrays in the order in which they were added; they live as long as the file.
class TableReader {
public:
    explicit TableReader(std::shared_ptr<const TableFile> file) : file_(std::move(file)) {}

    template <typename T>
    const T *array(size_t &count) {
        uint64_t number = 0;
        std::memcpy(&number, take(sizeof number), sizeof number);
        if (number > file_->size() / sizeof(T)) fail();
        count = static_cast<size_t>(number);
        return reinterpret_cast<const T *>(take(count * sizeof(T)));
    }
    // An array of a known size.
    template <typename T>
    const T *array_of(size_t wanted) {
        size_t count;
        const T *found = array<T>(count);
        if (count != wanted) fail();
        return found;
    }
    const std::shared_ptr<const TableFile> &file() const { return file_; }

private:
    const char *take(size_t bytes) {
        if (bytes > file_->size() - at_) fail();
        const char *here = file_->data() + at_;
        at_ += (bytes + TABLE_ALIGNMENT - 1) / TABLE_ALIGNMENT * TABLE_ALIGNMENT;
        if (at_ > file_->size()) fail();
        return here;
    }
    [[noreturn]] static void fail() { throw std::runtime_error("tables of another form"); }

    const std::shared_ptr<const TableFile> file_;
    size_t at_ = sizeof(TableFileHead);
};

}  // namespace ggufbpe
