# Python values to the engine's, with errors that name what was wanted.

cdef extern from "bindings/singles.h" namespace "dnl":
    bint fit_floats(const double* numbers, size_t n) nogil

cdef int _dim_from(object dims, object batch, Dim* out, str what, int least=1) except -1:
    """A Dim from an int or an iterable of ints, each of them at least `least`. what: the function called, for messages."""
    cdef list sizes
    if type(dims) is int and type(batch) is int and batch == 1 and least <= dims <= 0x7fffffff:
        memset(out.d, 0, sizeof(out.d))
        out.d[0], out.nd, out.bd = dims, 1, 1
        return 0
    dims = _listed(dims)
    if hasattr(dims, "__iter__"):
        sizes = [v if type(v) is int else _as_int(v, f"[{what}] a size") for v in dims]
    else:
        sizes = [dims if type(dims) is int else _as_int(dims, f"[{what}] a size")]
    if len(sizes) > 7:
        raise ValueError(f"[{what}] at most 7 dimensions; got {tuple(sizes)}")
    if not sizes:
        sizes = [1]
    for i, v in enumerate(sizes):
        if v < least:
            raise ValueError(f"[{what}] sizes must be positive; got {tuple(sizes)}")
        if v > 0x7fffffff:
            raise ValueError(f"[{what}] too large: a size may be 2147483647 at most; got {tuple(sizes)}")
        out.d[i] = v
    for i in range(len(sizes), 7):
        out.d[i] = 0
    out.nd = len(sizes)
    b = batch if type(batch) is int else _as_int(batch, f"[{what}] the batch size")
    if b <= 0:
        raise ValueError(f"[{what}] the batch size must be positive; got {b}")
    if b > 0x7fffffff:
        raise ValueError(f"[{what}] too large: a batch of {b}")
    out.bd = b
    for v in sizes:
        b *= v
    if b > 0x7fffffff:
        raise ValueError(f"[{what}] too large: {tuple(sizes)} with a batch of {batch}")
    return 0

cdef tuple _shape_of(const Dim& d):
    return tuple([d.d[i] for i in range(d.nd)])

cdef tuple _dim_tuple(const Dim& d):
    return (_shape_of(d), d.bd)

cdef object _as_int(object v, str what):
    try:
        return int.__index__(v.__index__())   # an int, whatever the user's code gives
    except AttributeError:
        pass
    except TypeError:
        # Theirs tells nothing; what stands for an integer has its own words.
        if not isinstance(v, (np.ndarray, np.bool_, type)):
            raise
    if isinstance(v, (float, np.floating)):
        if np.isfinite(v) and (v == np.floor(v) or _settings.is_dynet):
            return int(v)   # DyNet cuts fractions off: its programs write width / 2
        raise ValueError(f"{what} must be a whole number; got {v}")
    if isinstance(v, np.bool_):   # a label of two classes, as Python's bool, which is an int
        return int(v)
    raise TypeError(f"{what} must be a whole number; got {_shown(v)}")

cdef inline object _batch_size(object v):
    """The size of a mini-batch. Of one that is not known before a file runs (dynet_lite/onnx) what it pretends to be."""
    return v if type(v) is int else getattr(v, "pretended", v)

cdef inline bint _of_a_file(index):
    """Whether a row's number is not known before a file runs (dynet_lite/onnx): index.row_of(table) then."""
    return type(index) is not int and type(index) is not IndexStandIn and hasattr(index, "row_of")

cdef str _shown(object v):
    """A value as messages show it."""
    return repr(v) if v is None or isinstance(v, (str, bytes)) and len(v) < 40 else type(v).__name__

# In what follows `where` is the op and its argument, for messages: "[pick] index".

cdef int32_t _int32(object v, str where) except? -77:
    cdef int overflow = 0
    if type(v) is not int:
        v = _as_int(v, where)
    cdef long long i = PyLong_AsLongLongAndOverflow(v, &overflow)
    if overflow or not -0x80000000 <= i <= 0x7fffffff:
        raise _errors.OutOfRangeError(f"{where} must fit 32 bits; got {v}")
    return <int32_t> i

cdef int _push_int(Vec[Word]& to, object v, str where) except -1:
    cdef Word w
    if type(v) is IndexStandIn:
        (<IndexStandIn> v).note(<size_t> &to, to.size())
        w.i = 0
    else:
        w.i = _int32(v, where)
    to.push_back(w)
    return 0

cdef inline bint _truth(object v, str where) except -1:
    return v is True or (v is not False and _truth_of(v, where))

cdef bint _truth_of(object v, str where) except -1:
    try:
        return bool(v)
    except ValueError:
        if not isinstance(v, np.ndarray):   # the user's code
            raise
    raise ValueError(f"{where} must be True or False; got an array of shape {v.shape}")

cdef int _push_float(Vec[Word]& to, object v, str where) except -1:
    cdef Word w
    w.f = _as_single(v, where)
    to.push_back(w)
    return 0

cdef inline float _as_single(object v, str where) except? -77:
    cdef double number = <double> v if type(v) is float else _as_float(v, where)
    if not fit_floats(&number, 1):
        _too_large(where, v)
    return <float> number

cdef int _too_large(str what, object v) except -1:
    """Of a finite number that would be infinite as a float32. Programs written for DyNet get that infinity, as there."""
    if not _settings.is_dynet:
        raise ValueError(f"{what} must fit a float32 (3.4028235e+38 at most); got {v}")
    return 0

cdef double _as_float(object v, str where) except? -77:
    if isinstance(v, Expression):  # has a __float__, for those who ask for it
        raise TypeError(f"{where} must be a number; got an expression, whose gradient would be lost. A number is x.value()")
    try:
        if not isinstance(v, (str, bytes)):  # float("1") is 1.0
            return float(v)
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(f"{where} must be a number: {error}") from None
    raise TypeError(f"{where} must be a number; got {_shown(v)}")

cdef int _push_ints(Vec[Word]& to, object v, str where) except -1:
    if not isinstance(v, (list, tuple)):   # read by _listed() before
        v = [v]
    cdef Py_ssize_t n = len(v)
    _push_int(to, n, where)
    for item in v:
        _push_int(to, item, where)
        n -= 1
    if n:
        raise RuntimeError(f"{where}: the list changed while it was read")
    return 0

cdef int _push_floats(Vec[Word]& to, object v, str where) except -1:
    if not isinstance(v, (list, tuple)):
        v = [v]
    _push_int(to, len(v), where)
    for item in v:
        _push_float(to, item, where)
    return 0

cdef int _push_index(Vec[Word]& to, object v, str where) except -1:
    cdef Word w
    if type(v) is int:
        w.i = 1
        to.push_back(w)
        w.i = _int32(v, where)
        to.push_back(w)
        return 0
    return _push_ints(to, v, where)

cdef object _as_array(object v, str op):
    _see_unmasked(v, op)
    try:
        return np.asarray(v)   # of a subclass, too, whose methods may be others
    except ValueError as error:
        if not isinstance(v, (list, tuple)):   # of the user's code
            raise
        # Lists of different lengths.
        raise _errors.InputTypeError(f"[{op}] {error}") from None

cdef int _see_unmasked(object v, str op) except -1:
    """NumPy would give what lies under the mask of an array, or of a list of arrays."""
    if type(v) is _array_type:   # the usual case, in which np.ma is not imported
        return 0
    if type(v) is list or type(v) is tuple:
        if v and isinstance(v[0], _array_type):
            for one in v:
                if isinstance(one, _array_type):
                    _see_unmasked(one, op)
    elif isinstance(v, _array_type) and isinstance(v, np.ma.MaskedArray) and np.ma.is_masked(v):
        raise _errors.InputTypeError(f"[{op}] numbers are needed; got an array of which {np.ma.count_masked(v)} are masked. "
                                     "Write array.filled(number)")
    return 0

cdef object _outsized(object a):
    """Which of them are finite, but infinite as a float32?"""
    return (np.abs(a) > 3.4028235677973364e38) & np.isfinite(a)

cdef object _singles(object a, str op):
    """An array of numbers as float32. ValueError if one is finite, but too large for that."""
    cdef Py_buffer b
    cdef bint fit = True
    kind = a.dtype
    if kind is _single:
        return a
    if kind is _double:
        try:
            PyObject_GetBuffer(a, &b, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT)
        except (ValueError, BufferError):   # it has gaps
            a = a.copy(order="K")
            PyObject_GetBuffer(a, &b, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT)
        fit = fit_floats(<const double*> b.buf, b.len // sizeof(double))
        PyBuffer_Release(&b)
    elif kind.kind == "f" and kind.itemsize > 4:   # of other bytes, or longer
        fit = not _outsized(a).any()
    if fit:
        return np.asarray(a, dtype=np.float32)
    _too_large(f"[{op}] numbers", a[_outsized(a)][0])
    with np.errstate(over="ignore"):
        return np.asarray(a, dtype=np.float32)

cdef const float* _first(object numbers) except? NULL:
    """Where the numbers of a contiguous float32 array lie. A typed view would cost more than a small copy."""
    cdef Py_buffer b
    PyObject_GetBuffer(numbers, &b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    cdef const float* first = <const float*> b.buf
    PyBuffer_Release(&b)
    return first

cdef object _single = np.dtype(np.float32), _double = np.dtype(np.float64)


def numbers(v, str op):
    """A float32 array of what a user gave `op` as numbers."""
    return _numbers(v, op)


cdef object _numbers(object v, str op):
    """A float32 array of what a user gave as numbers.

    None, text, expressions in a list, masked numbers and those too large for a float32 are errors: NumPy would make NaN,
    infinity or other numbers of them without a word.
    """
    a = _as_array(v, op)
    if a.dtype.kind in "fiub":
        return _singles(a, op)
    if a.dtype.kind == "O":  # numbers of other kinds: fractions, very large ints
        for one in a.flat:
            if one is None or isinstance(one, (str, bytes, type, Expression)) or not hasattr(one, "__float__"):
                raise _errors.InputTypeError(f"[{op}] numbers are needed; got {_shown(one)}")
        try:
            return _singles(np.asarray(a.astype(np.float64)), op)
        except OverflowError:   # an int that not even a double can hold
            raise ValueError(f"[{op}] numbers must fit a float32 (3.4028235e+38 at most); got a larger one") from None
    raise _errors.InputTypeError(f"[{op}] numbers are needed; got an array of {a.dtype}")

cdef int _push_seed(ComputationGraph g, Vec[Word]& to) except -1:
    g.c.draw_seed(to.extend(2))
    return 0

cdef inline bint _gives_items(object v):
    """Does it give its items one by one, and is no text?"""
    return hasattr(v, "__iter__") and not isinstance(v, (str, bytes))

cdef inline object _listed(object v):
    """A list of what an iterable gives, read before the node is begun; anything else, and text, as it is."""
    if type(v) is int or type(v) is list or type(v) is tuple or not _gives_items(v):
        return v
    if isinstance(v, np.ndarray) and v.ndim == 0:
        return v.item()
    return list(v)

cdef object _as_sequence(object es, str op):
    """A list or tuple of expressions from any iterable; empty is an error."""
    if isinstance(es, Expression):
        raise TypeError(f"[{op}] takes a list of expressions; got one expression")
    if not isinstance(es, (list, tuple)) and type(es) is not ExpressionList:
        if not hasattr(es, "__iter__") or isinstance(es, np.ndarray) and es.ndim == 0:
            raise TypeError(f"[{op}] takes a list of expressions; got {_shown(es)}")
        es = list(es)
    if not es:
        raise _errors.EmptyListError(f"[{op}] needs at least one expression; got an empty list")
    return es
