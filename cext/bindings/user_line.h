// Traces of errors end at the user's line: compiled functions that an exception leaves add no frame to it, unless it is
// a bug of ours. setup.py puts the question before each place where Cython would add one. Who may include: bindings/.
#pragma once
#include <Python.h>

#include "errors.h"

namespace dnl {

inline bool shows_frames() {
  PyObject* kind = PyErr_Occurred();
  if (!kind || !error_hook()) return true;
  PyObject* internal = PyTuple_GetItem(error_hook(), static_cast<int>(ErrorKind::Internal));
  for (PyObject* bug : {internal, PyExc_SystemError, PyExc_NameError})
    if (PyErr_GivenExceptionMatches(kind, bug)) return true;
  return kind == PyExc_AssertionError;  // EmptyListError is one, too
}

}  // namespace dnl
