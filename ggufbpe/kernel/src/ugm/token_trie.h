// A trie of tokens: from a node and a byte to the next node, in one table for all nodes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "machine.h"
#include "memory.h"
#include "string_array.h"

namespace ggufbpe {

class TokenTrie {
public:
    static constexpr uint32_t ROOT = 0;
    static constexpr int32_t NO_TOKEN = -1;

    // A token being inserted, and how far.
    struct Entry {
        std::string_view text;
        int32_t token;
        size_t done = 0;
        uint32_t node = ROOT;
    };

    TokenTrie() : slots_(LEAST_SLOTS), tokens_(1, NO_TOKEN) {}

    // Inserts what next(entry) gives until it returns false, of about `bytes` bytes in total. Many are inserted at once, a byte
    // each in turn, so that the memory one waits for is on its way while others work.
    template <typename Next>
    void insert_all(size_t bytes, Next next) {
        size_t slots = LEAST_SLOTS;
        while (slots < bytes / 2) slots *= 2;
        slots_ = ZeroedArray<uint64_t>(slots);
        tokens_.assign(1, NO_TOKEN);
        tokens_.reserve(slots / 2);
        Entry lanes[LANES];
        size_t count = 0;
        while (count < LANES && next(lanes[count])) ++count;
        for (size_t lane = 0; count; lane = lane + 1 < count ? lane + 1 : 0) {
            Entry &entry = lanes[lane];
            if (entry.done < entry.text.size()) {
                entry.node = made(entry.node, static_cast<unsigned char>(entry.text[entry.done++]));
            } else {
                tokens_[entry.node] = entry.token;
                entry = Entry();
                if (!next(entry)) entry = lanes[--count];
            }
            if (entry.done < entry.text.size()) {
                prefetch(&slots_[first_place(key_of(entry.node, static_cast<unsigned char>(entry.text[entry.done])))]);
            }
        }
    }

    // The node of what `node` stands for and one more byte; ROOT if no token begins with that.
    uint32_t next(uint32_t node, unsigned char byte) const {
        return static_cast<uint32_t>(slots_[free_or_own(key_of(node, byte))] & NODE);
    }

    // The token that ends at a node.
    int32_t token(uint32_t node) const { return tokens_[node]; }
    bool is_empty() const { return tokens_.size() == 1; }

private:
    static constexpr int NODE_BITS = 28;
    static constexpr uint64_t NODE = (uint64_t(1) << NODE_BITS) - 1;

    static uint64_t key_of(uint32_t node, unsigned char byte) { return uint64_t(node) << 8 | byte; }
    size_t first_place(uint64_t key) const {
        return static_cast<size_t>(multiply_and_fold(key ^ HASH_SEEDS[0], HASH_SEEDS[1])) & (slots_.size() - 1);
    }
    // Where a key is, or would be.
    size_t free_or_own(uint64_t key) const {
        size_t at = first_place(key);
        while (slots_[at] && slots_[at] >> NODE_BITS != key) at = (at + 1) & (slots_.size() - 1);
        return at;
    }
    // The next node, made if it is missing.
    uint32_t made(uint32_t node, unsigned char byte) {
        const uint64_t key = key_of(node, byte);
        uint64_t *slot = &slots_[free_or_own(key)];
        if (!*slot) {
            if (tokens_.size() >> NODE_BITS) throw std::length_error("the tokens are too many");
            if (tokens_.size() >= slots_.size() / 2) {
                grow();
                slot = &slots_[free_or_own(key)];
            }
            *slot = key << NODE_BITS | tokens_.size();
            tokens_.push_back(NO_TOKEN);
        }
        return static_cast<uint32_t>(*slot & NODE);
    }
    void grow() {
        ZeroedArray<uint64_t> former = std::move(slots_);
        slots_ = ZeroedArray<uint64_t>(2 * former.size());
        for (size_t i = 0; i < former.size(); ++i) {
            if (former[i]) slots_[free_or_own(former[i] >> NODE_BITS)] = former[i];
        }
    }

    static constexpr size_t LEAST_SLOTS = 64, LANES = 16;
    ZeroedArray<uint64_t> slots_;  // node (28 bits), byte (8), next node (28); half of them or more are empty
    std::vector<int32_t> tokens_;  // of nodes
};

}  // namespace ggufbpe
