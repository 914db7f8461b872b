// Traces of errors end at the user's line: compiled functions that an exception leaves add no frame to it, unless it is
// a bug of ours. setup.py puts the question before each place where Cython would add one. Who may include: bindings/.
#pragma once
#include <Python.h>

#include "errors.h"

namespace dnl {

// Is an exception of this class a bug of ours? Once there are error classes.
inline bool is_bug(PyObject* kind) {
  PyObject* internal = PyTuple_GetItem(error_hook(), static_cast<int>(ErrorKind::Internal));
  for (PyObject* bug : {internal, PyExc_SystemError, PyExc_NameError})
    if (PyErr_GivenExceptionMatches(kind, bug)) return true;
  return kind == PyExc_AssertionError;  // EmptyListError is one, too
}

inline bool shows_frames() {
  PyObject* kind = PyErr_Occurred();
  return !kind || !error_hook() || is_bug(kind);
}

}  // namespace dnl
