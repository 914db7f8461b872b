// Whether anybody could use the GIL while a pass runs. Who may include: bindings/.
#pragma once
#include <Python.h>

namespace dnl {
// Is the calling thread, which holds the GIL, the only one that Python knows? None can come while it is held.
inline bool is_only_thread() {
#ifdef Py_GIL_DISABLED
  return false;
#else
  return PyThreadState_Next(PyInterpreterState_ThreadHead(PyInterpreterState_Get())) == nullptr;
#endif
}
}  // namespace dnl
