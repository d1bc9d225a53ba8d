// How many bytes of a text each token stands for, so that the spans of a word's tokens are found as fast as their ids.
//
// A token has one length as a merged symbol. It stands for less than its text only as the token of a byte, and for more only
// if a U+2581 of its text is one in the word, too, or a space in an overlong form; so if the lengths add up to the size of a
// word, each is right. If they do not, the word is merged once more (Merger::append_spans).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bpe/merge_table.h"
#include "poll.h"

namespace ggufbpe {

class TokenLengths {
public:
    static constexpr uint32_t UNCERTAIN = UINT32_MAX;

    TokenLengths(const MergeTable &table, const Poll &poll);

    uint32_t operator[](int32_t id) const { return static_cast<size_t>(id) < lengths_.size() ? lengths_[static_cast<size_t>(id)] : UNCERTAIN; }

private:
    std::vector<uint32_t> lengths_;
};

}  // namespace ggufbpe
