// The first words of a vocabulary with scores, merged by looking up their parts among the tokens.
//
//     text -> characters -> the pair with the best score, again and again -> ids
//
// That takes up to twice as long as by the table; but building the table takes longer than opening all the rest.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "lazy_build_budget.h"
#include "sink.h"
#include "string_array.h"

namespace ggufbpe {

// A number that is the lower, the better a score is; 0 and -0 are the same score.
inline uint32_t order_of(float score) {
    const float not_minus_zero = score + 0.0f;
    uint32_t bits;
    std::memcpy(&bits, &not_minus_zero, sizeof bits);
    return bits >> 31 ? bits : ~bits & 0x7FFFFFFF;
}

class FirstWords {
public:
    static constexpr size_t LONGEST = 256;  // bytes of a text: the time grows with their square

    // `tokens` must be indexed. `scores` has one for each, none of them NaN, or is empty, if all are the same.
    FirstWords(std::shared_ptr<const Strings> tokens, std::shared_ptr<const std::vector<float>> scores)
        : tokens_(std::move(tokens)), scores_(std::move(scores)) {}

    // Appends the ids of UTF-8, after a space if it `has_prefix`. False, with nothing appended, if the text is too long, if spans
    // are wanted, if some character is not a token, or if enough was encoded to make a table worth its time.
    bool append_ids(const unsigned char *text, size_t size, bool has_prefix, Sink &ids) const;

private:
    const std::shared_ptr<const Strings> tokens_;
    const std::shared_ptr<const std::vector<float>> scores_;
    const LazyBuildBudget build_budget_;
};

}  // namespace ggufbpe
