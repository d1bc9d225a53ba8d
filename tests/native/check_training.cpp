// Merges that are learned from random words, beside a learner that counts all pairs anew for each merge; and counted words
// beside a map.
//
//     program: nothing to choose; ends with an error where something is wrong

#include <algorithm>
#include <map>
#include <stdexcept>

#include "harness.h"
#include "training/learner.h"
#include "training/word_counts.h"

using namespace ggufbpe;

namespace {

using Pair = std::pair<uint32_t, uint32_t>;
using Symbols = std::vector<uint32_t>;

struct Word {
    Symbols symbols;
    int64_t count;
};

// What is learned from, and by which rules.
struct Case {
    std::vector<Learner::Token> tokens;
    std::vector<Learner::Merge> known;
    Learner::Rules rules;
    std::vector<Word> words;
};

class PlainLearner {
public:
    explicit PlainLearner(const Case &given) : given_(given) {}

    std::vector<Learner::Merge> learn() {
        std::vector<Learner::Merge> merges;
        Pair best;
        while (given_.tokens.size() < given_.rules.vocab_size && choose(best)) {
            const int64_t count = counts()[best];
            const auto [token, is_new] = joined(best);
            given_.known.push_back({best.first, best.second, 0, token});
            for (Word &word : given_.words) {
                if (merge_in(word.symbols, best, token) && !is_new) settle(word.symbols, given_.known);
            }
            merges.push_back({best.first, best.second, count, token});
        }
        return merges;
    }

    // Applies known merges, the first of them first.
    static void settle(Symbols &symbols, const std::vector<Learner::Merge> &known) {
        for (size_t rank = 0; rank < known.size(); ++rank) {
            for (size_t i = 0; i + 1 < symbols.size(); ++i) {
                if (symbols[i] != known[rank].left || symbols[i + 1] != known[rank].right) continue;
                symbols[i] = known[rank].token;
                symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                rank = SIZE_MAX;  // from the first one again
                break;
            }
        }
    }

private:
    std::map<Pair, int64_t> counts() const {
        std::map<Pair, int64_t> counts;
        for (const Word &word : given_.words) {
            for (size_t i = 1; i < word.symbols.size(); ++i) counts[{word.symbols[i - 1], word.symbols[i]}] += word.count;
        }
        return counts;
    }

    bool choose(Pair &best) const {
        int64_t most = 0;
        for (const auto &[pair, count] : counts()) {
            if (count < given_.rules.min_frequency || count < most || !is_allowed(pair)) continue;
            if (count == most && !comes_first(pair, best)) continue;
            best = pair;
            most = count;
        }
        return most > 0;
    }

    bool comes_first(const Pair &pair, const Pair &other) const {
        const auto raw = [this](const Pair &of) { return std::make_pair(given_.tokens[of.first].raw, given_.tokens[of.second].raw); };
        if (given_.rules.ties == Learner::Ties::first_seen) return first_place(pair) < first_place(other);
        if (given_.rules.ties == Learner::Ties::lexicographic && raw(pair) != raw(other)) return raw(pair) < raw(other);
        return pair < other;
    }

    std::pair<size_t, size_t> first_place(const Pair &pair) const {
        for (size_t word = 0; word < given_.words.size(); ++word) {
            const Symbols &symbols = given_.words[word].symbols;
            size_t offset = 0;
            for (size_t i = 0; i + 1 < symbols.size(); offset += given_.tokens[symbols[i++]].length) {
                if (symbols[i] == pair.first && symbols[i + 1] == pair.second) return {word, offset};
            }
        }
        return {SIZE_MAX, 0};
    }

    bool is_allowed(const Pair &pair) const {
        const Learner::Token &left = given_.tokens[pair.first], &right = given_.tokens[pair.second];
        return left.length + right.length <= given_.rules.max_token_length && !given_.rules.forbidden.count(left.text + right.text);
    }

    std::pair<uint32_t, bool> joined(const Pair &pair) {
        const Learner::Token &left = given_.tokens[pair.first], &right = given_.tokens[pair.second];
        const Learner::Token made{left.text + right.text, left.raw + right.raw, left.length + right.length};
        for (uint32_t id = 0; id < given_.tokens.size(); ++id) {
            if (given_.tokens[id].text == made.text) return {id, false};
        }
        given_.tokens.push_back(made);
        return {static_cast<uint32_t>(given_.tokens.size() - 1), true};
    }

    static bool merge_in(Symbols &symbols, const Pair &pair, uint32_t token) {
        Symbols merged;
        for (size_t i = 0; i < symbols.size(); ++i) {
            const bool is_there = i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
            merged.push_back(is_there ? token : symbols[i]);
            i += is_there;
        }
        symbols.swap(merged);
        return symbols.size() < merged.size();
    }

    Case given_;
};

Case random_case(Random &random) {
    Case made;
    const size_t letters = 1 + random.below(4);
    for (size_t i = 0; i < letters; ++i) {
        const std::string letter(1, static_cast<char>('d' - i));  // so that ids and bytes are in unlike order
        made.tokens.push_back({letter, letter, 1});
    }
    // Tokens that there are already. Some have no merge, so one that is learned leads to them, and then known ones follow.
    for (size_t i = random.below(3) * random.below(6); i > 0; --i) {
        const auto left = static_cast<uint32_t>(random.below(made.tokens.size())), right = static_cast<uint32_t>(random.below(made.tokens.size()));
        const Learner::Token token{made.tokens[left].text + made.tokens[right].text, made.tokens[left].raw + made.tokens[right].raw,
                                   made.tokens[left].length + made.tokens[right].length};
        const auto found = std::find_if(made.tokens.begin(), made.tokens.end(), [&](const auto &one) { return one.text == token.text; });
        const auto id = static_cast<uint32_t>(found - made.tokens.begin());
        if (found == made.tokens.end()) made.tokens.push_back(token);
        const bool is_known = std::any_of(made.known.begin(), made.known.end(),
                                          [&](const auto &merge) { return merge.left == left && merge.right == right; });
        if (!is_known && random.below(2)) made.known.push_back({left, right, 0, id});
    }
    made.rules = {made.tokens.size() + random.below(random.below(4) ? 40 : 200), Learner::Ties(random.below(3)), int64_t(1 + random.below(random.below(2) ? 2 : 6)),
                  random.below(3) ? SIZE_MAX : 2 + random.below(5), {}};
    if (random.below(4) == 0) made.rules.forbidden = {"dd", "dc", "cd"};
    for (size_t i = random.below(60); i > 0; --i) {
        Word word{{}, int64_t(random.below(random.below(3) ? 3 : 200))};  // also words that were never counted
        for (size_t size = 2 + random.below(random.below(3) ? 12 : 60); size > 0; --size) word.symbols.push_back(static_cast<uint32_t>(random.below(letters)));
        PlainLearner::settle(word.symbols, made.known);
        if (word.symbols.size() > 1) made.words.push_back(word);
    }
    return made;
}

void check_merges(Random &random) {
    const Case given = random_case(random);
    Learner learner(given.tokens, given.known, given.rules);
    learner.begin();
    for (const Word &word : given.words) learner.add_word(word.symbols, word.count);
    learner.prepare(NO_POLL);
    while (learner.run(0)) {
    }
    const std::vector<Learner::Merge> expected = PlainLearner(given).learn();
    CHECK(learner.merges().size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        const Learner::Merge &found = learner.merges()[i];
        CHECK(found.left == expected[i].left && found.right == expected[i].right);
        CHECK(found.frequency == expected[i].frequency && found.token == expected[i].token);
    }
}

template <typename Error, typename Call>
bool throws(Call call) {
    try {
        call();
    } catch (const Error &) {
        return true;
    }
    return false;
}

Learner learner_of_two(size_t vocab_size, int64_t min_frequency) {
    return Learner({{"a", "a", 1}, {"b", "b", 1}}, {}, {vocab_size, Learner::Ties::lowest_ids, min_frequency, SIZE_MAX, {}});
}

// Calls out of order, counts that cannot be added up, and what an exception has ended.
void check_refusals() {
    Learner learner = learner_of_two(10, 0);
    CHECK(throws<std::logic_error>([&] { learner.run(1); }));
    learner.begin();
    CHECK(throws<std::logic_error>([&] { learner.begin(); }));
    CHECK(throws<std::length_error>([&] { learner.add_word({0, 1}, -1); }));
    CHECK(throws<std::length_error>([&] { learner.add_word({0, 1}, INT64_MAX / 2 + 1); }));
    CHECK(throws<std::invalid_argument>([&] { learner.add_word({0, 2}, 1); }));
    learner.add_word({0, 1}, 4);
    learner.prepare(NO_POLL);
    while (learner.run(0)) {
    }
    CHECK(learner.merges().size() == 1 && learner.merges()[0].frequency == 4);  // no pair that occurs nowhere
    CHECK(!learner.run(0));

    Learner interrupted = learner_of_two(10, 1);
    interrupted.begin();
    for (int i = 0; i < 100'000; ++i) interrupted.add_word({0, 1, 0}, 1);
    int polls = 0;
    CHECK(throws<int>([&] { interrupted.prepare([&] { if (++polls == 4) throw 1; }); }));
    CHECK(throws<std::logic_error>([&] { interrupted.begin(); }));
    CHECK(throws<std::logic_error>([&] { interrupted.run(1); }));
}

// Words of up to 40 bytes, most of them short, so that they come again; more than a table begins with.
void check_counts(Random &random) {
    std::map<std::string, uint64_t> counted;
    std::vector<std::string> order;
    WordCounts table;
    uint64_t position = 0;
    for (int turn = 0; turn < 40; ++turn) {
        std::string text;
        std::vector<uint32_t> starts{0};
        for (size_t i = random.below(200); i > 0; --i) {
            std::string word(1 + random.below(random.below(4) ? 3 : 40), 'a');
            for (char &byte : word) byte = static_cast<char>(random.below(4) ? 'a' : random.below(256));
            if (!counted[word]++) order.push_back(word);
            text += word;
            starts.push_back(static_cast<uint32_t>(text.size()));
        }
        const std::vector<unsigned char> bytes(text.begin(), text.end());  // nothing behind it may be read
        table.add_each(bytes.data(), bytes.data() + bytes.size(), starts.data(), starts.size() - 1, position);
        position += text.size();
    }
    CHECK(table.size() == order.size());
    size_t at = 0, size = 0;
    for (const std::string &word : order) size += word.size();
    CHECK(table.bytes() == size);
    table.take_each([&](const std::string &word, uint64_t count) {
        CHECK(word == order[at++] && count == counted[word]);
    });
}

}  // namespace

int main() {
    check_refusals();
    Random random(33);
    for (int turn = 0; turn < 1500; ++turn) check_merges(random);
    for (int turn = 0; turn < 20; ++turn) check_counts(random);
    std::puts("training: merges and counts as the plainest way gives them");
}
