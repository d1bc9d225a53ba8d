#include "plamo/suffixes.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t LEAST_SLOTS = 1024;

}  // namespace

Suffixes::Suffixes(const Strings &tokens, const std::vector<int32_t> &scores, const Poll &poll)
    : scores_(scores), slots_(LEAST_SLOTS), nodes_(1, Node{0, IS_LAST, IN_BYTES}) {
    if (scores_.size() != tokens.size()) throw std::invalid_argument("as many scores as tokens are needed");
    std::vector<int32_t> token_of_node(1, IN_BYTES);
    insert_all(tokens, token_of_node, poll);
    find_steps(tokens, token_of_node);
}

size_t Suffixes::place(uint32_t node, uint32_t c) const {
    return static_cast<size_t>(multiply_and_fold((uint64_t(node) << 32 | c) ^ HASH_SEEDS[0], HASH_SEEDS[1])) & (slots_.size() - 1);
}

// All tokens at once, a character more each time, so that what is shorter than a new node is there already.
void Suffixes::insert_all(const Strings &tokens, std::vector<int32_t> &token_of_node, const Poll &poll) {
    struct Growing {
        uint32_t node, left;  // bytes in front of it
        int32_t token;
    };
    std::vector<Growing> growing;
    for (size_t id = 0; id < tokens.size(); ++id) {
        if (scores_[id] == NOT_LOOKED_UP || tokens[id].empty()) continue;
        const auto size = static_cast<uint32_t>(tokens[id].size());
        longest_ = std::max(longest_, size);
        growing.push_back({ROOT, size, static_cast<int32_t>(id)});
    }
    Pace pace(poll);
    while (!growing.empty()) {
        size_t kept = 0;
        for (Growing one : growing) {
            const auto *text = reinterpret_cast<const unsigned char *>(tokens[static_cast<size_t>(one.token)].data());
            const unsigned char *end = text + one.left;
            while (--one.left && (text[one.left] & 0xC0) == 0x80) {
            }
            unsigned length;
            one.node = made(one.node, code_point_at(text + one.left, end, length));
            pace.count(16);
            if (one.left) {
                growing[kept++] = one;
                continue;
            }
            token_of_node.resize(nodes_.size(), IN_BYTES);
            token_of_node[one.node] = one.token;
            if (ends_lists(one.token)) nodes_[one.node].shorter |= IS_LAST;
        }
        growing.resize(kept);
    }
    token_of_node.resize(nodes_.size(), IN_BYTES);
}

uint32_t Suffixes::made(uint32_t node, uint32_t c) {
    uint32_t found = find(node, c);
    if (found != ROOT) return found;
    if (nodes_.size() >= IS_LAST) throw std::length_error("the tokens are too many");
    uint32_t shorter = ROOT;
    for (uint32_t at = node; at != ROOT && shorter == ROOT;) {
        at = nodes_[at].shorter & ~IS_LAST;
        shorter = find(at, c);
    }
    found = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({0, shorter, IN_BYTES});
    nodes_[node].in_front |= bit_of(c);
    if (nodes_.size() * 3 > slots_.size() * 2) grow();
    size_t at = place(node, c);
    while (slots_[at].found != ROOT) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {node, c, found};
    return found;
}

void Suffixes::grow() {
    ZeroedArray<Slot> former = std::move(slots_);
    slots_ = ZeroedArray<Slot>(2 * former.size());
    for (size_t i = 0; i < former.size(); ++i) {
        if (former[i].found == ROOT) continue;
        size_t at = place(former[i].node, former[i].c);
        while (slots_[at].found != ROOT) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = former[i];
    }
}

// Nodes are in the order of their lengths, so what is shorter has its steps already.
void Suffixes::find_steps(const Strings &tokens, const std::vector<int32_t> &token_of_node) {
    steps_.assign(tokens.size(), Step{0, NOTHING, 0});
    for (size_t node = 1; node < nodes_.size(); ++node) {
        Node &here = nodes_[node];
        const int32_t token = token_of_node[node];
        const int32_t shorter = here.shorter & IS_LAST ? NOTHING : nodes_[here.shorter].first;
        here.first = shorter;
        if (token < 0) continue;
        const auto id = static_cast<size_t>(token);
        if (scores_[id] <= INVALID_SCORE) continue;
        steps_[id] = {scores_[id], shorter, static_cast<uint32_t>(tokens[id].size())};
        here.first = token;
    }
}

}  // namespace ggufbpe
