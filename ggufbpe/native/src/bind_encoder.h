// What the parts of the extension module share that take an encoder: its object, and texts as it reads them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "bind_lock.h"
#include "encoder.h"

namespace ggufbpe {

namespace nb = nanobind;

// A text as the encoder reads it. A str or bytes must outlive it; a mutable buffer is copied, so that it cannot change.
class Source {
public:
    explicit Source(nb::handle object) {
        PyObject *text = object.ptr();
        if (PyUnicode_Check(text)) {
            Py_ssize_t size;
            const char *data = PyUnicode_AsUTF8AndSize(text, &size);
            if (!data) refuse(text);
            text_ = {reinterpret_cast<const unsigned char *>(data), static_cast<size_t>(size), true};
        } else if (PyBytes_Check(text)) {
            text_ = {reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(text)),
                     static_cast<size_t>(PyBytes_GET_SIZE(text)), false};
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
    const Text &text() const { return text_; }

private:
    // Throws the error of a str that has no UTF-8: a ValueError that names the surrogate and its place.
    [[noreturn]] static void refuse(PyObject *text) {
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

    void copy(PyObject *object) {
        Py_buffer view;
        if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO)) throw nb::python_error();
        const auto size = static_cast<size_t>(view.len);
        copy_.reset(new (std::nothrow) unsigned char[size + 1]);
        const int failed = copy_ ? PyBuffer_ToContiguous(copy_.get(), &view, view.len, 'C') : (PyErr_NoMemory(), -1);
        PyBuffer_Release(&view);
        if (failed) throw nb::python_error();
        text_ = {copy_.get(), size, false};
    }

    Text text_{nullptr, 0, true};
    std::unique_ptr<unsigned char[]> copy_;
};

// The Python ints of token ids, each made on first use and then shared: a list is only references to them. Places in a text
// are numbers as well: those below the number of tokens are the same ints. They belong to the interpreter of the encoder's
// object, and are freed with it.
class TokenInts {
public:
    explicit TokenInts(size_t tokens) {
#ifndef Py_GIL_DISABLED  // without the lock, threads would contend at every reference to a frequent token
        ints_.reset(static_cast<PyObject **>(std::calloc(tokens, sizeof(PyObject *))));  // untouched until used
        if (ints_) size_ = tokens;
#else
        (void)tokens;
#endif
    }
    ~TokenInts() {
        for (size_t id = 0; id < size_; ++id) Py_XDECREF(ints_.get()[id]);
    }
    TokenInts(const TokenInts &) = delete;
    TokenInts &operator=(const TokenInts &) = delete;

    nb::object list_of(const int32_t *ids, size_t count) {
        PyObject *list = in_python([&] { return PyList_New(static_cast<Py_ssize_t>(count)); });
        if (!list) throw nb::python_error();
        nb::object owned = nb::steal(list);
        in_pieces(count, LOOK_AT_SIGNALS, [&](size_t from, size_t end) {
            for (size_t i = from; i < end; ++i) PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), int_of(ids[i]));
        });
        return owned;
    }
    nb::object list_of(const Ids &ids) { return list_of(ids.data(), ids.size()); }

private:
    // A new reference.
    PyObject *int_of(int64_t number) {
        if (static_cast<uint64_t>(number) >= size_) return made(number);  // a file may name a BOS that is not a token
        PyObject *&kept = ints_.get()[number];
        if (!kept) kept = made(number);
        Py_INCREF(kept);
        return kept;
    }
    static PyObject *made(int64_t number) {
        PyObject *made = PyLong_FromLongLong(number);
        if (!made) throw nb::python_error();
        return made;
    }
    struct Free {
        void operator()(PyObject **ints) const { std::free(ints); }
    };
    std::unique_ptr<PyObject *[], Free> ints_;
    size_t size_ = 0;
};

// Python's side of an encoder.
struct BoundEncoder {
    Encoder encoder;
    mutable TokenInts ints;
};

// Adds the methods that divide texts (bind_parts.cpp).
void bind_parts(nb::class_<BoundEncoder> &encoder);

}  // namespace ggufbpe
