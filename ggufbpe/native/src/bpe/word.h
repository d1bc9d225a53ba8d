// A word for the merger, and where its ids are.

#pragma once

#include <cstddef>

namespace ggufbpe {

struct Word {
    const unsigned char *data;  // UTF-8 of any content
    size_t size;                // bytes
};

struct WordIds {
    size_t start, count;
};

}  // namespace ggufbpe
