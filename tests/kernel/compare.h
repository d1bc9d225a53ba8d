// A tokenizer model held to the ids that a text should have.

#pragma once

#include <string>
#include <vector>

#include "harness.h"
#include "text_model.h"

// The ids of a text whole, in parts, and counted; twice, for the second time words are known.
inline void compare(const ggufbpe::TextModel &model, const std::string &text, size_t offset, size_t part_size,
                    const std::vector<int32_t> &expected) {
    using namespace ggufbpe;
    const Exact exact(text, offset);
    const Part whole{-1, exact.data(), exact.size()};
    for (int time = 0; time < 2; ++time) {
        std::vector<Part> parts;
        model.divide(whole, part_size, parts, NO_POLL);
        Ids ids, ids_of_parts;
        Sink sink(ids), sink_of_parts(ids_of_parts), counted;
        TextModel::Lease scratch(model);
        model.encode(whole, *scratch, sink, NO_POLL);
        model.encode(whole, *scratch, counted, NO_POLL);
        for (const Part &part : parts) model.encode(part, *scratch, sink_of_parts, NO_POLL);
        CHECK(std::vector<int32_t>(ids.data(), ids.data() + ids.size()) == expected);
        CHECK(std::vector<int32_t>(ids_of_parts.data(), ids_of_parts.data() + ids_of_parts.size()) == expected);
        CHECK(counted.count() == expected.size());
    }
}
