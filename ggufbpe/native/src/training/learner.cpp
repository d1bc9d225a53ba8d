#include "training/learner.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "training/mixed_bits.h"

namespace ggufbpe {

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
    slots_.assign(1 << 16, 0);
}

void Learner::add_word(const std::vector<uint32_t> &symbols, int64_t count) {
    if (symbols.size() > std::numeric_limits<uint32_t>::max() || words_.size() >= std::numeric_limits<uint32_t>::max()) {
        throw std::length_error("too many words, or too long ones");
    }
    for (uint32_t symbol : symbols) {
        if (symbol >= tokens_.size()) throw std::invalid_argument("a word of tokens that there are not");
    }
    uint32_t word = static_cast<uint32_t>(words_.size());
    words_.push_back({symbols_.size(), static_cast<uint32_t>(symbols.size()), count});
    symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
    for (size_t i = 1; i < symbols.size(); ++i) stands(key_of(symbols[i - 1], symbols[i]), count, word);
}

uint32_t Learner::pair_of(uint64_t key) {
    size_t mask = slots_.size() - 1;
    size_t slot = mixed(key) & mask;
    for (; slots_[slot]; slot = (slot + 1) & mask) {
        if (pairs_[slots_[slot] - 1].key == key) return slots_[slot] - 1;
    }
    if (pairs_.size() >= std::numeric_limits<uint32_t>::max() - 1) throw std::length_error("too many pairs");
    pairs_.push_back({key});
    slots_[slot] = static_cast<uint32_t>(pairs_.size());
    if (2 * pairs_.size() > slots_.size()) grow();
    return static_cast<uint32_t>(pairs_.size() - 1);
}

void Learner::grow() {
    slots_.assign(2 * slots_.size(), 0);
    size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < pairs_.size(); ++i) {
        size_t slot = mixed(pairs_[i].key) & mask;
        while (slots_[slot]) slot = (slot + 1) & mask;
        slots_[slot] = static_cast<uint32_t>(i + 1);
    }
}

void Learner::stands(uint64_t key, int64_t count, uint32_t word) {
    Pair &pair = pairs_[pair_of(key)];
    pair.count += count;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
}

// Like `stands`, for a place that the current merge made.
void Learner::rises(uint64_t key, int64_t count, uint32_t word) {
    uint32_t index = pair_of(key);
    Pair &pair = pairs_[index];
    pair.count += count;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
    if (pair.rises != merges_.size() + 1) {
        pair.rises = merges_.size() + 1;
        risen_.push_back(index);
    }
}

// ---- the heap -------------------------------------------------------------------------------------------------------

uint64_t Learner::tie_of(uint32_t index) {
    Pair &pair = pairs_[index];
    if (rules_.ties == Ties::first_seen) return first_place(pair);
    return pair.key;
}

// The first word in which the pair now occurs, and where in it, in units.
uint64_t Learner::first_place(Pair &pair) {
    uint32_t left = static_cast<uint32_t>(pair.key >> 32), right = static_cast<uint32_t>(pair.key);
    for (; pair.passed < pair.words.size(); ++pair.passed) {
        uint32_t index = pair.words[pair.passed];
        const Word &word = words_[index];
        const uint32_t *symbols = symbols_.data() + word.start;
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
    if (pairs_[index].count < rules_.min_frequency) return;
    heap_.push_back({pairs_[index].count, tie_of(index), index});
    std::push_heap(heap_.begin(), heap_.end(), [this](const Candidate &a, const Candidate &b) { return is_worse(a, b); });
}

void Learner::prepare(const Poll &poll) {
    Pace pace(poll);
    for (uint32_t i = 0; i < pairs_.size(); ++i) {
        if (pairs_[i].count >= rules_.min_frequency) heap_.push_back({pairs_[i].count, tie_of(i), i});
        pace.count(Pace::LOOKUP);
    }
    std::make_heap(heap_.begin(), heap_.end(), [&](const Candidate &a, const Candidate &b) {
        pace.count(8);
        return is_worse(a, b);
    });
    is_prepared_ = true;
}

bool Learner::run(double seconds) {
    if (!is_prepared_) throw std::logic_error("there are no words yet, or adding them was interrupted");
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!heap_.empty() && tokens_.size() < rules_.vocab_size) {
        std::pop_heap(heap_.begin(), heap_.end(),
                      [this](const Candidate &a, const Candidate &b) { return is_worse(a, b); });
        Candidate best = heap_.back();
        heap_.pop_back();
        Pair &pair = pairs_[best.pair];
        if (pair.count < rules_.min_frequency) continue;
        if (pair.count != best.count || tie_of(best.pair) != best.tie) {
            push(best.pair);
        } else if (is_allowed(pair.key)) {
            merge(best.pair);
            if (std::chrono::steady_clock::now() > end) return true;
        }
    }
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
    uint64_t key = pairs_[index].key;
    uint32_t left = static_cast<uint32_t>(key >> 32), right = static_cast<uint32_t>(key);
    auto [token, is_new] = joined(left, right);
    Merge merge{left, right, pairs_[index].count, token};
    known_.emplace(key, Known{known_.size(), token});
    std::vector<uint32_t> words = std::move(pairs_[index].words);
    pairs_[index].words = {};
    pairs_[index].passed = 0;
    risen_.clear();
    for (uint32_t word : words) {
        merge_in(word, left, right, token);
        if (!is_new) settle(word);
    }
    pairs_[index].count = 0;
    if (!is_new) {
        for (uint32_t changed : risen_) {  // their words are no longer in order
            Pair &pair = pairs_[changed];
            std::sort(pair.words.begin(), pair.words.end());
            pair.words.erase(std::unique(pair.words.begin(), pair.words.end()), pair.words.end());
            pair.passed = 0;
        }
    }
    merges_.push_back(merge);
    for (uint32_t changed : risen_) push(changed);
}

void Learner::merge_in(uint32_t index, uint32_t left, uint32_t right, uint32_t token) {
    Word &word = words_[index];
    uint32_t *symbols = symbols_.data() + word.start;
    uint32_t size = word.size, from = 0, to = 0;
    while (from < size) {
        if (symbols[from] != left || from + 1 == size || symbols[from + 1] != right) {
            symbols[to++] = symbols[from++];
            continue;
        }
        if (to > 0) {
            leaves(key_of(symbols[to - 1], left), word.count);
            rises(key_of(symbols[to - 1], token), word.count, index);
        }
        if (from + 2 < size) {
            leaves(key_of(right, symbols[from + 2]), word.count);
            rises(key_of(token, symbols[from + 2]), word.count, index);
        }
        symbols[to++] = token;
        from += 2;
    }
    word.size = to;
}

// Applies earlier merges, the lowest rank first, where a word has their pairs again.
void Learner::settle(uint32_t index) {
    Word &word = words_[index];
    uint32_t *symbols = symbols_.data() + word.start;
    for (;;) {
        const Known *best = nullptr;
        uint32_t at = 0;
        for (uint32_t i = 0; i + 1 < word.size; ++i) {
            auto found = known_.find(key_of(symbols[i], symbols[i + 1]));
            if (found != known_.end() && (!best || found->second.rank < best->rank)) best = &found->second, at = i;
        }
        if (!best) return;
        for (uint32_t i = 0; i + 1 < word.size; ++i) leaves(key_of(symbols[i], symbols[i + 1]), word.count);
        symbols[at] = best->token;
        std::copy(symbols + at + 2, symbols + word.size, symbols + at + 1);
        --word.size;
        for (uint32_t i = 0; i + 1 < word.size; ++i) rises(key_of(symbols[i], symbols[i + 1]), word.count, index);
    }
}

}  // namespace ggufbpe
