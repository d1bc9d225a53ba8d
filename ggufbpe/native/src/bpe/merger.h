// A word to ids: byte pair encoding by tables. ggufbpe/models/bpe/merge.py, compiled.
//
//     word -> whole_words.h -> is it a token? -> short_words.h, long_words.h or very_long_words.h, by its length -> ids
//                                                merge_table.h
//
// No cache, and no text: words come from split/splitter.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bpe/long_words.h"
#include "bpe/merge_table.h"
#include "bpe/short_words.h"
#include "bpe/token_lengths.h"
#include "bpe/very_long_words.h"
#include "bpe/word.h"
#include "ids.h"
#include "lazy.h"
#include "poll.h"
#include "string_array.h"

namespace ggufbpe {

class Merger {
public:
    using Word = ggufbpe::Word;
    using Result = WordIds;

    // As in MergeTable.
    Merger(std::shared_ptr<const Strings> tokens, const Strings &merges, const MergeOptions &options, const Poll &poll)
        : table_(std::move(tokens), merges, options, poll) {}
    Merger(std::shared_ptr<const Strings> tokens, const std::vector<uint32_t> &ranks, const MergeOptions &options,
           const Poll &poll)
        : table_(std::move(tokens), ranks, options, poll) {}

    Merger(std::shared_ptr<const Strings> tokens, const MergeOptions &options, TableReader from)
        : table_(std::move(tokens), options, std::move(from)) {}
    void write(TableWriter &to) const { table_.write(to); }

    // Memory of one caller at a time, reused between calls.
    struct Scratch {
        Ids ids;
        SymbolChain chain;
        std::vector<Lane> lanes;
        std::vector<uint32_t> numbers;  // of the words that are still to be merged
        std::vector<char> written;
        std::vector<Word> spaced;  // words, some of them copied to `copies` with a space in front
        std::vector<unsigned char> copies;

        size_t bytes() const { return ids.bytes() + chain.bytes() + spaced.capacity() * sizeof(Word) + copies.capacity(); }
    };

    // Appends the ids of a word to scratch.ids. Throws std::length_error for one of more than SymbolChain::LONGEST symbols
    // that cannot be merged in windows.
    void encode(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;

    // How many ids encode() would append; for a very long word, without memory for all of them. Overwrites scratch.ids.
    size_t count(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;
    static bool is_very_long(size_t size) { return ggufbpe::is_very_long(size); }

    // Many words at once. results[i] says where the ids of words[i] are in scratch.ids.
    void encode_many(const Word *words, size_t count, Result *results, Scratch &scratch, const Poll &poll) const;

    // Appends the spans of the ids of a word.
    void append_spans(const Word &word, const int32_t *ids, size_t count, Scratch &scratch, Spans &spans, const Poll &poll) const;

    // Appends the id of a byte that is in no word, if it has one.
    void append_byte(unsigned char byte, Ids &ids) const { table_.append_byte(byte, ids); }

    bool parts_at_spaces() const { return table_.parts_at_spaces(); }
    const std::vector<uint32_t> &joined_to_spaces() const { return table_.joined_to_spaces(); }
    const AsciiGroups &ascii_groups() const { return table_.ascii_groups(); }

private:
    bool gets_space(const Word &word) const;
    const Word *with_spaces(const Word *words, size_t count, Scratch &scratch) const;
    void encode(const Word &word, Scratch &scratch, CertainIds &to, const Poll &poll) const;

    void merge_for_spans(const Word &word, Scratch &scratch, Spans &spans, const Poll &poll) const;

    MergeTable table_;
    Lazy<TokenLengths> lengths_;
};

}  // namespace ggufbpe
