// RWKV's tokenizer: the longest token at each place of a text, in bytes. ggufbpe/models/rwkv.py, compiled.
//
//     text -> longest_match.h -> ids

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "longest_match.h"
#include "string_array.h"
#include "text_model.h"

namespace ggufbpe {

class RWKVModel final : public TextModel {
public:
    // `tokens` as the file has them, escaped; `unknown` stands for a byte where no token is.
    RWKVModel(const Strings &tokens, int32_t unknown);

    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    bool reads_bytes() const override { return true; }
    bool has_spans() const override { return true; }
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;

protected:
    std::unique_ptr<TextModel::Scratch> new_scratch() const override { return std::make_unique<Scratch>(); }

private:
    LongestMatch tokens_;
    int32_t unknown_;
};

}  // namespace ggufbpe
