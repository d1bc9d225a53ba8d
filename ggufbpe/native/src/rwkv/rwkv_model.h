// RWKV's tokenizer: the longest token at each place of a text, in bytes. ggufbpe/models/rwkv.py, compiled.
//
//     text -> words -> cache.h -> ids
//                         ^ new words: token_trie.h
//
// Where a token ends depends on everything before it. But between two bytes that no token has side by side one ends whatever
// comes before: there words are cut, and long texts are divided among threads.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "caching_model.h"
#include "token_trie.h"
#include "string_array.h"

namespace ggufbpe {

// Writes the bytes that a token stands for, which are not more than it has; returns where they end.
// Source: src/llama-vocab.cpp, llama_unescape_rwkv_token.
char *unescape_rwkv_token(std::string_view token, char *to);

class RWKVModel final : public CachingModel {
public:
    // `tokens` as in the file, escaped; `unknown` stands for a byte where no token matches.
    RWKVModel(const Strings &tokens, int32_t unknown, size_t cache_bytes, const Poll &poll = NO_POLL);

    void encode(const Part &part, TextModel::Scratch &scratch, Sink &ids, const Poll &poll) const override;
    void divide(const Part &part, size_t size, std::vector<Part> &parts, const Poll &poll) const override;
    bool reads_bytes() const override { return true; }
    bool words(const unsigned char *text, size_t size, TextModel::Scratch &scratch, const TakesWord &take,
               const Poll &poll) const override;
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const override;

protected:
    std::unique_ptr<TextModel::Scratch> new_scratch() const override;

private:
    struct Scratch;

    struct Unescaped;
    RWKVModel(const Unescaped &tokens, int32_t unknown, size_t cache_bytes, const Poll &poll);

    // Whether a text may be cut between two bytes.
    bool is_cut(unsigned char before, unsigned char behind) const {
        const size_t pair = size_t(before) << 8 | behind;
        return !(joined_[pair >> 6] >> (pair & 63) & 1);
    }
    const unsigned char *find_words(const unsigned char *at, const unsigned char *end, Words &words) const;
    const unsigned char *encode_long(const unsigned char *at, const unsigned char *end, Sink &ids, Pace &pace) const;

    TokenTrie tokens_;
    int32_t unknown_;
    std::vector<uint32_t> lengths_;   // of tokens, in bytes
    std::vector<uint64_t> joined_;  // a bit for each two bytes that a token has side by side
};

}  // namespace ggufbpe
