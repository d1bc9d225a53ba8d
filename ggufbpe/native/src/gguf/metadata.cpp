#include "gguf/metadata.h"

#include <cstring>

#include "gguf/section.h"
#include "gguf/value_types.h"
#include "vocabulary/registry.h"

namespace ggufbpe {

namespace {

constexpr const char *SPLIT_NO = "split.no", *SPLIT_COUNT = "split.count";
constexpr const char *TYPE_NAMES[VALUE_TYPES] = {"UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
                                                 "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64"};

const KeyType &wanted_type(const char *key) {
    for (const KeyType &one : KEY_TYPES) {
        if (!std::strcmp(one.key, key)) return one;
    }
    throw std::logic_error(std::string("no type is known for ") + key);
}

bool is_right(const Value &value, const KeyType &wanted) {
    if (value.type != wanted.type) return false;
    return value.type != ARRAY || value.element == wanted.elements[0] || value.element == wanted.elements[1];
}

std::string name_of(int32_t type, int32_t element) {
    return type == ARRAY ? std::string("an array of ") + TYPE_NAMES[element] : std::string("of type ") + TYPE_NAMES[type];
}

// A number of any type; 0 for what is none.
int64_t whole_number(const Value *value) {
    if (!value || value->bytes.size() > 8 || value->type == STRING || value->type == ARRAY) return 0;
    if (value->type == FLOAT32 || value->type == FLOAT64) return 0;
    const auto as = [&](auto number) {
        std::memcpy(&number, value->bytes.data(), sizeof number);
        return static_cast<int64_t>(number);
    };
    switch (value->type) {
        case UINT8: case BOOL: return as(uint8_t());
        case INT8: return as(int8_t());
        case UINT16: return as(uint16_t());
        case INT16: return as(int16_t());
        case UINT32: return as(uint32_t());
        case INT32: return as(int32_t());
        default: return as(int64_t());
    }
}

}  // namespace

Metadata::Metadata(ByteSource &source, const Poll &poll) : values_(Section(source, poll).read()) {}

const Value *Metadata::find(const char *key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return nullptr;
    const KeyType &wanted = wanted_type(key);
    if (is_right(found->second, wanted)) return &found->second;
    throw error(key, "the value is " + name_of(found->second.type, found->second.element) + "; it must be " +
                         name_of(wanted.type, wanted.elements[0]));
}

const Value &Metadata::require(const char *key) const {
    if (const Value *value = find(key)) return *value;
    throw LoadError(Fault::bad_vocabulary, "the key is missing", LoadError::NO_OFFSET, key);
}

std::string Metadata::string(const char *key, const char *otherwise) const {
    const Value *value = find(key);
    return value ? value->bytes : otherwise;
}

bool Metadata::flag(const char *key, bool otherwise) const {
    const Value *value = find(key);
    return value ? value->bytes[0] != 0 : otherwise;
}

std::optional<uint32_t> Metadata::unsigned_number(const char *key) const {
    const Value *value = find(key);
    if (!value) return std::nullopt;
    uint32_t number;
    std::memcpy(&number, value->bytes.data(), sizeof number);
    return number;
}

void Metadata::require_first_shard() const {
    const auto number = [&](const char *key) {
        const auto found = values_.find(key);
        return whole_number(found == values_.end() ? nullptr : &found->second);
    };
    const int64_t part = number(SPLIT_NO), count = number(SPLIT_COUNT);
    if (part == 0 || count <= 1) return;
    throw error(SPLIT_NO, "this is part " + std::to_string(static_cast<uint64_t>(part) + 1) + " of " + std::to_string(count) +
                              " of a split model; the tokenizer is in the first part");
}

LoadError Metadata::error(const char *key, const std::string &problem) const {
    const auto found = values_.find(key);
    return {Fault::bad_vocabulary, problem, found == values_.end() ? LoadError::NO_OFFSET : found->second.offset, key};
}

}  // namespace ggufbpe
