// The splitter for Python: made from the tables of ggufbpe/kernel/tables.py.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

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

}  // namespace

void bind_split(nb::module_ &module) {
    nb::class_<Splitter>(module, "Splitter", "Splits text by one registry entry; made by ggufbpe.kernel.tables.")
        .def(nb::new_(&splitter_of), nb::arg("sets"), nb::arg("stages"), nb::arg("escape_spaces"));
}

}  // namespace ggufbpe
