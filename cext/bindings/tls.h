// The current graph of each thread, as a borrowed pointer; bindings/graph.pxi owns the object. Includes: Python.
#pragma once
#include <Python.h>

namespace dnl {
inline PyObject*& current_graph() {
  static thread_local PyObject* graph = nullptr;
  return graph;
}
}  // namespace dnl
