// Memory for large tables and buffers: on a cache line, and in huge pages where the system has them. In small pages nearly
// every look-up in a large table would wait for the page's address as well, and a large buffer for the system to give
// them out one by one.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ggufbpe {

template <typename T>
class ZeroedArray {
public:
    ZeroedArray() = default;
    explicit ZeroedArray(size_t count) : ZeroedArray(count, true) {}

    size_t size() const { return count_; }
    T &operator[](size_t index) { return data_.get()[index]; }
    const T &operator[](size_t index) const { return data_.get()[index]; }
    T *data() { return data_.get(); }
    const T *data() const { return data_.get(); }

protected:
    ZeroedArray(size_t count, bool zeroed) : count_(count), data_(allocate(count, zeroed)) {}

private:
    static constexpr size_t HUGE_PAGE = size_t(2) << 20, LINE = 64;

    struct Free {
        void *mapped;  // what was mapped, in which the data begin where a huge page may; null if it came from operator new
        size_t bytes;
        void operator()(T *data) const {
#if defined(__linux__)
            if (mapped) {
                munmap(mapped, bytes);
                return;
            }
#endif
            ::operator delete(static_cast<void *>(data), std::align_val_t(LINE));
        }
    };

    static std::unique_ptr<T, Free> allocate(size_t count, bool zeroed) {
        const size_t bytes = count * sizeof(T);
#if defined(__linux__)
        if (bytes >= HUGE_PAGE / 4) {
            const size_t pages = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
            void *mapped = mmap(nullptr, pages + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapped == MAP_FAILED) throw std::bad_alloc();
            void *data = mapped;
            size_t space = pages + HUGE_PAGE;
            std::align(HUGE_PAGE, pages, data, space);
            madvise(data, pages, MADV_HUGEPAGE);  // a wish; without it the pages are small
            return {static_cast<T *>(data), Free{mapped, pages + HUGE_PAGE}};
        }
#endif
        void *data = ::operator new(bytes ? bytes : 1, std::align_val_t(LINE));
        if (zeroed) std::memset(data, 0, bytes);
        return {static_cast<T *>(data), Free{nullptr, 0}};
    }

    size_t count_ = 0;
    std::unique_ptr<T, Free> data_{nullptr, Free{nullptr, 0}};
};

// Memory to be used again, whose content is nobody's until it is written. For plain numbers.
template <typename T>
class Buffer {
public:
    // Room for `count`; what was in it is lost if there is not enough.
    T *room(size_t count) {
        if (count > array_.size()) {
            array_ = Raw(0);
            array_ = Raw(count + count / 8);
        }
        return array_.data();
    }
    T *data() { return array_.data(); }
    const T *data() const { return array_.data(); }
    T &operator[](size_t index) { return array_[index]; }
    const T &operator[](size_t index) const { return array_[index]; }
    size_t bytes() const { return array_.size() * sizeof(T); }

private:
    struct Raw : ZeroedArray<T> {
        explicit Raw(size_t count) : ZeroedArray<T>(count, false) {}
    };
    Raw array_{0};
};

}  // namespace ggufbpe
