# Inputs: numbers that enter a graph.
from cpython.buffer cimport (Py_buffer, PyBUF_ANY_CONTIGUOUS, PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE,
                             PyBuffer_Release, PyObject_GetBuffer)
from cpython.float cimport PyFloat_AS_DOUBLE

cdef object _array_type = np.ndarray

cdef class InputExpression(Expression):
    """An input, whose numbers can be replaced with set()."""

    def set(self, values):
        """Replace the numbers, by as many as before. A graph that has run with the old ones then runs again.

        values: an array of the same shape, or flat and column-major. ValueError for another shape or number of values,
        or numbers that do not fit a float32.
        """
        cdef float* to
        cdef size_t k, n
        cdef const float* numbers
        cdef float one
        if type(values) is float or type(values) is int and -(1 << 60) < values < 1 << 60:   # without NumPy
            one = _as_single(values, "[set] a number")
            self._to_write(1)[0] = one
        elif type(values) is list and _plain_numbers(<list> values):
            n = len(<list> values)
            to = self._to_write(n)
            if <size_t> len(<list> values) != n:   # other threads were let in
                raise RuntimeError("[set] the list changed while it was read")
            for k in range(n):
                to[k] = <float> <double> (<list> values)[k]
        else:
            a = _numbers(values, "set")   # may run the user's code: before the node is asked for
            self._check_shape(a.shape)
            a = np.ascontiguousarray(a.ravel() if a.ndim <= 1 else a.ravel(order="F"))
            numbers, n = _first(a), len(a)
            memcpy(self._to_write(n), numbers, n * sizeof(float))

    cdef int _check_shape(self, tuple given) except -1:
        """Numbers that are not flat must lie as those of the input do; dims of 1 do not matter."""
        cdef NodeId i = self.use()
        cdef tuple shape = _numpy_shape(self.graph.c.dim(i))
        cdef list several = [n for n in given if n != 1]
        if len(several) > 1 and several != [n for n in shape if n != 1]:
            raise ValueError(f"[set] an array of shape {shape} is needed, or flat numbers; got {given}")
        return 0

    cdef float* _to_write(self, size_t given) except NULL:
        """Where so many new numbers go: what has read the old ones runs again, and it is a constant no more."""
        cdef NodeId i = self.use()
        cdef size_t n = self.graph.c.dim(i).size()
        if self.graph.computed is not None and i in self.graph.computed:
            raise ValueError("[set] an input of the file has no numbers while the function is traced")
        if given != n:
            raise ValueError(f"[set] {n} numbers are needed; got {given}")
        self.graph.outdate_reading(i)
        i = self.use()   # other threads were let in
        self.graph.c.keep(i)
        return self.graph.c.input_data(i)


cdef InputExpression _empty_input = InputExpression.__new__(InputExpression)
recycle(InputExpression)

cdef inline InputExpression _input_expression(ComputationGraph g, NodeId id):
    return <InputExpression> _referring(_empty_input, g, id)


cdef inline InputExpression _new_input(ComputationGraph g, const Dim& d):
    """An input node; the caller writes its numbers."""
    return _input_expression(g, g.c.add_input(d))


cdef Expression _input(ComputationGraph g, const Dim& d, object flat):
    """An input node; flat: contiguous float32 numbers in the engine's order."""
    cdef const float* numbers = _first(flat)
    if <size_t> len(flat) != d.size():
        raise ValueError(f"[input] {d.size()} numbers are needed for {d.text().decode()}; got {len(flat)}")
    cdef InputExpression e = _new_input(g, d)
    memcpy(g.c.input_data(e.id), numbers, d.size() * sizeof(float))
    return e


cdef Expression _filled(ComputationGraph g, const Dim& d, double v):
    """An input node with the same number everywhere."""
    return _input_expression(g, g.c.add_constant(d, <float> v))


cdef bint _plain_numbers(list v, bint whole=True) except -1:
    """Floats, and if whole small ints, only: they can be read without NumPy, and without an error half way."""
    cdef double number
    for one in v:
        if isinstance(one, float):
            number = PyFloat_AS_DOUBLE(one)
            if not fit_floats(&number, 1):
                return False
        elif not (whole and type(one) is int and -(1 << 60) < one < 1 << 60):
            return False
    return True


cdef Expression _plain_array(object a):
    """A vector or matrix of floats or doubles, row by row, as an input, without NumPy; None: the array is another one."""
    cdef Py_buffer b
    cdef Dim d
    cdef InputExpression e
    cdef float* to
    cdef Py_ssize_t rows, columns, i, k
    try:
        PyObject_GetBuffer(a, &b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    except (ValueError, BufferError):   # columns first, or with gaps
        return None
    cdef bint known = b.format != NULL and (b.format[0] == c"f" or b.format[0] == c"d") and b.format[1] == 0
    try:
        if not known or not 1 <= b.ndim <= 2:
            return None
        rows, columns = b.shape[0], b.shape[1] if b.ndim == 2 else 1
        if not (0 < rows <= 0x7fffffff and 0 < columns <= 0x7fffffff // rows):
            return None
        if b.format[0] == c"d" and not fit_floats(<const double*> b.buf, rows * columns):
            return None
        d.nd, d.bd = b.ndim, 1
        d.d[0] = <unsigned int> rows
        if b.ndim == 2:
            d.d[1] = <unsigned int> columns
        e = _new_input(_current(), d)
        to = e.graph.c.input_data(e.id)
        if b.format[0] == c"d":
            for k in range(columns):
                for i in range(rows):
                    to[k * rows + i] = <float> (<double*> b.buf)[i * columns + k]
        elif columns == 1:
            memcpy(to, b.buf, rows * sizeof(float))
        else:
            for k in range(columns):
                for i in range(rows):
                    to[k * rows + i] = (<float*> b.buf)[i * columns + k]
        return e
    finally:
        PyBuffer_Release(&b)


def inputTensor(arr, batched=False, device="", reusable_expr=False):
    """An input with the numbers of an array, or of a list of arrays of one shape, which becomes a mini-batch.

    arr of shape (d1, ..., dn) gives {d1, ..., dn}, and arr[i, j] is element (i, j). With ``batched=True`` the last axis
    is the mini-batch; a 1-D array then gives {1} X n, and so does a list of n arrays without dims, as in DyNet.

    Numbers, here and in set(), set_value() and initial values, are kept as float32. ValueError for finite ones that
    would be infinite then, more than 7 dims or a size of 0; TypeError if arr is not made of numbers, or if some of them
    are masked. Infinity and NaN are taken. A program written for DyNet gets infinity for numbers too large, as there.
    """
    cdef Dim d
    batched = _truth(batched, "[inputTensor] batched")
    if type(arr) is InputExpression:
        return _taken(arr, batched)
    if type(arr) is _array_type and not batched and (plain := _plain_array(arr)) is not None:
        return plain
    if type(arr) is list and not batched and arr and _plain_numbers(arr, whole=False):
        return _plain_vector(arr)
    if _is_of_given(arr):
        return _taken(arr, batched)
    if _are_of_given(arr):
        return _stacked(arr)
    if isinstance(arr, (list, tuple)) and len(arr) and isinstance(arr[0], np.ndarray):
        _see_unmasked(arr, "inputTensor")
        try:
            arr = np.stack(arr, axis=-1)
        except ValueError as error:   # shapes that differ
            raise ValueError(f"[inputTensor] {error}") from None
        batched = True
    a = _as_array(arr, "inputTensor")
    if a.dtype.kind not in "fiub":
        raise TypeError(f"[inputTensor] numbers are needed; got an array of {a.dtype}")
    if a.size == 0:
        raise ValueError("[inputTensor] the array is empty")
    if a.ndim == 0:
        a = a.reshape(1)
    flat = np.ascontiguousarray(_singles(a.ravel(order="F"), "inputTensor"))
    if batched:
        last = a.ndim - 1
        _dim_from(a.shape[:last] if last else (1,), a.shape[last], &d, "inputTensor")
    else:
        _dim_from(a.shape, 1, &d, "inputTensor")
    return _input(_current(), d, flat)


cdef Expression _taken(Expression e, bint batched):
    """An input that is one already, as the arrays of a compiled function are: itself, or its last dim as the mini-batch."""
    if not batched:
        return e
    if e.batch_size != 1:
        raise ValueError("[inputTensor] batched: this input has a mini-batch already")
    *shape, batch = e.shape
    return _reshaped(e, shape or [1], batch)


cdef Expression _stacked(object es):
    """The mini-batch that a list of arrays is. An array of one number looks like a number, of which a list is a vector."""
    if any([e.shape == (1,) for e in es]):
        raise TypeError("[inputTensor] arrays of one number that a compiled function was given cannot be told from numbers: "
                        "concatenate(list) makes a vector, concatenate_to_batch(list) a mini-batch")
    return concatenate_to_batch(es)


cdef bint _is_vector(object v, Py_ssize_t n=0) except -1:
    """Is it an input already, or a part of what a compiled function was given, with n numbers in one dim? 0: any number."""
    return (type(v) is InputExpression or _is_of_given(v)) and v.ndim == 1 and v.batch_size == 1 and n in (0, len(v))


cdef Expression _plain_vector(list v):
    """An input of the numbers of a list, without NumPy."""
    cdef Dim d
    _dim_from(len(v), 1, &d, "inputVector")
    cdef InputExpression e = _new_input(_current(), d)
    cdef float* to = e.graph.c.input_data(e.id)
    cdef Py_ssize_t k, n = d.d[0]
    if len(v) != n:   # other threads were let in
        raise RuntimeError("[input] the list changed while it was read")
    for k in range(n):
        to[k] = <float> <double> v[k]
    return e


def inputVector(v, device=""):
    """A vector {n} from n numbers. ValueError if there are none."""
    cdef Dim d
    if _is_vector(v):
        return v
    if type(v) is list and v and _plain_numbers(v):
        return _plain_vector(v)
    if _are_of_given(v) and all([_is_vector(one, 1) for one in v]):
        return concatenate(v)
    if not isinstance(v, (list, np.ndarray)) and hasattr(v, "__next__"):
        v = list(v)  # map(float, ...)
    try:
        a = np.ascontiguousarray(_numbers(v, "inputVector"))
    except _errors.InputTypeError as e:
        raise _at_user(e)
    if a.ndim != 1:
        raise _errors.InputTypeError(f"[inputVector] a flat list of numbers is needed; got shape {a.shape}")
    if a.size == 0:
        raise ValueError("[inputVector] the list is empty")
    _dim_from(a.shape[0], 1, &d, "inputVector")
    return _input(_current(), d, a)


def vecInput(dim, device=""):
    """A vector {dim} of zeros, which set() replaces."""
    return _constant("vecInput", _int32(dim, "[vecInput] dim"), 0.0, 1)


def scalarInput(s, device=""):
    """A single number {1}."""
    cdef Dim d
    if _is_vector(s, 1):
        return s
    cdef double v = _as_single(s, "[scalarInput] s")
    _dim_from(1, 1, &d, "scalarInput")
    return _filled(_current(), d, v)


def constant(dim, val, batch_size=1):
    """A tensor of shape dim with the same number everywhere. ValueError for a dim or batch size below 1."""
    return _constant("constant", dim, _as_single(val, "[constant] val"), batch_size)


cdef Expression _constant(str what, object dim, double val, object batch_size):
    cdef Dim d
    _dim_from(dim, _batch_size(batch_size), &d, what)
    cdef Expression made = _filled(_current(), d, val)
    if type(batch_size) is not int and hasattr(batch_size, "pretended"):
        batch_size.filled(made, val)
    return made


def zeros(dim, batch_size=1):
    """Zeros of shape dim. ValueError for a dim or batch size below 1."""
    return _constant("zeros", dim, 0.0, batch_size)


def ones(dim, batch_size=1):
    """Ones of shape dim. ValueError for a dim or batch size below 1."""
    return _constant("ones", dim, 1.0, batch_size)


def one_hot(d, idx, device=""):
    """A vector {d} with 1 at idx and 0 elsewhere; a list of n indices gives {d} X n. IndexError if one is out of range.
    """
    cdef Dim dim
    idx = _listed(idx)
    ids = list(idx) if hasattr(idx, "__iter__") else [idx]
    d = _as_int(d, "[one_hot] the size")
    _dim_from(d, len(ids), &dim, "one_hot")
    a = np.zeros((len(ids), d), dtype=np.float32)
    for k, i in enumerate(ids):
        i = _as_int(i, "[one_hot] an index")
        if not 0 <= i < d:
            raise _errors.OutOfRangeError(f"[one_hot] index {i} is out of range for size {d}")
        a[k, i] = 1
    return _input(_current(), dim, a.ravel())


def sparse_inputTensor(idxs, values, shape, batched=False, defval=0, device=""):
    """A tensor of this shape in which place (idxs[0][k], idxs[1][k], ...) is values[k], and every other place defval.

    With ``batched=True`` the last axis of shape is the mini-batch. IndexError if a place is out of range.
    """
    cdef Dim d
    shape = _listed(shape)
    shape = list(shape) if hasattr(shape, "__iter__") else [shape]
    batched = _truth(batched, "[sparse_inputTensor] batched")
    _dim_from(shape, 1, &d, "sparse_inputTensor")   # sizes are checked before memory is taken
    cdef float rest = _as_single(defval, "[sparse_inputTensor] defval")
    a = np.full([_as_int(n, "[sparse_inputTensor] a size") for n in shape], rest, dtype=np.float32, order="F")
    places = tuple([_places(i, "sparse_inputTensor") for i in _dim_by_dim(idxs)])
    if len(places) != a.ndim:   # NumPy would fill whole rows
        raise ValueError(f"[sparse_inputTensor] a list of places for each of {a.ndim} dims is needed; got {len(places)}")
    for i in places:
        if i.size and i.min() < 0:   # NumPy would count from the end
            raise _errors.OutOfRangeError(f"[sparse_inputTensor] place {i.min()} is out of range")
    numbers = _numbers(values, "sparse_inputTensor")
    try:
        a[places] = numbers
    except IndexError as error:   # NumPy's words: which place
        raise _errors.OutOfRangeError(f"[sparse_inputTensor] {error}") from None
    except ValueError as error:   # how many of each there are
        raise ValueError(f"[sparse_inputTensor] {error}") from None
    return inputTensor(a, batched=batched)


cdef list _dim_by_dim(object idxs):
    if isinstance(idxs, (str, bytes)) or not hasattr(idxs, "__iter__") or isinstance(idxs, np.ndarray) and idxs.ndim == 0:
        raise TypeError(f"[sparse_inputTensor] a list of places for each dim is needed; got {_shown(idxs)}")
    return list(idxs)


cdef object _places(object v, str op):
    """Whole numbers as an array of any shape. NumPy would cut fractions, and read numbers out of text."""
    a = _as_array(v, op)
    if a.size == 0 or a.dtype.kind in "iu":
        return a.astype(np.intp)
    if a.dtype.kind == "f" and not (np.isfinite(a).all() and (a == np.floor(a)).all()):
        raise ValueError(f"[{op}] places must be whole numbers; got {a[~(np.isfinite(a) & (a == np.floor(a)))][0]}")
    if a.dtype.kind == "O":   # very large ints, or anything else
        for one in a.flat:
            _int32(one, f"[{op}] a place")
    elif a.dtype.kind != "f":
        raise TypeError(f"[{op}] places must be whole numbers; got an array of {a.dtype}")
    return a.astype(np.intp)


def inputTensorTranspose(flat_list, dim, batch_size=1, device=""):
    """A tensor of shape dim from its flat, column-major numbers, one batch element after another.

    ValueError unless there are as many numbers as the shape and the batch size ask for.
    """
    cdef Dim d
    _dim_from(dim, batch_size, &d, "inputTensorTranspose")
    a = np.ascontiguousarray(_numbers(flat_list, "inputTensorTranspose")).ravel()
    if <size_t> a.size != d.size():
        raise ValueError(f"[inputTensorTranspose] {d.size()} numbers are needed for {d.text().decode()}; got {a.size}")
    return _input(_current(), d, a)
