// Strings for Python: an array of strings, scanned in place in the bytes of a file, and what all of them together become.

#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "bind_files.h"
#include "bind_lock.h"
#include "bindings.h"
#include "buffer_view.h"
#include "packed_strings.h"
#include "string_array.h"
#include "vocabulary/plain_piece.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

nb::str text_of(std::string_view text) { return nb::str(text.data(), text.size()); }

// An element of type T in a buffer, which need not be aligned.
template <typename T>
T element(const BufferView &buffer, size_t index) {
    T value;
    std::memcpy(&value, buffer.data() + index * sizeof(T), sizeof(T));
    return value;
}

int checked_width(int width) {
    if (width != 4 && width != 8) throw nb::value_error("a length has 4 or 8 bytes");
    return width;
}

nb::object scan_strings(nb::handle data, uint64_t position, uint64_t end, uint64_t count, int width, bool big_endian) {
    BufferView buffer(data);
    auto strings = std::make_shared<Strings>();
    uint64_t size = std::min<uint64_t>(buffer.size(), end);
    Scan found = scan(buffer.data(), size, position, count, checked_width(width), big_endian, strings.get(),
                      LOOK_AT_SIGNALS);
    if (found.outcome != Scan::Outcome::ok || !found.plain) return nb::none();
    return nb::cast(strings);
}

nb::tuple walk_strings(nb::handle data, uint64_t position, uint64_t count, int width, bool big_endian) {
    BufferView buffer(data);
    Scan found = scan(buffer.data(), buffer.size(), position, count, checked_width(width), big_endian, nullptr,
                      LOOK_AT_SIGNALS);
    return nb::make_tuple(found.index, found.position);
}

nb::tuple add_strings(Scanner &self, nb::handle data, uint64_t position, uint64_t count, int width, bool big_endian) {
    BufferView buffer(data);
    Scan found = self.add(buffer.data(), buffer.size(), position, count, checked_width(width), big_endian, LOOK_AT_SIGNALS);
    return nb::make_tuple(found.index, found.index ? found.position : position);
}

nb::object take_strings(Scanner &self) {
    if (!self.is_plain(LOOK_AT_SIGNALS)) return nb::none();
    return nb::cast(std::make_shared<Strings>(self.take()));
}

std::shared_ptr<Strings> strings_of(nb::sequence texts) {
    auto strings = std::make_shared<Strings>();
    Pace pace(LOOK_AT_SIGNALS);
    for (nb::handle text : texts) {
        pace.count(Pace::OBJECT);
        Py_ssize_t size;
        const char *data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) throw nb::python_error();
        strings->add({data, static_cast<size_t>(size)});
    }
    return strings;
}

int64_t find_string(const Strings &self, nb::str text) {
    if (!self.indexed()) throw nb::value_error("find needs index");
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data) {  // a lone surrogate, which no string here has
        PyErr_Clear();
        return -1;
    }
    return self.find({data, static_cast<size_t>(size)});
}

std::string_view string_at(const Strings &self, int64_t index) {
    int64_t size = static_cast<int64_t>(self.size());
    if (index < 0) index += size;
    if (index < 0 || index >= size) throw nb::index_error("index out of range");
    return self[static_cast<size_t>(index)];
}

nb::object list_of(const Strings &self) {
    nb::object list = nb::steal(in_python([&] { return PyList_New(static_cast<Py_ssize_t>(self.size())); }));
    if (!list) throw nb::python_error();
    Pace pace(LOOK_AT_SIGNALS);
    for (size_t i = 0; i < self.size(); ++i) {
        pace.count(Pace::OBJECT);
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), text_of(self[i]).release().ptr());
    }
    return list;
}

// The pieces of tokens whose attributes are `normal`, None for others, and the indices of those that are None.
nb::tuple plain_pieces(const Strings &self, nb::handle attributes, int normal, bool is_byte_level) {
    BufferView given(attributes);
    if (given.size() != self.size() * sizeof(uint16_t)) throw nb::value_error("attributes of another number of tokens");
    nb::object list = nb::steal(in_python([&] { return PyList_New(static_cast<Py_ssize_t>(self.size())); }));
    if (!list) throw nb::python_error();
    nb::list others;
    Pace pace(LOOK_AT_SIGNALS);
    for (size_t i = 0; i < self.size(); ++i) {
        pace.count(Pace::OBJECT + self[i].size());
        nb::object made = nb::none();
        if (element<uint16_t>(given, i) == normal) {
            const std::string piece = plain_piece(self[i], is_byte_level);
            made = nb::bytes(piece.data(), piece.size());
        } else {
            others.append(i);
        }
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), made.release().ptr());
    }
    return nb::make_tuple(list, others);
}

// How many bytes plain_pieces() has of each, as int32, 0 where that is None; and the indices of those.
nb::tuple plain_lengths(const Strings &self, nb::handle attributes, int normal, bool is_byte_level) {
    BufferView given(attributes);
    if (given.size() != self.size() * sizeof(uint16_t)) throw nb::value_error("attributes of another number of tokens");
    std::vector<int32_t> lengths(self.size());
    nb::list others;
    Pace pace(LOOK_AT_SIGNALS);
    for (size_t i = 0; i < self.size(); ++i) {
        pace.count(Pace::OBJECT + self[i].size());
        if (element<uint16_t>(given, i) == normal)
            lengths[i] = static_cast<int32_t>(plain_piece(self[i], is_byte_level).size());
        else
            others.append(i);
    }
    return nb::make_tuple(nb::bytes(reinterpret_cast<const char *>(lengths.data()), lengths.size() * sizeof(int32_t)), others);
}

// Each string after its length in 8 bytes, the least significant first.
nb::bytes packed(const Strings &self) {
    const PackedStrings made(self, LOOK_AT_SIGNALS);
    return nb::bytes(made.data(), made.size());
}

nb::bytes digest_of_strings(const Strings &self, const nb::bytes &secret) {
    return bytes_of(PackedStrings::digest(self, secret_numbers<HashKey>(secret), LOOK_AT_SIGNALS));
}

nb::bytes written_strings(const Strings &self, const nb::bytes &digest, const nb::bytes &secret, const nb::bytes &key) {
    const std::string file = KnownStrings::write(self, secret_numbers<Digest>(digest), secret_numbers<HashKey>(secret),
                                                 secret_numbers<Digest>(key));
    return nb::bytes(file.data(), file.size());
}

// For each merge the index among the tokens of what it makes; -1 if that, or a side, is not a token. A merge is cut at its first
// space that does not begin it (src/llama-vocab.cpp, load); one without has two empty sides.
nb::bytes made_tokens(const Strings &merges, const Strings &tokens) {
    if (!tokens.indexed()) throw nb::value_error("the tokens need index");
    std::vector<int32_t> made(merges.size());
    std::string result;
    Pace pace(LOOK_AT_SIGNALS);
    for (size_t i = 0; i < merges.size(); ++i) {
        const std::string_view merge = merges[i];
        const size_t space = merge.find(' ', 1);
        const bool is_cut = space != std::string_view::npos;
        const std::string_view left = is_cut ? merge.substr(0, space) : "", right = is_cut ? merge.substr(space + 1) : "";
        result.assign(left).append(right);
        pace.count(Pace::OBJECT + merge.size());
        const bool has_sides = tokens.find(left) >= 0 && tokens.find(right) >= 0;
        made[i] = has_sides ? static_cast<int32_t>(tokens.find(result)) : -1;
    }
    return nb::bytes(made.data(), made.size() * sizeof(int32_t));
}

void append_number(std::string &text, nb::handle number) {
    const long long value = PyLong_AsLongLong(number.ptr());
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_bytes(std::string &text, nb::handle data) {
    if (!PyBytes_Check(data.ptr())) throw nb::type_error("rows are made of bytes");
    text.append(PyBytes_AS_STRING(data.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(data.ptr())));
}

// For each id: its head, where it begins and where it ends.
nb::bytes rows(nb::dict heads, nb::list ids, nb::list starts, nb::list ends, nb::bytes between, nb::bytes behind) {
    if (starts.size() != ids.size() || ends.size() != ids.size()) throw nb::value_error("lists of different lengths");
    std::string text;
    text.reserve(ids.size() * 64);
    Pace pace(LOOK_AT_SIGNALS);
    for (size_t i = 0; i < ids.size(); ++i) {
        pace.count(Pace::OBJECT);
        PyObject *head = PyDict_GetItemWithError(heads.ptr(), nb::object(ids[i]).ptr());
        if (!head) throw nb::key_error("an id without a head");
        append_bytes(text, head);
        append_number(text, nb::object(starts[i]));
        append_bytes(text, between);
        append_number(text, nb::object(ends[i]));
        append_bytes(text, behind);
    }
    return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_strings(nb::module_ &module) {
    nb::class_<Strings>(module, "Strings", "An array of strings, without an object for each.")
        .def_static("scan", &scan_strings, nb::arg("data"), nb::arg("position"), nb::arg("end"), nb::arg("count"),
                    nb::arg("width"), nb::arg("big_endian"),
                    nb::sig("def scan(data: object, position: int, end: int, count: int, width: int, "
                            "big_endian: bool) -> Strings | None"),
                    "The strings of a GGUF array whose first length stands at `position` and which ends at `end`; None "
                    "if they are not all sound (a length that leads past the end, bytes that are not UTF-8, a NUL).")
        .def_static("walk", &walk_strings, nb::arg("data"), nb::arg("position"), nb::arg("count"), nb::arg("width"),
                    nb::arg("big_endian"),
                    nb::sig("def walk(data: object, position: int, count: int, width: int, big_endian: bool) "
                            "-> tuple[int, int]"),
                    "How many of `count` strings lie wholly in `data`, and where the last of them ends.")
        .def_static("of", &strings_of, nb::arg("texts"), nb::sig("def of(texts: typing.Sequence[str]) -> Strings"),
                    "UnicodeEncodeError for a lone surrogate.")
        .def("index", [](Strings &self) { return self.index(LOOK_AT_SIGNALS); }, nb::lock_self(),  // where Python has no lock: once made, the table stays
             "Prepare `find`. Returns the index of the first string that occurred before, -1 if all are different.")
        .def("find", &find_string, nb::arg("text"), "The index of a string, -1 if it is not there. Needs `index`.")
        .def("__len__", &Strings::size)
        .def("__getitem__", [](const Strings &self, int64_t index) { return text_of(string_at(self, index)); })
        .def("__eq__", [](const Strings &self, const Strings &other) { return self == other; },
             nb::arg("other"), nb::is_operator())
        .def("made_tokens", &made_tokens, nb::arg("tokens"), nb::sig("def made_tokens(self, tokens: Strings) -> bytes"),
             "Return an int32 for each of these merges: the index in `tokens` of the token that the merge makes, or -1 if that"
             " token or a side of the merge is not in `tokens`. `tokens` needs `index`.")
        .def("packed", &packed, nb::sig("def packed(self) -> bytes"),
             "The strings as in a little-endian GGUF, for `scan` with a width of 8.")
        .def("digest", &digest_of_strings, nb::arg("secret"), "16 bytes that stand for the strings; `secret` has 64.")
        .def("written", &written_strings, nb::arg("digest"), nb::arg("secret"), nb::arg("key"),
             "What knows the strings again, as a file for TableFile.read.")
        .def("plain_pieces", &plain_pieces, nb::arg("attributes"), nb::arg("normal"), nb::arg("is_byte_level"),
             nb::sig("def plain_pieces(self, attributes: object, normal: int, is_byte_level: bool) "
                     "-> tuple[list[bytes | None], list[int]]"),
             "Return the bytes that each of these tokens stands for if its uint16 attribute is `normal`, and the indices of the"
             " tokens for which that is None. Tokens are written in GPT-2's alphabet if `is_byte_level`; otherwise U+2581 is a"
             " space.")
        .def("plain_lengths", &plain_lengths, nb::arg("attributes"), nb::arg("normal"), nb::arg("is_byte_level"),
             nb::sig("def plain_lengths(self, attributes: object, normal: int, is_byte_level: bool) -> tuple[bytes, list[int]]"),
             "Return how many bytes `plain_pieces` has for each token, as int32 and 0 for None, and the indices of the latter.")
        .def("to_list", &list_of, nb::sig("def to_list(self) -> list[str]"), "The strings as a list.");
    nb::class_<Scanner>(module, "Scanner", "Makes `Strings` of an array that is read in blocks.")
        .def(nb::init<uint64_t>(), nb::arg("count"))
        .def("add", &add_strings, nb::arg("data"), nb::arg("position"), nb::arg("count"), nb::arg("width"), nb::arg("big_endian"),
             nb::sig("def add(self, data: object, position: int, count: int, width: int, big_endian: bool) -> tuple[int, int]"),
             "Add the next of at most `count` strings; returns what `Strings.walk` does.")
        .def("take", &take_strings, nb::sig("def take(self) -> Strings | None"),
             "The strings, once; None if some are missing, are not UTF-8, or have a NUL.");
    module.def("rows", &rows, nb::arg("heads"), nb::arg("ids"), nb::arg("starts"), nb::arg("ends"), nb::arg("between"),
               nb::arg("behind"),
               nb::sig("def rows(heads: dict[int, bytes], ids: list[int], starts: list[int], ends: list[int], between: bytes, "
                       "behind: bytes) -> bytes"),
               "For each id: its head, its start in digits, `between`, its end in digits, `behind`.");
}

}  // namespace ggufbpe
