// What tokens end in, as a trie from their last character to their first: Suffixes of ggufbpe/models/plamo.py, compiled.
//
// A node is a suffix of a token. Read from its end, a text leads from node to node; each is the longest suffix that begins
// at its place.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory.h"
#include "poll.h"
#include "string_array.h"

namespace ggufbpe {

class Suffixes {
public:
    static constexpr uint32_t ROOT = 0;
    static constexpr int32_t IN_BYTES = -1;  // in place of a token: nothing more to take but the bytes of a character
    static constexpr int32_t NOTHING = -2;   // nothing more to take

    static constexpr int32_t UNKNOWN_SCORE = -10000000;  // ten-thousandths; of a character in bytes, and of tokens that end a list
    static constexpr int32_t INVALID_SCORE = -20000000;  // of tokens that are never taken
    static constexpr int32_t NOT_LOOKED_UP = INT32_MIN;  // of tokens that are not in the trie at all

    // `tokens` are UTF-8. std::invalid_argument where there are not as many scores.
    Suffixes(const Strings &tokens, const std::vector<int32_t> &scores, const Poll &poll);

    // The node where `c` stands in front of what `node` is.
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

    // The longest token that begins where a node is, or IN_BYTES or NOTHING.
    int32_t first(uint32_t node) const { return nodes_[node].first; }

    // A token that may be taken, and what is the next shorter one.
    struct Step {
        int32_t score;
        int32_t shorter;
        uint32_t size;  // bytes
    };
    const Step &step(int32_t token) const { return steps_[static_cast<size_t>(token)]; }

    uint32_t longest() const { return longest_; }  // bytes of a token, at least 4
    bool ends_lists(int32_t token) const { return scores_[static_cast<size_t>(token)] == UNKNOWN_SCORE; }

private:
    static constexpr uint32_t IS_LAST = uint32_t(1) << 31;  // in `shorter`: nothing shorter is looked at

    struct Node {
        uint64_t in_front;  // which characters may lead on: bits of hashes
        uint32_t shorter;
        int32_t first;
    };
    struct Slot {
        uint32_t node, c, found;  // found is ROOT where the slot is empty
    };

    static uint64_t bit_of(uint32_t c) { return uint64_t(1) << (c * 0x9E3779B1u >> 26); }
    size_t place(uint32_t node, uint32_t c) const;
    uint32_t find(uint32_t node, uint32_t c) const {
        for (size_t at = place(node, c);; at = (at + 1) & (slots_.size() - 1)) {
            const Slot &slot = slots_[at];
            if (slot.found == ROOT || (slot.node == node && slot.c == c)) return slot.found;
        }
    }
    uint32_t made(uint32_t node, uint32_t c);
    void grow();
    void insert_all(const Strings &tokens, std::vector<int32_t> &token_of_node, const Poll &poll);
    void find_steps(const Strings &tokens, const std::vector<int32_t> &token_of_node);

    std::vector<int32_t> scores_;
    ZeroedArray<Slot> slots_;
    std::vector<Node> nodes_;
    std::vector<Step> steps_;  // by token
    uint32_t longest_ = 4;
};

}  // namespace ggufbpe
