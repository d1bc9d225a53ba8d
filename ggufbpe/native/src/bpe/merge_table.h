// The symbols of a vocabulary and the merges between them, for all ways of merging.
//
//     tokens, merges (string_array.h) -> MergeTable; word -> symbols (symbols.cpp); symbols -> ids (symbols.cpp)
//
// A symbol is a token's id, or a number above the ids for a text that occurs in merges but is not a token. With symbols in
// place of texts, merging is a lookup of pairs of numbers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bpe/pair_table.h"
#include "bpe/word.h"
#include "ids.h"
#include "memory.h"
#include "poll.h"
#include "spans.h"
#include "string_array.h"
#include "table_file.h"

namespace ggufbpe {

struct MergeOptions {
    bool byte_encode = true;    // words are written in GPT-2's alphabet of bytes; otherwise they stay UTF-8
    bool ignore_merges = false; // a word that is a token is that token
    bool newline_runs = false;  // so is a word of line breaks
    bool prepend_space = false; // any other word without a U+2581 at its beginning gets one; needs escape_spaces
    bool escape_spaces = false; // a space is written as U+2581
    bool needs_bytes = false;   // a byte may also use the token of its character; without one it is an error
};

// ASCII characters, grouped so that merges never join characters of different groups. A vocabulary that was trained with
// letters, digits and punctuation apart has a group for each.
struct AsciiGroups {
    std::vector<std::string> joined;
    std::string alone;  // characters that merges join to no ASCII character, not even themselves

    bool tell_apart() const { return joined.size() + !alone.empty() > 1; }
};

class AsciiJoins;

class MergeTable {
public:
    static constexpr uint32_t ESCAPED_SPACE = 0x2581;

    // `tokens` must be indexed; the index of a token is its id. A merge is "left right"; of equal pairs the first counts.
    MergeTable(std::shared_ptr<const Strings> tokens, const Strings &merges, const MergeOptions &options, const Poll &poll);

    // Two symbols whose joined text is a token have a merge, of the rank that this token has in `ranks`. Tokens may share a
    // rank.
    MergeTable(std::shared_ptr<const Strings> tokens, const std::vector<uint32_t> &ranks, const MergeOptions &options,
               const Poll &poll);

    // The table that write() wrote of one with these tokens and options.
    MergeTable(std::shared_ptr<const Strings> tokens, const MergeOptions &options, TableReader from);
    void write(TableWriter &to) const;

    const Strings &tokens() const { return *tokens_; }
    const MergeOptions &options() const { return options_; }
    size_t longest_token() const { return longest_token_; }  // bytes
    size_t symbol_count() const { return tokens_->size() + inner_.size(); }
    size_t rank_count() const { return rank_count_; }

    const PairTable::Reader &pairs() const { return pairs_.reader(); }
    Merge merge(Symbol left, Symbol right) const { return pairs().merge(pairs().query(left, right)); }

    // The same for two bytes, at byte level: few enough to stay in cache, without hashing and fetching.
    Merge merge_of_bytes(unsigned char left, unsigned char right) const {
        return byte_merges_[size_t(right) << 8 | size_t(left)];
    }
    // The symbol of a byte at byte level, otherwise that of an ASCII character.
    Symbol symbol_of_byte(unsigned char byte) const { return byte_symbols_[byte]; }

    // Writes the symbols of a word, at most as many as its bytes; returns how many. A character that is neither a token nor in
    // any merge is no_symbol().
    size_t write_symbols(const Word &word, Symbol *symbols) const;
    size_t write_symbols(const Word &word, Symbol *symbols, const Poll &poll) const;

    // The bytes of a word's first `count` characters, of which write_symbols() makes one symbol each.
    size_t size_of_characters(const Word &word, size_t count) const;

    // Appends the ids of a word's symbols; `starts` has the character with which each begins. A symbol that is not a token
    // becomes its bytes, and bytes without a token are dropped (src/llama-vocab.cpp: llm_tokenizer_bpe_session).
    // Throws std::invalid_argument if a byte without a token is needed (needs_bytes).
    void append_ids(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, Ids &ids) const;
    void append_ids(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, Ids &ids,
                    const Poll &poll) const;

    // The spans of the ids from append_ids(), for a word that begins `before` bytes before its text.
    void append_spans(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, size_t before, Spans &spans,
                      const Poll &poll) const;

    // Appends the id of a byte that is in no symbol, if it has one.
    void append_byte(unsigned char byte, Ids &ids) const;

    // The token that a byte falls back to; negative if it has none.
    int32_t id_of_lone_byte(unsigned char byte) const { return byte_ids_[byte]; }

    // Whether words may be cut before every run of U+2581, except after the characters that merges join to one.
    bool parts_at_spaces() const { return parts_at_spaces_; }
    const std::vector<uint32_t> &joined_to_spaces() const { return joined_to_spaces_; }
    // If parts_at_spaces(), words may be cut between these, too.
    const AsciiGroups &ascii_groups() const { return ascii_groups_; }

private:
    struct Facts;

    void check_tokens(size_t merge_count, const Poll &poll);
    PairTable::Pairs read_merges(const Strings &merges, const Poll &poll);
    PairTable::Pairs read_tokens(const std::vector<uint32_t> &ranks, const Poll &poll);
    void note_joined_to_space(uint32_t character);
    void find_places_to_part(const AsciiJoins &joins);
    void find_characters();
    Symbol symbol_of(std::string_view text, uint64_t hash, int64_t likely);
    int32_t id_of_byte(unsigned char byte) const;
    Symbol symbol_of_character(const unsigned char *utf8, unsigned size) const;
    template <typename Pacing>
    void append_paced(const Word &word, const Symbol *symbols, const uint32_t *starts, size_t count, Ids &ids, Pacing &pace) const;
    void append_bytes(std::string_view text, Ids &ids) const;
    template <typename Push>
    void find_bytes(const Word &symbol, Push push) const;
    static constexpr int32_t NO_BYTE = -1;
    static constexpr size_t BYTE_PAIRS = 65536;

    std::shared_ptr<const Strings> tokens_;
    MergeOptions options_;
    size_t longest_token_ = 0;
    size_t rank_count_;
    bool parts_at_spaces_ = false;
    std::vector<uint32_t> joined_to_spaces_;
    AsciiGroups ascii_groups_;
    std::vector<std::string> inner_;  // the texts of symbols that are not tokens
    std::unordered_map<std::string, Symbol, TextHash> inner_symbols_;
    PairTable pairs_;
    Symbol byte_symbols_[256];
    int32_t byte_ids_[256];  // the token that a byte falls back to; NO_BYTE if it has none
    ZeroedArray<Merge> own_byte_merges_;
    const Merge *byte_merges_ = nullptr;  // [right byte << 8 | left byte]; these, or those of a file that pairs_ keeps
};

}  // namespace ggufbpe
