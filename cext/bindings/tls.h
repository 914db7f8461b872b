// Graphs as borrowed pointers: the current one of each thread, which bindings/graph.pxi owns. Includes: Python.
#pragma once
#include <Python.h>

// Read at every call from Python: glibc keeps room for a few such words of libraries that are loaded late.
#if defined(__GLIBC__) && defined(__GNUC__)
#define DNL_QUICK_TLS __attribute__((tls_model("initial-exec")))
#else
#define DNL_QUICK_TLS
#endif

namespace dnl {
inline PyObject*& current_graph() {
  static thread_local PyObject* graph DNL_QUICK_TLS = nullptr;
  return graph;
}

// Is an object that nobody need hold still there, and not being destroyed?
inline bool alive(PyObject* object) { return object && Py_REFCNT(object) > 0; }
}  // namespace dnl
