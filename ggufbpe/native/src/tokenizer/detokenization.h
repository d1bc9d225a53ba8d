// Ids to text: ggufbpe/tokenizer/detokenization.py for C++.
//
// Source: src/llama-vocab.cpp, detokenize.

#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "poll.h"
#include "vocabulary/vocabulary.h"

namespace ggufbpe {

struct DecodeOptions {
    bool remove_special = false, unparse_special = false, clean_spaces = true;
};

// Thrown for an id that is not in the vocabulary.
struct NoSuchId : std::out_of_range {
    using std::out_of_range::out_of_range;
};

// Throws NoSuchId unless the vocabulary has the id.
void check_id(const Vocabulary &vocabulary, int32_t id);

// The bytes of ids. Throws NoSuchId.
std::string detokenize(const Vocabulary &vocabulary, const int32_t *ids, size_t count, DecodeOptions options, const Poll &poll);

// Ids in, one by one; text out, as soon as it is whole UTF-8 and nothing to come can change it.
class DecodeStream {
public:
    // `vocabulary` must outlive it.
    DecodeStream(const Vocabulary &vocabulary, DecodeOptions options);

    // The text that an id settles, often none. Throws NoSuchId, and is then unchanged.
    std::string push(int32_t id);
    // The rest. The stream is then as new.
    std::string finish();

private:
    std::string add(int32_t id);
    std::string decoded(const std::string &bytes, bool is_end);

    const Vocabulary *vocabulary_;
    DecodeOptions options_;
    std::string undecided_;  // bytes that the clean-up may still change
    std::string broken_;     // the beginning of a character
    bool holds_end_ = false;  // an EOS that is dropped if nothing follows
    bool removes_space_;
    bool has_begun_ = false;
};

}  // namespace ggufbpe
