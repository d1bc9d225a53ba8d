// Where the bytes of a GGUF file come from, and the part of them that is in memory: ggufbpe/gguf/source.py for C++.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ggufbpe {

class ByteSource {
public:
    static constexpr uint64_t UNKNOWN_SIZE = UINT64_MAX;

    virtual ~ByteSource() = default;

    // Reads bytes from `offset` on, `size` of them; returns how many, fewer only at the end. Throws LoadError.
    virtual size_t read(uint64_t offset, char *to, size_t size) = 0;

    virtual uint64_t size() const { return UNKNOWN_SIZE; }
};

// A regular file. Throws LoadError if it cannot be opened. `path` is UTF-8 on Windows, and bytes elsewhere.
std::unique_ptr<ByteSource> open_file(const std::string &path);

// The bytes of a source from some place on. Each is read once, in order.
class ReadWindow {
public:
    explicit ReadWindow(ByteSource &source) : source_(source), size_(source.size()), data_(BLOCK) {}

    // The size of the file; UNKNOWN_SIZE unless its source knows it or its end was reached.
    uint64_t size() const { return size_; }

    // Reads up to `end`, or further, so that the bytes from `position` on are in memory; those before it are forgotten. Returns
    // false if the file ends before.
    bool fill(uint64_t position, uint64_t end);

    // From a place up to end(), in memory.
    const char *at(uint64_t position) const { return data_.data() + (position - start_); }
    uint64_t end() const { return start_ + used_; }

private:
    static constexpr size_t BLOCK = 1 << 16;

    ByteSource &source_;
    uint64_t size_;
    uint64_t start_ = 0;
    std::vector<char> data_;
    size_t used_ = 0;
};

}  // namespace ggufbpe
