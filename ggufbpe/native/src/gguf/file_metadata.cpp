#include "gguf/file_metadata.h"

#include <cstring>

#include "gguf/section.h"
#include "gguf/value_types.h"

namespace ggufbpe {

namespace {

constexpr const char *SPLIT_NO = "split.no", *SPLIT_COUNT = "split.count";

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

FileMetadata::FileMetadata(ByteSource &source, const Poll &poll) : values_(Section(source, poll).read()) {}

const Value *FileMetadata::look_up(const char *key, bool) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

void FileMetadata::require_first_shard() const {
    const int64_t part = whole_number(look_up(SPLIT_NO, true)), count = whole_number(look_up(SPLIT_COUNT, true));
    if (part == 0 || count <= 1) return;
    throw error(SPLIT_NO, "this is part " + std::to_string(static_cast<uint64_t>(part) + 1) + " of " + std::to_string(count) +
                              " of a split model; the tokenizer is in the first part");
}

}  // namespace ggufbpe
