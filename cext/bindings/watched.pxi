# What recorded functions read besides their arguments: looked at before each replay. What that is: dynet_lite/reading.py.

from cpython.buffer cimport PyBUF_FULL_RO, PyBuffer_IsContiguous, PyBuffer_ToContiguous
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.string cimport strcmp

cdef extern from *:
    """
    static inline PyObject** dnl_items_of_list(PyObject* v) { return ((PyListObject*) v)->ob_item; }
    // What a weak reference or a proxy refers to, without asking it; None if that is gone.
    static inline PyObject* dnl_referent(PyObject* ref) {
      PyObject* found;
    #if PY_VERSION_HEX >= 0x030d0000
      const int known = PyWeakref_GetRef(ref, &found);
      if (known) return known < 0 ? NULL : found;
      found = Py_None;
    #else
      found = PyWeakref_GetObject(ref);
    #endif
      Py_XINCREF(found);
      return found;
    }
    static inline PyTypeObject* dnl_class_of_referent(PyObject* ref) {
    #if PY_VERSION_HEX >= 0x030d0000
      PyObject* found;
      if (PyWeakref_GetRef(ref, &found) <= 0) return NULL;
      PyTypeObject* kind = Py_TYPE(found);
      Py_DECREF(found);
      return kind;
    #else
      PyObject* found = PyWeakref_GET_OBJECT(ref);
      return found == Py_None ? NULL : Py_TYPE(found);
    #endif
    }
    """
    PyObject** items_of_list "dnl_items_of_list"(PyObject*)
    object referent_of "dnl_referent"(object)
    PyTypeObject* class_of_referent "dnl_class_of_referent"(object)
    bint PyCell_Check(object)
    PyObject* PyCell_GET(object)
    PyObject* PyFunction_GET_CODE(object)
    PyObject* PyFunction_GET_DEFAULTS(object)
    PyObject* PyFunction_GET_KW_DEFAULTS(object)
    int PyDict_Next(object, Py_ssize_t*, PyObject**, PyObject**)
    Py_ssize_t PyDict_GET_SIZE "PyDict_Size"(object)

cdef enum:
    MOST_ITEMS = 1024         # of a list that are compared, each by identity; of a dict, set or deque an eighth:
    MOST_KEYS = 128
    MOST_BYTES = 1 << 16      # of an array

MISSING = object()   # what is read of a variable that has no value
cdef object _missing = MISSING


def referent(ref):
    """What a weak reference or a proxy refers to; None if that is gone. Runs no code of a program."""
    return referent_of(ref)


cdef class Watched:
    """Something that is compared as a whole with what it was."""
    cdef bint same(self) except -1:
        return False


cdef bint _unchanged(list read) except -1:
    """Is all that was read what it was? A part of it: (where, key, value), see dynet_lite/reading.py."""
    cdef PyObject* found
    cdef PyObject* where
    cdef Py_ssize_t k = 0
    while k < PyList_GET_SIZE(read):   # what is asked may run code, which may empty the list
        one = <object> PyList_GET_ITEM(read, k)
        k += 1
        where = PyTuple_GET_ITEM(one, 0)
        if Py_TYPE(<object> where) is <PyTypeObject*> dict:   # the most of them
            found = PyDict_GetItemWithError(<object> where, <object> PyTuple_GET_ITEM(one, 1))
            if (<PyObject*> _missing if found == NULL else found) != PyTuple_GET_ITEM(one, 2):
                return False
        elif isinstance(<object> where, Watched):
            if not (<Watched> <object> where).same():
                return False
        elif not _is_content(<object> where, <object> PyTuple_GET_ITEM(one, 1), <object> PyTuple_GET_ITEM(one, 2)):
            return False
    return True

cdef bint _is_content(object where, object key, object value) except -1:
    """Is that what a closure's variable or an item is, or what objects of a class have from it or from one that it is
    derived from?"""
    cdef PyObject* found
    if PyCell_Check(where):
        found = PyCell_GET(where)
    elif PyType_Check(where):
        found = _PyType_Lookup(<PyTypeObject*> where, key)
    else:
        try:
            return where[key] is value
        except LookupError:
            return value is _missing
    return (_missing if found == NULL else <object> found) is value


@cython.final
cdef class WatchedFunction(Watched):
    """A function: tools such as autoreload of notebooks put in new code and defaults."""
    cdef object function, code, defaults, named

    def __init__(self, function):
        self.function, self.code = function, function.__code__
        self.defaults, self.named = function.__defaults__, function.__kwdefaults__

    cdef bint same(self) except -1:
        return PyFunction_GET_CODE(self.function) == <PyObject*> self.code and _is(
            PyFunction_GET_DEFAULTS(self.function), self.defaults) and _is(
            PyFunction_GET_KW_DEFAULTS(self.function), self.named)

cdef inline bint _is(PyObject* found, object wanted):
    return found == <PyObject*> wanted or found == NULL and wanted is None


@cython.final
cdef class WatchedClass(Watched):
    """Of which class an object is. Does not keep it in memory if that can be."""
    cdef object ref, kind
    cdef bint weak

    def __init__(self, value):
        self.kind = type(value)
        try:
            self.ref, self.weak = PyWeakref_NewRef(value, None), True
        except TypeError:
            self.ref = value

    cdef bint same(self) except -1:
        cdef PyTypeObject* now = class_of_referent(self.ref) if self.weak else Py_TYPE(self.ref)
        return now == <PyTypeObject*> self.kind or now == NULL   # one that is gone has been replaced elsewhere


@cython.final
cdef class WatchedList(Watched):
    """Which objects the items of a list are, or of an object of a class that is derived from it. Of a long one, how many."""
    cdef object value
    cdef list items
    cdef Py_ssize_t size

    def __init__(self, value):
        self.value, self.size = value, list.__len__(value)
        if self.size <= MOST_ITEMS:
            self.items = list(list.__iter__(value))

    cdef bint same(self) except -1:
        if PyList_GET_SIZE(self.value) != self.size:
            return False
        return self.items is None or _are_items(self.value, self.items)

cdef bint _are_items(object value, list items):
    """Has a list these, in this order?"""
    cdef Py_ssize_t n = PyList_GET_SIZE(items)
    return n == PyList_GET_SIZE(value) and (n == 0 or not memcmp(
        items_of_list(<PyObject*> value), items_of_list(<PyObject*> items), n * sizeof(PyObject*)))


@cython.final
cdef class WatchedDict(Watched):
    """The keys and values of a dict, and their order. Of a large one, how many."""
    cdef object value
    cdef list items   # key, value, key, value
    cdef Py_ssize_t size

    def __init__(self, value):
        self.value, self.size = value, dict.__len__(value)
        if self.size <= MOST_KEYS:
            self.items = [*itertools.chain(*dict.items(value))]

    cdef bint same(self) except -1:
        cdef PyObject* key
        cdef PyObject* one
        cdef Py_ssize_t at = 0, k = 0
        if PyDict_GET_SIZE(self.value) != self.size:
            return False
        if self.items is None:
            return True
        while PyDict_Next(self.value, &at, &key, &one):
            if key != PyList_GET_ITEM(self.items, k) or one != PyList_GET_ITEM(self.items, k + 1):
                return False
            k += 2
        return True


@cython.final
cdef class WatchedItems(Watched):
    """What a set or a deque has, or the keys of an OrderedDict: which objects they are. Of a large one, how many."""
    cdef object value, kind
    cdef list items
    cdef Py_ssize_t size

    def __init__(self, value, kind):
        """kind: the builtin class that it is derived from, whose methods run no code of a program."""
        self.value, self.kind, self.size = value, kind, kind.__len__(value)
        if self.size <= MOST_KEYS:
            self.items = list(kind.__iter__(value))

    cdef bint same(self) except -1:
        if self.kind.__len__(self.value) != self.size:
            return False
        return self.items is None or _are_items(list(self.kind.__iter__(self.value)), self.items)


@cython.final
cdef class WatchedBuffer(Watched):
    """The numbers of an array, or other bytes in memory. Of a large one, its shape."""
    cdef object value, objects
    cdef bytes numbers, format
    cdef tuple shape

    def __init__(self, value):
        """BufferError or ValueError if it has none."""
        cdef Py_buffer b
        self.value = value
        PyObject_GetBuffer(value, &b, PyBUF_FULL_RO)
        try:
            self.numbers = None if b.len > MOST_BYTES else _bytes_of(&b)
            self.shape, self.format = tuple([b.shape[k] for k in range(b.ndim)]), _format_of(&b)
        finally:
            PyBuffer_Release(&b)
        if b"O" in self.format and self.numbers is not None:
            self.objects = value.tolist()   # they stay where they are

    cdef bint same(self) except -1:
        cdef Py_buffer b
        try:
            PyObject_GetBuffer(self.value, &b, PyBUF_FULL_RO)
        except (BufferError, ValueError):   # its memory has been given back
            return False
        try:
            return self.is_like(&b) and (self.numbers is None or self.has(&b))
        finally:
            PyBuffer_Release(&b)

    cdef bint is_like(self, const Py_buffer* b):
        cdef int k
        if b.ndim != len(self.shape) or strcmp(_format_of(b), <const char*> self.format):
            return False
        for k in range(b.ndim):
            if b.shape[k] != <Py_ssize_t> self.shape[k]:
                return False
        return True

    cdef bint has(self, Py_buffer* b) except -1:
        """Of the same shape, and so many: these numbers?"""
        if PyBuffer_IsContiguous(b, c"C"):
            return not memcmp(b.buf, <const char*> self.numbers, b.len)
        return _bytes_of(b) == self.numbers

cdef const char* _format_of(const Py_buffer* b) noexcept:
    if b.format == NULL:
        return b"B"   # which that means
    return b.format

cdef bytes _bytes_of(Py_buffer* b):
    cdef bytes numbers = PyBytes_FromStringAndSize(NULL, b.len)
    PyBuffer_ToContiguous(<char*> numbers, b, b.len, c"C")
    return numbers


@cython.final
cdef class Generators(Watched):
    """Generators of random numbers that a function may draw from. They may change, but not while it is recorded."""
    cdef readonly list found

    def __init__(self, found):
        self.found = list(found)

    cdef bint same(self) except -1:
        return True
