# Lookup tables: parameters of which expressions read rows. A part of params.pxi.

cdef object _no_row(str where, object ids, str name, n):
    """The error of row numbers some of which a table of n rows does not have."""
    return _errors.OutOfRangeError(f"[{where}] row {ids[(ids < 0) | (ids >= n)][0]} of {name}, a table with {n} rows")


cdef object _row_array(str where, object ids):
    """Row numbers that a user gave as an array of ints, one dimension; floats that are whole count as ints."""
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"[{where}] a list of row numbers is needed; got {_shown(ids)}")
    if not isinstance(ids, (list, tuple, np.ndarray)):
        ids = _row_list(where, ids)
    try:
        a = np.asarray(ids)
    except ValueError:   # lists of different lengths
        raise ValueError(f"[{where}] a list of row numbers is needed; got a list of lists") from None
    if a.dtype.kind in "iu":
        return a
    if a.dtype.kind == "f" and (a == np.floor(a)).all() and np.isfinite(a).all():
        return a.astype(np.int64)  # numbers read from an array of floats
    if a.dtype.kind == "b" and a.ndim == 1 and _settings.is_dynet:
        return a.astype(np.int64)   # elsewhere one may take it for a mask
    if a.ndim != 1 or a.dtype.kind == "b":
        raise ValueError(f"[{where}] a list of row numbers is needed; got an array of {a.dtype} with shape {a.shape}")
    cdef list numbers = [_as_int(one, f"[{where}] a row number") for one in ids]
    for one in numbers:
        if not -0x80000000 <= one <= 0x7fffffff:
            raise _errors.OutOfRangeError(f"[{where}] row {one} of a table")
    return np.array(numbers, dtype=np.int64)


cdef list _row_list(str where, object ids):
    """The items of an iterable. Errors of the user's own code stay as they are."""
    kind = type(ids)
    if isinstance(ids, (str, bytes, np.generic)) or not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
        raise TypeError(f"[{where}] a list of row numbers is needed; got {_shown(ids)}")
    return list(ids)


cdef class LookupParameters(Weight):
    """A table of rows, such as word vectors, from ParameterCollection.add_lookup_parameters().

    ``table[i]`` is row i, {d1, ...}, as an expression; a negative i counts from the end. Only rows that were used get a
    gradient. Arrays that come from its methods, or are given to them, have the row number as their first axis: (V, d1,
    ...). Used as an expression itself, the whole table has the dims {d1, ..., V}. IndexError if a row is out of range.
    """
    cdef shared_ptr[LookupTable] t
    cdef GraphLink rows_last   # the graph that it entered last for lookups, beside Weight's as a whole
    cdef NodeId rows_id, rows_last_id
    cdef uint32_t rows_stamp, rows_last_stamp

    def __cinit__(self):
        if not _making_weight:
            raise _made_by_class(self)

    @staticmethod
    def make(shape, name):
        """A table of zeros of shape (V, d1, ...). Users call ParameterCollection.add_lookup_parameters()."""
        cdef LookupParameters self = _new_weight(LookupParameters)
        cdef Dim d
        shape = tuple(shape)
        if len(shape) < 2:
            raise ValueError(f"[add_lookup_parameters] a table needs a number of rows and a row shape; got {shape}")
        if not 0 <= shape[0] < 0x7fffffff:
            raise ValueError(f"[add_lookup_parameters] a table may have 0 to {0x7ffffffe} rows; got {shape[0]}")
        _dim_from(shape[1:], 1, &d, "add_lookup_parameters", least=0)
        self.t = make_shared[LookupTable](d, <uint32_t> shape[0])
        self._name = name
        _named[<size_t> self.t.get()] = self
        return self

    cdef NodeId use(self) except? 0xffffffff:
        return self.enter(_current())

    cdef ComputationGraph home(self):
        return _current()

    cdef NodeId enter(self, ComputationGraph g) except? 0xffffffff:
        if g.c.valid(self.id, self.stamp):
            return self.id
        if deref(self.t).size() == 0:
            raise ValueError(f"[lookup] {self._name} is empty: its shape is {self.shape}")
        if g.trace is not None:
            if not g.trace.knows(self, False):
                g.trace.entered(self, False, g.c.add_table(self.t, False))
            return g.trace.node_of(self, False)
        deref(self.t).read_in_place = True
        if not self.find(g):
            self.becomes(g, g.c.add_table(self.t, False))
        return self.id

    cdef NodeId search(self, ComputationGraph g):
        return g.c.find_table(deref(self.t), False)

    cdef NodeId rows_node(self, ComputationGraph g) except? 0xffffffff:
        """The table as lookups use it: rows are brought up to date one by one."""
        if not g.c.valid(self.rows_id, self.rows_stamp):
            if deref(self.t).size() == 0:
                raise ValueError(f"[lookup] {self._name} is empty: its shape is {self.shape}")
            if g.trace is not None:
                if not g.trace.knows(self, True):
                    g.trace.entered(self, True, g.c.add_table(self.t, True))
                return g.trace.node_of(self, True)
            self.rows_id = NO_NODE
            if self.rows_last is not None and (self.rows_last is not g.link or self.rows_stamp != self.rows_last_stamp):
                self.rows_id = g.c.find_table(deref(self.t), True)   # it may have been in other graphs since
            if self.rows_id == NO_NODE:
                self.rows_id = g.c.add_table(self.t, True)
            self.rows_stamp = g.c.stamp(self.rows_id)
            if not g.passing:
                self.rows_last, self.rows_last_id, self.rows_last_stamp = g.link, self.rows_id, self.rows_stamp
        return self.rows_id

    cdef Expression look(self, ComputationGraph g, object index, bint update):
        cdef uint32_t row
        cdef int overflow = 0
        if g.trace is not None:
            return _look_traced(self, g, [index], False, update)
        cdef object number = index if type(index) is int else _as_int(index, "[lookup] a row number")
        cdef long long i = PyLong_AsLongLongAndOverflow(number, &overflow)
        if i < 0 and not overflow:
            i += deref(self.t).rows
        if overflow or not 0 <= i < deref(self.t).rows:
            raise _errors.OutOfRangeError(f"[lookup] row {index} of {self._name}, a table with {deref(self.t).rows} rows")
        row = <uint32_t> i
        cdef NodeId table = self.rows_node(g)
        return _lookup_expression(g, g.c.add_lookup(table, &row, 1, False, update))

    cdef Expression look_batch(self, ComputationGraph g, object ids, bint update):
        cdef NodeId table
        cdef uint32_t few[256]
        cdef size_t k, n
        if g.trace is not None:
            return _look_traced(self, g, _row_list("lookup_batch", ids), True, update)
        settle()   # where graphs keep weights, rows are copied here
        if type(ids) is list and 0 < len(<list> ids) <= 256:
            n = len(<list> ids)
            for k in range(n):  # ints in range, as most programs give them; everything else goes the long way
                one = (<list> ids)[k]
                if type(one) is not int or not 0 <= one < deref(self.t).rows:
                    break
                few[k] = one
            else:
                table = self.rows_node(g)
                return _lookup_expression(g, g.c.add_lookup(table, few, <uint32_t> n, True, update))
        a = _row_array("lookup_batch", ids)
        if a.ndim != 1 or a.size == 0:
            raise ValueError("[lookup_batch] a list of row numbers is needed; got an empty or another kind of list")
        if a.min() < 0 or a.max() >= deref(self.t).rows:
            raise _no_row("lookup_batch", a, self._name, deref(self.t).rows)
        cdef const uint32_t[::1] rows = np.ascontiguousarray(a, dtype=np.uint32)
        table = self.rows_node(g)
        return _lookup_expression(g, g.c.add_lookup(table, &rows[0], <uint32_t> rows.shape[0], True, update))

    def __getitem__(self, index):
        if _of_a_file(index):
            return index.row_of(self)
        return self.look(_current(), index, True)

    def batch(self, i):
        """Rows i[0], i[1], ... as one mini-batch: {d1, ...} X len(i). IndexError if one is out of range."""
        return self.look_batch(_current(), i, True)

    def rows(self, ids, update=True):
        """A list of expressions, rows ids[0], ids[1], ..., in one call. IndexError if one is out of range."""
        cdef ComputationGraph g = _current()
        cdef NodeId first
        cdef Py_ssize_t k, n
        cdef list out
        cdef bint updates = _truth(update, "[rows] update")
        if type(ids) is not list:
            ids = _row_list("lookup", ids)
        n = len(<list> ids)
        out = [None] * n
        if g.trace is not None or not self._plain_rows(g, <list> ids):
            for k in range(n):
                if k >= len(<list> ids):   # __index__ of one of them may run anything
                    raise RuntimeError("[lookup] a list changed while it was read")
                out[k] = self.look(g, (<list> ids)[k], updates)
            return out
        first = g.c.add_rows(self.rows_node(g), g.row.data(), <uint32_t> n, updates) if n else 0
        for k in range(n):
            put_item(out, k, _lookup_expression(g, <NodeId> (first + k)))
        return out

    cdef bint _plain_rows(self, ComputationGraph g, list ids):
        """Puts the row numbers into g.row. False, if one is no int or out of range."""
        cdef Py_ssize_t k, n = len(ids)
        cdef long long i
        cdef int overflow = 0
        g.row.resize(n)
        for k in range(n):
            one = ids[k]
            i = PyLong_AsLongLongAndOverflow(one, &overflow) if type(one) is int else -1
            if not 0 <= i < deref(self.t).rows:
                return False
            g.row[k] = <NodeId> i
        return True

    def __len__(self):
        return deref(self.t).rows

    def __iter__(self):
        raise TypeError("[lookup] a table is not iterated; index it: table[i]")

    @property
    def shape(self):
        """(V, d1, ...), V being the number of rows. ``shape()`` gives the same, as in DyNet."""
        if self._shape is None:
            self._shape = Shape((deref(self.t).rows,) + _shape_of(deref(self.t).row_dim))
        return self._shape

    cdef object _rows_now(self, const uint32_t* ids, size_t n):
        """Rows as they are now, float32 array (n, row size): these, or without ids the first n."""
        settle()
        cdef LookupTable* t = self.t.get()
        out = np.empty((n, t.row_size), dtype=np.float32)
        cdef float* to = _place(out)
        _begin_pass()   # as one: no fork meanwhile
        try:
            with nogil:
                t.copy_rows(ids, n, to)
        finally:
            _end_pass()
        return out

    cdef int _overwrite(self, uint32_t first, object rows) except -1:
        """Rows from `first` on: float32 array (n, row size)."""
        flat = np.ascontiguousarray(rows, dtype=np.float32).reshape(-1)
        return self._write_rows(first, rows.shape[0], _first(flat))

    cdef int _write_rows(self, uint32_t first, uint32_t n, const float* numbers) except -1:
        cdef LookupTable* t = self.t.get()
        settle()
        _begin_pass()
        try:
            with nogil:
                t.overwrite(first, n, numbers)
        finally:
            _end_pass()
        return self._changed()

    def _rows_array(self, rows):
        """(n, row size) numbers, each row stored column-major, as (n, d1, ...)."""
        shape = _shape_of(deref(self.t).row_dim)
        n = rows.shape[0]
        return rows.reshape((n,) + shape[::-1]).transpose((0,) + tuple(range(len(shape), 0, -1)))

    def _flat_rows(self, arr, n):
        """The reverse of _rows_array: checks the shape, gives (n, row size)."""
        shape = (n,) + _shape_of(deref(self.t).row_dim)
        a = _numbers(arr, "lookup")
        if a.shape != shape:
            raise ValueError(f"[lookup] {self._name}: shape {shape} is needed; got {a.shape}")
        return a.transpose((0,) + tuple(range(a.ndim - 1, 0, -1))).reshape(n, deref(self.t).row_size)

    def as_array(self):
        """A copy of the table, (V, d1, ...), as float64, like DyNet's."""
        return self._values().astype(np.float64)

    def _values(self):
        """A copy of the table in float32, as it is kept."""
        return self._rows_array(self._rows_now(NULL, deref(self.t).rows))

    def _unsettled(self):
        """(numbers as they are kept, float32 (V, d1, ...); weight decay, float64 (1 + V), None if there was none).

        For checkpoints. Decay: the sum of log(1 - decay) over all updates, then for each
        row what of it the row has had; e to the power of the difference is what its numbers still have to be multiplied by.
        """
        settle()
        cdef LookupTable* t = self.t.get()
        cdef Vec[double] decay
        values = np.empty((t.rows, t.row_size), dtype=np.float32)
        cdef float* to = <float*> _first(values.reshape(-1))
        _begin_pass()
        try:
            with nogil:
                t.copy_kept(to, decay)
        finally:
            _end_pass()
        values = self._rows_array(values)
        if decay.empty():
            return values, None
        sums = np.empty(decay.size(), dtype=np.float64)
        cdef double[::1] to_sums = sums
        memcpy(&to_sums[0], decay.data(), decay.size() * sizeof(double))
        return values, sums

    def _set_unsettled(self, values, decay):
        """The reverse of _unsettled()."""
        cdef LookupTable* t = self.t.get()
        cdef Py_ssize_t v = t.rows
        flat = np.ascontiguousarray(self._flat_rows(values, v), dtype=np.float32).reshape(-1)
        cdef const float* numbers = _first(flat)
        cdef const double* of_rows = NULL
        cdef const double[::1] sums = np.ascontiguousarray([0] if decay is None else decay, dtype=np.float64)
        if sums.shape[0] != (1 if decay is None else 1 + v):
            raise ValueError(f"[lookup] {self._name}: decay of {v} rows is needed")
        if decay is not None:
            of_rows = &sums[0]
        settle()
        _begin_pass()
        try:
            with nogil:
                t.overwrite_kept(numbers, of_rows)
        finally:
            _end_pass()
        self._changed()

    def _share(self):
        """Other processes train the table, too, and make the same updates: which rows one of them reads must not matter."""
        deref(self.t).shared = True

    def _row_ids(self, ids):
        a = _row_array("lookup", ids).astype(np.int64).reshape(-1)
        if a.size and (a.min() < 0 or a.max() >= len(self)):
            raise _no_row("lookup", a, self._name, len(self))
        return a

    cdef uint32_t _row_id(self, object row) except? 0xffffffff:
        """The number of one row, without NumPy: programs set and read a whole table of word vectors one by one."""
        cdef object i = row if type(row) is int else _as_int(row, "[lookup] a row number")
        if not 0 <= i < deref(self.t).rows:
            raise _errors.OutOfRangeError(f"[lookup] row {i} of {self._name}, a table with {deref(self.t).rows} rows")
        return <uint32_t> i

    def rows_as_array(self, rows):
        """A copy of rows rows[0], rows[1], ...: (n, d1, ...). IndexError if one is out of range."""
        cdef const uint32_t[::1] ids = self._row_ids(rows).astype(np.uint32)
        cdef const uint32_t* first = NULL
        if ids.shape[0]:
            first = &ids[0]
        return np.array(self._rows_array(self._rows_now(first, ids.shape[0])), dtype=np.float64)

    def row_as_array(self, row):
        """A copy of one row: (d1, ...). IndexError if it is out of range."""
        cdef uint32_t i = self._row_id(row)
        return _of_shape(self._rows_now(&i, 1).reshape(-1).astype(np.float64), deref(self.t).row_dim)

    def init_from_array(self, arr):
        """Replace the table, or the first rows if the array has fewer than the table.

        arr (V, d1, ...). ValueError if its rows have another shape, or numbers do not fit a float32. For graphs
        that have used the table, see Parameters.set_value().
        """
        arr = _numbers(arr, "init_from_array")
        rows = min(arr.shape[0], len(self)) if arr.ndim and arr.shape[0] else len(self)
        flat = self._flat_rows(arr, rows)
        self._overwrite(0, flat)

    def init_row(self, i, row):
        """Replace row i by an array (d1, ...). ValueError for another shape, IndexError if i is out of range.

        For graphs that have used the table, see Parameters.set_value().
        """
        cdef uint32_t id = self._row_id(i)
        cdef size_t k, n = deref(self.t).row_size
        cdef Vec[float] numbers
        if type(row) is list and <size_t> len(<list> row) == n and _plain_numbers(<list> row):
            numbers.resize(n)
            for k in range(n):
                numbers[k] = <float> <double> (<list> row)[k]
            self._write_rows(id, 1, numbers.data())
            return
        a = _numbers(row, "init_row")
        flat = a.ravel(order="F") if <size_t> a.size == n else self._flat_rows(a[None], 1)
        self._overwrite(id, flat.reshape(1, -1))

    cdef int _changed(self) except -1:
        _outdate(self.last, self.last_id, self.last_stamp)
        _outdate(self.rows_last, self.rows_last_id, self.rows_last_stamp)
        return 0

    def _row_grads(self):
        """Copies of the row ids, int64, and the gradients (n, row size) of the rows touched since the last update."""
        settle()
        cdef LookupTable* t = self.t.get()
        cdef Vec[uint32_t] ids
        cdef Vec[float] numbers
        _begin_pass()
        try:
            with nogil:
                t.copy_grad(ids, numbers)
        finally:
            _end_pass()
        rows, grad = np.empty(ids.size(), dtype=np.uint32), np.empty(numbers.size(), dtype=np.float32)
        cdef uint32_t[::1] to_rows = rows
        cdef float[::1] to_grad = grad
        if not ids.empty():
            memcpy(&to_rows[0], ids.data(), ids.size() * sizeof(uint32_t))
        if not numbers.empty():
            memcpy(&to_grad[0], numbers.data(), numbers.size() * sizeof(float))
        return rows.astype(np.int64), grad.reshape(ids.size(), t.row_size)

    def grad_as_array(self):
        """The accumulated gradient as a dense array (V, d1, ...), as float64."""
        return self._grads().astype(np.float64)

    def _grads(self):
        """The accumulated gradient in float32, as it is kept."""
        ids, grad = self._row_grads()
        full = np.zeros((len(self), deref(self.t).row_size), dtype=np.float32)
        full[ids] = grad
        return np.array(self._rows_array(full))

    def rows_grad_as_array(self, rows):
        """The accumulated gradients of rows rows[0], rows[1], ...: (n, d1, ...). IndexError if one is out of range."""
        cdef const uint32_t[::1] ids = self._row_ids(rows).astype(np.uint32)
        cdef size_t n = ids.shape[0]
        return np.array(self._rows_array(self._grads_of(&ids[0] if n else NULL, n)), dtype=np.float64)

    def row_grad_as_array(self, row):
        """The accumulated gradient of one row: (d1, ...). IndexError if it is out of range."""
        cdef uint32_t i = self._row_id(row)
        return _of_shape(self._grads_of(&i, 1).reshape(-1).astype(np.float64), deref(self.t).row_dim)

    cdef object _grads_of(self, const uint32_t* ids, size_t n):
        """The accumulated gradients of rows, float32 (n, row size)."""
        settle()
        cdef LookupTable* t = self.t.get()
        out = np.empty((n, t.row_size), dtype=np.float32)
        cdef float* to = _place(out)
        _begin_pass()   # as one: no fork meanwhile
        try:
            with nogil:
                t.copy_grad_rows(ids, n, to)
        finally:
            _end_pass()
        return out

    def set_rows_grad(self, ids, arr):
        """Replace the accumulated gradient: these rows get arr (n, d1, ...), all others none."""
        rows = self._row_ids(ids)
        if len(set(rows.tolist())) != len(rows):
            raise ValueError(f"[set_rows_grad] {self._name}: a row occurs twice")
        flat = np.ascontiguousarray(self._flat_rows(arr, len(rows)), dtype=np.float32).reshape(-1)
        cdef const float* numbers = _first(flat)
        cdef const uint32_t[::1] wanted = rows.astype(np.uint32)
        cdef const uint32_t* first = NULL
        cdef LookupTable* t = self.t.get()
        cdef size_t n = wanted.shape[0]
        if n:
            first = &wanted[0]
        settle()
        _begin_pass()
        try:
            with nogil:
                t.overwrite_grad(first, n, numbers)
        finally:
            _end_pass()

    def zero(self):
        """Set all numbers to 0."""
        self._overwrite(0, np.zeros((deref(self.t).rows, deref(self.t).row_size), dtype=np.float32))

    def scale(self, s):
        """Multiply all numbers by s. ValueError if s is not finite."""
        factor = np.float32(_finite(s, "[scale] the factor"))
        self._overwrite(0, self._rows_now(NULL, deref(self.t).rows) * factor)

    def scale_gradient(self, s):
        """Multiply the accumulated gradient by s. ValueError if s is not finite."""
        cdef float factor = <float> _finite(s, "[scale_gradient] the factor")
        cdef LookupTable* t = self.t.get()
        settle()
        _begin_pass()
        try:
            with nogil:
                t.scale_grad(factor)
        finally:
            _end_pass()

    def zero_gradient(self):
        """Forget the accumulated gradient."""
        settle()
        _take(deref(self.t).in_use)
        deref(self.t).clear_grad()
        deref(self.t).in_use.unlock()

    def is_updated(self):
        """False if the table is frozen."""
        return deref(self.t).updated

    def set_updated(self, b):
        """Freeze the table (False) or release it (True)."""
        global _n_frozen
        cdef bint updated = _truth(b, "[set_updated] b")
        if updated == deref(self.t).updated:
            return
        _n_frozen += 1
        settle()
        deref(self.t).updated = updated
        self.stamp = self.rows_stamp = 0xffffffff

    def __reduce__(self):
        return _restore_table, (self._name, self._values(), self.is_updated())

    def __deepcopy__(self, memo):
        copy = memo[id(self)] = _restore_table(self._name, self._values(), self.is_updated())
        return copy

    def __repr__(self):
        return f"<lookup parameter {self._name} {self.shape}>"


def _restore_table(name, values, updated):
    """A table out of a pickle; gradients are not kept."""
    p = LookupParameters.make(values.shape, name)
    p.init_from_array(values)
    p.set_updated(updated)
    return p


cdef class LookupExpression(Expression):
    """A row of a table, or a mini-batch of rows."""

    def set(self, index):
        """Look up another row (or, for a mini-batch, as many others) in the same node. A graph that has run with the old
        ones then runs again.

        IndexError if a row is out of range, ValueError if there are more or fewer than before.
        """
        cdef uint32_t one
        if type(index) is int and 0 <= index <= 0xffffffff:   # without NumPy
            one = <uint32_t> index
            self._look_up(&one, 1)
            return
        a = np.atleast_1d(_as_array(index, "set"))   # may run the user's code: before the node is asked for
        if a.dtype.kind == "f" and a.size and (a == np.floor(a)).all():
            a = a.astype(np.int64)
        if a.ndim != 1 or a.size == 0 or a.dtype.kind not in "iu":
            raise TypeError(f"[set] a row number or a list of them is needed; got {_shown(index)}")
        if a.min() < 0 or a.max() > 0xffffffff:
            raise _errors.OutOfRangeError(f"[set] row {a[(a < 0) | (a > 0xffffffff)][0]} is out of range")
        cdef const uint32_t[::1] rows = np.ascontiguousarray(a, dtype=np.uint32)
        self._look_up(&rows[0], <uint32_t> rows.shape[0])

    cdef int _look_up(self, const uint32_t* rows, uint32_t n) except -1:
        self.use()
        settle()
        self.graph._not_busy()   # before the rows are others
        cdef NodeId i = self.use()   # other threads were let in
        self.graph.c.set_lookup_ids(i, rows, n)
        self.graph.outdate_reading(i)
        return 0


cdef LookupExpression _empty_lookup = LookupExpression.__new__(LookupExpression)
recycle(LookupExpression)

cdef inline Expression _lookup_expression(ComputationGraph g, NodeId id):
    return _referring(_empty_lookup, g, id)


cdef LookupParameters _table(object p, str what):
    if isinstance(p, LookupParameters):
        return p
    raise TypeError(f"[{what}] a table is needed, from add_lookup_parameters(); got {_shown(p)}")


def lookup(p, index=0, update=True):
    """Row `index` of a table: {d1, ...}. With update=False this use gives the table no gradient. The same as
    ``p[index]``.
    """
    if _of_a_file(index):
        return index.row_of(p)
    return _table(p, "lookup").look(_current(), index, _truth(update, "[lookup] update"))


def lookup_batch(p, indices, update=True):
    """Rows `indices` of a table as one mini-batch: {d1, ...} X n. The same as ``p.batch(indices)``."""
    return _table(p, "lookup_batch").look_batch(_current(), indices, _truth(update, "[lookup_batch] update"))
