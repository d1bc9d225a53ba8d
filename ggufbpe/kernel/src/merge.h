// A word to ids: byte pair encoding by tables. ggufbpe/bpe.py, compiled.
//
//     tokens, merges (string_array.h) -> Merger; word -> symbols -> ids
//
// Symbols are numbers: a token's id, or a number behind the ids for what occurs in merges but is no token. A pair of
// symbols is looked up in one table that gives the rank of its merge and the symbol that it becomes; no text is made.
//
// But: no cache, and no text; words come from split.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ids.h"
#include "memory.h"
#include "pairs.h"
#include "poll.h"
#include "string_array.h"

namespace ggufbpe {

struct MergeOptions {
    bool byte_encode = true;    // words are written in GPT-2's alphabet of bytes; else they stay UTF-8
    bool ignore_merges = false; // a word that is a token is that token
    bool newline_runs = false;  // so is a word of line breaks
    bool escape_spaces = false; // a space is written as U+2581
};

class Merger {
    struct Lane;
    struct Lanes;

public:
    // Symbols of a word that has to be merged as one, which takes some 50 bytes for each; see merge_in_windows().
    static constexpr size_t LONGEST_WORD = size_t(1) << 27;

    // `tokens` must be indexed; the index of a token is its id. A merge is "left right"; the first of two equal ones counts.
    Merger(std::shared_ptr<const Strings> tokens, const Strings &merges, const MergeOptions &options);

    // The places of all pairs of one rank, in a very long word.
    struct Row {
        uint32_t first = UINT32_MAX, last = UINT32_MAX;
        bool is_sorted = true, is_queued = false;
    };

    // Memory of one caller at a time, to be used again.
    struct Scratch {
        Scratch();
        ~Scratch();
        Buffer<uint32_t> symbols, next, before, row_next, row_before;
        Buffer<uint64_t> values;
        std::vector<uint32_t> places;
        std::vector<uint64_t> heap;
        std::vector<Row> rows;  // by rank; empty ones between words
        Ids ids;
        bool counts = false;  // ids of very long words are counted as soon as they are certain, and dropped:
        size_t dropped = 0;   // so many were
        std::vector<char> written;
        std::vector<uint32_t> numbers;  // of the words that are still to be merged
        std::vector<Lane> lanes;

        size_t bytes() const {
            return symbols.bytes() + next.bytes() + before.bytes() + row_next.bytes() + row_before.bytes() + values.bytes() +
                   places.capacity() * sizeof(uint32_t) + heap.capacity() * sizeof(uint64_t) + ids.bytes();
        }
    };

    // Appends the ids of a word, UTF-8 of any content, to scratch.ids. Throws std::length_error where LONGEST_WORD is too short.
    void encode(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;

    // How many ids that would be; of a very long word, without memory for all of them. What is in scratch.ids is lost.
    size_t count(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;
    static bool is_very_long(size_t size);

    // Many words at once: some of them go forward in turn, so that what one waits for is on its way while another works.
    // results[i] says where the ids of words[i] are in scratch.ids.
    struct Word {
        const unsigned char *data;
        size_t size;
    };
    struct Result {
        size_t start, count;
    };
    void encode_many(const Word *words, size_t count, Result *results, Scratch &scratch, const Poll &poll) const;

    // Whether words may be cut before every run of U+2581 but behind a few characters, which merges join to one.
    bool parts_at_spaces() const { return parts_at_spaces_; }
    const std::vector<uint32_t> &joined_to_spaces() const { return joined_to_spaces_; }
    size_t symbol_count() const { return tokens_->size() + inner_.size(); }

private:
    static constexpr uint64_t NONE = PairTable::NONE;

    std::vector<PairTable::Pair> read(const Strings &merges);
    void prepare_characters();
    uint32_t symbol_of(std::string_view text, uint64_t hash, int64_t likely);
    uint32_t character(const unsigned char *at, unsigned size) const;
    bool may_be_whole(const unsigned char *word, size_t size) const;
    size_t write(const unsigned char *word, size_t size, char *to) const;
    size_t write_symbols(const unsigned char *word, size_t size, uint32_t *symbols) const;

    static void sort_by_size(const Word *words, size_t count, Scratch &scratch);
    void find_whole(const Word *words, Result *results, Scratch &scratch) const;
    bool next_word(Lane &lane, Lanes &all) const;
    void begin(Lane &lane) const;
    void read_pairs(Lane &lane) const;
    void finish(Lane &lane, Lanes &all) const;
    size_t end_word(Lanes &all, size_t i) const;
    size_t go_on(Lanes &all, size_t i, size_t at, const PairTable::Reader &pairs) const;
    void turn(Lanes &all) const;
    void turn_wide(Lanes &all) const;

    uint64_t pair(uint32_t left, uint32_t right) const {
        return pairs_.reader().value(pairs_.reader().query(left, right));
    }
    bool merge_in_windows(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;
    size_t merge_long(const unsigned char *word, size_t size, Scratch &scratch, const Poll &poll) const;
    size_t behind(const Word &word, size_t characters) const;
    void merge_by_queue(size_t count, Scratch &scratch, const Poll &poll) const;
    bool merge_by_rank(size_t count, Scratch &scratch, const Poll &poll) const;
    void join(uint32_t at, size_t count, Scratch &scratch) const;
    void append_ids(const Word &word, const uint32_t *symbols, const uint32_t *places, size_t count, Ids &ids) const;
    void append_bytes(std::string_view text, Ids &ids) const;

    std::shared_ptr<const Strings> tokens_;
    MergeOptions options_;
    size_t longest_token_ = 0;  // bytes
    bool parts_at_spaces_ = true;
    std::vector<uint32_t> joined_to_spaces_;
    std::vector<std::string> inner_;  // the texts of symbols that are no tokens
    std::unordered_map<std::string, uint32_t, TextHash> inner_symbols_;
    PairTable pairs_;
    size_t rank_count_ = 0;
    uint32_t byte_symbols_[256];        // the symbol of a byte (byte level), or of an ASCII character
    ZeroedArray<uint64_t> byte_pairs_;  // [left byte << 8 | right byte]: the value of the pair (byte level)
};

}  // namespace ggufbpe
