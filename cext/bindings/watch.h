// Telling a Python object which gradients are complete while a backward pass runs. Who may include: bindings/.
#pragma once
#include <Python.h>

#include "exec/complete.h"

namespace dnl {

struct PythonWatch final : GradientWatch {
  PyObject* self = nullptr;  // borrowed
  void (*call)(PyObject*, Parameter* const*, std::size_t) = nullptr;
  void complete(Parameter* const* parameters, std::size_t n) noexcept override { call(self, parameters, n); }
};

}  // namespace dnl
