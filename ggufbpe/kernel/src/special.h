// Text to fragments: special tokens, and the plain text between them. ggufbpe/special.py, compiled.
//
//     text -> Partition -> fragments -> split/ (plain text), ids (special tokens)
//
// llama.cpp goes through all special tokens, the longest first, and cuts each out of every fragment that is still plain
// text (src/llama-vocab.cpp: tokenizer_st_partition). Here one search finds the places where any token stands; only
// where several overlap, or white space is stripped, are the tokens gone through in llama.cpp's order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "string_array.h"

namespace ggufbpe {

struct Fragment {
    int32_t token;  // -1 for plain text; see also own_steps.h
    size_t start, end;
};

struct SpecialToken {
    int32_t id;
    bool hidden;  // control or unknown: looked for only where special tokens are parsed
    bool strips_left, strips_right;
};

class Partition {
public:
    // Looks for `special` in texts; with `parse_special` false, hidden ones are plain text.
    Partition(std::shared_ptr<const Strings> tokens, const std::vector<SpecialToken> &special, bool parse_special);

    // A place where a token stands: the longest one that begins there.
    struct Match {
        size_t at, length;
    };

    // Appends the fragments of a text, in order, none empty. White space that a token strips is in none.
    void split(const unsigned char *text, size_t size, std::vector<Fragment> &fragments) const;

    // The same in two steps, so that threads can share the search: appends the places from `from` up to `to`, in order;
    void find(const unsigned char *text, size_t size, size_t from, size_t to, std::vector<Match> &matches) const;
    // and then, from all places of a text, its fragments.
    void cut(const unsigned char *text, size_t size, const std::vector<Match> &matches,
             std::vector<Fragment> &fragments) const;

private:
    struct Region {
        size_t start, end;
        bool single;  // just one token
    };

    std::string_view text_of(int32_t id) const { return (*tokens_)[static_cast<size_t>(id)]; }
    size_t next_candidate(const unsigned char *text, size_t size, size_t from, size_t to) const;
    size_t longest_at(const unsigned char *text, size_t size, size_t at) const;
    void cut_region(const unsigned char *text, const Region &region, std::vector<Fragment> &fragments) const;
    static void add(std::vector<Fragment> &fragments, const Fragment &fragment);

    std::shared_ptr<const Strings> tokens_;
    std::vector<SpecialToken> longest_first_;
    std::unordered_map<std::string_view, int32_t, TextHash> ids_;
    bool strips_ = false;
    // By the first two bytes of a token (a token of one byte has all second ones), the lengths to try, longest first.
    std::unordered_map<uint16_t, std::vector<uint32_t>> lengths_;
    std::vector<uint64_t> pairs_;  // a bit for each two bytes that a token may begin with
    bool first_[256] = {};
    // The same for byte shuffles: a place is a candidate if the AND of four look-ups is not 0.
    alignas(16) uint8_t low_first_[16] = {}, high_first_[16] = {}, low_second_[16] = {}, high_second_[16] = {};
};

// `items`, (length, index) with indices ascending, by falling length in the order of libstdc++'s std::sort, which
// llama.cpp is built with: equal lengths keep no order there.
void sort_longest_first(std::vector<std::pair<size_t, size_t>> &items);

}  // namespace ggufbpe
