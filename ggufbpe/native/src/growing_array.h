// Numbers that grow at the end, in memory that Python can take over without a copy.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "memory.h"

namespace ggufbpe {

// Plain numbers that grow at the end; those for which 8 MB are reserved are in huge pages. Unused memory is not touched.
template <typename T>
class GrowingArray {
public:
    GrowingArray() = default;
    ~GrowingArray() { free(); }
    GrowingArray(GrowingArray &&other) noexcept { swap(other); }
    GrowingArray &operator=(GrowingArray &&other) noexcept {
        swap(other);
        return *this;
    }

    T *data() { return data_; }
    const T *data() const { return data_; }
    size_t size() const { return size_; }

    // Room for `count` more that do not move. The array has the system hand out many pages at once as they grow; if threads write
    // side by side, `in_parallel`, only as long as huge ones come quickly, since the other threads wait meanwhile.
    void reserve(size_t count, bool in_parallel);

    // Where the next numbers are written, with room for `count`. advance() then says how many there are.
    T *room(size_t count) {
        if (capacity_ - size_ < count) grow(count);
        return data_ + size_;
    }
    void advance(const T *end) { size_ = static_cast<size_t>(end - data_); }
    void push(T number) {
        *room(1) = number;
        ++size_;
    }
    void append(const T *numbers, size_t count) {
        if (count) std::memcpy(room(count), numbers, count * sizeof(T));
        size_ += count;
    }
    bool has_room(size_t count) const { return std::max(capacity_, pages_.bytes / sizeof(T)) - size_ >= count; }
    void truncate(size_t size) { size_ = size; }
    void clear() { size_ = 0; }
    size_t drop_front(size_t count) {
        if (count) std::memmove(data_, data_ + count, (size_ - count) * sizeof(T));
        size_ -= count;
        return count;
    }
    size_t bytes() const { return capacity_ * sizeof(T); }

    // Gives back unused memory, if it is much.
    void shrink();

private:
    void grow(size_t count);
    void move_to(size_t capacity);
    void cut();
    void free();
    void swap(GrowingArray &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        std::swap(pages_, other.pages_);
        std::swap(in_parallel_, other.in_parallel_);
    }

    T *data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
    HugePages::Mapping pages_;  // where the data are, unless from malloc
    bool in_parallel_ = false;
};

}  // namespace ggufbpe
