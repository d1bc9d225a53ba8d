// The two ends of merging: a word to its symbols, and symbols to ids.

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "bpe/byte_alphabet.h"
#include "bpe/merge_table.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

// For short words, which need no polls.
struct NoPace {
    void count(size_t) {}
};

}  // namespace

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

size_t MergeTable::write_symbols(const Word &word, Symbol *symbols, const Poll &poll) const {
    size_t count = 0, read = 0;
    in_pieces(word.size, poll, [&](size_t, size_t end) {
        while (end < word.size && (word.data[end] & 0xC0) == 0x80) ++end;  // not inside a character
        count += write_symbols({word.data + read, end - read}, symbols + count);
        read = end;
    });
    return count;
}

size_t MergeTable::size_of_characters(const Word &word, size_t count) const {
    if (options_.byte_encode) return count;
    size_t size = 0;
    for (unsigned length; count; --count, size += length) code_point_at(word.data + size, word.data + word.size, length);
    return size;
}

template <typename Pacing>
void MergeTable::append_paced(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, Ids &ids,
                              Pacing &pace) const {
    const size_t token_count = tokens_->size();
    size_t character = 0, byte = 0;  // read so far
    for (size_t i = 0; i < count; ++i) {
        pace.count(1);
        if (symbols[i] < token_count) {
            ids.push(static_cast<int32_t>(symbols[i]));
        } else if (symbols[i] < symbol_count()) {
            const std::string &text = inner_[symbols[i] - token_count];
            pace.count(text.size() * Pace::LOOKUP);
            append_bytes(text, ids);
        } else {  // a character that the vocabulary lacks
            pace.count(4 * Pace::LOOKUP);
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

void MergeTable::append_ids(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, Ids &ids) const {
    NoPace pace;
    append_paced(word, symbols, starts, count, ids, pace);
}

void MergeTable::append_ids(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, Ids &ids,
                            const Poll &poll) const {
    Pace pace(poll);
    append_paced(word, symbols, starts, count, ids, pace);
}

// Calls push(start, end), positions in the symbol, for each byte of a symbol that is not a token, if the byte has one. A
// character that the model writes with another length than the text counts as a whole for each of its bytes.
template <typename Push>
void MergeTable::find_bytes(const Word &symbol, Push push) const {
    const auto push_if_known = [&](unsigned char byte, size_t start, size_t end) {
        if (byte_ids_[byte] != NO_BYTE) push(start, end);
    };
    for (size_t at = 0; at < symbol.size;) {
        unsigned length = 1;
        if (options_.byte_encode) {
            for (const char c : BYTE_ALPHABET.character(symbol.data[at])) push_if_known(static_cast<unsigned char>(c), at, at + 1);
        } else {
            uint32_t code_point = code_point_at(symbol.data + at, symbol.data + symbol.size, length);
            if (options_.escape_spaces && symbol.data[at] == ' ') code_point = ESCAPED_SPACE;
            unsigned char utf8[4];
            const unsigned written = write_utf8(code_point, utf8);
            for (unsigned i = 0; i < written; ++i) {
                push_if_known(utf8[i], written == length ? at + i : at, written == length ? at + i + 1 : at + length);
            }
        }
        at += length;
    }
}

void MergeTable::append_spans(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, size_t before,
                              Spans &spans, const Poll &poll) const {
    Pace pace(poll);
    const int64_t origin = word.data - spans.origin;
    const auto push = [&](size_t start, size_t end) {
        const auto in_text = [&](size_t at) { return origin + static_cast<int64_t>(std::max(at, before)); };
        spans.push(in_text(start), in_text(end));
    };
    size_t start = 0;
    for (size_t i = 0; i < count; ++i) {
        const Word rest{word.data + start, word.size - start};
        const size_t size = i + 1 < count ? size_of_characters(rest, starts[i + 1] - starts[i]) : rest.size;
        if (symbols[i] < tokens_->size()) {
            push(start, start + size);
        } else {
            find_bytes({rest.data, size}, [&](size_t from, size_t to) { push(start + from, start + to); });
        }
        pace.count(size + 1);
        start += size;
    }
}

void MergeTable::append_bytes(std::string_view text, Ids &ids) const {
    for (const char c : text) append_byte(static_cast<unsigned char>(c), ids);
}

void MergeTable::append_byte(unsigned char byte, Ids &ids) const {
    if (byte_ids_[byte] != NO_BYTE) {
        ids.push(byte_ids_[byte]);
    } else if (options_.needs_bytes) {
        char number[8];
        std::snprintf(number, sizeof number, "0x%02X", byte);
        throw std::invalid_argument("the text needs the byte " + std::string(number) +
                                    ", for which the vocabulary has no token (llama.cpp throws an exception there)");
    }
}

}  // namespace ggufbpe
