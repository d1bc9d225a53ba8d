// Text to fragments: special tokens, and the plain text between them. ggufbpe/tokenizer/special_tokens.py, compiled.
//
//     text -> Partition -> fragments -> split/ (plain text), ids (special tokens)
//
// llama.cpp goes through all special tokens, the longest first, and cuts each out of every fragment that is still plain
// text (src/llama-vocab.cpp: tokenizer_st_partition). Here one search with a trie finds the longest token at every place
// that matters. Only if several overlap, or white space is stripped, does the order of cutting matter.
//
// A text takes time in proportion to its length times that of the longest token, whatever tokens there are.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "poll.h"
#include "string_array.h"

#if !defined(GGUFBPE_STRETCH)
#define GGUFBPE_STRETCH (1 << 20)  // tests take a short one
#endif

namespace ggufbpe {

// Bytes of a text that are searched at a time. No inline function may use it: its value depends on the object file in tests.
constexpr size_t STRETCH = GGUFBPE_STRETCH;

// isspace in the C locale: what special tokens strip beside them.
inline bool is_c_space(unsigned char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

struct Fragment {
    int32_t token;  // -1 for plain text; see also preprocessing.h
    size_t start, end;
};

struct SpecialToken {
    int32_t id;
    bool hidden;  // control or unknown: found only if special tokens are parsed
    bool strips_left, strips_right;
};

class Partition {
public:
    // Finds `special` in texts; if `parse_special` is false, hidden ones are plain text.
    Partition(std::shared_ptr<const Strings> tokens, const std::vector<SpecialToken> &special, bool parse_special,
              const Poll &poll);

    // A place with a token: the longest of those that begin there, by its rank in llama.cpp's order.
    struct Match {
        size_t at;
        uint32_t rank;
    };

    // Gives the fragments of a text in order, none empty, some at a time: calls take() when there are new ones in `fragments`, which
    // is empty before and after. White space stripped by a token is in none.
    void split(const unsigned char *text, size_t size, std::vector<Fragment> &fragments, const std::function<void()> &take,
               const Poll &poll) const;

    // The same in two steps, so that threads can share the search: appends the places from `from` up to `to`, in order, `all` of them
    // or without some that are certain to lie in a token; and then a Cutter takes the latter.
    enum class Places { all, needed };
    void find(const unsigned char *text, size_t size, size_t from, size_t to, Places places, std::vector<Match> &matches,
              Pace &pace) const;
    class Cutter;

    // The bytes of the token of a rank.
    size_t length(uint32_t rank) const { return tokens_[rank].text.size(); }

private:
    static constexpr uint32_t NONE = UINT32_MAX;

    // The tokens to find, by rank.
    struct Token {
        std::string_view text;
        int32_t id;
        bool strips_left, strips_right;
        uint32_t shorter;     // the longest other token that it begins with, or NONE
        bool is_run = false;  // of one byte, two or more
    };

    // A node of the trie. Children lie side by side, in the order of the bytes that lead to them.
    struct Node {
        const char *label;  // follows the byte that leads here, up to the next branch or end
        uint32_t label_size;
        uint32_t first_child, children;
        uint32_t rank;  // of the token that ends here, or NONE
    };

    void build_trie(Pace &pace);
    void learn_beginnings();
    void learn_runs();
    bool holds_what_begins_in_it(const Token &token, const unsigned char *end, const unsigned char *text_end) const;
    size_t next_candidate(const unsigned char *text, size_t size, size_t from, size_t to) const;
    uint32_t longest_at(const unsigned char *here, const unsigned char *end, Pace &pace) const;
    uint32_t child_of(const Node &node, unsigned char byte) const;

    std::shared_ptr<const Strings> strings_;
    std::vector<Token> tokens_;
    bool strips_ = false;
    size_t longest_ = 0;  // bytes of a token
    std::vector<Node> nodes_;
    std::vector<unsigned char> branches_;  // the byte that leads to each node
    uint32_t by_first_byte_[256] = {};     // the root's children; 0 if there is none
    // Of the tokens that begin with a run of one byte: what may follow the run in one of them, and by the length of a run, up to
    // the longest in a token, the longest token that is a run and no longer.
    struct Runs {
        std::array<uint64_t, 4> after{};
        std::vector<uint32_t> ranks{NONE};
        bool go_on_with(unsigned char byte) const { return after[byte >> 6] >> (byte & 63) & 1; }
    };
    std::vector<Runs> runs_;       // of each byte; empty if no token is a run
    std::vector<uint64_t> pairs_;  // a bit for each two bytes that a token may begin with
    // The same for byte shuffles: a place is a candidate if the AND of four lookups is not 0.
    alignas(16) uint8_t low_first_[16] = {}, high_first_[16] = {}, low_second_[16] = {}, high_second_[16] = {};
};

// The places of a text to its fragments, as far as no later place can change them.
class Partition::Cutter {
public:
    Cutter(const Partition &partition, const unsigned char *text, size_t size) : partition_(partition), text_(text), size_(size) {}

    // Takes the next places of the text, in order, and leaves none; appends the fragments that are certain.
    void add(std::vector<Match> &found, std::vector<Fragment> &fragments, Pace &pace);
    // After the last one: appends the rest.
    void finish(std::vector<Fragment> &fragments, Pace &pace);

private:
    std::pair<size_t, size_t> touched_range(const Match &match, Pace &pace);
    void end_region(Match *first, Match *end, std::vector<Fragment> &fragments, Pace &pace);
    void cut_region(Match *first, Match *end, std::vector<Fragment> &fragments, Pace &pace);
    void put(const Fragment &fragment, std::vector<Fragment> &fragments);

    const Partition &partition_;
    const unsigned char *const text_;
    const size_t size_;
    // The last region: a part of the text whose tokens and stripped white space touch nothing outside.
    std::vector<Match> matches_;
    size_t seen_ = 0;  // of these
    size_t start_ = 0, end_ = 0;
    size_t done_ = 0;                           // up to where regions have ended
    size_t spaces_start_ = 0, spaces_end_ = 0;  // the last run of white space looked at
    Fragment plain_{-1, 0, 0};                  // may go on
    // Memory that regions use in turn.
    std::vector<unsigned char> is_taken_;  // for each byte of the region, by a token or stripped by one
    std::vector<Match> taken_, shorter_;
};

// Sorts `items`, (length, index) with indices ascending, by falling length in the order of libstdc++'s std::sort, which
// llama.cpp is built with and which does not keep the order of equal lengths.
void sort_longest_first(std::vector<std::pair<size_t, size_t>> &items, Pace &pace);

}  // namespace ggufbpe
