// The types of metadata values: ggufbpe/gguf/value_types.py for C++. Source: ggml/include/gguf.h.

#pragma once

#include <cstddef>
#include <cstdint>

namespace ggufbpe {

enum ValueType : int32_t {
    UINT8 = 0,
    INT8 = 1,
    UINT16 = 2,
    INT16 = 3,
    UINT32 = 4,
    INT32 = 5,
    FLOAT32 = 6,
    BOOL = 7,
    STRING = 8,
    ARRAY = 9,
    UINT64 = 10,
    INT64 = 11,
    FLOAT64 = 12,
};
constexpr int32_t VALUE_TYPES = 13;
constexpr size_t VALUE_SIZES[VALUE_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // bytes of a number

// The type that llama.cpp takes for a key. ARRAY: of elements of either type.
struct KeyType {
    const char *key;
    int32_t type;
    int32_t elements[2];
};

}  // namespace ggufbpe
