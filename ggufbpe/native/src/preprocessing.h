// What two kinds of models do with plain text before it is split: ggufbpe/models/dna.py and whitespace.py, compiled.
//
//     special.h -> fragments -> KMers -> plain text, k-mers -> encoder.h
//     plain text -> SpacedWords -> the same in lower case -> split/ -> words -> SpacedWords -> words without space -> encoder.h
//
// No splitting and no merging. Other models have none of these steps.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "poll.h"
#include "spans.h"
#include "special.h"
#include "string_array.h"

namespace ggufbpe {

enum class Preprocessing {
    none,
    k_mers,
    spaced_words,
    lowered_words,  // the same in lower case
};

// The sequences of a DNA model: text between <dna> and </dna> is taken six letters at a time.
// Source: src/llama-vocab.cpp, llm_tokenizer_hybriddna_session.
class KMers {
public:
    static constexpr size_t LENGTH = 6;      // bytes, as llama.cpp counts
    static constexpr int32_t SEQUENCE = -2;  // the token of a fragment of k-mers; the last one may be short

    // Null if <dna>, </dna> or <oov> is not a token: then sequences are plain text.
    static std::unique_ptr<KMers> of(std::shared_ptr<const Strings> tokens);

    // Cuts the plain fragments of `text` into plain text, sequences and the tokens around these.
    void cut(const unsigned char *text, std::vector<Fragment> &fragments, const Poll &poll) const;

    // The id of at most LENGTH bytes of a sequence.
    int32_t id(const unsigned char *k_mer, size_t size) const;

private:
    KMers(std::shared_ptr<const Strings> tokens, int32_t begin, int32_t close, int32_t unknown)
        : tokens_(std::move(tokens)), begin_(begin), close_(close), unknown_(unknown) {}

    std::shared_ptr<const Strings> tokens_;
    int32_t begin_, close_, unknown_;
};

// The words of a `whitespace` model, which drops white space, and may lowercase everything. Its splitter cuts around white
// space first (Splitter::parted_at_white_space), so that a word is all white space or has none.
// Source: src/llama-vocab.cpp, llm_tokenizer_whitespace_session.
class SpacedWords {
public:
    // With `escape_spaces` the byte of a space is not white space: it was written as U+2581 before.
    SpacedWords(bool lowercase, bool escape_spaces);

    bool lowers() const { return lowercase_; }

    // Writes text in lower case, and the changes. It is UTF-8 (surrogates may be in it), here and below.
    void write_lower(const unsigned char *text, size_t size, std::string &to, ChangedText *changes, const Poll &poll) const;

    bool is_white_space(const unsigned char *word, size_t size) const;

    // Where the first white space at or after `from` begins; the size if there is none. `from` may be inside a character.
    size_t cut(const unsigned char *text, size_t size, size_t from, const Poll &poll) const;

private:
    bool is_white_space(uint32_t code_point, unsigned length) const;

    bool lowercase_, escape_spaces_;
    bool is_ascii_space_[128];
};

}  // namespace ggufbpe
