#pragma once

#include <cstdint>

namespace ggufbpe {

// Bits of a hash from those of a number: the finalizer of splitmix64.
inline uint64_t mixed(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

}  // namespace ggufbpe
