// SentencePiece's byte pair encoding, by the scores of tokens in place of merges: ggufbpe/models/spm.py, compiled.
//
//     fragment -> a space before it -> words that no merge crosses -> bpe/bpe_model.h -> ids
//     bytes that are not characters -> the ids of these bytes
//
// Merging by scores is merging by ranks, where tokens of equal score share a rank. The table of ranks is made when there is
// more to encode than first_words.h takes. Only the beginning of a fragment and the
// reading of bytes that are not UTF-8 differ from other byte pair encoding.
// Source: src/llama-vocab.cpp, llm_tokenizer_spm_session.

#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "bpe/bpe_model.h"
#include "lazy.h"
#include "spm/first_words.h"

namespace ggufbpe {

class SpmModel final : public BPEModel {
public:
    // `tokens` are indexed. `scores` has one for each token, none of them NaN, or is empty, if all are the same.
    // std::invalid_argument if there is no index, or another number of scores.
    SpmModel(std::shared_ptr<const Strings> tokens, std::vector<float> scores, bool add_space_prefix, size_t cache_bytes);

    // Only marks plain fragments: their beginning differs from that of the parts after them, and their bytes must stay as they
    // are.
    void cut_fragments(const unsigned char *text, std::vector<Fragment> &fragments, const Poll &poll) const override;
    // Throws std::invalid_argument for a text with a byte that has no token and needs one.
    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    // None for bytes that are not UTF-8.
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;
    bool words_read_bytes() const override { return true; }
    // Before spaces that no token joins to the preceding character.
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const override;
    int32_t continued(int32_t token) const override;
    void prepare_for(size_t bytes, const Poll &poll) const override;

private:
    SpmModel(std::shared_ptr<const Strings> tokens, std::shared_ptr<const std::vector<float>> scores, bool add_space_prefix,
             size_t cache_bytes);

    const Splitter &before_spaces(const Poll &poll) const;
    void encode_utf8(const unsigned char *text, size_t size, bool has_prefix, Scratch &scratch, Sink &ids,
                     const Poll &poll) const;
    void encode_bytes(const unsigned char *text, size_t size, bool has_prefix, Scratch &scratch, Sink &ids,
                      const Poll &poll) const;

    const std::shared_ptr<const Strings> tokens_;
    const bool add_space_prefix_;
    const FirstWords first_words_;
    Lazy<std::shared_ptr<const Splitter>> before_spaces_;  // for words as they are shown
};

}  // namespace ggufbpe
