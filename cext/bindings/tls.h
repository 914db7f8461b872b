// Graphs as borrowed pointers: the current one of each thread, which bindings/current_graph.pxi owns. Includes:
// Python, base/tls.h.
#pragma once
#include <Python.h>

#include "base/tls.h"

namespace dnl {
inline PyObject*& current_graph() {
  static thread_local PyObject* graph DNL_QUICK_TLS = nullptr;
  return graph;
}

// Is an object that nobody need hold still there, and not being destroyed?
inline bool alive(PyObject* object) { return object && Py_REFCNT(object) > 0; }
}  // namespace dnl
