// Strings for Python: an array of strings that was scanned where it lies in a mapped file.

#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>

#include "bindings.h"
#include "strings.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

nb::str text_of(std::string_view text) { return nb::str(text.data(), text.size()); }

// A view of any object with a contiguous buffer, for as long as this lives.
class Buffer {
public:
    explicit Buffer(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE)) throw nb::python_error();
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    const char *data() const { return static_cast<const char *>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }

private:
    Py_buffer view_;
};

nb::object scan_strings(nb::handle mapped, uint64_t position, uint64_t count, int width, bool big_endian) {
    Buffer buffer(mapped);
    auto strings = std::make_shared<Strings>();
    Scan found = scan(buffer.data(), buffer.size(), position, count, width, big_endian, strings.get());
    if (found.outcome != Scan::Outcome::ok || !found.plain) return nb::none();
    return nb::cast(strings);
}

nb::object walk_strings(nb::handle mapped, uint64_t position, uint64_t count, int width, bool big_endian) {
    Buffer buffer(mapped);
    Scan found = scan(buffer.data(), buffer.size(), position, count, width, big_endian, nullptr);
    if (found.outcome != Scan::Outcome::ok) return nb::none();
    return nb::int_(found.position);
}

std::shared_ptr<Strings> strings_of(nb::sequence texts) {
    auto strings = std::make_shared<Strings>();
    for (nb::handle text : texts) {
        Py_ssize_t size;
        const char *data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (!data) throw nb::python_error();
        strings->add({data, static_cast<size_t>(size)});
    }
    return strings;
}

size_t checked(const Strings &self, int64_t index) {
    int64_t size = static_cast<int64_t>(self.size());
    if (index < 0) index += size;
    if (index < 0 || index >= size) throw nb::index_error("index out of range");
    return static_cast<size_t>(index);
}

}  // namespace

}  // namespace ggufbpe

#include <nanobind/stl/shared_ptr.h>

namespace ggufbpe {

void bind_strings(nb::module_ &module) {
    nb::class_<Strings>(module, "Strings", "An array of strings, without an object for each.")
        .def_static("scan", &scan_strings, nb::arg("mapped"), nb::arg("position"), nb::arg("count"), nb::arg("width"),
                    nb::arg("big_endian"), nb::sig("def scan(mapped: object, position: int, count: int, width: int, big_endian: bool) -> Strings | None"),
                    "The strings of a GGUF array whose first length stands at `position`; None if they are not all sound "
                    "(a length that leads past the end, bytes that are not UTF-8, a NUL).")
        .def_static("walk", &walk_strings, nb::arg("mapped"), nb::arg("position"), nb::arg("count"), nb::arg("width"),
                    nb::arg("big_endian"), nb::sig("def walk(mapped: object, position: int, count: int, width: int, big_endian: bool) -> int | None"),
                    "Where the array ends; None if a length leads past the end of the file.")
        .def_static("of", &strings_of, nb::arg("texts"), nb::sig("def of(texts: typing.Sequence[str]) -> Strings"))
        .def("index", &Strings::index,
             "Prepare `find`. Returns the index of the first string that stood before, -1 if all are different.")
        .def("find", [](const Strings &self, std::string_view text) { return self.indexed() ? self.find(text) : -1; },
             nb::arg("text"), "The index of a string, -1 if it is not there. Needs `index`.")
        .def("__len__", &Strings::size)
        .def("__getitem__", [](const Strings &self, int64_t index) { return text_of(self[checked(self, index)]); })
        .def("empty_ones",
             [](const Strings &self) {
                 nb::list found;
                 for (size_t i = 0; i < self.size(); ++i) {
                     if (self[i].empty()) found.append(i);
                 }
                 return found;
             },
             nb::sig("def empty_ones(self) -> list[int]"), "The indices of empty strings.")
        .def("to_list",
             [](const Strings &self) {
                 nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(self.size())));
                 if (!list) throw nb::python_error();
                 for (size_t i = 0; i < self.size(); ++i) {
                     PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), text_of(self[i]).release().ptr());
                 }
                 return list;
             },
             nb::sig("def to_list(self) -> list[str]"), "The strings as a list.");
}

}  // namespace ggufbpe
