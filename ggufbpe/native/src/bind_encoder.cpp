// The encoder for Python: texts in, lists or buffers of ids out. The interpreter lock is released while ids are made.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind_encoder.h"
#include "bind_files.h"
#include "bind_lock.h"
#include "bind_text.h"
#include "bind_vocabulary.h"
#include "bindings.h"
#include "bpe/bpe_model.h"
#include "encoder.h"
#include "memory.h"
#include "table_file.h"
#include "threads.h"
#include "vocabulary/text_models.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

constexpr size_t PIECE = 1 << 16;          // characters of a long str that are converted at a time
constexpr size_t WORTH_KEEPING = 1 << 17;  // ids; fewer are copied out of a batch, so that their memory stays in cache

// The ids as an object with a buffer, from which an array is made. nanobind's own arrays take twice as long to make.
nb::object buffer_of(Ids &&ids) {
    ids.shrink();
    if (!ids.size()) ids.room(1);  // an empty array has an address, too
    return nb::cast(std::move(ids));
}

// The bytes of the ids; they stay in place as long as the object lives.
int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    if (!nb::inst_ready(self)) {
        PyErr_SetString(PyExc_BufferError, "there are no ids");
        view->obj = nullptr;
        return -1;
    }
    Ids &ids = *nb::inst_ptr<Ids>(self);
    int32_t *data = ids.room(0) - ids.size();
    return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(ids.size() * sizeof(int32_t)), false, flags);
}

std::shared_ptr<BoundEncoder> bound_encoder(nb::handle given, std::shared_ptr<Strings> names, std::shared_ptr<Strings> texts,
                                            std::shared_ptr<Strings> merges, std::shared_ptr<Splitter> splitter,
                                            const std::vector<int32_t> &before, const std::vector<int32_t> &behind,
                                            size_t cache_bytes, std::shared_ptr<const TableFile> made) {
    Vocabulary vocabulary = vocabulary_of(given);
    if (vocabulary.kind->has_pre_tokenizer && !splitter) throw nb::value_error("a model that needs a splitter");
    if (!merges && !made) throw nb::value_error("neither merges nor tables");
    vocabulary.names = std::move(names);
    vocabulary.tokens = std::move(texts);
    vocabulary.merges = merges ? std::move(merges) : std::make_shared<Strings>();
    auto model = text_model(vocabulary, splitter, cache_bytes, LOOK_AT_SIGNALS, std::move(made));
    std::shared_ptr<BoundEncoder> bound(new BoundEncoder{encoder_of(vocabulary, std::move(model), before, behind),
                                                         TokenInts(vocabulary.size()), std::move(splitter), {}});
    for (const bool parse_special : {false, true}) {
        bound->places[parse_special] =
            std::make_unique<SplitPoints>(vocabulary, bound->encoder, bound->splitter.get(), parse_special);
    }
    return bound;
}

nb::bytes written_tables(const BoundEncoder &self, const nb::bytes &secret, const nb::bytes &key) {
    TableWriter writer;
    dynamic_cast<const BPEModel &>(self.encoder.model()).write(writer);
    const std::string file = writer.finish(secret_numbers<HashKey>(secret), secret_numbers<Digest>(key));
    return nb::bytes(file.data(), file.size());
}

// Whether a call gives a str to its encoder in pieces, so that its UTF-8 is not in memory as a whole where it can be split.
bool is_for_pieces(nb::handle text, size_t threads) { return threads == 1 && StrReader::suits(text, 2 * PIECE); }

// Calls encode(piece, options, poll) for each piece of such a str. False if it has no UTF-8, which may be found after some pieces.
template <typename EncodePiece>
bool encode_pieces(const BoundEncoder &self, nb::handle text, EncodeOptions options, EncodePiece encode) {
    StrReader str(text);
    InterpreterLock lock(str.left());
    const Poll poll = [&] { lock.poll(); };
    const SplitPoints &places = *self.places[options.parse_special];
    GrowingArray<unsigned char> bytes;
    while (str.left()) {
        if (!str.read(PIECE, bytes)) return false;
        const bool is_divided = str.left() && bytes.size() > places.reach();
        size_t end = is_divided ? places.last(bytes.data(), bytes.size(), bytes.size() - places.reach(), poll) : 0;
        if (!end) {  // no place, or nothing follows: the rest is one piece
            bytes.reserve(str.left(), false);
            if (!str.read(str.left(), bytes)) return false;
            end = bytes.size();
        }
        encode(Text{bytes.data(), end, true}, options, poll);
        options.continues = true;
        bytes.drop_front(end);
    }
    return true;
}

// The ids of such a str; none if it has no UTF-8.
std::optional<Ids> encoded_in_pieces(const BoundEncoder &self, nb::handle text, bool add_special, bool parse_special, bool continues) {
    Ids ids;
    const auto add = [&](const std::vector<int32_t> &tokens) {
        if (add_special) ids.append(tokens.data(), tokens.size());
    };
    const size_t length = StrReader(text).left();
    bool is_first = true;
    const auto encode = [&](const Text &piece, const EncodeOptions &options, const Poll &poll) {
        if (is_first && length >= LONG_TEXT) {
            self.encoder.model().prepare_for(length, poll);
            ids.reserve(length / BYTES_A_TOKEN, false);
        }
        if (is_first) add(self.encoder.before());
        is_first = false;
        self.encoder.encode(piece, options, 1, ids, poll);
    };
    if (!encode_pieces(self, text, {false, parse_special, continues}, encode)) return std::nullopt;
    add(self.encoder.behind());
    return ids;
}

Ids encoded(const BoundEncoder &self, nb::handle text, bool add_special, bool parse_special, size_t threads, bool continues) {
    if (is_for_pieces(text, threads)) {
        if (auto ids = encoded_in_pieces(self, text, add_special, parse_special, continues)) return std::move(*ids);
    }
    const Encoder &encoder = self.encoder;
    const EncodeOptions options{add_special, parse_special, continues};
    const Source source(text);
    InterpreterLock lock(source.text().size);
    const auto poll = [&] { lock.poll(); };
    if (threads == 1) {
        Ids ids;
        encoder.encode(source.text(), options, 1, ids, poll);
        return ids;
    }
    std::optional<SharedWork<Ids>> ids;
    though_forked(threads, [&](size_t threads_left) {
        encoder.encode(source.text(), options, threads_left, *ids.emplace(), poll);
    });
    return std::move(**ids);
}

void encode_with_spans(const Encoder &encoder, nb::handle text, const EncodeOptions &options, Ids &ids, Spans &spans) {
    const Source source(text);
    InterpreterLock lock(source.text().size);
    encoder.encode_with_spans(source.text(), options, ids, spans, [&] { lock.poll(); });
}

nb::tuple encode_with_offsets(const BoundEncoder &self, nb::handle text, bool add_special, bool parse_special, bool continues,
                              bool as_buffer) {
    Ids ids;
    Spans spans;
    encode_with_spans(self.encoder, text, {add_special, parse_special, continues}, ids, spans);
    spans.shrink();
    if (!spans.size()) spans.room(1);  // an empty array has an address, too
    return nb::make_tuple(as_buffer ? buffer_of(std::move(ids)) : self.ints.list_of(ids), nb::cast(std::move(spans)));
}

int get_span_buffer(PyObject *self, Py_buffer *view, int flags) {
    if (!nb::inst_ready(self)) {
        PyErr_SetString(PyExc_BufferError, "there are no spans");
        view->obj = nullptr;
        return -1;
    }
    Spans &spans = *nb::inst_ptr<Spans>(self);
    return PyBuffer_FillInfo(view, self, spans.data(), static_cast<Py_ssize_t>(spans.size() * sizeof(Span)), false, flags);
}

// The words of a text as strings, or None if the model cannot give them.
nb::object words(const Encoder &encoder, nb::handle text) {
    const Source source(text);
    std::string bytes;
    std::vector<size_t> ends;
    {
        InterpreterLock lock(source.text().size);
        const auto take = [&](const unsigned char *word, size_t size) {
            bytes.append(reinterpret_cast<const char *>(word), size);
            ends.push_back(bytes.size());
        };
        if (!encoder.words(source.text(), take, [&] { lock.poll(); })) return nb::none();
    }
    const char *const errors = encoder.model().words_are_bytes() ? "replace" : "surrogatepass";
    nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(ends.size())));
    if (!list) throw nb::python_error();
    in_pieces(ends.size(), LOOK_AT_SIGNALS, [&](size_t from, size_t end) {
        for (size_t i = from; i < end; ++i) {
            const size_t start = i ? ends[i - 1] : 0;
            PyObject *word = PyUnicode_DecodeUTF8(bytes.data() + start, static_cast<Py_ssize_t>(ends[i] - start), errors);
            if (!word) throw nb::python_error();
            PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), word);
        }
    });
    return list;
}

std::optional<size_t> count_words(const Encoder &encoder, nb::handle text) {
    const Source source(text);
    InterpreterLock lock(source.text().size);
    size_t count = 0;
    const auto take = [&](const unsigned char *, size_t) { ++count; };
    return encoder.words(source.text(), take, [&] { lock.poll(); }) ? std::optional<size_t>(count) : std::nullopt;
}

Ids encoded_plain(const Encoder &encoder, nb::handle text) {
    const Source source(text);
    Ids ids;
    InterpreterLock lock(source.text().size);
    encoder.encode_plain(source.text(), ids, [&] { lock.poll(); });
    return ids;
}

size_t count(const BoundEncoder &self, nb::handle text, bool add_special, bool parse_special, size_t threads, bool continues) {
    const Encoder &encoder = self.encoder;
    if (is_for_pieces(text, threads)) {
        size_t count = add_special ? encoder.before().size() + encoder.behind().size() : 0;
        const auto encode = [&](const Text &piece, const EncodeOptions &options, const Poll &poll) {
            count += encoder.count(piece, options, 1, poll);
        };
        if (encode_pieces(self, text, {false, parse_special, continues}, encode)) return count;
    }
    const Source source(text);
    size_t count = 0;
    InterpreterLock lock(source.text().size);
    though_forked(threads, [&](size_t threads_left) {
        count = encoder.count(source.text(), {add_special, parse_special, continues}, threads_left, [&] { lock.poll(); });
    });
    return count;
}

// Makes the Python objects of some texts of a batch.
void make_objects(TokenInts &ints, const Ids &ids, const std::vector<size_t> &ends, bool as_buffers, nb::object *objects) {
    size_t start = 0;
    for (size_t end : ends) {
        if (as_buffers) {
            Ids own;
            own.append(ids.data() + start, end - start);
            *objects++ = buffer_of(std::move(own));
        } else {
            *objects = ints.list_of(ids.data() + start, end - start);
            // Or the garbage collector would traverse all of the lists again and again as more are made.
            PyObject_GC_UnTrack((objects++)->ptr());
        }
        start = end;
    }
}

nb::object encode_batch(const BoundEncoder &self, nb::sequence texts, bool add_special, bool parse_special, size_t threads,
                        bool as_buffers) {
    std::vector<nb::object> kept;  // items of the sequence must live until they are encoded
    std::vector<Source> sources;
    std::vector<Text> views;
    size_t bytes = 0;
    Pace pace(LOOK_AT_SIGNALS);
    for (nb::handle text : texts) {
        pace.count(Pace::OBJECT);
        kept.push_back(nb::borrow(text));
        sources.emplace_back(text);
        views.push_back(sources.back().text());
        bytes += views.back().size;
    }
    std::vector<nb::object> objects(views.size());
    InterpreterLock lock(bytes);
    Encoder::Collector collector;
    collector.is_due = [&] { return lock.is_due_to_take(); };
    collector.take = [&](std::vector<Encoder::Encoded> &encoded) {
        const bool was_released = lock.take();
        for (Encoder::Encoded &some : encoded) {
            if (as_buffers && some.ends.size() == 1 && some.ids.size() >= WORTH_KEEPING) {
                objects[some.first] = buffer_of(std::move(some.ids));
                some.ids = Ids();
            } else {
                make_objects(self.ints, some.ids, some.ends, as_buffers, &objects[some.first]);
            }
        }
        if (was_released) lock.release();
    };
    though_forked(threads, [&](size_t threads_left) {
        self.encoder.encode_batch(views, {add_special, parse_special}, threads_left, collector, [&] { lock.poll(); });
    });
    lock.take();
    nb::object list = nb::steal(in_python([&] { return PyList_New(static_cast<Py_ssize_t>(objects.size())); }));
    if (!list) throw nb::python_error();
    for (size_t i = 0; i < objects.size(); ++i) {
        if (!as_buffers) PyObject_GC_Track(objects[i].ptr());
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), objects[i].release().ptr());
    }
    return list;
}

}  // namespace

void bind_encoder(nb::module_ &module) {
    static PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer)}, {0, nullptr}};
    nb::class_<Ids>(module, "Ids", "Ids as bytes of 32-bit integers in the machine's order.", nb::type_slots(buffer_slots));
    static PyType_Slot span_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(get_span_buffer)}, {0, nullptr}};
    nb::class_<Spans>(module, "Spans", "Where tokens begin and end, as bytes of pairs of 64-bit integers in the machine's order.",
                      nb::type_slots(span_slots));
    nb::class_<BoundEncoder> bound(module, "Encoder", "Encodes text with one vocabulary; made by ggufbpe.tokenizer.native_engine.");
    bound.def(nb::new_(&bound_encoder), nb::arg("vocabulary"), nb::arg("names"), nb::arg("texts"), nb::arg("merges").none(),
             nb::arg("splitter").none(), nb::arg("before"), nb::arg("behind"), nb::arg("cache_bytes"),
             nb::arg("made").none() = nb::none())
        .def("written_tables", &written_tables, nb::arg("secret"), nb::arg("key"),
             "The tables of merges as a file for TableFile.read.")
        .def("encode",
             [](const BoundEncoder &self, nb::handle text, bool add_special, bool parse_special, bool continues) {
                 return self.ints.list_of(encoded(self, text, add_special, parse_special, 1, continues));
             },
             nb::arg("text").none(), nb::arg("add_special"), nb::arg("parse_special"), nb::arg("continues"),
             nb::sig("def encode(self, text: object, add_special: bool, parse_special: bool, continues: bool) -> list[int]"))
        .def("encode_to_buffer",
             [](const BoundEncoder &self, nb::handle text, bool add_special, bool parse_special, size_t threads, bool continues) {
                 return buffer_of(encoded(self, text, add_special, parse_special, threads, continues));
             },
             nb::arg("text").none(), nb::arg("add_special"), nb::arg("parse_special"), nb::arg("threads"),
             nb::arg("continues"),
             nb::sig("def encode_to_buffer(self, text: object, add_special: bool, parse_special: bool, threads: int, "
                     "continues: bool) -> typing.Any"))
        .def("encode_batch", &encode_batch, nb::arg("texts"), nb::arg("add_special"), nb::arg("parse_special"),
             nb::arg("threads"), nb::arg("as_buffers"),
             nb::sig("def encode_batch(self, texts: typing.Sequence[object], add_special: bool, parse_special: bool, threads: "
                     "int, as_buffers: bool) -> list[typing.Any]"))
        .def("count",
             [](const BoundEncoder &self, nb::handle text, bool add_special, bool parse_special, size_t threads, bool continues) {
                 return count(self, text, add_special, parse_special, threads, continues);
             },
             nb::arg("text").none(), nb::arg("add_special"), nb::arg("parse_special"), nb::arg("threads"),
             nb::arg("continues"),
             nb::sig("def count(self, text: object, add_special: bool, parse_special: bool, threads: int, continues: bool) -> "
                     "int"))
        .def("encode_with_offsets", &encode_with_offsets, nb::arg("text").none(), nb::arg("add_special"),
             nb::arg("parse_special"), nb::arg("continues"), nb::arg("as_buffer"),
             nb::sig("def encode_with_offsets(self, text: object, add_special: bool, parse_special: bool, continues: bool, "
                     "as_buffer: bool) -> tuple[typing.Any, Spans]"),
             "The ids, and (start, end) of each.")
        .def("words", [](const BoundEncoder &self, nb::handle text) { return words(self.encoder, text); },
             nb::arg("text").none(), nb::sig("def words(self, text: object) -> list[str] | None"),
             "The words of plain text; None if the model leaves splitting to the reference engine.")
        .def("count_words", [](const BoundEncoder &self, nb::handle text) { return count_words(self.encoder, text); },
             nb::arg("text").none(), nb::sig("def count_words(self, text: object) -> int | None"), "How many words there are.")
        .def("cut",
             [](const BoundEncoder &self, nb::bytes text, size_t start) {
                 const auto *data = reinterpret_cast<const unsigned char *>(text.c_str());
                 InterpreterLock lock(text.size() - std::min(start, text.size()));
                 return self.places[0]->in_words(data, text.size(), start, [&] { lock.poll(); });
             },
             nb::arg("text"), nb::arg("start"),
             "The first place at or after `start`, not the beginning, where a text without special tokens may be cut if the "
             "rest is encoded with `continues`; its size if there is none.")
        .def("encode_plain",
             [](const BoundEncoder &self, nb::handle text) {
                 return self.ints.list_of(encoded_plain(self.encoder, text));
             },
             nb::arg("text").none(), nb::sig("def encode_plain(self, text: object) -> list[int]"),
             "The ids of plain text, with nothing added.")
        .def("special_token_spans",
             [](const BoundEncoder &self, nb::bytes text, bool parse_special) {
                 const auto *data = reinterpret_cast<const unsigned char *>(text.c_str());
                 return self.encoder.special_token_spans(data, text.size(), parse_special, LOOK_AT_SIGNALS);
             },
             nb::arg("text"), nb::arg("parse_special"),
             "The span (start, end) of the longest special token at each byte where one begins, overlapping or not.")
        .def_prop_ro("cache_bytes", [](const BoundEncoder &self) { return self.encoder.model().cache_bytes(); },
                     "The size of the word cache, in bytes.")
        .def_prop_ro("cache_misses", [](const BoundEncoder &self) { return self.encoder.model().cache_misses(); },
                     "How many words were encoded because the word cache did not have them.")
        .def("release_memory", [](const BoundEncoder &self) { self.encoder.model().release_memory(); },
             "Forget all words, and free the memory kept for the next call.");
    bind_parts(bound);
    module.attr("CACHE_BYTES") = BPEModel::CACHE_BYTES;
    module.def("release_memory", &HugePages::release, "Give back memory that the process kept and no object uses.");
    module.def("lock_requests", &InterpreterLock::requests,
               "How often calls asked for the interpreter's lock after releasing it.");
    module.def("lock_waits", &lock_waits, "How often a thread waited for a lock of the compiled engine held by another.");
}

}  // namespace ggufbpe
