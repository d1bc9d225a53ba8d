// The suffixes of tokens, as an Aho-Corasick automaton from the last character to the first: Suffixes of
// ggufbpe/models/suffixes.py, compiled.
//
// A node is a suffix of a token. Read from its end, a text leads from node to node; each is the longest suffix that begins
// at its place. A node's name is its place in a hash table keyed by the node after it and the character before that one, so
// that one memory access finds everything about it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine.h"
#include "memory.h"
#include "poll.h"
#include "string_array.h"

namespace ggufbpe {

class Suffixes {
public:
    static constexpr uint32_t ROOT = 0;
    static constexpr int32_t IN_BYTES = -1;  // in place of a token: only the bytes of a character are left to take
    static constexpr int32_t NOTHING = -2;   // nothing more to take

    static constexpr int32_t UNKNOWN_SCORE = -10000000;  // ten-thousandths; of characters as bytes, and tokens that end a list
    static constexpr int32_t INVALID_SCORE = -20000000;  // of tokens that are never taken
    static constexpr int32_t NOT_LOOKED_UP = INT32_MIN;  // of tokens not in the trie

    // `tokens` are UTF-8. std::invalid_argument if there are not as many scores.
    Suffixes(const Strings &tokens, const std::vector<int32_t> &scores, const Poll &poll);

    // A token that may be taken, its length in bytes, and the next shorter one, or IN_BYTES, or NOTHING.
    struct Step {
        int32_t token, score;
        uint32_t size;
    };

    // The node of `c` followed by the suffix `node`.
    uint32_t next(uint32_t node, uint32_t c) const {
        const uint64_t bit = bit_of(c);
        for (;;) {
            const Node &at = nodes_[node];
            if (at.in_front & bit) {
                if (const uint32_t found = find(node, c)) return found;
            }
            if (at.shorter & IS_LAST) return ROOT;
            node = at.shorter;
        }
    }

    // The longest token that begins at a node's place; its `token` is IN_BYTES or NOTHING if there is none.
    const Step &first(uint32_t node) const { return nodes_[node].first; }
    // The next shorter one.
    const Step &shorter(int32_t token) const { return shorter_[static_cast<size_t>(token)]; }

    uint32_t longest() const { return longest_; }  // bytes of a token, at least 4

private:
    static constexpr uint32_t IS_LAST = uint32_t(1) << 31;  // in `shorter`: nothing shorter is looked at

    struct Node {
        uint32_t behind, c_plus_1;  // its key; c_plus_1 is 0 in an empty place
        uint64_t in_front;          // which characters may come before: bits of hashes
        uint32_t shorter;
        Step first;
    };
    struct Build;

    static uint64_t bit_of(uint32_t c) { return uint64_t(1) << (c * 0x9E3779B1u >> 26); }
    size_t place(uint32_t node, uint32_t c) const {
        const uint64_t key = uint64_t(node) << 32 | c;
        return static_cast<size_t>(multiply_and_fold(key ^ HASH_SEEDS[0], HASH_SEEDS[1])) & (nodes_.size() - 1);
    }
    uint32_t find(uint32_t node, uint32_t c) const {
        for (size_t at = place(node, c);; at = (at + 1) & (nodes_.size() - 1)) {
            const Node &found = nodes_[at];
            if (found.behind == node && found.c_plus_1 == c + 1) return static_cast<uint32_t>(at);
            if (!found.c_plus_1) return ROOT;
        }
    }
    void lay_out(const Build &build, const Strings &tokens, const std::vector<int32_t> &scores, Pace &pace);

    ZeroedArray<Node> nodes_;
    std::vector<Step> shorter_;  // by token
    uint32_t longest_ = 4;
};

}  // namespace ggufbpe
