// Keys and values of a GGUF file, as far as a tokenizer needs them, read as llama.cpp does: ggufbpe/gguf/typed.py for C++.
//
//     bytes (byte_source.h) -> FileMetadata (file_metadata.h) -> Metadata -> vocabulary/loading.h
//     ggufbpe/gguf/metadata.py -> bind_loading.cpp ---------------^

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/load_error.h"
#include "string_array.h"

namespace ggufbpe {

struct Value {
    int32_t type = 0, element = 0;     // ValueType; the element's is that of an array
    uint64_t count = 0;                // of elements
    uint64_t offset = 0;               // in the file
    std::string bytes;                 // a string, or numbers in the machine's order
    std::string_view borrowed;         // the same, if somebody else keeps it
    std::shared_ptr<Strings> strings;  // of an array of strings, each up to its first NUL, as in llama.cpp

    std::string_view content() const { return borrowed.data() ? borrowed : std::string_view(bytes); }
};

class Metadata {
public:
    virtual ~Metadata() = default;

    // The value of a key, which must have the type that llama.cpp takes, or null. Throws LoadError for another type. Unless it
    // `is_read`, its content may be missing.
    const Value *find(const char *key, bool is_read = true) const;
    // The same for a key that must be there.
    const Value &require(const char *key) const;

    std::string string(const char *key, const char *otherwise) const;
    bool flag(const char *key, bool otherwise) const;
    std::optional<uint32_t> unsigned_number(const char *key) const;

    // The error for a key, at its place in the file.
    LoadError error(const char *key, const std::string &problem) const;

private:
    // The value of a key of KEY_TYPES (registry.h), or null, likewise.
    virtual const Value *look_up(const char *key, bool is_read) const = 0;
};

// The numbers of an array.
template <typename Number>
std::vector<Number> numbers_in(const Value &value) {
    const std::string_view content = value.content();
    std::vector<Number> numbers(content.size() / sizeof(Number));
    if (!numbers.empty()) std::memcpy(numbers.data(), content.data(), numbers.size() * sizeof(Number));
    return numbers;
}

}  // namespace ggufbpe
