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

// Has Python's count room for so many calls? -1 after an error.
inline int need_room(int calls, const char* where) {
  int entered = 0;
  while (entered < calls && !Py_EnterRecursiveCall(where)) ++entered;
  for (int k = 0; k < entered; ++k) Py_LeaveRecursiveCall();
  return entered < calls ? -1 : 0;
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
  // What is called between two of these functions is counted, too, and would fail first, in words of Python's own. So
  // there must be room for it: asked for now and then, for it takes as long as that many calls.
  constexpr int kEvery = 16, kBetween = 16;
  if ((n.depth + 1) % kEvery == 0 && need_room(kEvery + kBetween, where)) return -1;
  if (Py_EnterRecursiveCall(where)) return -1;
  ++n.depth;
  return 0;
}

inline void leave_nested() {
  --nesting().depth;
  Py_LeaveRecursiveCall();
}

}  // namespace dnl
