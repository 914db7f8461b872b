// Places: which "file:line" an instruction of the program stands for, found again without asking Python for the line.
//
// While validity is checked each node is noted with the line that made it; loops make nodes at the same few places.
// Only under the GIL. Who may include: bindings/.
#pragma once
#include <Python.h>
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

#include <cstdint>

namespace dnl {

class Places {
 public:
  // The text of where the innermost frame stands, a new reference to it or to None: it is not known.
  PyObject* now() const {
    PyObject* text = Py_None;
    if (const Place at = innermost(); at.code) {
      const Entry& e = entry(at);
      if (e.at.code == at.code && e.at.instruction == at.instruction) text = e.text;
    }
    Py_INCREF(text);
    return text;
  }
  // For the next time. It takes the place of another, if need be.
  void note(PyObject* text) {
    const Place at = innermost();
    if (!at.code) return;
    Entry& e = entries_[slot(at)];
    const Entry old = e;
    Py_INCREF(at.code);  // another one may not come to lie there
    Py_INCREF(text);
    e = Entry{at, text};
    Py_XDECREF(old.at.code);
    Py_XDECREF(old.text);
  }

 private:
  struct Place {
    PyObject* code = nullptr;
    int instruction = 0;
  };
  struct Entry {
    Place at;
    PyObject* text = nullptr;
  };
  static constexpr std::size_t kEntries = 1024;

  // The code lives as long as the frame.
  static Place innermost() {
    PyFrameObject* frame = PyEval_GetFrame();
    if (!frame) return {};
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);
#if PY_VERSION_HEX >= 0x030B0000
    return {reinterpret_cast<PyObject*>(code), PyFrame_GetLasti(frame)};
#else
    return {reinterpret_cast<PyObject*>(code), frame->f_lasti};
#endif
  }
  static std::size_t slot(const Place& at) {
    const auto code = reinterpret_cast<std::uintptr_t>(at.code) >> 4;
    return (code * 31 + (code >> 8) + static_cast<std::size_t>(at.instruction)) % kEntries;
  }
  const Entry& entry(const Place& at) const { return entries_[slot(at)]; }

  Entry entries_[kEntries];
};

inline Places& places() {
  static Places all;
  return all;
}

}  // namespace dnl
