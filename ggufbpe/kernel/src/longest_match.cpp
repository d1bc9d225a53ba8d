#include "longest_match.h"

#include <algorithm>
#include <stdexcept>

namespace ggufbpe {

namespace {

// After so many tries, a set of children that fits nowhere gets a new block. Single children, the most common, always fit.
constexpr size_t TRIES = 32;

// The first eight bytes, as a number that sorts the same way.
uint64_t beginning(std::string_view text) {
    unsigned char bytes[8] = {};
    std::copy_n(text.data(), std::min(text.size(), sizeof bytes), bytes);
    uint64_t number = 0;
    for (const unsigned char byte : bytes) number = number << 8 | byte;
    return number;
}

// Most tokens differ in their first bytes, which compare faster as a number.
void sort(std::vector<std::pair<std::string_view, int32_t>> &tokens) {
    std::vector<std::pair<uint64_t, std::pair<std::string_view, int32_t>>> keyed;
    keyed.reserve(tokens.size());
    for (const auto &token : tokens) keyed.emplace_back(beginning(token.first), token);
    std::sort(keyed.begin(), keyed.end());
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = keyed[i].second;
}

}  // namespace

// Finds cells for the children of each node. Free cells are linked in a ring, through cell 0.
class LongestMatch::Builder {
public:
    using Tokens = std::vector<std::pair<std::string_view, int32_t>>;

    Builder(LongestMatch &made, const Tokens &tokens) : made_(made), tokens_(tokens) {
        add_block();
        take(ROOT);
        nodes_.push_back({ROOT, 0, tokens.size(), 0});
        while (!nodes_.empty()) {
            const Node node = nodes_.back();
            nodes_.pop_back();
            place_children(node);
        }
    }

private:
    // Tokens [first, last) share the first `depth` bytes, which lead to this node.
    struct Node {
        uint32_t cell;
        size_t first, last, depth;
    };

    void place_children(const Node &node) {
        bytes_.clear();
        starts_.clear();
        size_t at = node.first;
        while (at < node.last && tokens_[at].first.size() == node.depth) {
            if (node.depth) {
                made_.tokens_[node.cell] = tokens_[at].second;
                made_.cells_[node.cell].children |= IS_TOKEN;
            }
            ++at;
        }
        while (at < node.last) {
            const auto byte = static_cast<unsigned char>(tokens_[at].first[node.depth]);
            bytes_.push_back(byte);
            starts_.push_back(at);
            at = std::partition_point(tokens_.begin() + static_cast<ptrdiff_t>(at) + 1,
                                      tokens_.begin() + static_cast<ptrdiff_t>(node.last),
                                      [&](const auto &token) {
                                          return static_cast<unsigned char>(token.first[node.depth]) == byte;
                                      }) -
                 tokens_.begin();
        }
        if (bytes_.empty()) return;
        const uint32_t base = base_for_bytes();
        made_.cells_[node.cell].children |= base << 1;
        starts_.push_back(node.last);
        for (size_t i = 0; i < bytes_.size(); ++i) {
            const uint32_t cell = base ^ bytes_[i];
            take(cell);
            made_.cells_[cell].parent = node.cell;
            nodes_.push_back({cell, starts_[i], starts_[i + 1], node.depth + 1});
        }
    }

    uint32_t base_for_bytes() {
        size_t tries = 0;
        for (uint32_t cell = next_[0]; cell && tries < TRIES; cell = next_[cell], ++tries) {
            const uint32_t base = cell ^ bytes_[0];
            if (std::all_of(bytes_.begin(), bytes_.end(), [&](unsigned char byte) { return is_free(base ^ byte); })) return base;
        }
        const auto first = static_cast<uint32_t>(made_.cells_.size());
        add_block();
        return first;
    }

    bool is_free(uint32_t cell) const { return cell != ROOT && made_.cells_[cell].parent == NOBODY; }

    void add_block() {
        const size_t first = made_.cells_.size();
        if (first + BLOCK > UINT32_MAX / 2) throw std::length_error("the tokens are too many and too long for a trie");
        made_.cells_.resize(first + BLOCK);
        made_.tokens_.resize(first + BLOCK, NONE);
        next_.resize(first + BLOCK);
        former_.resize(first + BLOCK);
        for (size_t i = first; i < first + BLOCK; ++i) {
            const auto cell = static_cast<uint32_t>(i);
            if (cell == ROOT) continue;  // the ring is empty
            next_[cell] = 0;
            former_[cell] = former_[0];
            next_[former_[0]] = cell;
            former_[0] = cell;
        }
    }

    void take(uint32_t cell) {
        if (cell == ROOT) return;
        next_[former_[cell]] = next_[cell];
        former_[next_[cell]] = former_[cell];
    }

    LongestMatch &made_;
    const Tokens &tokens_;
    std::vector<uint32_t> next_, former_;
    std::vector<Node> nodes_;
    std::vector<unsigned char> bytes_;
    std::vector<size_t> starts_;
};

LongestMatch::LongestMatch(std::vector<std::pair<std::string_view, int32_t>> tokens) {
    sort(tokens);
    Builder(*this, tokens);
}

LongestMatch::Place LongestMatch::place_behind(std::string_view read) const {
    uint32_t at = ROOT;
    for (const char c : read) {
        const uint32_t child = (cells_[at].children >> 1) ^ static_cast<unsigned char>(c);
        if (cells_[child].parent != at) return {NOBODY, NONE};
        at = child;
    }
    return {at, tokens_[at]};
}

}  // namespace ggufbpe
