// Words that are tokens as a whole, under vocabularies that ignore merges for those.

#include "bpe/merger.h"

#include <algorithm>
#include <cstring>

#include "bpe/byte_alphabet.h"

namespace ggufbpe {

namespace {

constexpr size_t AT_ONCE = 32;            // words whose tokens are looked up together

}  // namespace

bool Merger::may_be_whole(const unsigned char *word, size_t size) const {
    // Twice, for the one form that is shorter when it is written.
    if (!(options_.ignore_merges || options_.newline_runs) || size > 2 * longest_token_) return false;
    if (options_.ignore_merges) return true;
    for (size_t i = 0; i < size; ++i) {
        if (word[i] != '\n') return false;
    }
    return true;
}

// Writes a word as it is for merging, and a few bytes more; returns its size. There must be room for 3 * size + 4 bytes.
size_t Merger::write(const unsigned char *word, size_t size, char *to) const {
    const char *const begin = to;
    for (size_t i = 0; i < size; ++i) {
        if (options_.byte_encode) {
            std::memcpy(to, ALPHABET.text[word[i]], 2);
            to += ALPHABET.size[word[i]];
        } else if (options_.escape_spaces && word[i] == ' ') {
            std::memcpy(to, "\xE2\x96\x81", 3);
            to += 3;
        } else if (word[i] == 0xC0) {  // the space that is not to be escaped: see Encoder::rewrite
            *to++ = ' ';
            ++i;
        } else {
            *to++ = static_cast<char>(word[i]);
        }
    }
    return static_cast<size_t>(to - begin);
}

// Finds the words that are tokens as a whole, and takes them out of scratch.numbers. In groups, so that what a group will
// look up is on its way while its hashes are made.
void Merger::find_whole(const Word *words, Result *results, Scratch &scratch) const {
    constexpr size_t ROOM = 3 * SHORT_WORD + 4;
    struct Item {
        size_t size;
        uint64_t hash;
        int64_t likely;
    } items[AT_ONCE];
    scratch.written.resize(std::max(scratch.written.size(), AT_ONCE * ROOM));
    std::vector<uint32_t> &numbers = scratch.numbers;
    size_t left = 0;
    for (size_t from = 0; from < numbers.size(); from += AT_ONCE) {
        const size_t count = std::min(AT_ONCE, numbers.size() - from);
        for (size_t i = 0; i < count; ++i) {
            const Word &word = words[numbers[from + i]];
            Item &item = items[i];
            item.size = 0;
            if (word.size > SHORT_WORD || !may_be_whole(word.data, word.size)) continue;
            char *to = scratch.written.data() + i * ROOM;
            item.size = write(word.data, word.size, to);
            item.hash = hash_bytes(to, item.size);
            tokens_->prefetch(item.hash);
        }
        for (size_t i = 0; i < count; ++i) {
            items[i].likely = items[i].size ? tokens_->likely(items[i].hash) : -1;
            tokens_->prefetch_end(items[i].likely);
        }
        for (size_t i = 0; i < count; ++i) tokens_->prefetch_text(items[i].likely);
        for (size_t i = 0; i < count; ++i) {
            const uint32_t number = numbers[from + i];
            const std::string_view written{scratch.written.data() + i * ROOM, items[i].size};
            const int64_t id = tokens_->find_likely(written, items[i].hash, items[i].likely);
            if (id < 0) {
                numbers[left++] = number;
            } else {
                results[number] = {scratch.ids.size(), 1};
                scratch.ids.push(static_cast<int32_t>(id));
            }
        }
    }
    numbers.resize(left);
}

}  // namespace ggufbpe
