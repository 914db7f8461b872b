// Turns the engine's errors into Python exceptions.
//
// raise_python_error is called by Cython inside a catch block. The exception classes are given once, at import, as a
// tuple in the order of ErrorKind. Who may include: bindings/ only.
#pragma once
#include <Python.h>

#include <new>

#include "base/check.h"
#include "exec/frame.h"

namespace dnl {

inline PyObject*& error_hook() {
  static PyObject* hook = nullptr;
  return hook;
}

// hook: tuple of exception classes by ErrorKind.
inline void set_error_hook(PyObject* hook) {
  Py_XINCREF(hook);
  error_hook() = hook;
}

inline void raise_python_error() {
  // The engine may run without the GIL; raising needs it.
  const PyGILState_STATE gil = PyGILState_Ensure();
  try {
    throw;
  } catch (const NotFiniteError& e) {
    PyObject* type = PyTuple_GetItem(error_hook(), static_cast<int>(e.kind()));
    PyObject* value =
        type ? PyObject_CallFunction(type, "sk", e.what(), static_cast<unsigned long>(e.node())) : nullptr;
    if (value) PyErr_SetObject(type, value);
    Py_XDECREF(value);
  } catch (const Error& e) {
    PyObject* type = error_hook() ? PyTuple_GetItem(error_hook(), static_cast<int>(e.kind())) : PyExc_RuntimeError;
    if (type) PyErr_SetString(type, e.what());
  } catch (const std::bad_alloc&) { PyErr_NoMemory(); } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) { PyErr_SetString(PyExc_RuntimeError, "[engine] unknown error"); }
  PyGILState_Release(gil);
}

}  // namespace dnl
