// Training for Python: what ggufbpe/training/compiled.py calls.

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <stdexcept>

#include "bindings.h"
#include "train.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

using MergeTuple = std::tuple<uint32_t, uint32_t, int64_t, uint32_t>;

std::string_view view_of(const nb::bytes &bytes) { return {bytes.c_str(), bytes.size()}; }

void add_text(WordCounter &counter, const Splitter &splitter, nb::bytes text) {
    const auto *data = static_cast<const unsigned char *>(text.data());
    size_t size = text.size();
    nb::gil_scoped_release released;
    counter.add(splitter, data, size);
}

nb::list words_of(WordCounter &counter) {
    const WordCounts &table = counter.finish();
    nb::list words;
    for (const auto &word : table.words()) {
        std::string_view text = table.text(word);
        words.append(nb::make_tuple(nb::str(text.data(), text.size()), word.count));
    }
    return words;
}

Learner::Ties ties_of(const std::string &name) {
    if (name == "lowest-ids") return Learner::Ties::lowest_ids;
    if (name == "lexicographic") return Learner::Ties::lexicographic;
    if (name == "first-seen") return Learner::Ties::first_seen;
    throw std::invalid_argument("no order of ties: " + name);
}

void make_learner(Learner *self, const std::vector<std::string> &texts, nb::list raw, const std::vector<size_t> &lengths,
                  const std::vector<MergeTuple> &known, size_t vocab_size, const std::string &ties, int64_t min_frequency,
                  size_t max_token_length, const std::vector<std::string> &forbidden) {
    if (raw.size() != texts.size() || lengths.size() != texts.size()) throw std::invalid_argument("lists of unequal length");
    std::vector<Learner::Token> tokens;
    for (size_t i = 0; i < texts.size(); ++i) {
        tokens.push_back({texts[i], std::string(view_of(nb::cast<nb::bytes>(raw[i]))), lengths[i]});
    }
    std::vector<Learner::Merge> merges;
    for (const auto &[left, right, frequency, token] : known) merges.push_back({left, right, frequency, token});
    Learner::Rules rules{vocab_size, ties_of(ties), min_frequency, max_token_length, {forbidden.begin(), forbidden.end()}};
    new (self) Learner(std::move(tokens), merges, std::move(rules));
}

// The symbols of one word after the other, and where each word ends.
void add_words(Learner &learner, const std::vector<uint32_t> &symbols, const std::vector<size_t> &ends,
               const std::vector<int64_t> &counts) {
    if (ends.size() != counts.size()) throw std::invalid_argument("as many counts as words");
    nb::gil_scoped_release released;
    std::vector<uint32_t> word;
    size_t start = 0;
    for (size_t i = 0; i < ends.size(); start = ends[i++]) {
        if (ends[i] < start || ends[i] > symbols.size()) throw std::invalid_argument("a word that ends before it begins");
        word.assign(symbols.begin() + static_cast<std::ptrdiff_t>(start), symbols.begin() + static_cast<std::ptrdiff_t>(ends[i]));
        if (word.size() > 1) learner.add_word(word, counts[i]);
    }
    learner.prepare();
}

// The words that were counted, with a token for each of their bytes; returns how many there are.
size_t add_counted(Learner &learner, WordCounter &counter, const std::vector<uint32_t> &token_of_byte) {
    if (token_of_byte.size() != 256) throw std::invalid_argument("a token for each byte");
    nb::gil_scoped_release released;
    const WordCounts &table = counter.finish();
    std::vector<uint32_t> symbols;
    for (const auto &word : table.words()) {
        if (word.size < 2) continue;
        symbols.clear();
        for (char byte : table.text(word)) symbols.push_back(token_of_byte[static_cast<unsigned char>(byte)]);
        learner.add_word(symbols, static_cast<int64_t>(word.count));
    }
    learner.prepare();
    return table.words().size();
}

std::vector<MergeTuple> merges_of(const Learner &learner) {
    std::vector<MergeTuple> merges;
    for (const auto &merge : learner.merges()) merges.emplace_back(merge.left, merge.right, merge.frequency, merge.token);
    return merges;
}

}  // namespace

void bind_train(nb::module_ &module) {
    nb::class_<WordCounter>(module, "WordCounter", "Counts the words of texts, on several threads.")
        .def(nb::init<size_t>(), nb::arg("threads"))
        .def("add", &add_text, nb::arg("splitter"), nb::arg("text"), "Count the words of UTF-8 text.")
        .def(
            "add_word", [](WordCounter &self, nb::bytes word, uint64_t count) { self.add_word(view_of(word), count); },
            nb::arg("word"), nb::arg("count"), "Count one word, `count` times.")
        .def("words", &words_of, nb::sig("def words(self) -> list[tuple[str, int]]"),
             "Words and counts, in the order in which they stand first. Nothing can be added after it.");
    nb::class_<Learner>(module, "Learner", "Learns merges; ggufbpe.training.learn says how.")
        .def("__init__", &make_learner, nb::arg("tokens"), nb::arg("raw"), nb::arg("lengths"), nb::arg("known"),
             nb::arg("vocab_size"), nb::arg("ties"), nb::arg("min_frequency"), nb::arg("max_token_length"), nb::arg("forbidden"))
        .def("add_words", &add_words, nb::arg("symbols"), nb::arg("ends"), nb::arg("counts"),
             "All words: their symbols, one after the other, and where each ends. Once.")
        .def("add_counted", &add_counted, nb::arg("counter"), nb::arg("token_of_byte"),
             "All words of a counter, whose symbols are bytes; returns how many words there are. Once.")
        .def("run", &Learner::run, nb::arg("seconds"), nb::call_guard<nb::gil_scoped_release>(),
             "Learn for about so long; False when nothing is left to learn.")
        .def("__len__", [](const Learner &self) { return self.merges().size(); })
        .def("merges", &merges_of, "(left, right, frequency, token) of each merge.");
}

}  // namespace ggufbpe
