// The metadata of a GGUF file, as far as a tokenizer needs them: ggufbpe/gguf/section.py and typed.py for C++.
//
//     bytes (byte_source.h) -> Metadata -> vocabulary/loading.h
//
// The file is read once, in order. Nothing in it is trusted: each length is checked before it is used, and no memory is taken
// for what a count promises before the bytes are there. Only the keys of registry.h (KEY_TYPES) are kept.
//
// Source of the layout: ggml/src/gguf.cpp, gguf_init_from_reader.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gguf/byte_source.h"
#include "gguf/load_error.h"
#include "poll.h"
#include "string_array.h"

namespace ggufbpe {

struct Value {
    int32_t type = 0, element = 0;     // ValueType; the element's is that of an array
    uint64_t count = 0;                // of elements
    uint64_t offset = 0;               // in the file
    std::string bytes;                 // a string, or numbers in the machine's order
    std::shared_ptr<Strings> strings;  // of an array of strings, each up to its first NUL, as in llama.cpp
};

class Metadata {
public:
    // Throws LoadError if the file is not a sound GGUF, and what `source` and `poll` throw.
    Metadata(ByteSource &source, const Poll &poll);

    // The value of a key, which must have the type that llama.cpp takes, or null. Throws LoadError for another type.
    const Value *find(const char *key) const;
    // The same for a key that must be there.
    const Value &require(const char *key) const;

    std::string string(const char *key, const char *otherwise) const;
    bool flag(const char *key, bool otherwise) const;
    std::optional<uint32_t> unsigned_number(const char *key) const;

    // Throws LoadError if this is a later part of a split model (src/llama-model-loader.cpp).
    void require_first_shard() const;

    // The error for a key, at its place in the file.
    LoadError error(const char *key, const std::string &problem) const;

private:
    std::unordered_map<std::string, Value, TextHash> values_;
};

// The numbers of an array.
template <typename Number>
std::vector<Number> numbers_in(const Value &value) {
    std::vector<Number> numbers(value.bytes.size() / sizeof(Number));
    if (!numbers.empty()) std::memcpy(numbers.data(), value.bytes.data(), numbers.size() * sizeof(Number));
    return numbers;
}

}  // namespace ggufbpe
