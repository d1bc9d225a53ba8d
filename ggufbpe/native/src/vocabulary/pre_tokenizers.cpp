#include "vocabulary/pre_tokenizers.h"

#include <stdexcept>
#include <utility>

#include "vocabulary/registry.h"

namespace ggufbpe {

namespace {

// Reads the numbers of an entry: lists, each after its length (scripts/generate_registry_header.py).
class EntryReader {
public:
    explicit EntryReader(const PreTokenizer &entry) : next_(entry.numbers), end_(entry.numbers + entry.count) {}

    int32_t take() {
        if (next_ == end_) throw std::invalid_argument("a pre-tokenizer that ends too early");
        return *next_++;
    }
    template <typename Number>
    std::vector<Number> list() {
        std::vector<Number> numbers(static_cast<size_t>(take()));
        for (Number &number : numbers) number = static_cast<Number>(take());
        return numbers;
    }

private:
    const int32_t *next_, *end_;
};

}  // namespace

CharSet set_of(const std::vector<uint32_t> &numbers) {
    size_t at = 0;
    const auto take = [&] {
        if (at >= numbers.size()) throw std::invalid_argument("a set that ends too early");
        return numbers[at++];
    };
    CharSet set;
    const uint32_t terms = take();
    for (uint32_t i = 0; i < terms; ++i) {
        CharSet::Term term;
        term.negated = take() != 0;
        term.classes = take();
        const uint32_t ranges = take();
        for (uint32_t k = 0; k < ranges; ++k) {
            const uint32_t low = take();
            term.ranges.emplace_back(low, take());
        }
        set.terms.push_back(std::move(term));
    }
    return set;
}

const PreTokenizer *pre_tokenizer(const std::string &name) {
    for (const PreTokenizer &entry : PRE_TOKENIZERS) {
        if (name == entry.name) return &entry;
    }
    return nullptr;
}

std::shared_ptr<const Splitter> splitter_of(const PreTokenizer &entry) {
    EntryReader numbers(entry);
    std::vector<CharSet> sets(static_cast<size_t>(numbers.take()));
    for (CharSet &set : sets) set = set_of(numbers.list<uint32_t>());
    std::vector<Splitter::Rule> rules(static_cast<size_t>(numbers.take()));
    for (Splitter::Rule &rule : rules) {
        rule.step = SPLIT_STEPS[numbers.take()];
        rule.rule = numbers.list<int32_t>();
        rule.sets = numbers.list<int32_t>();
        rule.extra = numbers.list<int32_t>();
    }
    return std::make_shared<Splitter>(sets, rules, entry.escape_whitespaces);
}

}  // namespace ggufbpe
