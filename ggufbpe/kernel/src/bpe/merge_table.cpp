// The symbols and the merges of a vocabulary, from the strings of a GGUF.

#include "bpe/merger.h"

#include <algorithm>
#include <stdexcept>

#include "bpe/byte_alphabet.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t AT_ONCE = 32;  // merges whose symbols are looked up together
constexpr size_t MOST_STRINGS = size_t(1) << 28;  // tokens, or merges
constexpr size_t MOST_JOINED = 100;  // characters that merges join to a space behind them

uint32_t last_character(std::string_view text) {
    size_t start = text.size() - 1;
    while (start > 0 && (text[start] & 0xC0) == 0x80) --start;
    const auto *p = reinterpret_cast<const unsigned char *>(text.data());
    unsigned length;
    return code_point_at(p + start, p + text.size(), length);
}

bool is_joined(std::string_view text, std::string_view left, std::string_view right) {
    return text.size() == left.size() + right.size() && text.substr(0, left.size()) == left &&
           text.substr(left.size()) == right;
}

bool starts_with_space(std::string_view text) { return text.compare(0, 3, "\xE2\x96\x81") == 0; }
bool ends_with_space(std::string_view text) {
    return text.size() >= 3 && text.compare(text.size() - 3, 3, "\xE2\x96\x81") == 0;
}

}  // namespace

Merger::Merger(std::shared_ptr<const Strings> tokens, const Strings &merges, const MergeOptions &options)
    : tokens_(std::move(tokens)), options_(options) {
    if (!tokens_->indexed()) throw std::invalid_argument("the tokens have no index");
    if (tokens_->size() >= MOST_STRINGS || merges.size() >= MOST_STRINGS) {
        throw std::invalid_argument("more tokens or merges than there are numbers for");
    }
    for (size_t id = 0; id < tokens_->size(); ++id) longest_token_ = std::max(longest_token_, (*tokens_)[id].size());
    const std::vector<PairTable::Pair> pairs = read(merges);
    prepare_characters();
    pairs_ = PairTable(pairs, symbol_count());
}

uint32_t Merger::symbol_of(std::string_view text, uint64_t hash, int64_t likely) {
    const int64_t id = tokens_->find_likely(text, hash, likely);
    if (id >= 0) return static_cast<uint32_t>(id);
    auto [found, is_new] = inner_symbols_.try_emplace(std::string(text), static_cast<uint32_t>(symbol_count()));
    if (is_new) inner_.emplace_back(text);
    return found->second;
}

// The symbols of all merges.
std::vector<PairTable::Pair> Merger::read(const Strings &merges) {
    rank_count_ = merges.size();
    if (options_.byte_encode) {
        byte_pairs_ = ZeroedArray<uint64_t>(65536);
        std::fill_n(byte_pairs_.data(), 65536, NONE);
    }
    std::vector<PairTable::Pair> pairs;
    pairs.reserve(merges.size());
    // In groups, so that what a group will look up is on its way while its hashes are made.
    struct Part {
        std::string_view text;
        uint64_t hash;
        int64_t likely;
        uint32_t symbol;
    };
    struct Item {
        uint32_t rank;
        bool is_guessed;
        Part left, right, merged;
    };
    // Merges mostly stand in the order of the tokens that they make, so what comes next is guessed first.
    const bool guesses = tokens_->are_different();
    size_t guess = 0;
    const auto makes = [&](const Item &item, size_t id) {
        return guesses && id < tokens_->size() && is_joined((*tokens_)[id], item.left.text, item.right.text);
    };
    std::vector<Item> items(AT_ONCE);
    std::vector<char> merged;  // texts of those that were not guessed
    for (size_t from = 0; from < merges.size(); from += AT_ONCE) {
        const size_t end = std::min(from + AT_ONCE, merges.size());
        size_t room = 0;
        for (size_t rank = from; rank < end; ++rank) room += merges[rank].size();
        if (merged.size() < room) merged.resize(room);
        char *to = merged.data();
        size_t count = 0;
        const auto each = [&](auto work) {
            for (size_t i = 0; i < count; ++i) {
                work(items[i].left);
                work(items[i].right);
                if (!items[i].is_guessed) work(items[i].merged);
            }
        };
        for (size_t rank = from; rank < end; ++rank) {
            // A merge is cut at its first space, not counting one that begins it.
            std::string_view text = merges[rank];
            size_t space = text.size() > 1 ? text.find(' ', 1) : std::string_view::npos;
            if (space == std::string_view::npos || space + 1 == text.size()) continue;
            Item &item = items[count++];
            item.rank = static_cast<uint32_t>(rank);
            item.left.text = text.substr(0, space);
            item.right.text = text.substr(space + 1);
            const size_t tried = makes(item, guess) ? guess : guess + 1;
            item.is_guessed = tried == guess || makes(item, tried);
            if (item.is_guessed) {
                item.merged.symbol = static_cast<uint32_t>(tried);
                guess = tried;
                continue;
            }
            item.merged.text = {to, text.size() - 1};
            to = std::copy(item.left.text.begin(), item.left.text.end(), to);
            to = std::copy(item.right.text.begin(), item.right.text.end(), to);
        }
        each([&](Part &part) {
            part.hash = hash_bytes(part.text.data(), part.text.size());
            tokens_->prefetch(part.hash);
        });
        each([&](Part &part) {
            part.likely = tokens_->likely(part.hash);
            tokens_->prefetch_end(part.likely);
        });
        each([&](Part &part) { tokens_->prefetch_text(part.likely); });
        each([&](Part &part) { part.symbol = symbol_of(part.text, part.hash, part.likely); });
        if (count) guess = items[count - 1].merged.symbol;
        for (size_t i = 0; i < count; ++i) {
            const Item &item = items[i];
            pairs.push_back({item.left.symbol, item.right.symbol, item.rank, item.merged.symbol});
            if (options_.byte_encode) {
                const int left = byte_of(item.left.text), right = byte_of(item.right.text);
                if (left < 0 || right < 0) continue;
                uint64_t &value = byte_pairs_[size_t(right) << 8 | size_t(left)];
                if (value == NONE) value = uint64_t(item.rank) << 32 | item.merged.symbol;
            } else if (starts_with_space(item.right.text) && !ends_with_space(item.left.text)) {
                joined_to_spaces_.push_back(last_character(item.left.text));
            }
        }
    }
    std::sort(joined_to_spaces_.begin(), joined_to_spaces_.end());
    joined_to_spaces_.erase(std::unique(joined_to_spaces_.begin(), joined_to_spaces_.end()), joined_to_spaces_.end());
    parts_at_spaces_ = options_.escape_spaces && !options_.byte_encode && !options_.ignore_merges &&
                       joined_to_spaces_.size() <= MOST_JOINED;
    return pairs;
}

void Merger::prepare_characters() {
    for (int byte = 0; byte < 256; ++byte) {
        if (options_.byte_encode) {
            std::string_view text(reinterpret_cast<const char *>(ALPHABET.text[byte]), ALPHABET.size[byte]);
            const uint64_t hash = hash_bytes(text.data(), text.size());
            byte_symbols_[byte] = symbol_of(text, hash, tokens_->likely(hash));
        } else {
            unsigned char text[4];
            uint32_t code_point = options_.escape_spaces && byte == ' ' ? ESCAPED_SPACE : static_cast<uint32_t>(byte);
            byte_symbols_[byte] = character(text, write_utf8(code_point, text));
        }
    }
}

// The symbol of a character that is no byte: its token, or what merges have of it; no_symbol() if nobody knows it.
uint32_t Merger::character(const unsigned char *at, unsigned size) const {
    std::string_view text(reinterpret_cast<const char *>(at), size);
    int64_t id = tokens_->find(text);
    if (id >= 0) return static_cast<uint32_t>(id);
    if (!inner_symbols_.empty()) {
        auto found = inner_symbols_.find(std::string(text));
        if (found != inner_symbols_.end()) return found->second;
    }
    return static_cast<uint32_t>(symbol_count());
}

}  // namespace ggufbpe
