// Building the table. It is most of the time of opening a model, so nothing waits for memory one item at a time: merges are
// taken in groups, and each step is done for a whole group while the memory for the next step is on its way.

#include "bpe/merge_table.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "bpe/byte_alphabet.h"
#include "utf8.h"

namespace ggufbpe {

namespace {

constexpr size_t MERGE_GROUP = 32;                      // merges whose symbols are looked up together
constexpr size_t STEPS_A_MERGE = 64;              // the cost of reading one, in bytes looked at
constexpr size_t MOST_STRINGS = size_t(1) << 28;  // tokens, or merges
constexpr size_t MOST_JOINED = 100;               // characters that merges join to a following space
constexpr size_t MOST_GROUPS = 6;                 // of ASCII characters: each makes the splitter's tables larger

// A text whose symbol is wanted, and how far the lookup has got.
struct SymbolLookup {
    std::string_view text;
    uint64_t hash;
    int64_t likely;  // as from Strings::likely()
    Symbol symbol;
};

// A merge being read.
struct Item {
    uint32_t rank;
    bool is_guessed;  // merged.symbol is known without making its text
    SymbolLookup left, right, merged;
};

// Cuts a merge at its first space, not counting one that begins it. False if one of the sides is empty.
bool cut_merge(std::string_view text, Item &item) {
    const size_t space = text.size() > 1 ? text.find(' ', 1) : std::string_view::npos;
    if (space == std::string_view::npos || space + 1 == text.size()) return false;
    item.left.text = text.substr(0, space);
    item.right.text = text.substr(space + 1);
    return true;
}

// Guesses which token a merge makes. Merges are mostly in the order of the tokens that they make, so it is that of the
// previous merge or the next one. With equal tokens, the guess could be the second of two, of which the first counts.
class Guesser {
public:
    explicit Guesser(const Strings &tokens) : tokens_(tokens), may_guess_(tokens.are_different()) {}

    bool guess(Item &item) {
        if (makes(item, last_)) {
            item.merged.symbol = static_cast<Symbol>(last_);
        } else if (makes(item, last_ + 1)) {
            item.merged.symbol = static_cast<Symbol>(++last_);
        } else {
            return false;
        }
        return true;
    }
    void set_last(Symbol symbol) { last_ = symbol; }

private:
    bool makes(const Item &item, size_t id) const {
        if (!may_guess_ || id >= tokens_.size()) return false;
        const std::string_view token = tokens_[id], left = item.left.text, right = item.right.text;
        return token.size() == left.size() + right.size() && token.substr(0, left.size()) == left &&
               token.substr(left.size()) == right;
    }

    const Strings &tokens_;
    const bool may_guess_;
    size_t last_ = 0;
};

// Where the characters of a text begin that are next to the place `at`, in it or at its ends.
size_t next_character(std::string_view text, size_t at) {
    do ++at;
    while (at < text.size() && (text[at] & 0xC0) == 0x80);
    return at;
}
size_t former_character(std::string_view text, size_t at) {
    do --at;
    while (at > 0 && (text[at] & 0xC0) == 0x80);
    return at;
}

uint32_t last_character(std::string_view text) {
    const auto *p = reinterpret_cast<const unsigned char *>(text.data());
    unsigned length;
    return code_point_at(p + former_character(text, text.size()), p + text.size(), length);
}

}  // namespace

// Which ASCII characters stand side by side where merges join.
class AsciiJoins {
public:
    void add(std::string_view left, std::string_view right) {
        const auto last = static_cast<unsigned char>(left.back()), first = static_cast<unsigned char>(right.front());
        if (last < ASCII && first < ASCII) are_joined_[last][first] = true;
    }

    // No groups if there are more than the splitter should tell apart. Runs of line breaks may be whole words.
    AsciiGroups groups(bool has_newline_runs) const {
        AsciiGroups result;
        bool is_grouped[ASCII] = {false};
        is_grouped[size_t('\v')] = true;  // the splitter sees white space beyond ASCII as vertical tabs
        is_grouped[size_t('\n')] = has_newline_runs;
        for (size_t seed = 0; seed < ASCII; ++seed) {
            if (is_grouped[seed]) continue;
            is_grouped[seed] = true;
            std::string group(1, static_cast<char>(seed));
            for (size_t i = 0; i < group.size(); ++i) {
                const auto one = static_cast<size_t>(group[i]);
                for (size_t two = 0; two < ASCII; ++two) {
                    if (is_grouped[two] || !(are_joined_[one][two] || are_joined_[two][one])) continue;
                    is_grouped[two] = true;
                    group += static_cast<char>(two);
                }
            }
            if (group.size() == 1 && !are_joined_[seed][seed]) {
                result.alone += group;
            } else {
                result.joined.push_back(group);
            }
        }
        return result.joined.size() > MOST_GROUPS ? AsciiGroups() : result;
    }

private:
    static constexpr size_t ASCII = 128;
    bool are_joined_[ASCII][ASCII] = {{false}};
};

namespace {

constexpr std::string_view ESCAPED_SPACE_TEXT = "\xE2\x96\x81";
bool starts_with_space(std::string_view text) { return text.substr(0, 3) == ESCAPED_SPACE_TEXT; }
bool ends_with_space(std::string_view text) {
    return text.size() >= 3 && text.substr(text.size() - 3) == ESCAPED_SPACE_TEXT;
}

// The sizes that tokens have: texts of other sizes need not be looked up.
class TokenSizes {
public:
    TokenSizes(const Strings &tokens, Pace &pace) {
        for (size_t id = 0; id < tokens.size(); ++id) {
            pace.count(STEPS_A_SIZE);
            const size_t size = tokens[id].size();
            if (size >= is_one_.size()) is_one_.resize(size + 1);
            is_one_[size] = true;
        }
    }
    bool has(size_t size) const { return is_one_[size]; }

private:
    static constexpr size_t STEPS_A_SIZE = 4;  // the cost of noting one, in bytes looked at

    std::vector<bool> is_one_;
};

// The longest token that each token begins with, and the longest that it ends with, itself aside. Theirs are its next ones, so
// all of a token's beginnings and ends are found without looking for texts that are no tokens.
class LongestEnds {
public:
    static constexpr uint32_t NONE = UINT32_MAX;

    LongestEnds(const Strings &tokens, const Poll &poll) : beginnings_(tokens.size(), NONE), ends_(tokens.size(), NONE) {
        Pace pace(poll);
        const TokenSizes sizes(tokens, pace);
        const auto find = [&](std::string_view text) {
            pace.count(1);
            if (!sizes.has(text.size())) return NONE;
            pace.count(Pace::LOOKUP + text.size());
            return static_cast<uint32_t>(tokens.find(text));
        };
        static_assert(static_cast<uint32_t>(Strings::NOT_FOUND) == NONE, "what is not found is none");
        for (size_t id = 0; id < tokens.size(); ++id) {
            const std::string_view token = tokens[id];
            if (token.size() < 2) continue;
            for (size_t at = former_character(token, token.size()); at && beginnings_[id] == NONE; at = former_character(token, at)) {
                beginnings_[id] = find(token.substr(0, at));
            }
            for (size_t at = next_character(token, 0); at < token.size() && ends_[id] == NONE; at = next_character(token, at)) {
                ends_[id] = find(token.substr(at));
            }
        }
    }

    uint32_t beginning_of(size_t token) const { return beginnings_[token]; }
    uint32_t end_of(size_t token) const { return ends_[token]; }

private:
    std::vector<uint32_t> beginnings_, ends_;
};

}  // namespace

MergeTable::MergeTable(std::shared_ptr<const Strings> tokens, const Strings &merges, const MergeOptions &options,
                       const Poll &poll)
    : tokens_(std::move(tokens)), options_(options), rank_count_(merges.size()) {
    check_tokens(merges.size(), poll);
    const PairTable::Pairs pairs = read_merges(merges, poll);
    find_characters();
    pairs_ = PairTable(pairs, symbol_count(), poll);
}

// What a table is besides its arrays.
struct MergeTable::Facts {
    uint64_t rank_count, longest_token, parts_at_spaces;
    Symbol byte_symbols[256];
    int32_t byte_ids[256];
};

namespace {

void write_texts(const std::vector<std::string> &texts, TableWriter &to) {
    std::string joined;
    std::vector<uint64_t> ends;
    for (const std::string &text : texts) ends.push_back((joined += text).size());
    to.add(ends.data(), ends.size());
    to.add(joined.data(), joined.size());
}

std::vector<std::string> read_texts(TableReader &from) {
    size_t count;
    const uint64_t *ends = from.array<uint64_t>(count);
    const char *joined = from.array_of<char>(count ? static_cast<size_t>(ends[count - 1]) : 0);
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) texts.emplace_back(joined + (i ? ends[i - 1] : 0), joined + ends[i]);
    return texts;
}

}  // namespace

MergeTable::MergeTable(std::shared_ptr<const Strings> tokens, const MergeOptions &options, TableReader from)
    : tokens_(std::move(tokens)), options_(options), pairs_(from) {
    const Facts &facts = *from.array_of<Facts>(1);
    rank_count_ = static_cast<size_t>(facts.rank_count);
    longest_token_ = static_cast<size_t>(facts.longest_token);
    parts_at_spaces_ = facts.parts_at_spaces;
    std::copy_n(facts.byte_symbols, 256, byte_symbols_);
    std::copy_n(facts.byte_ids, 256, byte_ids_);
    size_t count;
    const uint32_t *joined = from.array<uint32_t>(count);
    joined_to_spaces_.assign(joined, joined + count);
    inner_ = read_texts(from);
    for (size_t i = 0; i < inner_.size(); ++i) inner_symbols_.emplace(inner_[i], static_cast<Symbol>(tokens_->size() + i));
    ascii_groups_.joined = read_texts(from);
    const char *alone = from.array<char>(count);
    ascii_groups_.alone.assign(alone, count);
    if (options_.byte_encode) byte_merges_ = from.array_of<Merge>(BYTE_PAIRS);
}

void MergeTable::write(TableWriter &to) const {
    pairs_.write(to);
    Facts facts{rank_count_, longest_token_, parts_at_spaces_, {}, {}};
    std::copy_n(byte_symbols_, 256, facts.byte_symbols);
    std::copy_n(byte_ids_, 256, facts.byte_ids);
    to.add(&facts, 1);
    to.add(joined_to_spaces_.data(), joined_to_spaces_.size());
    write_texts(inner_, to);
    write_texts(ascii_groups_.joined, to);
    to.add(ascii_groups_.alone.data(), ascii_groups_.alone.size());
    if (options_.byte_encode) to.add(byte_merges_, BYTE_PAIRS);
}

// More than MOST_JOINED of them are useless, and need not be known.
void MergeTable::note_joined_to_space(uint32_t character) {
    if (joined_to_spaces_.size() > MOST_JOINED) return;
    const auto place = std::lower_bound(joined_to_spaces_.begin(), joined_to_spaces_.end(), character);
    if (place == joined_to_spaces_.end() || *place != character) joined_to_spaces_.insert(place, character);
}

MergeTable::MergeTable(std::shared_ptr<const Strings> tokens, const std::vector<uint32_t> &ranks, const MergeOptions &options,
                       const Poll &poll)
    : tokens_(std::move(tokens)), options_(options), rank_count_(0) {
    check_tokens(ranks.size(), poll);
    if (ranks.size() != tokens_->size()) throw std::invalid_argument("not a rank for each token");
    for (const uint32_t rank : ranks) rank_count_ = std::max(rank_count_, rank + size_t(1));
    const PairTable::Pairs pairs = read_tokens(ranks, poll);
    find_characters();
    pairs_ = PairTable(pairs, symbol_count(), poll, PairTable::Ranks::SHARED);
}

void MergeTable::check_tokens(size_t merge_count, const Poll &poll) {
    if (!tokens_->indexed()) throw std::invalid_argument("the tokens have no index");
    if (tokens_->size() >= MOST_STRINGS || merge_count >= MOST_STRINGS) {
        throw std::invalid_argument("more tokens or merges than there are numbers for");
    }
    in_pieces(tokens_->size(), poll, [&](size_t from, size_t end) {
        for (size_t id = from; id < end; ++id) longest_token_ = std::max(longest_token_, (*tokens_)[id].size());
    });
}

Symbol MergeTable::symbol_of(std::string_view text, uint64_t hash, int64_t likely) {
    const int64_t id = tokens_->find_likely(text, hash, likely);
    if (id != Strings::NOT_FOUND) return static_cast<Symbol>(id);
    auto [found, is_new] = inner_symbols_.try_emplace(std::string(text), static_cast<Symbol>(symbol_count()));
    if (is_new) inner_.emplace_back(text);
    return found->second;
}

// The pairs of all merges, as symbols.
PairTable::Pairs MergeTable::read_merges(const Strings &merges, const Poll &poll) {
    if (options_.byte_encode) {
        own_byte_merges_ = ZeroedArray<Merge>(BYTE_PAIRS);
        std::fill_n(own_byte_merges_.data(), BYTE_PAIRS, NO_MERGE);
        byte_merges_ = own_byte_merges_.data();
    }
    PairTable::Pairs pairs(merges.size());
    Guesser guesser(*tokens_);
    AsciiJoins ascii_joins;
    std::vector<Item> items(MERGE_GROUP);
    std::vector<char> merged;  // texts of results that were not guessed
    Pace pace(poll);
    for (size_t from = 0; from < merges.size(); from += MERGE_GROUP) {
        const size_t end = std::min(from + MERGE_GROUP, merges.size());
        size_t room = 0;
        for (size_t rank = from; rank < end; ++rank) room += merges[rank].size();
        if (merged.size() < room) merged.resize(room);
        pace.count(room + (end - from) * STEPS_A_MERGE);
        char *to = merged.data();
        size_t count = 0;
        for (size_t rank = from; rank < end; ++rank) {
            Item &item = items[count];
            if (!cut_merge(merges[rank], item)) continue;
            ++count;
            item.rank = static_cast<uint32_t>(rank);
            item.is_guessed = guesser.guess(item);
            if (item.is_guessed) continue;
            item.merged.text = {to, item.left.text.size() + item.right.text.size()};
            to = std::copy(item.left.text.begin(), item.left.text.end(), to);
            to = std::copy(item.right.text.begin(), item.right.text.end(), to);
        }
        const auto for_each_lookup = [&](auto work) {
            for (size_t i = 0; i < count; ++i) {
                work(items[i].left);
                work(items[i].right);
                if (!items[i].is_guessed) work(items[i].merged);
            }
        };
        for_each_lookup([&](SymbolLookup &lookup) {
            lookup.hash = tokens_->hash(lookup.text);
            tokens_->prefetch(lookup.hash);
        });
        for_each_lookup([&](SymbolLookup &lookup) {
            lookup.likely = tokens_->likely(lookup.hash);
            tokens_->prefetch_end(lookup.likely);
        });
        for_each_lookup([&](SymbolLookup &lookup) { tokens_->prefetch_text(lookup.likely); });
        for_each_lookup([&](SymbolLookup &lookup) { lookup.symbol = symbol_of(lookup.text, lookup.hash, lookup.likely); });
        if (count) guesser.set_last(items[count - 1].merged.symbol);
        for (size_t i = 0; i < count; ++i) {
            const Item &item = items[i];
            const Merge merge{item.merged.symbol, item.rank};
            pairs.add({item.left.symbol, item.right.symbol, merge});
            if (options_.byte_encode) {
                const int left = BYTE_ALPHABET.byte_of(item.left.text), right = BYTE_ALPHABET.byte_of(item.right.text);
                if (left == ByteAlphabet::NOT_A_BYTE || right == ByteAlphabet::NOT_A_BYTE) continue;
                Merge &first = own_byte_merges_[size_t(right) << 8 | size_t(left)];
                if (!first.exists()) first = merge;
            } else {
                ascii_joins.add(item.left.text, item.right.text);
                if (starts_with_space(item.right.text) && !ends_with_space(item.left.text)) {
                    note_joined_to_space(last_character(item.left.text));
                }
            }
        }
    }
    find_places_to_part(ascii_joins);
    return pairs;
}

// The pairs of symbols that tokens are made of. A symbol is a token or a single character.
PairTable::Pairs MergeTable::read_tokens(const std::vector<uint32_t> &ranks, const Poll &poll) {
    PairTable::Pairs pairs(2 * tokens_->size());
    AsciiJoins ascii_joins;
    const LongestEnds ends(*tokens_, poll);
    std::vector<uint32_t> beginnings;  // of a token, from the longest to the shortest
    const auto symbol = [&](uint32_t token, std::string_view text) {
        if (token != LongestEnds::NONE) return static_cast<Symbol>(token);
        return symbol_of(text, tokens_->hash(text), Strings::NOT_FOUND);
    };
    const auto size_of = [&](uint32_t token, size_t size_of_character) {
        return token == LongestEnds::NONE ? size_of_character : (*tokens_)[token].size();
    };
    Pace pace(poll);
    for (size_t id = 0; id < tokens_->size(); ++id) {
        const std::string_view token = (*tokens_)[id];
        if (token.size() < 2) continue;
        const size_t first = next_character(token, 0), last = token.size() - former_character(token, token.size());
        if (first == token.size()) continue;
        beginnings.clear();
        uint32_t end = ends.beginning_of(id);
        for (; end != LongestEnds::NONE; end = ends.beginning_of(end)) beginnings.push_back(end);
        if (beginnings.empty() || (*tokens_)[beginnings.back()].size() > first) beginnings.push_back(LongestEnds::NONE);
        end = ends.end_of(id);
        pace.count(STEPS_A_MERGE * (1 + beginnings.size()));
        for (size_t i = beginnings.size(); i-- > 0;) {  // from the shortest to the longest, and ends the other way
            const size_t at = size_of(beginnings[i], first);
            while (end != LongestEnds::NONE && size_of(end, last) > token.size() - at) end = ends.end_of(end);
            if (size_of(end, last) != token.size() - at) continue;
            const std::string_view left = token.substr(0, at), right = token.substr(at);
            const Symbol left_symbol = symbol(beginnings[i], left), right_symbol = symbol(end, right);
            pairs.add({left_symbol, right_symbol, {static_cast<Symbol>(id), ranks[id]}});
            ascii_joins.add(left, right);
            if (starts_with_space(right) && !ends_with_space(left)) note_joined_to_space(last_character(left));
        }
    }
    find_places_to_part(ascii_joins);
    return pairs;
}

void MergeTable::find_places_to_part(const AsciiJoins &joins) {
    parts_at_spaces_ = options_.escape_spaces && !options_.byte_encode && !options_.ignore_merges &&
                       !options_.prepend_space &&  // a part of a word must not be taken for its beginning
                       joined_to_spaces_.size() <= MOST_JOINED;
    if (parts_at_spaces_) ascii_groups_ = joins.groups(options_.newline_runs);
}

void MergeTable::find_characters() {
    for (int byte = 0; byte < 256; ++byte) {
        if (options_.byte_encode) {
            const std::string_view text = BYTE_ALPHABET.character(static_cast<unsigned char>(byte));
            const uint64_t hash = tokens_->hash(text);
            byte_symbols_[byte] = symbol_of(text, hash, tokens_->likely(hash));
        } else {
            unsigned char utf8[4];
            const auto code_point = static_cast<uint32_t>(byte);
            const bool is_escaped = options_.escape_spaces && code_point == ' ';
            byte_symbols_[byte] = symbol_of_character(utf8, write_utf8(is_escaped ? ESCAPED_SPACE : code_point, utf8));
        }
        byte_ids_[byte] = id_of_byte(static_cast<unsigned char>(byte));
    }
}

// At byte level llama.cpp looks up single bytes of the symbol's UTF-8, so only ASCII ones can be found. Models with scores do
// so for bytes without a <0xXX> (src/llama-vocab.cpp: llama_vocab::byte_to_token).
int32_t MergeTable::id_of_byte(unsigned char byte) const {
    int64_t id = Strings::NOT_FOUND;
    if (!options_.byte_encode) {
        char name[8];
        std::snprintf(name, sizeof name, "<0x%02X>", byte);
        id = tokens_->find(name);
    }
    if (id == Strings::NOT_FOUND && (options_.byte_encode || options_.needs_bytes) && byte < 0x80) {
        const char character = static_cast<char>(byte);
        id = tokens_->find(std::string_view(&character, 1));
    }
    return id == Strings::NOT_FOUND ? NO_BYTE : static_cast<int32_t>(id);
}

Symbol MergeTable::symbol_of_character(const unsigned char *utf8, unsigned size) const {
    const std::string_view text(reinterpret_cast<const char *>(utf8), size);
    const int64_t id = tokens_->find(text);
    if (id != Strings::NOT_FOUND) return static_cast<Symbol>(id);
    if (!inner_symbols_.empty()) {
        const auto found = inner_symbols_.find(std::string(text));
        if (found != inner_symbols_.end()) return found->second;
    }
    return static_cast<Symbol>(symbol_count());
}

}  // namespace ggufbpe
