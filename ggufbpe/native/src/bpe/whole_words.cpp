#include "bpe/whole_words.h"

#include <algorithm>
#include <cstring>

#include "bpe/byte_alphabet.h"
#include "bpe/short_words.h"

namespace ggufbpe {

namespace {

constexpr unsigned char OVERLONG = 0xC0;  // begins the overlong form of a space, which is not escaped: see Encoder::rewrite
constexpr size_t GROUP = 32;  // words looked up together, each step for all of them before the next

// The most bytes that write_as_token() may write for a word of `size` bytes.
constexpr size_t room_for(size_t size) { return 3 * size + 4; }

bool may_be_whole(const MergeTable &table, const Word &word) {
    const MergeOptions &options = table.options();
    // Twice, because the overlong form of a space is two bytes of a word and one of a token.
    if (!(options.ignore_merges || options.newline_runs) || word.size > 2 * table.longest_token()) return false;
    return options.ignore_merges ||
           std::all_of(word.data, word.data + word.size, [](unsigned char byte) { return byte == '\n'; });
}

// Writes a word as in the vocabulary; returns its size.
size_t write_as_token(const Word &word, const MergeOptions &options, char *to) {
    const char *const begin = to;
    for (size_t i = 0; i < word.size; ++i) {
        if (options.byte_encode) {
            to = BYTE_ALPHABET.write(word.data[i], to);
        } else if (options.escape_spaces && word.data[i] == ' ') {
            std::memcpy(to, "\xE2\x96\x81", 3);
            to += 3;
        } else if (word.data[i] == OVERLONG) {
            *to++ = ' ';
            ++i;
        } else {
            *to++ = static_cast<char>(word.data[i]);
        }
    }
    return static_cast<size_t>(to - begin);
}

}  // namespace

int64_t find_whole_word(const MergeTable &table, const Word &word, std::vector<char> &written, const Poll &poll) {
    if (!may_be_whole(table, word)) return Strings::NOT_FOUND;
    written.resize(std::max(written.size(), room_for(word.size)));
    size_t size = 0, read = 0;
    in_pieces(word.size, poll, [&](size_t, size_t end) {
        if (word.data[end - 1] == OVERLONG && end < word.size) ++end;  // not between the two bytes of an overlong space
        size += write_as_token({word.data + read, end - read}, table.options(), written.data() + size);
        read = end;
    });
    return table.tokens().find({written.data(), size});
}

void find_whole_words(const MergeTable &table, const Word *words, std::vector<uint32_t> &numbers, WordIds *results, Ids &ids,
                      std::vector<char> &written) {
    constexpr size_t ROOM = room_for(SHORT_WORD);
    const Strings &tokens = table.tokens();
    struct Item {
        size_t size;
        uint64_t hash;
        int64_t likely;
    } items[GROUP];
    written.resize(std::max(written.size(), GROUP * ROOM));
    size_t kept = 0;
    for (size_t from = 0; from < numbers.size(); from += GROUP) {
        const size_t count = std::min(GROUP, numbers.size() - from);
        for (size_t i = 0; i < count; ++i) {
            const Word &word = words[numbers[from + i]];
            Item &item = items[i];
            item.size = 0;
            if (!may_be_whole(table, word)) continue;
            char *to = written.data() + i * ROOM;
            item.size = write_as_token(word, table.options(), to);
            item.hash = tokens.hash({to, item.size});
            tokens.prefetch(item.hash);
        }
        for (size_t i = 0; i < count; ++i) {
            items[i].likely = items[i].size ? tokens.likely(items[i].hash) : Strings::NOT_FOUND;
            tokens.prefetch_end(items[i].likely);
        }
        for (size_t i = 0; i < count; ++i) tokens.prefetch_text(items[i].likely);
        for (size_t i = 0; i < count; ++i) {
            const uint32_t number = numbers[from + i];
            const std::string_view token{written.data() + i * ROOM, items[i].size};
            const int64_t id = tokens.find_likely(token, items[i].hash, items[i].likely);
            if (id == Strings::NOT_FOUND) {
                numbers[kept++] = number;
            } else {
                results[number] = {ids.size(), 1};
                ids.push(static_cast<int32_t>(id));
            }
        }
    }
    numbers.resize(kept);
}

}  // namespace ggufbpe
