// The two ends of merging: a word to its symbols, and symbols to ids.

#include <cstdio>

#include "bpe/merge_table.h"
#include "utf8.h"

namespace ggufbpe {

size_t MergeTable::write_symbols(const Word &word, Symbol *symbols) const {
    if (options_.byte_encode) {
        for (size_t i = 0; i < word.size; ++i) symbols[i] = byte_symbols_[word.data[i]];
        return word.size;
    }
    size_t count = 0;
    for (size_t i = 0; i < word.size;) {
        if (word.data[i] < 0x80) {
            symbols[count++] = byte_symbols_[word.data[i++]];
            continue;
        }
        unsigned length;
        const uint32_t code_point = code_point_at(word.data + i, word.data + word.size, length);
        unsigned char utf8[4];
        symbols[count++] = symbol_of_character(utf8, write_utf8(code_point, utf8));
        i += length;
    }
    return count;
}

size_t MergeTable::size_of_characters(const Word &word, size_t count) const {
    if (options_.byte_encode) return count;
    size_t size = 0;
    for (unsigned length; count; --count, size += length) code_point_at(word.data + size, word.data + word.size, length);
    return size;
}

void MergeTable::append_ids(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, Ids &ids) const {
    const size_t token_count = tokens_->size();
    size_t character = 0, byte = 0;  // how far the word was read
    for (size_t i = 0; i < count; ++i) {
        if (symbols[i] < token_count) {
            ids.push(static_cast<int32_t>(symbols[i]));
        } else if (symbols[i] < symbol_count()) {
            append_bytes(inner_[symbols[i] - token_count], ids);
        } else {  // a character that the vocabulary does not know
            byte += size_of_characters({word.data + byte, word.size - byte}, starts[i] - character);
            character = starts[i];
            unsigned length;
            uint32_t code_point = code_point_at(word.data + byte, word.data + word.size, length);
            if (options_.escape_spaces && word.data[byte] == ' ') code_point = ESCAPED_SPACE;
            unsigned char utf8[4];
            const unsigned written = write_utf8(code_point, utf8);
            append_bytes({reinterpret_cast<const char *>(utf8), written}, ids);
        }
    }
}

// At byte level llama.cpp looks up single bytes of the symbol's UTF-8, so only ASCII ones can be found.
void MergeTable::append_bytes(std::string_view text, Ids &ids) const {
    for (char c : text) {
        int64_t id = Strings::NOT_FOUND;
        if (!options_.byte_encode) {
            char name[8];
            std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned char>(c));
            id = tokens_->find(name);
        } else if (static_cast<unsigned char>(c) < 0x80) {
            id = tokens_->find(std::string_view(&c, 1));
        }
        if (id != Strings::NOT_FOUND) ids.push(static_cast<int32_t>(id));
    }
}

}  // namespace ggufbpe
