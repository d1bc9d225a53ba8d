#include "growing_array.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ggufbpe {

template <typename T>
void GrowingArray<T>::grow(size_t count) {
    if (count > SIZE_MAX / 2 / sizeof(T) - size_) throw std::bad_alloc();
    const size_t needed = size_ + count;
    if (!has_room(count)) move_to(std::max(needed, capacity_ + capacity_ / 2));
    if (!pages_.data) return;
    // Other threads wait while pages are handed out; small ones would take too long.
    const bool at_once = !in_parallel_ || HugePages::come_quickly();
    const size_t end = at_once ? HugePages::populate(pages_, capacity_ * sizeof(T), needed * sizeof(T)) : pages_.bytes;
    capacity_ = end / sizeof(T);
}

template <typename T>
void GrowingArray<T>::reserve(size_t count, bool in_parallel) {
    in_parallel_ = in_parallel;
    if (!has_room(count)) move_to(size_ + count);
}

template <typename T>
void GrowingArray<T>::move_to(size_t capacity) {
    const size_t bytes = std::max<size_t>(capacity, 1) * sizeof(T);
    if (bytes < HugePages::WORTH_IT && !pages_.data) {
        void *moved = std::realloc(data_, bytes);
        if (!moved) throw std::bad_alloc();
        data_ = static_cast<T *>(moved);
        capacity_ = capacity;
        return;
    }
    if (pages_.data && bytes > pages_.bytes && HugePages::grow(pages_, bytes)) {
        data_ = static_cast<T *>(pages_.data);
        return;
    }
    GrowingArray moved;
    if (bytes < HugePages::WORTH_IT) {
        moved.move_to(capacity);
    } else {
        bool is_new;
        const HugePages::Mapping pages = HugePages::take(bytes, is_new, HugePages::Use::written_once);
        moved.pages_ = pages;  // where take() throws, GCC 12 leaves what is assigned its result uninitialized
        moved.data_ = static_cast<T *>(moved.pages_.data);
        moved.capacity_ = size_;
    }
    if (size_) std::memcpy(moved.data_, data_, size_ * sizeof(T));
    moved.size_ = size_;
    moved.in_parallel_ = in_parallel_;
    swap(moved);
}

template <typename T>
void GrowingArray<T>::shrink() {
    if (pages_.data && size_ * sizeof(T) >= HugePages::WORTH_IT) {
        capacity_ = size_;
        cut();
    } else if (pages_.data || capacity_ - size_ > capacity_ / 4 + 16) {
        move_to(size_);
    }
}

// Leaves whole pages for what may have been written.
template <typename T>
void GrowingArray<T>::cut() {
    HugePages::cut(pages_, std::max<size_t>(in_parallel_ ? size_ : capacity_, 1) * sizeof(T));
}

template <typename T>
void GrowingArray<T>::free() {
    if (pages_.data) {
        cut();  // room that was only reserved would count against what may be kept
        HugePages::give_back(pages_);
    } else {
        std::free(data_);
    }
}

template class GrowingArray<int32_t>;
template class GrowingArray<unsigned char>;

}  // namespace ggufbpe
