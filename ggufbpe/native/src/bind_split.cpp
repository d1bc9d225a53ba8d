// The splitter for Python: made from the tables of ggufbpe/models/pretokenizers/automaton_tables.py.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind_lock.h"
#include "bindings.h"
#include "split/splitter.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

// A set as numbers: count of terms, then for each: negated, classes as bits, count of ranges, then low and high of each.
CharSet set_of(const std::vector<uint32_t> &numbers) {
    size_t at = 0;
    auto take = [&] {
        if (at >= numbers.size()) throw std::invalid_argument("a set that ends too early");
        return numbers[at++];
    };
    CharSet set;
    uint32_t terms = take();
    for (uint32_t i = 0; i < terms; ++i) {
        CharSet::Term term;
        term.negated = take() != 0;
        term.classes = take();
        uint32_t ranges = take();
        for (uint32_t k = 0; k < ranges; ++k) {
            uint32_t low = take();
            term.ranges.emplace_back(low, take());
        }
        set.terms.push_back(std::move(term));
    }
    return set;
}

using RuleTuple = std::tuple<std::vector<int32_t>, std::string, std::vector<int32_t>, std::vector<int32_t>>;

std::shared_ptr<Splitter> splitter_of(const std::vector<std::vector<uint32_t>> &sets, const std::vector<RuleTuple> &stages,
                                      bool escape_spaces) {
    std::vector<CharSet> char_sets;
    for (const auto &numbers : sets) char_sets.push_back(set_of(numbers));
    std::vector<Splitter::Rule> rules;
    for (const auto &[rule, step, step_sets, extra] : stages) rules.push_back({rule, step, step_sets, extra});
    return std::make_shared<Splitter>(char_sets, rules, escape_spaces);
}

size_t count_words(const Splitter &splitter, nb::bytes text) {
    const auto *data = static_cast<const unsigned char *>(text.data());
    size_t count = 0, size = text.size();
    InterpreterLock interpreter(size);
    const Poll poll = [&] { interpreter.poll(); };
    Splitter::Scratch scratch;
    for (size_t start = 0; start < size;) {
        start = splitter.block(data, size, start, scratch, poll);
        while (splitter.words(scratch, poll)) {
            count += scratch.word_count;
            poll();
        }
    }
    return count;
}

size_t cut(const Splitter &splitter, nb::bytes text, size_t from) {
    const auto *data = static_cast<const unsigned char *>(text.data());
    const size_t size = text.size();
    InterpreterLock interpreter(size);
    return splitter.cut(data, size, from, [&] { interpreter.poll(); });
}

}  // namespace

void bind_split(nb::module_ &module) {
    nb::class_<Splitter>(module, "Splitter", "Splits text by one registry entry; made by ggufbpe.models.pretokenizers.automaton_tables.")
        .def(nb::new_(&splitter_of), nb::arg("sets"), nb::arg("stages"), nb::arg("escape_spaces"))
        .def("count_words", &count_words, nb::arg("text"), "The number of words in UTF-8 text.")
        .def("cut", &cut, nb::arg("text"), nb::arg("start"),
             "The first place at or after `start` where UTF-8 text may be cut without changing a word; its size if there is "
             "none.");
}

}  // namespace ggufbpe
