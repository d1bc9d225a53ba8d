// Walks over the key/value section of a GGUF file: ggufbpe/gguf/section.py for C++.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "gguf/byte_source.h"
#include "gguf/load_error.h"
#include "gguf/metadata.h"
#include "poll.h"

namespace ggufbpe {

class Section {
public:
    using Values = std::unordered_map<std::string, Value, TextHash>;

    Section(ByteSource &source, const Poll &poll) : window_(source), poll_(poll) {}

    // The values of the keys that a tokenizer needs. Throws LoadError.
    Values read();

private:
    static constexpr uint64_t LONGEST = uint64_t(1) << 29;  // bytes of a section; the largest vocabularies have 2**25
    static constexpr uint64_t LONG = 1 << 16;                // bytes of a string that is not read unless it is kept

    uint64_t read_header();
    void read_array(Value &value, bool is_kept, const std::string &key);
    void read_strings(Value &value, bool is_kept, const std::string &key);
    Strings texts_in(const Strings &strings, uint64_t begin, const std::string &key) const;
    void read_numbers(Value &value, size_t size, const std::string &key);

    const char *bytes(uint64_t count, const char *what, const std::string &key, uint64_t elements = 0);
    uint64_t number(size_t width, const char *what, const std::string &key);
    uint64_t length(const char *what, const std::string &key) { return number(width_, what, key); }
    int32_t type(const char *what, const std::string &key);
    void check_room(uint64_t size, const char *what, const std::string &key, uint64_t count) const;
    std::string text(uint64_t size, const char *what, const std::string &key);

    ReadWindow window_;
    const Poll &poll_;
    uint64_t at_ = 0;  // how far the file is read
    size_t width_ = 8;
    bool big_endian_ = false;
};

}  // namespace ggufbpe
