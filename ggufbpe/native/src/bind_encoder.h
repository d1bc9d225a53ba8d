// What the parts of the extension module share that take an encoder: its object.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "bind_lock.h"
#include "encoder.h"
#include "split/splitter.h"
#include "tokenizer/split_points.h"

namespace ggufbpe {

namespace nb = nanobind;

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
    std::shared_ptr<const Splitter> splitter;      // null in models without pre-tokenizers
    std::unique_ptr<const SplitPoints> places[2];  // by whether control tokens are recognized
};

// Adds the methods that divide texts (bind_parts.cpp).
void bind_parts(nb::class_<BoundEncoder> &encoder);

}  // namespace ggufbpe
