#include "bind_text.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>

#include "machine.h"
#include "stable_abi.h"
#include "string_array.h"
#include "utf8.h"

namespace nb = nanobind;

namespace ggufbpe {

namespace {

// Throws the error of a str that has no UTF-8: a ValueError that names the surrogate and its place.
[[noreturn]] void refuse(PyObject *text) {
    nb::python_error error;
    if (!error.matches(PyExc_UnicodeEncodeError)) throw error;
    const auto at = nb::cast<Py_ssize_t>(error.value().attr("start"));
    char name[16];
    std::snprintf(name, sizeof name, "U+%04X", static_cast<unsigned>(PyUnicode_ReadChar(text, at)));
    PyErr_Format(PyExc_ValueError,
                 "the text has a lone surrogate, %s, at character %zd, which UTF-8 cannot write; give bytes, or encode "
                 "with errors='replace' first",
                 name, at);
    throw nb::python_error();
}

#if !defined(Py_LIMITED_API) && !defined(PYPY_VERSION) && !defined(GRAALVM_PYTHON)
#define GGUFBPE_READS_STR 1

// Whether this str was asked about the last two times; counted first and then encoded, it is not worth keeping. It is told by its place,
// its length and some of its code points: the next str may lie where the last one lay. A mistake costs time.
bool is_repeated(PyObject *text) {
    constexpr Py_ssize_t SAMPLES = 64;
    static std::atomic<uint64_t> last{0};  // in its lowest bit: whether the one before was the same
    const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    uint64_t now = multiply_and_fold(reinterpret_cast<uintptr_t>(text), static_cast<uint64_t>(length) ^ HASH_SEEDS[0]);
    for (Py_ssize_t i = 0; i < SAMPLES; ++i) {
        now = multiply_and_fold(now ^ HASH_SEEDS[1], PyUnicode_READ_CHAR(text, length / SAMPLES * i) ^ HASH_SEEDS[0]);
    }
    now &= ~uint64_t(1);
    const uint64_t before = last.load(std::memory_order_relaxed);
    last.store(now | ((before | 1) == (now | 1)), std::memory_order_relaxed);
    return before == (now | 1);
}

// Appends code points as UTF-8; false for a surrogate.
template <typename CodePoint>
bool append_utf8(const CodePoint *from, size_t count, GrowingArray<unsigned char> &to) {
    constexpr size_t BLOCK = 1 << 14, MOST_BYTES = sizeof(CodePoint) == 1 ? 2 : sizeof(CodePoint) == 2 ? 3 : 4;
    for (const CodePoint *const end = from + count; from != end;) {
        const size_t some = std::min(BLOCK, static_cast<size_t>(end - from));
        const unsigned char *const written = write_utf8(from, some, to.room(some * MOST_BYTES));
        if (!written) return false;
        to.advance(written);
        from += some;
    }
    return true;
}
#endif

}  // namespace

Source::Source(nb::handle object) {
    PyObject *text = object.ptr();
    if (PyUnicode_Check(text)) {
        read(text);
    } else if (PyBytes_Check(text)) {
        text_ = {reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(text)), static_cast<size_t>(PyBytes_GET_SIZE(text)), false};
    } else if (PyByteArray_Check(text) || PyMemoryView_Check(text)) {
        copy(text);
    } else {
        const nb::str name(object.type().attr("__name__"));
        const bool several = PyList_Check(text) || PyTuple_Check(text);
        PyErr_Format(PyExc_TypeError, "text must be str or bytes, not %U%s", name.ptr(),
                     several ? "; the methods that end in _batch take several texts" : "");
        throw nb::python_error();
    }
}

void Source::read(PyObject *text) {
    constexpr size_t LONG = 1 << 12;  // characters
    if (StrReader::suits(text, LONG)) {
        StrReader reader(text);
        own_.reserve(reader.left(), false);
        if (reader.read(reader.left(), own_)) {
            own_.shrink();  // a batch holds many texts at once
            text_ = {own_.data(), own_.size(), true};
            return;
        }
    }
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(text, &size);
    if (!data) refuse(text);
    text_ = {reinterpret_cast<const unsigned char *>(data), static_cast<size_t>(size), true};
}

void Source::copy(PyObject *object) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO)) throw nb::python_error();
    const auto size = static_cast<size_t>(view.len);
    unsigned char *to = nullptr;
    try {
        to = own_.room(size + 1);
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    }
    const int failed = to ? PyBuffer_ToContiguous(to, &view, view.len, 'C') : -1;
    PyBuffer_Release(&view);
    if (failed) throw nb::python_error();
    text_ = {to, size, false};
}

StrReader::StrReader(nb::handle text) : text_(text.ptr()), length_(static_cast<size_t>(PyUnicode_GetLength(text.ptr()))) {}

#if GGUFBPE_READS_STR
bool StrReader::suits(nb::handle object, size_t least) {
    PyObject *const text = object.ptr();
    if (!PyUnicode_Check(text)) return false;
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(text)) return false;
#endif
    if (PyUnicode_IS_ASCII(text) || !PyUnicode_IS_COMPACT(text)) return false;
    if (static_cast<size_t>(PyUnicode_GET_LENGTH(text)) < least) return false;
    // Without the interpreter's lock, another thread may be about to write this pointer. Only Python itself follows it.
    return !reinterpret_cast<const PyCompactUnicodeObject *>(text)->utf8 && !is_repeated(text);
}

bool StrReader::read(size_t count, GrowingArray<unsigned char> &to) {
    const size_t some = std::min(count, left()), from = read_;
    read_ += some;
    switch (PyUnicode_KIND(text_)) {
    case PyUnicode_1BYTE_KIND: return append_utf8(PyUnicode_1BYTE_DATA(text_) + from, some, to);
    case PyUnicode_2BYTE_KIND: return append_utf8(PyUnicode_2BYTE_DATA(text_) + from, some, to);
    default: return append_utf8(PyUnicode_4BYTE_DATA(text_) + from, some, to);
    }
}
#else
bool StrReader::suits(nb::handle, size_t) { return false; }
bool StrReader::read(size_t, GrowingArray<unsigned char> &) { return false; }
#endif

}  // namespace ggufbpe
