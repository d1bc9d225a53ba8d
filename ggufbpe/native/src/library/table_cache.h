// Merge tables of large vocabularies in files, so that these open faster the second time: ggufbpe/native/table_cache.py for the
// C library, in the same folder and under the same secret. Nothing is kept on Windows and in WebAssembly.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bpe/bpe_model.h"
#include "keyed_hash.h"
#include "table_file.h"

namespace ggufbpe {

class TableCache {
public:
    // That of the user, or null if there is none: by GGUFBPE_CACHE=off, without a home, or where nothing can be written.
    static std::unique_ptr<const TableCache> of_user();

    // 64 bytes that nobody else can read.
    const HashKey &secret() const { return secret_; }
    // Null if there is none, it is damaged, or memory does not suffice. What is read is marked as used.
    std::shared_ptr<const TableFile> read(const Digest &key) const;
    // Writes the tables of a model whole or not at all, and deletes the least recently used ones if there are too many.
    void keep(const Digest &key, const BPEModel &model) const;

private:
    TableCache(std::string folder, const HashKey &secret, uint64_t most) : folder_(std::move(folder)), secret_(secret), most_(most) {}

    std::string path_of(const Digest &key) const;

    const std::string folder_;
    const HashKey secret_;
    const uint64_t most_;  // bytes of all files
};

}  // namespace ggufbpe
