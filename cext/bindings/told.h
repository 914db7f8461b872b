// A callable that stands for a function or method and passes calls on as they come; only when that raises does it look
// at the arguments. So what explains its errors costs a call nothing. Who may include: bindings/.
#pragma once
#include <Python.h>

#include <cstddef>

#include <structmember.h>

namespace dnl {
namespace told {

struct Told {
  PyObject_HEAD vectorcallfunc call;
  PyObject *function, *failed;  // failed(error, args, kwargs) raises
  PyObject *dict, *weak;
};

// What is raised, without its place: normal, with its trace. Null after an interrupt and the like, which stay raised.
inline PyObject* take_error() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
  PyObject *kind, *error, *trace;
  PyErr_Fetch(&kind, &error, &trace);
  PyErr_NormalizeException(&kind, &error, &trace);
  if (trace) PyException_SetTraceback(error, trace);
  Py_XDECREF(kind);
  Py_XDECREF(trace);
  return error;
}

inline PyObject* explain(PyObject* failed, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  PyObject* error = take_error();
  if (!error) return nullptr;
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
  PyObject *list = PyTuple_New(n), *dict = PyDict_New(), *result = nullptr;
  bool ok = list && dict;
  for (Py_ssize_t k = 0; ok && k < n; ++k) {
    Py_INCREF(args[k]);
    PyTuple_SET_ITEM(list, k, args[k]);
  }
  for (Py_ssize_t k = 0; ok && k < named; ++k) ok = PyDict_SetItem(dict, PyTuple_GET_ITEM(names, k), args[n + k]) == 0;
  if (ok) result = PyObject_CallFunctionObjArgs(failed, error, list, dict, nullptr);
  Py_XDECREF(list);
  Py_XDECREF(dict);
  Py_DECREF(error);
  return result;
}

inline PyObject* call(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
  Told* t = reinterpret_cast<Told*>(self);
  PyObject* result = PyObject_Vectorcall(t->function, args, nargsf, names);
  return result ? result : explain(t->failed, args, nargsf, names);
}

inline PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (object) return PyMethod_New(self, object);
  Py_INCREF(self);
  return self;
}

inline PyObject* repr(PyObject* self) { return PyObject_Repr(reinterpret_cast<Told*>(self)->function); }

inline PyObject* globals(PyObject* self, void*) {
  return PyObject_GetAttrString(reinterpret_cast<Told*>(self)->function, "__globals__");
}

// By name, as functions are.
inline PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

inline int traverse(PyObject* self, visitproc visit, void* arg) {
  Told* t = reinterpret_cast<Told*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(t->function);
  Py_VISIT(t->failed);
  Py_VISIT(t->dict);
  return 0;
}
inline int clear(PyObject* self) {
  Told* t = reinterpret_cast<Told*>(self);
  Py_CLEAR(t->function);
  Py_CLEAR(t->failed);
  Py_CLEAR(t->dict);
  return 0;
}
inline void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<Told*>(self)->weak) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// New reference; null with an error set.
inline PyTypeObject* make_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(Told, call), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(Told, dict), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(Told, weak), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyGetSetDef attributes[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
      {"__globals__", globals, nullptr, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_members, members},
      {Py_tp_getset, attributes},
      {Py_tp_methods, methods},
      {Py_tp_repr, reinterpret_cast<void*>(repr)},
      {0, nullptr},
  };
  static PyType_Spec spec = {
      "dynet_lite._core.method", sizeof(Told), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace told

// function, but what it raises goes to failed(error, args, kwargs).
inline PyObject* make_told(PyObject* function, PyObject* failed) {
  static PyTypeObject* const type = told::make_type();
  told::Told* t = type ? reinterpret_cast<told::Told*>(type->tp_alloc(type, 0)) : nullptr;
  if (!t) return nullptr;
  t->call = told::call;
  Py_INCREF(function);
  Py_INCREF(failed);
  t->function = function;
  t->failed = failed;
  return reinterpret_cast<PyObject*>(t);
}

}  // namespace dnl
