// The bytes of an object of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace ggufbpe {

// A view of any object with a contiguous buffer, for as long as this lives.
class BufferView {
public:
    explicit BufferView(nanobind::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE)) throw nanobind::python_error();
    }
    ~BufferView() { PyBuffer_Release(&view_); }
    BufferView(const BufferView &) = delete;
    BufferView &operator=(const BufferView &) = delete;
    const char *data() const { return static_cast<const char *>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }

private:
    Py_buffer view_;
};

}  // namespace ggufbpe
