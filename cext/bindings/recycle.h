// Python objects that come and go by the thousand, those of a mini-batch: made as copies of one, in memory that is kept
// for them. Includes: Python, base/fetch.h.
//
// What was freed last is taken first, as in the free lists that Cython makes; but when memory is taken, that of the
// objects that come soon is asked for: since they were freed a whole mini-batch has passed through the caches.
#pragma once
#include <Python.h>

#include <cstring>

#include "base/fetch.h"

namespace dnl {

// Guarded by the GIL.
struct Recycled {
  static constexpr std::size_t kMost = 16384, kAhead = 24;
  static constexpr std::size_t kSize = 64;  // bytes of an object
  std::size_t n = 0;
  void* free[kMost] = {};
};
inline Recycled g_recycled;

inline void give_to_recycle(void* o) {
  Recycled& r = g_recycled;
  if (r.n < Recycled::kMost)
    r.free[r.n++] = o;
  else
    PyObject_Free(o);
}

// Objects of this type give their memory back to us from now on, where they can.
inline void recycle(PyObject* type) {
#if !defined(Py_GIL_DISABLED) && !defined(PYPY_VERSION)
  PyTypeObject* const t = reinterpret_cast<PyTypeObject*>(type);
  if (t->tp_basicsize == Recycled::kSize && !t->tp_itemsize &&
      !(t->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_HAVE_GC)))
    t->tp_free = give_to_recycle;
#endif
}

// A new object like this one, an empty one: a copy of its bytes, in which None is the only object, or made by its type
// if that is not recycled.
inline PyObject* one_like(PyObject* empty) {
  PyTypeObject* const type = Py_TYPE(empty);
  if (type->tp_free != give_to_recycle)
    return PyObject_CallMethod(reinterpret_cast<PyObject*>(type), "__new__", "O", type);
  Recycled& r = g_recycled;
  void* const p = r.n ? r.free[--r.n] : PyObject_Malloc(Recycled::kSize);
  if (!p) return PyErr_NoMemory();
  if (r.n >= Recycled::kAhead) DNL_FETCH_TO_WRITE(r.free[r.n - Recycled::kAhead]);
  std::memcpy(p, static_cast<void*>(empty), Recycled::kSize);
  PyObject* const o = static_cast<PyObject*>(p);
  Py_SET_REFCNT(o, 1);
  Py_INCREF(Py_None);
  return o;
}

// list[i] = o: what Cython makes of it is a call.
inline int put_item(PyObject* list, Py_ssize_t i, PyObject* o) {
  Py_INCREF(o);
  if (i >= PyList_GET_SIZE(list)) return PyList_SetItem(list, i, o);  // somebody's code found it and made it shorter
  PyObject* const before = PyList_GET_ITEM(list, i);
  PyList_SET_ITEM(list, i, o);
  Py_DECREF(before);
  return 0;
}

}  // namespace dnl
