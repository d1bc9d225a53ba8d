// WordPiece's changes to characters before words are looked up: ggufbpe/models/wordpiece.py (BertNormalizer), compiled.
//
// Source: src/llama-vocab.cpp, llm_tokenizer_wpm_session::preprocess.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "poll.h"
#include "utf8.h"

namespace ggufbpe {

class Normalizer {
public:
    Normalizer(bool lowercase, bool strip_accents);

    enum Kind : uint8_t {
        in_word,  // and dropped ones
        space,
        alone,  // a word by itself
    };

    Kind kind(uint32_t code_point) const { return code_point < TABLE ? kinds_[code_point] : slow_kind(code_point); }

    // A character in words; DROPPED if nothing is left of it.
    static constexpr uint32_t DROPPED = UINT32_MAX;
    uint32_t written(uint32_t code_point) const {
        return code_point < SHORT_TABLE ? written_[code_point] : slow_written(code_point);
    }

    // Writes a word, which is UTF-8 (surrogates may be in it), as it is looked up.
    void write(const unsigned char *word, size_t size, std::string &to, const Poll &poll) const;

private:
    static constexpr uint32_t TABLE = 0x20000, SHORT_TABLE = 0x3100;  // up to emoji; up to kana

    void write_short_table();
    Kind slow_kind(uint32_t code_point) const;
    uint32_t slow_written(uint32_t code_point) const;

    bool lowercase_, strip_accents_;
    std::vector<Kind> kinds_;
    std::vector<uint32_t> written_;
};

}  // namespace ggufbpe
