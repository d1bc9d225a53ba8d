// Texts from Python, as the encoder reads them.

#pragma once

#include <nanobind/nanobind.h>

#include "encoder.h"
#include "growing_array.h"

namespace ggufbpe {

namespace nb = nanobind;

// A text as the encoder reads it. A str or bytes must outlive it; a mutable buffer is copied, so that it cannot change.
class Source {
public:
    explicit Source(nb::handle object);
    const Text &text() const { return text_; }

private:
    void read(PyObject *text);
    void copy(PyObject *object);

    Text text_{nullptr, 0, true};
    GrowingArray<unsigned char> own_;  // the text, unless Python's object has it
};

// The UTF-8 of a str, converted as it is read.
class StrReader {
public:
    // Whether a str of at least so many characters is best converted here: a long one that has no UTF-8 yet. Python would take twice
    // the time, in memory touched for the first time, and keep the UTF-8 for as long as the str lives. That is best for a str that is
    // encoded again and again. To be asked once a call: the answer to the next one depends on it.
    static bool suits(nb::handle object, size_t least);

    explicit StrReader(nb::handle text);
    size_t left() const { return length_ - read_; }  // characters
    // Appends up to `count` more characters; false if one is a surrogate, which has no UTF-8.
    bool read(size_t count, GrowingArray<unsigned char> &to);

private:
    PyObject *const text_;
    const size_t length_;
    size_t read_ = 0;
};

}  // namespace ggufbpe
