// What loading throws for a file that cannot be used: ggufbpe/_util/errors.py for C++.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace ggufbpe {

enum class Fault { io, not_gguf, truncated, corrupt, unsupported, bad_vocabulary };

struct LoadError : std::runtime_error {
    static constexpr uint64_t NO_OFFSET = UINT64_MAX;

    LoadError(Fault what, const std::string &problem, uint64_t place = NO_OFFSET, std::string of_key = {},
              uint64_t needed_bytes = 0)
        : std::runtime_error(problem), fault(what), offset(place), key(std::move(of_key)), needed(needed_bytes) {}

    Fault fault;
    uint64_t offset;  // in the file
    std::string key;  // of the metadata, "" if it is not known
    uint64_t needed;  // of a truncated file: it has at least so many bytes
};

}  // namespace ggufbpe
