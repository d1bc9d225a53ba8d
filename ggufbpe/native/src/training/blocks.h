#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ggufbpe {

// Empties a container and gives back its memory, which assigning {} to a vector does not.
template <typename T>
void give_back(T &container) {
    container = T();
}

// Objects that grow at the end without being moved, so that no second copy of them is ever made.
template <typename T>
class Blocks {
public:
    uint32_t size() const { return size_; }
    T &operator[](uint32_t index) { return blocks_[index / BLOCK][index % BLOCK]; }
    const T &operator[](uint32_t index) const { return blocks_[index / BLOCK][index % BLOCK]; }

    T &add() {
        if (size_ % BLOCK == 0) blocks_.push_back(std::make_unique<T[]>(BLOCK));
        return (*this)[size_++];
    }

    // Calls take(object) for each, in order; their memory is given back on the way.
    template <typename Take>
    void take_each(Take take) {
        for (auto &block : blocks_) {
            const size_t before = static_cast<size_t>(&block - blocks_.data()) * BLOCK;
            for (size_t i = 0; i < BLOCK && before + i < size_; ++i) take(block[i]);
            block.reset();
        }
        give_back(*this);
    }
    // Gives back the memory of whole blocks before `index`; the objects in them are not used again.
    void give_back_before(uint32_t index) {
        if (index % BLOCK == 0 && index) blocks_[index / BLOCK - 1].reset();
    }

private:
    static constexpr size_t BLOCK = 1 << 12;

    std::vector<std::unique_ptr<T[]>> blocks_;
    uint32_t size_ = 0;
};

}  // namespace ggufbpe
