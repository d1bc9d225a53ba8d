// The metadata of a GGUF file: ggufbpe/gguf/section.py for C++.
//
// The file is read once, in order. Nothing in it is trusted: each length is checked before it is used, and no memory is taken
// for what a count promises before the bytes are there. Only the keys of registry.h (KEY_TYPES) are kept.
//
// Source of the layout: ggml/src/gguf.cpp, gguf_init_from_reader.

#pragma once

#include <string>
#include <unordered_map>

#include "gguf/byte_source.h"
#include "gguf/metadata.h"
#include "poll.h"

namespace ggufbpe {

class FileMetadata final : public Metadata {
public:
    // Throws LoadError if the file is not a sound GGUF, and what `source` and `poll` throw.
    FileMetadata(ByteSource &source, const Poll &poll);

    // Throws LoadError if this is a later part of a split model (src/llama-model-loader.cpp).
    void require_first_shard() const;

private:
    const Value *look_up(const char *key, bool is_read) const override;

    std::unordered_map<std::string, Value, TextHash> values_;
};

}  // namespace ggufbpe
