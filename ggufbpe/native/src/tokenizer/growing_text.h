// A text to which more is appended, and its ids, which are always those of the whole text:
// ggufbpe/tokenizer/incremental.py for C++, as far as appending goes.
//
//     settled ids | open bytes at the end, and their ids
//                 ^ a place where the text can be split, far enough from the end (split_points.h)

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "encoder.h"
#include "poll.h"
#include "tokenizer/split_points.h"
#include "vocabulary/vocabulary.h"

namespace ggufbpe {

class GrowingText {
public:
    struct Change {
        size_t kept, removed, inserted;  // ids
    };

    GrowingText(const Vocabulary &vocabulary, const Encoder &encoder, const Splitter *splitter, bool add_special, bool parse_special);

    // Appends text. An exception leaves everything as it was.
    Change append(const char *text, size_t size, const Poll &poll);

    const std::vector<int32_t> &ids() const { return ids_; }

private:
    Ids encode(const std::string &text, size_t from, bool continues, const Poll &poll) const;

    const Encoder &encoder_;
    const SplitPoints places_;
    const bool parse_special_;
    std::vector<int32_t> behind_;
    std::vector<int32_t> ids_;  // of all of the text
    size_t settled_;            // ids that no append changes
    std::string open_;
    bool continues_ = false;    // whether the open bytes follow others
};

}  // namespace ggufbpe
