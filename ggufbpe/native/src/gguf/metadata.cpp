#include "gguf/metadata.h"

#include <cstring>

#include "gguf/value_types.h"
#include "vocabulary/registry.h"

namespace ggufbpe {

namespace {

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

}  // namespace

const Value *Metadata::find(const char *key, bool is_read) const {
    const Value *value = look_up(key, false);
    if (!value) return nullptr;
    const KeyType &wanted = wanted_type(key);
    if (is_right(*value, wanted)) return is_read ? look_up(key, true) : value;
    throw error(key, "the value is " + name_of(value->type, value->element) + "; it must be " +
                         name_of(wanted.type, wanted.elements[0]));
}

const Value &Metadata::require(const char *key) const {
    if (const Value *value = find(key)) return *value;
    throw LoadError(Fault::bad_vocabulary, "the key is missing", LoadError::NO_OFFSET, key);
}

std::string Metadata::string(const char *key, const char *otherwise) const {
    const Value *value = find(key);
    return value ? std::string(value->content()) : otherwise;
}

bool Metadata::flag(const char *key, bool otherwise) const {
    const Value *value = find(key);
    return value ? value->content()[0] != 0 : otherwise;
}

std::optional<uint32_t> Metadata::unsigned_number(const char *key) const {
    const Value *value = find(key);
    if (!value) return std::nullopt;
    uint32_t number;
    std::memcpy(&number, value->content().data(), sizeof number);
    return number;
}

LoadError Metadata::error(const char *key, const std::string &problem) const {
    const Value *value = look_up(key, false);
    return {Fault::bad_vocabulary, problem, value ? value->offset : LoadError::NO_OFFSET, key};
}

}  // namespace ggufbpe
