// A tokenizer model held to the ids that a text should have.

#pragma once

#include <string>
#include <vector>

#include "harness.h"
#include "text_model.h"

// Each id has a span, none of them outside of the text, and none before another.
inline void check_spans(const ggufbpe::TextModel &model, const ggufbpe::Part &whole, ggufbpe::TextModel::Scratch &scratch,
                        const std::vector<int32_t> &expected) {
    ggufbpe::Ids ids;
    ggufbpe::Spans spans;
    spans.origin = whole.data;
    ggufbpe::Sink sink(ids, &spans);
    model.encode(whole, scratch, sink, ggufbpe::NO_POLL);
    CHECK(std::vector<int32_t>(ids.data(), ids.data() + ids.size()) == expected);
    CHECK(spans.size() == expected.size());
    ggufbpe::Span before{0, 0};
    for (size_t i = 0; i < spans.size(); ++i) {
        const ggufbpe::Span span = spans.data()[i];
        CHECK(before.start <= span.start && before.end <= span.end && span.start <= span.end);
        CHECK(span.end <= static_cast<int64_t>(whole.size));
        before = span;
    }
}

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
        check_spans(model, whole, *scratch, expected);
    }
}
