// For functions that call themselves for what lies in one another: RecursionError before the stack ends. Up to 3.11
// Python's own count is enough, of which the program sets the limit. Later ones count calls in C apart, and allow
// 10,000, more than these functions have stack for. Includes: Python, base/tls.h.
#pragma once
#include <Python.h>

#include <cstdint>

#include "base/tls.h"

namespace dnl {

struct Nesting {
  int depth = 0;
  std::uintptr_t outermost = 0;  // where the stack was then
};

inline Nesting& nesting() {
  static thread_local Nesting of_thread DNL_QUICK_TLS;
  return of_thread;
}

// where: the end of the message. -1 after an error, else leave_nested() is to follow.
inline int enter_nested(const char* where) {
  constexpr std::uintptr_t kMost = 4 << 20;  // bytes; threads have 8 MB as a rule
  const char here = 0;
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(&here);
  Nesting& n = nesting();
  if (n.depth == 0) n.outermost = at;
  if (n.outermost > at && n.outermost - at > kMost) {
    PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded%s", where);
    return -1;
  }
  if (Py_EnterRecursiveCall(where)) return -1;
  ++n.depth;
  return 0;
}

inline void leave_nested() {
  --nesting().depth;
  Py_LeaveRecursiveCall();
}

}  // namespace dnl
