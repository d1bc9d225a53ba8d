// From a word to symbols, and from symbols to ids.

#include "bpe/merger.h"

#include <cstdio>

#include "utf8.h"

namespace ggufbpe {

// Writes the symbols of a word, which are as many as it has bytes, or fewer.
size_t Merger::write_symbols(const unsigned char *word, size_t size, uint32_t *symbols) const {
    if (options_.byte_encode) {
        for (size_t i = 0; i < size; ++i) symbols[i] = byte_symbols_[word[i]];
        return size;
    }
    size_t count = 0;
    for (size_t i = 0; i < size;) {
        if (word[i] < 0x80) {
            symbols[count++] = byte_symbols_[word[i++]];
            continue;
        }
        unsigned length;
        uint32_t code_point = code_point_at(word + i, word + size, length);
        unsigned char text[4];
        symbols[count++] = character(text, write_utf8(code_point, text));
        i += length;
    }
    return count;
}

// How many bytes the first characters of a word take: as write_symbols() counts them.
size_t Merger::behind(const Word &word, size_t characters) const {
    if (options_.byte_encode) return characters;
    size_t at = 0;
    for (unsigned length; characters; --characters, at += length) code_point_at(word.data + at, word.data + word.size, length);
    return at;
}

// The ids of symbols. A symbol that is no token becomes its bytes; bytes without a token are dropped
// (src/llama-vocab.cpp: llm_tokenizer_bpe_session). `places` says which of the word's characters a symbol begins with.
void Merger::append_ids(const Word &word, const uint32_t *symbols, const uint32_t *places, size_t count, Ids &ids) const {
    const size_t token_count = tokens_->size();
    size_t place = 0, at = 0;  // a character, and where it begins
    for (size_t i = 0; i < count; ++i) {
        if (symbols[i] < token_count) {
            ids.push(static_cast<int32_t>(symbols[i]));
        } else if (symbols[i] < symbol_count()) {
            append_bytes(inner_[symbols[i] - token_count], ids);
        } else {  // a character that nobody knows
            at += behind({word.data + at, word.size - at}, places[i] - place);
            place = places[i];
            unsigned length;
            uint32_t code_point = code_point_at(word.data + at, word.data + word.size, length);
            if (options_.escape_spaces && word.data[at] == ' ') code_point = ESCAPED_SPACE;
            unsigned char bytes[4];
            const unsigned written = write_utf8(code_point, bytes);
            append_bytes({reinterpret_cast<const char *>(bytes), written}, ids);
        }
    }
}

// Of a byte-level symbol llama.cpp looks up single bytes of the UTF-8, so only ASCII ones can be found.
void Merger::append_bytes(std::string_view text, Ids &ids) const {
    for (char c : text) {
        int64_t id;
        if (options_.byte_encode) {
            id = static_cast<unsigned char>(c) < 0x80 ? tokens_->find(std::string_view(&c, 1)) : -1;
        } else {
            char name[8];
            std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(c));
            id = tokens_->find(name);
        }
        if (id >= 0) ids.push(static_cast<int32_t>(id));
    }
}

}  // namespace ggufbpe
