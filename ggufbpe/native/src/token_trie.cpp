#include "token_trie.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "machine.h"
#include "radix_sort.h"

namespace ggufbpe {

namespace {

// Children that fit at none of so many free cells from either end of the ring get a new block. Single ones, the most common,
// always fit.
constexpr size_t TRIES = 256;
constexpr size_t MOST_RESERVED = size_t(1) << 21;  // cells
constexpr size_t STEPS_A_TOKEN = 32;               // the cost of fetching one, in bytes looked at

// The first eight bytes, as a number that sorts the same way; zeros after a shorter text.
uint64_t beginning(std::string_view text) {
    uint64_t number = 0;
    if (text.size() >= 8) {
        std::memcpy(&number, text.data(), 8);
        return IS_BIG_ENDIAN ? number : swap_bytes(number);
    }
    for (const char byte : text) number = number << 8 | static_cast<unsigned char>(byte);
    return text.empty() ? 0 : number << 8 * (8 - text.size());
}

}  // namespace

// The tokens by their bytes; equal ones stay in their order.
//
// The first bytes of each are kept side by side in that order: the texts lie elsewhere, and each would be waited for.
struct TokenTrie::SortedTokens {
    static constexpr size_t HALF = 8, WHOLE = 2 * HALF;  // bytes
    struct Key {
        uint64_t first, further;
    };

    const Strings &tokens;
    std::vector<uint32_t> order;
    std::vector<Key> keys;         // what each begins with
    std::vector<uint32_t> shared;  // bytes that each has in common with the one before it

    SortedTokens(const Strings &texts, const std::vector<uint32_t> &ids, Pace &pace) : tokens(texts) {
        std::vector<uint64_t> first(ids.size()), further(ids.size());
        for (size_t i = 0; i < ids.size(); ++i) {
            const std::string_view text = tokens[ids[i]];
            pace.count(STEPS_A_TOKEN);
            first[i] = beginning(text);
            further[i] = beginning(text.substr(std::min(HALF, text.size())));
        }
        order = sorted_places(first, pace.poll());
        for (size_t begin = 0, end; begin < order.size(); begin = end) {
            for (end = begin + 1; end < order.size() && first[order[end]] == first[order[begin]];) ++end;
            pace.count(end - begin);
            if (end - begin == 1) continue;
            std::sort(order.begin() + static_cast<ptrdiff_t>(begin), order.begin() + static_cast<ptrdiff_t>(end),
                      [&](uint32_t one, uint32_t other) {
                          pace.count(1);
                          if (further[one] != further[other]) return further[one] < further[other];
                          pace.count(STEPS_A_TOKEN + tokens[ids[one]].size() / HALF);
                          const int compared = tokens[ids[one]].compare(tokens[ids[other]]);
                          return compared ? compared < 0 : one < other;
                      });
        }
        keys.reserve(order.size());
        for (uint32_t &place : order) {
            pace.count(1);
            keys.push_back({first[place], further[place]});
            place = ids[place];
        }
        shared.resize(order.size());
        for (size_t i = 1; i < order.size(); ++i) {
            shared[i] = static_cast<uint32_t>(shared_with_former(i));
            pace.count(1 + shared[i]);
        }
    }

    unsigned char byte(size_t at, size_t depth) const {
        if (depth >= WHOLE) return static_cast<unsigned char>(tokens[order[at]][depth]);
        const uint64_t half = depth < HALF ? keys[at].first : keys[at].further;
        return static_cast<unsigned char>(half >> 8 * (HALF - 1 - depth % HALF));
    }
    bool ends(size_t at, size_t depth) const {
        return !(depth < WHOLE && byte(at, depth)) && tokens[order[at]].size() == depth;
    }

private:
    size_t shared_with_former(size_t at) const {
        const uint64_t first = keys[at - 1].first ^ keys[at].first, further = keys[at - 1].further ^ keys[at].further;
        const auto equal_bytes = [](uint64_t differ) { return (63 - highest_bit(differ)) / 8; };
        size_t same = first ? equal_bytes(first) : HALF + (further ? equal_bytes(further) : HALF);
        if (same < WHOLE && (!same || byte(at, same - 1))) return same;  // a zero may be what follows the end
        const std::string_view before = tokens[order[at - 1]], text = tokens[order[at]];
        const size_t most = std::min(before.size(), text.size());
        while (same < most && before[same] == text[same]) ++same;
        return std::min(same, most);
    }
};

namespace {

std::vector<uint32_t> all_ids(const Strings &tokens) {
    std::vector<uint32_t> ids(tokens.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
}

}  // namespace

// Finds cells for the children of each node.
class TokenTrie::Builder {
public:
    Builder(TokenTrie &made, const Strings &tokens, const std::vector<uint32_t> &ids, Pace &pace)
        : tokens_(tokens), pace_(pace), sorted_(tokens, ids, pace), cells_(made.cells_), token_of_(made.tokens_) {
        // At most a cell for each byte. The system gives memory only for those that are written.
        size_t bytes = 0;
        for (const uint32_t id : ids) {
            pace.count(1);
            bytes += tokens[id].size();
        }
        const size_t most = std::min(bytes + 2 * BLOCK, MOST_RESERVED);
        cells_.reserve(most);
        token_of_.reserve(most);
        add_block();
        nodes_.push_back({ROOT, 0, static_cast<uint32_t>(ids.size()), 0});
        while (!nodes_.empty()) {
            const Node node = nodes_.back();
            nodes_.pop_back();
            if (node.last - node.first == 1) {
                place_rest(node.cell, sorted_.order[node.first], node.depth);
            } else {
                place_children(node);
            }
        }
        while (links_.next) {  // those that no child got
            pace.count(1);
            take(links_.next);
        }
    }

private:
    // The sorted tokens [first, last) share the first `depth` bytes, which lead to this node.
    struct Node {
        uint32_t cell, first, last, depth;
    };

    // The neighbours of a free cell in the ring of free cells, which begins and ends with none.
    struct Links {
        uint32_t next, former;
    };

    // The bytes after `depth` of a token that shares them with no other: most cells are of these.
    void place_rest(uint32_t cell, uint32_t token, size_t depth) {
        const std::string_view text = tokens_[token];
        if (text.empty()) return;
        pace_.count(STEPS_A_TOKEN);
        for (size_t at = depth; at < text.size(); ++at) {
            const auto byte = static_cast<unsigned char>(text[at]);
            cell = place_child(cell, links_.next ? links_.next ^ byte : new_block(), byte);
            pace_.count(1);
        }
        note_end(cell, token);
    }

    void place_children(const Node &node) {
        uint32_t at = node.first;
        for (; at < node.last && sorted_.ends(at, node.depth); ++at) {
            if (node.depth) note_end(node.cell, sorted_.order[at]);
        }
        pace_.count(STEPS_A_TOKEN + node.last - node.first);
        if (at == node.last) return;
        bytes_.clear();
        starts_.clear();
        const uint32_t *const shared = sorted_.shared.data(), depth = node.depth, last = node.last;
        while (at < last) {
            bytes_.push_back(sorted_.byte(at, depth));
            starts_.push_back(at);
            do ++at;
            while (at < last && shared[at] != depth);
        }
        starts_.push_back(node.last);
        const uint32_t base = base_for_bytes();
        for (size_t i = 0; i < bytes_.size(); ++i) {
            nodes_.push_back({place_child(node.cell, base, bytes_[i]), starts_[i], starts_[i + 1], node.depth + 1});
        }
    }

    uint32_t place_child(uint32_t parent, uint32_t base, unsigned char byte) {
        const uint32_t cell = base ^ byte;
        take(cell);
        cells_[cell].parent = parent;
        cells_[parent].children = (cells_[parent].children & IS_TOKEN) | base << 1;
        return cell;
    }

    void note_end(uint32_t cell, uint32_t token) {
        token_of_[cell] = static_cast<int32_t>(token);
        cells_[cell].children |= IS_TOKEN;
    }

    // Where all children of a node fit: at one of the oldest free cells, or in the newest block, whose free cells are the last.
    // Else a file could leave so many old cells where nothing fits that each further node would cost a block.
    uint32_t base_for_bytes() {
        uint32_t cell = links_.next;
        for (size_t tries = 0; cell && tries < TRIES; cell = links(cell).next, ++tries) {
            if (is_free_for_bytes(cell ^ bytes_[0])) return cell ^ bytes_[0];
        }
        cell = links_.former;
        for (size_t tries = 0; cell && tries < TRIES; cell = links(cell).former, ++tries) {
            if (is_free_for_bytes(cell ^ bytes_[0])) return cell ^ bytes_[0];
        }
        return new_block();
    }

    bool is_free_for_bytes(uint32_t base) {
        pace_.count(1);
        return std::all_of(bytes_.begin(), bytes_.end(), [&](unsigned char byte) { return is_free(base ^ byte); });
    }
    bool is_free(uint32_t cell) const { return cell != ROOT && cells_[cell].parent == NOBODY; }

    uint32_t new_block() {
        const auto first = static_cast<uint32_t>(cells_.size());
        add_block();
        return first;
    }

    // The links of a free cell are where its children and its token will be.
    Links links(uint32_t cell) const {
        return cell ? Links{cells_[cell].children, static_cast<uint32_t>(token_of_[cell])} : links_;
    }
    void set_next(uint32_t cell, uint32_t next) { (cell ? cells_[cell].children : links_.next) = next; }
    void set_former(uint32_t cell, uint32_t former) {
        if (cell) {
            token_of_[cell] = static_cast<int32_t>(former);
        } else {
            links_.former = former;
        }
    }

    void add_block() {
        const size_t first = cells_.size();
        if (first + BLOCK > UINT32_MAX / 2) throw std::length_error("the tokens are too many and too long for a trie");
        cells_.resize(first + BLOCK);
        token_of_.resize(first + BLOCK, NONE);
        for (auto cell = static_cast<uint32_t>(first); cell < first + BLOCK; ++cell) {
            if (cell == ROOT) continue;
            set_former(cell, links_.former);
            set_next(links_.former, cell);
            links_.former = cell;
        }
    }

    // Takes a cell out of the ring, and leaves it empty.
    void take(uint32_t cell) {
        const Links of_cell = links(cell);
        set_next(of_cell.former, of_cell.next);
        set_former(of_cell.next, of_cell.former);
        cells_[cell].children = 0;
        token_of_[cell] = NONE;
    }

    const Strings &tokens_;
    Pace &pace_;
    const SortedTokens sorted_;
    std::vector<Cell> &cells_;
    std::vector<int32_t> &token_of_;
    Links links_{ROOT, ROOT};  // of the ring's beginning
    std::vector<uint32_t> starts_;
    std::vector<Node> nodes_;
    std::vector<unsigned char> bytes_;
};

TokenTrie::TokenTrie(const Strings &tokens, const Poll &poll) : TokenTrie(tokens, all_ids(tokens), poll) {}

TokenTrie::TokenTrie(const Strings &tokens, const std::vector<uint32_t> &ids, const Poll &poll) {
    Pace pace(poll);
    Builder(*this, tokens, ids, pace);
}

TokenTrie::Place TokenTrie::place_behind(std::string_view read) const {
    uint32_t at = ROOT;
    for (const char c : read) {
        const uint32_t child = (cells_[at].children >> 1) ^ static_cast<unsigned char>(c);
        if (cells_[child].parent != at) return {NOBODY, NONE};
        at = child;
    }
    return {at, tokens_[at]};
}

}  // namespace ggufbpe
