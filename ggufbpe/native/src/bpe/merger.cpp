#include "bpe/merger.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "bpe/whole_words.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

void check_length(const Word &word, bool is_byte_level, const Poll &poll) {
    constexpr size_t BYTES_A_SYMBOL = 60;
    if (word.size <= SymbolChain::LONGEST) return;
    const auto is_first_of_character = [&](unsigned char byte) { return is_byte_level || (byte & 0xC0) != 0x80; };
    size_t characters = 0;
    in_pieces(word.size, poll, [&](size_t from, size_t end) {
        characters += static_cast<size_t>(std::count_if(word.data + from, word.data + end, is_first_of_character));
    });
    if (characters <= SymbolChain::LONGEST) return;
    throw std::length_error("the pre-tokenizer leaves a word of " + std::to_string(characters) +
                            " characters, which takes " + std::to_string(BYTES_A_SYMBOL * characters >> 30) +
                            " GiB to merge; the limit is " + std::to_string(SymbolChain::LONGEST));
}

// The numbers of all words, the short ones first, sorted by size: loops then run as often as for the previous word, which
// makes their branches predictable. Returns how many are short.
size_t sort_by_size(const Word *words, size_t count, std::vector<uint32_t> &numbers) {
    constexpr size_t SIZES = SHORT_WORD + 2;  // from 0 on; the last one is for all longer words
    uint32_t places[SIZES + 1] = {0};
    const auto size_of = [](const Word &word) { return std::min(word.size, SHORT_WORD + 1); };
    for (size_t i = 0; i < count; ++i) ++places[size_of(words[i]) + 1];
    for (size_t size = 1; size <= SIZES; ++size) places[size] += places[size - 1];
    const size_t short_count = places[SHORT_WORD + 1];
    numbers.resize(count);
    for (size_t i = 0; i < count; ++i) numbers[places[size_of(words[i])]++] = static_cast<uint32_t>(i);
    return short_count;
}

}  // namespace

// Source: src/llama-vocab.cpp, llm_tokenizer_bpe_session::tokenize. Spaces are already U+2581.
bool Merger::gets_space(const Word &word) const {
    if (!word.size || word.data[0] == ' ') return false;
    unsigned length;
    const uint32_t first = code_point_at(word.data, word.data + word.size, length);
    return first != '\n' && first != MergeTable::ESCAPED_SPACE;
}

// The words ready for merging, valid until the next call.
const Word *Merger::with_spaces(const Word *words, size_t count, Scratch &scratch) const {
    if (!table_.options().prepend_space) return words;
    size_t size = 0;
    for (size_t i = 0; i < count; ++i) size += gets_space(words[i]) ? words[i].size + 1 : 0;
    if (!size) return words;
    scratch.copies.resize(size);
    unsigned char *to = scratch.copies.data();
    scratch.spaced.assign(words, words + count);
    for (Word &word : scratch.spaced) {
        if (!gets_space(word)) continue;
        *to = ' ';
        std::memcpy(to + 1, word.data, word.size);
        word = {to, word.size + 1};
        to += word.size;
    }
    return scratch.spaced.data();
}

void Merger::encode(const Word &word, Scratch &scratch, CertainIds &to, const Poll &poll) const {
    const int64_t whole = find_whole_word(table_, word, scratch.written, poll);
    if (whole != Strings::NOT_FOUND) {
        to.ids.push(static_cast<int32_t>(whole));
        return;
    }
    if (is_very_long(word.size) && merge_in_windows(table_, word, scratch.chain, to, poll)) return;
    check_length(word, table_.options().byte_encode, poll);
    const size_t count = scratch.chain.merge(table_, word, poll);
    table_.append_ids(word, scratch.chain.symbols(), scratch.chain.starts(), count, to.ids, poll);
}

void Merger::encode(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    CertainIds to{scratch.ids, false};
    const Word own{word, size};
    encode(*with_spaces(&own, 1, scratch), scratch, to, poll);
}

void Merger::append_spans(const Word &word, const int32_t *ids, size_t count, Scratch &scratch, Spans &spans,
                          const Poll &poll) const {
    const TokenLengths &lengths = lengths_.get([&] { return std::make_unique<TokenLengths>(table_, poll); });
    const int64_t start = word.data - spans.origin, end = start + static_cast<int64_t>(word.size);
    int64_t at = start - (table_.options().prepend_space && gets_space(word));
    Span *to = spans.room(count);
    size_t known = 0;
    Pace pace(poll);
    for (; known < count && lengths[ids[known]] != TokenLengths::UNCERTAIN; ++known) {
        const int64_t next = at + lengths[ids[known]];
        *to++ = {std::max(at, start), std::max(next, start)};
        at = next;
        pace.count(1);
    }
    if (known == count && at == end) return spans.advance(to);
    merge_for_spans(word, scratch, spans, poll);
}

// The same where lengths do not suffice.
void Merger::merge_for_spans(const Word &word, Scratch &scratch, Spans &spans, const Poll &poll) const {
    const Word written = *with_spaces(&word, 1, scratch);
    const size_t before = written.size - word.size;
    if (find_whole_word(table_, written, scratch.written, poll) != Strings::NOT_FOUND) return spans.push(word.data, word.size);
    check_length(written, table_.options().byte_encode, poll);
    const size_t count = scratch.chain.merge(table_, written, poll);
    const unsigned char *const origin = spans.origin;
    if (before) spans.origin = written.data + before - (word.data - origin);
    table_.append_spans(written, scratch.chain.symbols(), scratch.chain.starts(), count, before, spans, poll);
    spans.origin = origin;
}

size_t Merger::count(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const {
    scratch.ids.clear();
    CertainIds to{scratch.ids, true};
    const Word own{word, size};
    encode(*with_spaces(&own, 1, scratch), scratch, to, poll);
    return to.dropped + scratch.ids.size();
}

void Merger::encode_many(const Word *words, size_t count, Result *results, Scratch &scratch, const Poll &poll) const {
    words = with_spaces(words, count, scratch);
    const size_t short_count = sort_by_size(words, count, scratch.numbers);
    CertainIds to{scratch.ids, false};
    for (size_t i = short_count; i < count; ++i) {
        const size_t start = scratch.ids.size();
        encode(words[scratch.numbers[i]], scratch, to, poll);
        results[scratch.numbers[i]] = {start, scratch.ids.size() - start};
    }
    scratch.numbers.resize(short_count);
    const MergeOptions &options = table_.options();
    if (options.ignore_merges || options.newline_runs) {
        find_whole_words(table_, words, scratch.numbers, results, scratch.ids, scratch.written);
    }
    merge_short_words(table_, words, scratch.numbers.data(), scratch.numbers.size(), results, scratch.ids, scratch.lanes);
}

}  // namespace ggufbpe
