#include "plamo/suffixes.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr int32_t NO_TOKEN = -1;
constexpr size_t LEAST_PLACES = 64;

}  // namespace

// The trie while it grows, with nodes in the order of their lengths.
struct Suffixes::Build {
    struct Node {
        uint32_t behind, c, shorter;
        int32_t token;
    };

    std::vector<Node> nodes{Node{ROOT, 0, ROOT, NO_TOKEN}};
    ZeroedArray<uint32_t> places = ZeroedArray<uint32_t>(LEAST_PLACES);  // nodes; ROOT where it is empty

    // All tokens at once, one character more each time, so that shorter nodes than a new one exist already.
    void insert_all(const Strings &tokens, const std::vector<int32_t> &scores, Pace &pace) {
        struct Growing {
            uint32_t node, left;  // bytes in front of it
            int32_t token;
        };
        std::vector<Growing> growing;
        for (size_t id = 0; id < tokens.size(); ++id) {
            if (scores[id] == NOT_LOOKED_UP || tokens[id].empty()) continue;
            growing.push_back({ROOT, static_cast<uint32_t>(tokens[id].size()), static_cast<int32_t>(id)});
        }
        while (!growing.empty()) {
            size_t kept = 0;
            for (Growing one : growing) {
                const auto *text = reinterpret_cast<const unsigned char *>(tokens[static_cast<size_t>(one.token)].data());
                const unsigned char *end = text + one.left;
                while (--one.left && (text[one.left] & 0xC0) == 0x80) {
                }
                unsigned length;
                one.node = made(one.node, code_point_at(text + one.left, end, length));
                if (one.left) {
                    growing[kept++] = one;
                } else {
                    nodes[one.node].token = one.token;
                }
                pace.count(16);
            }
            growing.resize(kept);
        }
    }

    size_t place(uint32_t node, uint32_t c) const {
        const uint64_t key = uint64_t(node) << 32 | c;
        return static_cast<size_t>(multiply_and_fold(key ^ HASH_SEEDS[0], HASH_SEEDS[1])) & (places.size() - 1);
    }
    // Where a node is, or would be.
    size_t free_or_own(uint32_t node, uint32_t c) const {
        size_t at = place(node, c);
        while (places[at] != ROOT && (nodes[places[at]].behind != node || nodes[places[at]].c != c)) {
            at = (at + 1) & (places.size() - 1);
        }
        return at;
    }
    uint32_t made(uint32_t node, uint32_t c) {
        size_t at = free_or_own(node, c);
        if (places[at] != ROOT) return places[at];
        if (nodes.size() >= IS_LAST / 4) throw std::length_error("the tokens are too many");
        uint32_t shorter = ROOT;
        for (uint32_t behind = node; behind != ROOT && shorter == ROOT;) {
            behind = nodes[behind].shorter;
            shorter = places[free_or_own(behind, c)];
        }
        const auto found = static_cast<uint32_t>(nodes.size());
        nodes.push_back({node, c, shorter, NO_TOKEN});
        places[at] = found;
        if (2 * nodes.size() > places.size()) grow();
        return found;
    }
    void grow() {
        places = ZeroedArray<uint32_t>(2 * places.size());
        for (size_t node = 1; node < nodes.size(); ++node) {
            places[free_or_own(nodes[node].behind, nodes[node].c)] = static_cast<uint32_t>(node);
        }
    }
};

Suffixes::Suffixes(const Strings &tokens, const std::vector<int32_t> &scores, const Poll &poll) {
    if (scores.size() != tokens.size()) throw std::invalid_argument("as many scores as tokens are needed");
    Pace pace(poll);
    Build build;
    build.insert_all(tokens, scores, pace);
    lay_out(build, tokens, scores, pace);
}

// Puts each node where it is looked up. The node after it, and the next shorter one, already have their places.
void Suffixes::lay_out(const Build &build, const Strings &tokens, const std::vector<int32_t> &scores, Pace &pace) {
    size_t places = LEAST_PLACES;
    while (2 * places < 3 * build.nodes.size()) places *= 2;
    nodes_ = ZeroedArray<Node>(places);
    shorter_.assign(tokens.size(), Step{NOTHING, 0, 0});
    nodes_[ROOT] = {ROOT, UINT32_MAX, 0, IS_LAST, {IN_BYTES, 0, 0}};  // no character finds it
    std::vector<uint32_t> place_of(build.nodes.size(), ROOT);
    for (size_t number = 1; number < build.nodes.size(); ++number) {
        const Build::Node &node = build.nodes[number];
        const uint32_t behind = place_of[node.behind], shorter = place_of[node.shorter];
        size_t at = place(behind, node.c);
        while (nodes_[at].c_plus_1) at = (at + 1) & (places - 1);
        place_of[number] = static_cast<uint32_t>(at);
        nodes_[behind].in_front |= bit_of(node.c);
        nodes_[at] = {behind, node.c + 1, 0, shorter, nodes_[shorter].first};
        pace.count(16);
        if (node.token == NO_TOKEN) continue;
        const auto id = static_cast<size_t>(node.token);
        const auto size = static_cast<uint32_t>(tokens[id].size());
        longest_ = std::max(longest_, size);
        if (scores[id] <= INVALID_SCORE) continue;
        if (scores[id] == UNKNOWN_SCORE) {
            nodes_[at].shorter |= IS_LAST;
        } else {
            shorter_[id] = nodes_[shorter].first;
        }
        nodes_[at].first = {node.token, scores[id], size};
    }
}

}  // namespace ggufbpe
