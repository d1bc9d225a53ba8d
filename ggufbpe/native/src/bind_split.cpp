// The splitter for Python: of an entry of vocabulary/registry.h, or made from the tables of
// ggufbpe/models/pretokenizers/automaton_tables.py.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind_lock.h"
#include "bindings.h"
#include "split/splitter.h"
#include "vocabulary/pre_tokenizers.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

constexpr size_t STEPS_A_TEXT = 256;  // the cost of splitting a short one, in bytes looked at

using RuleTuple = std::tuple<std::vector<int32_t>, std::string, std::vector<int32_t>, std::vector<int32_t>>;

std::shared_ptr<Splitter> splitter_of_tables(const std::vector<std::vector<uint32_t>> &sets, const std::vector<RuleTuple> &stages,
                                      bool escape_spaces) {
    std::vector<CharSet> char_sets;
    for (const auto &numbers : sets) char_sets.push_back(set_of(numbers));
    std::vector<Splitter::Rule> rules;
    for (const auto &[rule, step, step_sets, extra] : stages) rules.push_back({rule, step, step_sets, extra});
    return std::make_shared<Splitter>(char_sets, rules, escape_spaces);
}

// `const` in effect: nanobind knows no pointer to a constant object.
std::shared_ptr<Splitter> splitter_named(const std::string &name) {
    const PreTokenizer *entry = pre_tokenizer(name);
    return entry ? std::const_pointer_cast<Splitter>(splitter_of(*entry)) : nullptr;
}

size_t count_words(const Splitter &splitter, const unsigned char *data, size_t size, Splitter::Scratch &scratch, const Poll &poll) {
    size_t count = 0;
    for (size_t start = 0; start < size;) {
        start = splitter.block(data, size, start, scratch, poll);
        while (splitter.words(scratch, poll)) {
            count += scratch.word_count;
            poll();
        }
    }
    return count;
}

size_t count_words_of(const Splitter &splitter, nb::bytes text) {
    const auto *data = static_cast<const unsigned char *>(text.data());
    InterpreterLock interpreter(text.size());
    Splitter::Scratch scratch;
    return count_words(splitter, data, text.size(), scratch, [&] { interpreter.poll(); });
}

// The texts are short, so that the lock is kept: letting go of it takes longer than splitting one.
nb::list indices_of_split_texts(const Splitter &splitter, nb::list texts) {
    nb::list found;
    Splitter::Scratch scratch;
    Pace pace(LOOK_AT_SIGNALS);
    for (size_t i = 0; i < texts.size(); ++i) {
        nb::object text = texts[i];
        if (!PyBytes_Check(text.ptr())) throw nb::type_error("the texts are bytes");
        const auto *data = reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(text.ptr()));
        const size_t size = static_cast<size_t>(PyBytes_GET_SIZE(text.ptr()));
        pace.count(STEPS_A_TEXT + size);
        if (count_words(splitter, data, size, scratch, LOOK_AT_SIGNALS) > 1) found.append(i);
    }
    return found;
}

}  // namespace

void bind_split(nb::module_ &module) {
    nb::class_<Splitter>(module, "Splitter", "Splits text by one registry entry; made by ggufbpe.models.pretokenizers.compiled_splitter.")
        .def(nb::new_(&splitter_of_tables), nb::arg("sets"), nb::arg("stages"), nb::arg("escape_spaces"))
        .def_static("named", &splitter_named, nb::arg("name"), nb::sig("def named(name: str) -> Splitter | None"),
                    "The splitter of an entry that is compiled in, by the entry's name; None if there is none of that name.")
        .def("count_words", &count_words_of, nb::arg("text"), "The number of words in UTF-8 text.")
        .def("indices_of_split_texts", &indices_of_split_texts, nb::arg("texts"),
             nb::sig("def indices_of_split_texts(self, texts: list[bytes]) -> list[int]"),
             "The indices of the UTF-8 texts that have more than one word.");
}

}  // namespace ggufbpe
