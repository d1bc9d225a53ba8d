// Keys, digests and secrets of the files that ggufbpe/native/table_cache.py keeps, as the bytes that Python has of them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstring>

#include "keyed_hash.h"

namespace ggufbpe {

namespace nb = nanobind;

// A HashKey or a Digest.
template <typename Numbers>
Numbers secret_numbers(const nb::bytes &given) {
    Numbers numbers;
    if (given.size() != sizeof numbers) throw nb::value_error("a key of another size");
    std::memcpy(numbers.data(), given.data(), sizeof numbers);
    return numbers;
}

inline nb::bytes bytes_of(const Digest &digest) { return nb::bytes(digest.data(), sizeof digest); }

}  // namespace ggufbpe
