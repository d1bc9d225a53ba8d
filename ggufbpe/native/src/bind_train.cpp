// Training for Python: what ggufbpe/data/training/native_counting.py calls.

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <mutex>
#include <stdexcept>

#include "bind_lock.h"
#include "bindings.h"
#include "training/learner.h"
#include "training/word_counts.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

using MergeTuple = std::tuple<uint32_t, uint32_t, int64_t, uint32_t>;

std::string_view view_of(const nb::bytes &bytes) { return {bytes.c_str(), bytes.size()}; }

// An object that threads use in turn.
template <typename T>
struct Shared {
    template <typename... Arguments>
    explicit Shared(Arguments &&...arguments) : object(std::forward<Arguments>(arguments)...) {}
    Shared(const Shared &) = delete;
    Shared(Shared &&) = delete;

    T object;
    LongLock lock;
};

// Runs work(object, poll) while no other thread uses the object, without the interpreter's lock except to look at signals.
template <typename T, typename Work>
auto long_alone_with(Shared<T> &shared, Work work) {
    InterpreterLock interpreter(std::numeric_limits<size_t>::max());
    interpreter.release();
    std::lock_guard<LongLock> lock(shared.lock);
    return work(shared.object, [&] { interpreter.poll(); });
}

// Runs work(object) while no other thread uses the object, without the interpreter's lock.
template <typename T, typename Work>
auto alone_with(Shared<T> &shared, Work work) {
    Unlocked unlocked;
    std::lock_guard<LongLock> lock(shared.lock);
    return work(shared.object);
}

using BoundCounter = Shared<WordCounter>;
using BoundLearner = Shared<Learner>;

void add_text(BoundCounter &shared, const Splitter &splitter, nb::bytes text) {
    const auto *data = static_cast<const unsigned char *>(text.data());
    const size_t size = text.size();
    InterpreterLock interpreter(size);
    interpreter.release();
    std::lock_guard<LongLock> lock(shared.lock);
    try {
        shared.object.add(splitter, data, size, [&] { interpreter.poll(); });
    } catch (const Forked &) {
        throw std::runtime_error("the process forked while words were counted: make a new WordCounter");
    }
}

nb::list words_of(BoundCounter &shared) {
    WordCounts table = long_alone_with(shared, [](WordCounter &counter, const Poll &poll) { return counter.take(poll); });
    nb::list words;
    Pace pace(LOOK_AT_SIGNALS);
    table.take_each([&](const std::string &text, uint64_t count) {
        pace.count(Pace::OBJECT);
        const nb::object shown = nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
        if (!shown) throw nb::python_error();
        words.append(nb::make_tuple(shown, count));
    });
    return words;
}

Learner::Ties ties_of(const std::string &name) {
    if (name == "lowest-ids") return Learner::Ties::lowest_ids;
    if (name == "lexicographic") return Learner::Ties::lexicographic;
    if (name == "first-seen") return Learner::Ties::first_seen;
    throw std::invalid_argument("no order of ties: " + name);
}

void make_learner(BoundLearner *self, const std::vector<std::string> &texts, nb::list raw, const std::vector<size_t> &lengths,
                  const std::vector<MergeTuple> &known, size_t vocab_size, const std::string &ties, int64_t min_frequency,
                  size_t max_token_length, const std::vector<std::string> &forbidden) {
    if (raw.size() != texts.size() || lengths.size() != texts.size()) throw std::invalid_argument("lists of unequal length");
    std::vector<Learner::Token> tokens;
    for (size_t i = 0; i < texts.size(); ++i) {
        nb::bytes bytes;
        if (!nb::try_cast(raw[i], bytes)) throw nb::type_error("the raw form of a token is bytes");
        tokens.push_back({texts[i], std::string(view_of(bytes)), lengths[i]});
    }
    std::vector<Learner::Merge> merges;
    for (const auto &[left, right, frequency, token] : known) merges.push_back({left, right, frequency, token});
    Learner::Rules rules{vocab_size, ties_of(ties), min_frequency, max_token_length, {forbidden.begin(), forbidden.end()}};
    new (self) BoundLearner(std::move(tokens), merges, std::move(rules));
}

// The symbols of all words, one word after the other, and where each word ends.
void add_words(BoundLearner &shared, const std::vector<uint32_t> &symbols, const std::vector<size_t> &ends,
               const std::vector<int64_t> &counts) {
    if (ends.size() != counts.size()) throw std::invalid_argument("as many counts as words");
    long_alone_with(shared, [&](Learner &learner, const Poll &poll) {
        std::vector<uint32_t> word;
        Pace pace(poll);
        size_t start = 0;
        learner.begin();
        learner.reserve(ends.size(), symbols.size());
        for (size_t i = 0; i < ends.size(); start = ends[i++]) {
            if (ends[i] < start || ends[i] > symbols.size()) throw std::invalid_argument("a word that ends before it begins");
            const auto at = [&](size_t place) { return symbols.begin() + static_cast<std::ptrdiff_t>(place); };
            word.assign(at(start), at(ends[i]));
            if (word.size() > 1) learner.add_word(word, counts[i]);
            pace.count(Pace::LOOKUP * (1 + word.size()));
        }
        learner.prepare(poll);
    });
}

// Adds the counted words, with a token for each of their bytes; returns how many there are.
size_t add_counted(BoundLearner &shared, BoundCounter &counted, const std::vector<uint32_t> &token_of_byte) {
    if (token_of_byte.size() != 256) throw std::invalid_argument("a token for each byte");
    alone_with(shared, [](Learner &learner) { learner.begin(); });
    WordCounts table = long_alone_with(counted, [](WordCounter &counter, const Poll &poll) { return counter.take(poll); });
    return long_alone_with(shared, [&](Learner &learner, const Poll &poll) {
        const size_t count = table.size();
        learner.reserve(count, table.bytes());
        std::vector<uint32_t> symbols;
        Pace pace(poll);
        table.take_each([&](const std::string &text, uint64_t count_of_word) {
            if (text.size() < 2) return;
            symbols.clear();
            for (char byte : text) symbols.push_back(token_of_byte[static_cast<unsigned char>(byte)]);
            learner.add_word(symbols, static_cast<int64_t>(count_of_word));
            pace.count(Pace::LOOKUP * text.size());
        });
        learner.prepare(poll);
        return count;
    });
}

std::vector<MergeTuple> merges_of(BoundLearner &shared) {
    return alone_with(shared, [](const Learner &learner) {
        std::vector<MergeTuple> merges;
        for (const auto &merge : learner.merges()) merges.emplace_back(merge.left, merge.right, merge.frequency, merge.token);
        return merges;
    });
}

}  // namespace

void bind_train(nb::module_ &module) {
    nb::class_<BoundCounter>(module, "WordCounter", "Counts the words of texts, on several threads.")
        .def(nb::init<size_t>(), nb::arg("threads"))
        .def("add", &add_text, nb::arg("splitter"), nb::arg("text"), "Count the words of UTF-8 text.")
        .def(
            "add_word", [](BoundCounter &self, nb::bytes word, uint64_t count) {
                const std::string_view text = view_of(word);
                alone_with(self, [&](WordCounter &counter) { counter.add_word(text, count); });
            },
            nb::arg("word"), nb::arg("count"), "Count one word, `count` times.")
        .def("words", &words_of, nb::sig("def words(self) -> list[tuple[str, int]]"),
             "Take all words and their counts, in the order of first occurrence. Nothing can be added or taken afterwards.");
    nb::class_<BoundLearner>(module, "Learner", "Learns merges, as ggufbpe.data.training.learn_merges does.")
        .def("__init__", &make_learner, nb::arg("tokens"), nb::arg("raw"), nb::arg("lengths"), nb::arg("known"),
             nb::arg("vocab_size"), nb::arg("ties"), nb::arg("min_frequency"), nb::arg("max_token_length"), nb::arg("forbidden"))
        .def("add_words", &add_words, nb::arg("symbols"), nb::arg("ends"), nb::arg("counts"),
             "Add all words, once: their symbols, one word after the other, and where each word ends.")
        .def("add_counted", &add_counted, nb::arg("counter"), nb::arg("token_of_byte"),
             "Take all words from a counter; their symbols are bytes. Returns how many words there are.")
        .def("run",
             [](BoundLearner &self, double seconds) {
                 return alone_with(self, [&](Learner &learner) { return learner.run(seconds); });
             },
             nb::arg("seconds"),
             "Learn for about `seconds`; False when nothing is left to learn.")
        .def("__len__", [](BoundLearner &self) { return alone_with(self, [](const Learner &learner) { return learner.merges().size(); }); })
        .def("merges", &merges_of, "(left, right, frequency, token) of each merge.");
}

}  // namespace ggufbpe
