// The current graph of each thread, as a borrowed pointer; bindings/graph.pxi owns the object. Includes: Python.
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
}  // namespace dnl
