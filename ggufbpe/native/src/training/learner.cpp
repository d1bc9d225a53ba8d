#include "training/learner.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "machine.h"

namespace ggufbpe {

namespace {

uint64_t mixed(uint64_t value) {  // the finalizer of splitmix64
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

}  // namespace

// ---- pairs ----------------------------------------------------------------------------------------------------------

Learner::Learner(std::vector<Token> tokens, const std::vector<Merge> &known, Rules rules)
    : rules_(std::move(rules)), tokens_(std::move(tokens)) {
    for (size_t i = 0; i < tokens_.size(); ++i) ids_[tokens_[i].text] = static_cast<uint32_t>(i);
    auto check = [&](uint32_t id) {
        if (id >= tokens_.size()) throw std::invalid_argument("a merge of tokens that there are not");
    };
    for (const Merge &merge : known) {
        check(merge.left), check(merge.right), check(merge.token);
        known_[key_of(merge.left, merge.right)] = {known_.size(), merge.token};
    }
    rules_.min_frequency = std::max<int64_t>(rules_.min_frequency, 1);
    slots_.resize(1 << 6);
}

void Learner::begin() {
    if (has_begun_) throw std::logic_error("the words of a learner are added once");
    has_begun_ = true;
}

void Learner::reserve(size_t words, size_t symbols) {
    words_.reserve(words);
    symbols_.reserve(symbols, false);
}

void Learner::add_word(const std::vector<uint32_t> &symbols, int64_t count) {
    if (words_.size() >= Places::MOST) throw std::length_error("there are more than 2^31 different words");
    if (symbols.size() > std::numeric_limits<uint32_t>::max() - symbols_.size()) {
        throw std::length_error("the different words have more than 2^32 symbols; shorter words have fewer");
    }
    const int64_t left = std::numeric_limits<int64_t>::max() - 1 - count_of_symbols_;
    if (count < 0 || count > left / static_cast<int64_t>(symbols.size())) {
        throw std::length_error("the symbols of all words were counted more than 2^63 times");
    }
    count_of_symbols_ += count * static_cast<int64_t>(symbols.size());
    for (uint32_t symbol : symbols) {
        if (symbol >= tokens_.size()) throw std::invalid_argument("a word of tokens that there are not");
    }
    words_.push_back({static_cast<uint32_t>(symbols_.size()), static_cast<uint32_t>(symbols.size()), count});
    for (uint32_t symbol : symbols) symbols_.push(static_cast<int32_t>(symbol));
    symbol_count_ = symbols_.size();
    if (count == 0) has_uncounted_words_ = true;
}

uint32_t Learner::pair_of(uint64_t key) {
    size_t mask = slots_.size() - 1;
    size_t slot = mixed(key) & mask;
    for (; slots_[slot]; slot = (slot + 1) & mask) {
        if (pairs_[slots_[slot] - 1].key == key) return slots_[slot] - 1;
    }
    uint32_t index = pairs_.size();
    if (free_pairs_.empty()) {
        if (index >= std::numeric_limits<uint32_t>::max() - 1) throw std::length_error("too many pairs");
        pairs_.add();
    } else {
        index = free_pairs_.back();
        free_pairs_.pop_back();
    }
    pairs_[index].key = key;
    slots_[slot] = index + 1;
    if (2 * (pairs_.size() - free_pairs_.size()) > slots_.size()) grow();
    return index;
}

// Forgets a pair that occurs nowhere. Candidates of it may remain; when one is popped, it counts only if it has the count and
// the tie of the pair that has the number then.
void Learner::forget(uint32_t index) {
    if (has_uncounted_words_) return;
    const size_t mask = slots_.size() - 1;
    const auto home = [&](size_t slot) { return mixed(pairs_[slots_[slot] - 1].key) & mask; };
    size_t free = mixed(pairs_[index].key) & mask;
    while (slots_[free] != index + 1) free = (free + 1) & mask;
    for (size_t slot = (free + 1) & mask; slots_[slot]; slot = (slot + 1) & mask) {
        if (((slot - home(slot)) & mask) < ((slot - free) & mask)) continue;  // it would stand before its home
        slots_[free] = slots_[slot];
        free = slot;
    }
    slots_[free] = 0;
    pairs_[index] = Pair();
    free_pairs_.push_back(index);
}

void Learner::grow() {
    const size_t size = 2 * slots_.size();
    give_back(slots_);
    slots_.resize(size);
    for (uint32_t i = 0; i < pairs_.size(); ++i) {
        if (pairs_[i].key == NO_PAIR) continue;
        size_t slot = mixed(pairs_[i].key) & (size - 1);
        while (slots_[slot]) slot = (slot + 1) & (size - 1);
        slots_[slot] = i + 1;
    }
}

// Calls visit(pair, word) for each two neighbours, with the number of their word.
template <typename Visit>
void Learner::for_each_place(const Poll &poll, Visit visit) {
    Pace pace(poll);
    for (uint32_t word = 0; word < words_.size(); ++word) {
        const uint32_t *symbols = symbols_of(words_[word]);
        for (uint32_t i = 1; i < words_[word].size; ++i) {
            visit(pairs_[pair_of(key_of(symbols[i - 1], symbols[i]))], word);
            pace.count(Pace::LOOKUP);
        }
    }
}

void Learner::prepare(const Poll &poll) {
    for_each_place(poll, [&](Pair &pair, uint32_t word) {
        pair.count += words_[word].count;
        pair.places.note(word);
    });
    int64_t most = 0;
    Pace pace(poll);
    for (uint32_t i = 0; i < pairs_.size(); ++i) {
        pairs_[i].places.make_room();
        most = std::max(most, pairs_[i].count);
        pace.count(Pace::LOOKUP);
    }
    for_each_place(poll, [](Pair &pair, uint32_t word) { pair.places.add(word); });
    floor_ = most + 1;
    is_ready_ = true;
}

// ---- the heap -------------------------------------------------------------------------------------------------------

uint64_t Learner::tie_of(uint32_t index) {
    return rules_.ties == Ties::first_seen ? first_place(pairs_[index]) : pairs_[index].key;
}

// The first word in which the pair now occurs, and where in it, in units.
uint64_t Learner::first_place(Pair &pair) {
    uint32_t left = static_cast<uint32_t>(pair.key >> 32), right = static_cast<uint32_t>(pair.key);
    for (; pair.passed < pair.places.size(); ++pair.passed) {
        uint32_t index = pair.places.begin()[pair.passed];
        const Word &word = words_[index];
        const uint32_t *symbols = symbols_of(word);
        uint64_t offset = 0;
        for (uint32_t i = 0; i + 1 < word.size; offset += tokens_[symbols[i++]].length) {
            if (symbols[i] == left && symbols[i + 1] == right) return uint64_t(index) << 32 | (offset & 0xffffffff);
        }
    }
    throw std::logic_error("a pair with a count stands somewhere");
}

bool Learner::is_worse(const Candidate &a, const Candidate &b) const {
    if (a.count != b.count) return a.count < b.count;
    if (rules_.ties != Ties::lexicographic) return a.tie > b.tie;
    int order = tokens_[a.tie >> 32].raw.compare(tokens_[b.tie >> 32].raw);
    if (order == 0) order = tokens_[a.tie & 0xffffffff].raw.compare(tokens_[b.tie & 0xffffffff].raw);
    return order ? order > 0 : a.tie > b.tie;
}

void Learner::push(uint32_t index) {
    if (pairs_[index].count < floor_) return;
    heap_.push_back({pairs_[index].count, tie_of(index), index});
    std::push_heap(heap_.begin(), heap_.end(), [this](const Candidate &a, const Candidate &b) { return is_worse(a, b); });
}

// Rare pairs, nearly all of which never come first, are in the heap only when nothing more frequent is left. False if no pair
// is frequent enough.
bool Learner::refill() {
    while (heap_.empty() && floor_ > rules_.min_frequency) {
        const int64_t before = floor_;
        floor_ = std::max(rules_.min_frequency, before / 4);
        for (uint32_t i = 0; i < pairs_.size(); ++i) {
            const int64_t count = pairs_[i].count;
            if (count >= floor_ && count < before) heap_.push_back({count, tie_of(i), i});
        }
    }
    std::make_heap(heap_.begin(), heap_.end(), [this](const Candidate &a, const Candidate &b) { return is_worse(a, b); });
    return !heap_.empty();
}

bool Learner::run(double seconds) {
    if (!is_ready_) throw std::logic_error("there are no words yet, or adding them or learning was interrupted");
    is_ready_ = false;  // what ends in the middle of a merge cannot go on
    const bool goes_on = learn(seconds);
    is_ready_ = true;
    return goes_on;
}

bool Learner::learn(double seconds) {
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (tokens_.size() < rules_.vocab_size && (!heap_.empty() || refill())) {
        std::pop_heap(heap_.begin(), heap_.end(),
                      [this](const Candidate &a, const Candidate &b) { return is_worse(a, b); });
        const Candidate best = heap_.back();
        heap_.pop_back();
        const Pair &found = pairs_[best.pair];
        if (found.count < floor_) continue;
        if (found.count != best.count || tie_of(best.pair) != best.tie) {
            push(best.pair);
        } else if (is_allowed(found.key)) {
            merge(best.pair);
            if (std::chrono::steady_clock::now() > end) return true;
        }
    }
    give_back(words_), give_back(symbols_), give_back(pairs_), give_back(free_pairs_), give_back(slots_), give_back(heap_);
    return false;
}

// ---- merging --------------------------------------------------------------------------------------------------------

bool Learner::is_allowed(uint64_t key) const {
    const Token &left = tokens_[key >> 32], &right = tokens_[key & 0xffffffff];
    if (left.length + right.length > rules_.max_token_length) return false;
    return rules_.forbidden.empty() || !rules_.forbidden.count(left.text + right.text);
}

std::pair<uint32_t, bool> Learner::joined(uint32_t left, uint32_t right) {
    Token token{tokens_[left].text + tokens_[right].text, tokens_[left].raw + tokens_[right].raw,
                tokens_[left].length + tokens_[right].length};
    auto [found, is_new] = ids_.emplace(token.text, static_cast<uint32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(std::move(token));
    return {found->second, is_new};
}

void Learner::merge(uint32_t index) {
    const uint64_t key = pairs_[index].key;
    const uint32_t left = static_cast<uint32_t>(key >> 32), right = static_cast<uint32_t>(key);
    const auto [token, is_new] = joined(left, right);
    merges_.push_back({left, right, pairs_[index].count, token});
    known_.emplace(key, Known{known_.size(), token});
    const Places places = std::move(pairs_[index].places);
    pairs_[index].passed = 0;
    before_.make_room(tokens_.size());
    after_.make_room(tokens_.size());
    constexpr uint32_t FAR = 16, NEAR = 8;  // words in advance: the word is fetched into the cache, then its symbols
    const uint32_t *const words = places.begin();
    for (uint32_t i = 0; i < places.size(); ++i) {
        if (i + FAR < places.size()) prefetch(&words_[words[i + FAR]]);
        if (i + NEAR < places.size()) prefetch_to_write(symbols_of(words_[words[i + NEAR]]));
        merge_in(words[i], left, right, token);
    }
    risen_.clear();
    change_counts(left, right, token);
    if (!is_new) settle(places);
    pairs_[index].count = 0;
    forget(index);
    for (uint32_t changed : risen_) push(changed);
    if (2 * symbol_count_ < symbols_.size()) compact();
}

// Moves the symbols of all words together, and gives back the memory behind them.
void Learner::compact() {
    uint32_t *const begin = symbols_of({}), *to = begin;
    for (Word &word : words_) {
        const uint32_t *from = symbols_of(word);
        word.start = static_cast<uint32_t>(to - begin);
        to = std::copy(from, from + word.size, to);
    }
    symbols_.truncate(symbol_count_);
    symbols_.shrink();
}

void Learner::merge_in(uint32_t index, uint32_t left, uint32_t right, uint32_t token) {
    Word &word = words_[index];
    uint32_t *symbols = symbols_of(word);
    uint32_t size = word.size, from = 0, to = 0;
    while (from < size) {
        if (symbols[from] != left || from + 1 == size || symbols[from + 1] != right) {
            symbols[to++] = symbols[from++];
            continue;
        }
        if (to > 0) before_.add(symbols[to - 1], word.count, index);
        if (from + 2 < size) after_.add(symbols[from + 2], word.count, index);
        symbols[to++] = token;
        from += 2;
    }
    symbol_count_ -= size - to;
    word.size = to;
}

void Learner::change_counts(uint32_t left, uint32_t right, uint32_t token) {
    for (uint32_t symbol : after_.symbols()) {
        falls(key_of(right, symbol), after_.count(symbol));
        rises(key_of(token, symbol), after_.count(symbol), after_.words(symbol));
    }
    for (uint32_t symbol : before_.symbols()) {
        falls(key_of(symbol, left), before_.count(symbol));
        rises(key_of(symbol, token), before_.count(symbol), before_.words(symbol));
    }
    before_.clear();
    after_.clear();
}

void Learner::falls(uint64_t key, int64_t count) {
    const uint32_t index = pair_of(key);
    pairs_[index].count -= count;
    if (!pairs_[index].count) forget(index);
}

void Learner::rises(uint64_t key, int64_t count, const std::vector<uint32_t> &words) {
    const uint32_t index = pair_of(key);
    Pair &found = pairs_[index];
    found.count += count;
    if (found.places.size()) {
        found.places.unite(words);
    } else {
        found.places = Places(words);
    }
    found.passed = 0;
    risen_.push_back(index);
    if (!found.count) forget(index);
}

// Applies earlier merges, the lowest rank first, where words have their pairs again.
void Learner::settle(const Places &places) {
    std::vector<std::pair<uint64_t, uint32_t>> made;  // pairs, by key, and words
    for (uint32_t word : places) settle_in(word, made);
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    std::vector<uint32_t> words;
    for (size_t i = 0; i < made.size(); ++i) {
        words.push_back(made[i].second);
        if (i + 1 < made.size() && made[i + 1].first == made[i].first) continue;
        rises(made[i].first, 0, words);
        words.clear();
    }
}

void Learner::settle_in(uint32_t index, std::vector<std::pair<uint64_t, uint32_t>> &made) {
    Word &word = words_[index];
    uint32_t *symbols = symbols_of(word);
    const uint32_t size = word.size;
    for (;;) {
        const Known *best = nullptr;
        uint32_t at = 0;
        for (uint32_t i = 0; i + 1 < word.size; ++i) {
            auto found = known_.find(key_of(symbols[i], symbols[i + 1]));
            if (found != known_.end() && (!best || found->second.rank < best->rank)) best = &found->second, at = i;
        }
        if (!best) break;
        if (word.size == size) {
            for (uint32_t i = 0; i + 1 < size; ++i) falls(key_of(symbols[i], symbols[i + 1]), word.count);
        }
        symbols[at] = best->token;
        std::copy(symbols + at + 2, symbols + word.size, symbols + at + 1);
        --word.size;
        --symbol_count_;
    }
    if (word.size == size) return;
    for (uint32_t i = 0; i + 1 < word.size; ++i) {
        const uint64_t key = key_of(symbols[i], symbols[i + 1]);
        pairs_[pair_of(key)].count += word.count;
        made.emplace_back(key, index);
    }
}

// ---- the neighbours of a merge --------------------------------------------------------------------------------------

void Learner::Side::add(uint32_t symbol, int64_t count, uint32_t word) {
    Neighbour &neighbour = neighbours_[symbol];
    neighbour.count += count;
    if (neighbour.last != NONE && entries_[neighbour.last].word == word) return;
    const uint32_t entry = static_cast<uint32_t>(entries_.size());  // at most one for two symbols, so they are fewer than 2^32
    entries_.push_back({word, NONE});
    if (neighbour.last == NONE) {
        neighbour.first = entry;
        symbols_.push_back(symbol);
    } else {
        entries_[neighbour.last].next = entry;
    }
    neighbour.last = entry;
}

const std::vector<uint32_t> &Learner::Side::words(uint32_t symbol) {
    words_.clear();
    for (uint32_t at = neighbours_[symbol].first; at != NONE; at = entries_[at].next) words_.push_back(entries_[at].word);
    return words_;
}

void Learner::Side::clear() {
    for (uint32_t symbol : symbols_) neighbours_[symbol] = {};
    symbols_.clear();
    entries_.clear();
}

}  // namespace ggufbpe
