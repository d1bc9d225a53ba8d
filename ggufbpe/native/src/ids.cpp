#include "ids.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ggufbpe {

void Ids::grow(size_t count) {
    if (count > SIZE_MAX / 8 - size_) throw std::bad_alloc();
    move_to(std::max(size_ + count, capacity_ + capacity_ / 2));
}

void Ids::move_to(size_t capacity) {
    const size_t bytes = std::max<size_t>(capacity, 1) * sizeof(int32_t);
    if (bytes < HugePages::WORTH_IT && !pages_.data) {
        void *moved = std::realloc(data_, bytes);
        if (!moved) throw std::bad_alloc();
        data_ = static_cast<int32_t *>(moved);
        capacity_ = capacity;
        return;
    }
    if (pages_.data && bytes > pages_.bytes && HugePages::grow(pages_, bytes)) {
        data_ = static_cast<int32_t *>(pages_.data);
        capacity_ = pages_.bytes / sizeof(int32_t);
        return;
    }
    Ids moved;
    if (bytes < HugePages::WORTH_IT) {
        moved.move_to(capacity);
    } else {
        bool is_new;
        moved.pages_ = HugePages::take(bytes, is_new);
        moved.data_ = static_cast<int32_t *>(moved.pages_.data);
        moved.capacity_ = moved.pages_.bytes / sizeof(int32_t);
    }
    if (size_) std::memcpy(moved.data_, data_, size_ * sizeof(int32_t));
    moved.size_ = size_;
    swap(moved);
}

void Ids::shrink() {
    if (capacity_ - size_ <= capacity_ / 4 + 16) return;
    if (pages_.data && size_ * sizeof(int32_t) >= HugePages::WORTH_IT) {
        HugePages::empty_behind(pages_, size_ * sizeof(int32_t));
    } else {
        move_to(size_);
    }
}

void Ids::free() {
    if (pages_.data) {
        HugePages::give_back(pages_);
    } else {
        std::free(data_);
    }
}

}  // namespace ggufbpe
