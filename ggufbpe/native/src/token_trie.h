// Tokens as a trie, which finds those at a place of a text: a double array, so that each step is one lookup.
//
// wpm/wpm_model.h and rwkv/rwkv_model.h look for the longest token, ugm/ugm_model.h for all.
//
// Source: src/llama-vocab.cpp, naive_trie.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "poll.h"
#include "string_array.h"

namespace ggufbpe {

class TokenTrie {
    struct Cell;

public:
    static constexpr int32_t NONE = -1;              // no token
    static constexpr uint32_t NOBODY = UINT32_MAX;  // no cell

    struct Match {
        int32_t token;
        size_t size;  // bytes
        size_t read;  // bytes that were looked at
    };

    // The index of a token is its id. Of equal tokens the last counts; empty ones are never found.
    TokenTrie(const Strings &tokens, const Poll &poll);

    // Only some of them; `ids` are ascending.
    TokenTrie(const Strings &tokens, const std::vector<uint32_t> &ids, const Poll &poll);

    // Where the walk for a text begins: after what was read before, if that begins a token; else nowhere.
    struct Place {
        uint32_t cell;
        int32_t token;  // of the bytes read; NONE if they are not one

        bool is_somewhere() const { return cell != NOBODY; }
    };
    Place place_behind(std::string_view read) const;

    // The longest token at `text`, which ends at `end`; NONE if there is none.
    Match find(const unsigned char *text, const unsigned char *end) const { return find(text, end, {ROOT, NONE}); }

    // The longest token of the bytes read before `place` and those from `text` on; `size` counts only the latter.
    Match find(const unsigned char *text, const unsigned char *end, Place place) const {
        const Cell *cells = cells_.data();
        uint32_t at = place.cell, best = 0;
        const unsigned char *best_end = text;
        uint32_t children = cells[at].children;
        const unsigned char *next = text;
        while (next < end) {
            const uint32_t child = (children >> 1) ^ *next++;
            const Cell cell = cells[child];
            if (cell.parent != at) break;
            at = child;
            children = cell.children;
            const bool is_token = children & IS_TOKEN;
            best = is_token ? child : best;
            best_end = is_token ? next : best_end;
        }
        return {best ? tokens_[best] : place.token, static_cast<size_t>(best_end - text), static_cast<size_t>(next - text)};
    }

    // A way from the root down, a byte at a time.
    class Walk {
    public:
        explicit Walk(const TokenTrie &trie) : cells_(trie.cells_.data()), children_(cells_[ROOT].children) {}

        // Whether some token begins with the bytes so far and this one; if not, the walk is over.
        bool step(unsigned char byte) {
            const uint32_t child = (children_ >> 1) ^ byte;
            const Cell cell = cells_[child];
            if (cell.parent != at_) return false;
            at_ = child;
            children_ = cell.children;
            return true;
        }
        bool is_at_token() const { return children_ & IS_TOKEN; }  // the bytes so far are one
        uint32_t cell() const { return at_; }

    private:
        const Cell *cells_;
        uint32_t at_ = ROOT, children_;
    };

    // The token where a walk stands; NONE if it stands at none.
    int32_t token(const Walk &walk) const { return tokens_[walk.cell()]; }

private:
    // Children of a cell are at `children` >> 1 xor their byte, and name it as their parent.
    struct Cell {
        uint32_t parent = NOBODY;
        uint32_t children = 0;  // and IS_TOKEN
    };
    static constexpr uint32_t IS_TOKEN = 1;
    static constexpr uint32_t ROOT = 0;  // the child of no cell
    static constexpr uint32_t BLOCK = 256;

    class Builder;
    struct SortedTokens;

    std::vector<Cell> cells_;
    std::vector<int32_t> tokens_;  // of each cell
};

}  // namespace ggufbpe
