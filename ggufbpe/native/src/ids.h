// The ids of a text, as they are made.

#pragma once

#include <cstdint>

#include "growing_array.h"

namespace ggufbpe {

using Ids = GrowingArray<int32_t>;

}  // namespace ggufbpe
