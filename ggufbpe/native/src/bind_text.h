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
    bool convert(PyObject *text);
    void copy(PyObject *object);

    Text text_{nullptr, 0, true};
    GrowingArray<unsigned char> own_;  // the text, unless Python's object has it
};

}  // namespace ggufbpe
