// Macros of Python's C interface that its stable ABI does not have, as the functions that do the same with a check.

#pragma once

#include <Python.h>

#if defined(Py_LIMITED_API)
#define PyBytes_AS_STRING PyBytes_AsString
#define PyBytes_GET_SIZE PyBytes_Size
#define PyList_SET_ITEM PyList_SetItem
#endif
