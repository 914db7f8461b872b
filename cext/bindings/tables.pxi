# Lookup tables: parameters of which expressions read rows. A part of params.pxi.

cdef class LookupParameters(Expression):
    """A table of rows, most often word vectors. ``p[i]`` is row i as an expression; gradients are sparse.

    Arrays have the row number as first axis: (V, d1, ...). As an expression of its own (``p`` in an op) the whole table
    has dims {d1, ..., V}.
    """
    cdef shared_ptr[LookupTable] t
    cdef str _name
    cdef GraphLink last, rows_last   # the graphs that it entered last, whole and for lookups
    cdef NodeId rows_id
    cdef uint32_t rows_stamp

    @staticmethod
    def make(shape, name):
        """A table of zeros, shape (V, d1, ...); used by ParameterCollection."""
        cdef LookupParameters self = LookupParameters.__new__(LookupParameters)
        cdef Dim d
        shape = tuple(shape)
        if len(shape) < 2:
            raise ValueError(f"[lookup] a table needs a number of rows and a row shape; got {shape}")
        if not 0 <= shape[0] < 0x7fffffff:
            raise ValueError(f"[lookup] a table may have 0 to {0x7ffffffe} rows; got {shape[0]}")
        _dim_from(shape[1:], 1, &d, least=0)
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
                g.trace.entered(self, False, g.c.add_table(self.t))
            return g.trace.node_of(self, False)
        # The whole table is read: every row must have had its weight decay.
        settle()
        deref(self.t).settle_all(deref(_backend()))
        deref(self.t).read_in_place = True
        self.id = g.c.add_table(self.t)
        self.last = g.link
        self.stamp = g.c.generation()
        return self.id

    cdef NodeId rows_node(self, ComputationGraph g) except? 0xffffffff:
        """The table as lookups use it: rows are brought up to date one by one."""
        if not g.c.valid(self.rows_id, self.rows_stamp):
            if deref(self.t).size() == 0:
                raise ValueError(f"[lookup] {self._name} is empty: its shape is {self.shape}")
            if g.trace is not None:
                if not g.trace.knows(self, True):
                    g.trace.entered(self, True, g.c.add_table(self.t))
                return g.trace.node_of(self, True)
            self.rows_id = g.c.add_table(self.t)
            self.rows_last = g.link
            self.rows_stamp = g.c.generation()
        return self.rows_id

    cdef Expression look(self, ComputationGraph g, object index, bint update):
        cdef NodeId table
        cdef uint32_t row
        if g.trace is not None:
            return _look_traced(self, g, [index], False, update)
        cdef object i = index if type(index) is int else _as_int(index, "[lookup] a row number")
        if i < 0:
            i += deref(self.t).rows
        if not 0 <= i < deref(self.t).rows:
            raise _errors.OutOfRangeError(f"[lookup] row {index} of {self._name}, a table with {deref(self.t).rows} rows")
        row = i
        table = self.rows_node(g)
        return _lookup_expression(g, g.c.add_lookup(table, &row, 1, False, update))

    cdef Expression look_batch(self, ComputationGraph g, object ids, bint update):
        cdef NodeId table
        cdef uint32_t few[256]
        cdef size_t k, n
        if g.trace is not None:
            return _look_traced(self, g, list(ids), True, update)
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
        a = np.asarray(ids if isinstance(ids, (list, tuple, np.ndarray)) else list(ids))
        if a.dtype.kind == "f" and a.size and (a == np.floor(a)).all():
            a = a.astype(np.int64)  # numbers read from an array of floats
        if a.ndim != 1 or a.size == 0 or a.dtype.kind not in "iu":
            raise ValueError("[lookup_batch] a list of row numbers is needed; got an empty or another kind of list")
        if a.min() < 0 or a.max() >= deref(self.t).rows:
            raise _errors.OutOfRangeError(f"[lookup_batch] rows {a.min()}..{a.max()} of {self._name}, a table with "
                                          f"{deref(self.t).rows} rows")
        cdef const uint32_t[::1] rows = np.ascontiguousarray(a, dtype=np.uint32)
        table = self.rows_node(g)
        return _lookup_expression(g, g.c.add_lookup(table, &rows[0], <uint32_t> rows.shape[0], True, update))

    def __getitem__(self, index):
        try:
            return self.look(_current(), index, True)
        except TypeError as error:
            return _row_of_a_file(self, index, error)

    def batch(self, i):
        """Rows i[0], i[1], ... as batch elements: {d...} X n."""
        return self.look_batch(_current(), i, True)

    def rows(self, ids, update=True):
        """A list of row expressions, one call for a whole sentence."""
        cdef ComputationGraph g = _current()
        return [self.look(g, i, update) for i in ids]

    def __len__(self):
        return deref(self.t).rows

    def __iter__(self):
        raise TypeError("[lookup] a table is not iterated; index it: table[i]")

    def name(self):
        """Full name in its collection."""
        return self._name

    @property
    def shape(self):
        """(V, d1, ...); ``shape()`` is the same, as in DyNet."""
        return Shape((deref(self.t).rows,) + _shape_of(deref(self.t).row_dim))

    cdef object _view(self, bint write=False):
        """All values, float32 array (V, row size), without a copy. The caller has settled the steps and the rows.

        To be read, or with `write` to be changed, before anything runs.
        """
        cdef Py_ssize_t v = deref(self.t).rows, n = deref(self.t).row_size
        if v == 0 or n == 0:
            return np.zeros((v, n), dtype=np.float32)
        cdef float* numbers = deref(self.t).value.host_to_write() if write else <float*> deref(self.t).value.host()
        cdef float[:, ::1] view = <float[:v, :n]> numbers
        return np.asarray(view)

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
        """A copy of the table, (V, d1, ...), in float64 as in DyNet."""
        return self._values().astype(np.float64)

    def _values(self):
        """A copy of the table in float32, as it is kept."""
        settle()
        deref(self.t).settle_all(host_backend())
        return np.array(self._rows_array(self._view()))

    def _unsettled(self):
        """(numbers as they are kept, float32 (V, d1, ...); weight decay, float64 (1 + V), None if there was none).

        For checkpoints: reading this way changes nothing. Decay: the sum of log(1 - decay) over all updates, then for each
        row what of it the row has had; e to the power of the difference is what its numbers still have to be multiplied by.
        """
        settle()
        values = np.array(self._rows_array(self._view()))
        if deref(self.t).decay_of_row.empty():
            return values, None
        cdef Py_ssize_t v = deref(self.t).rows
        cdef double[::1] of_row = <double[:v]> deref(self.t).decay_of_row.data()
        return values, np.concatenate([[deref(self.t).decay_now], np.asarray(of_row)])

    def _set_unsettled(self, values, decay):
        """The reverse of _unsettled()."""
        settle()
        flat = self._flat_rows(values, len(self))
        cdef Py_ssize_t v = deref(self.t).rows
        cdef const double[::1] sums = np.ascontiguousarray([0] if decay is None else decay, dtype=np.float64)
        if sums.shape[0] != (1 if decay is None else 1 + v):
            raise ValueError(f"[lookup] {self._name}: decay of {v} rows is needed")
        deref(self.t).keep_numbers()
        self._view(True)[:] = flat
        deref(self.t).decay_now = sums[0]
        deref(self.t).decay_of_row.clear()
        if decay is not None and v:
            memcpy(deref(self.t).decay_of_row.extend(v), &sums[1], v * sizeof(double))
        self._changed()

    def _row_ids(self, ids):
        a = np.asarray(ids if isinstance(ids, (list, tuple, np.ndarray)) else list(ids), dtype=np.int64).reshape(-1)
        if a.size and (a.min() < 0 or a.max() >= len(self)):
            raise _errors.OutOfRangeError(f"[lookup] rows {a.min()}..{a.max()} of {self._name}, a table with "
                                          f"{len(self)} rows")
        return a

    def rows_as_array(self, rows):
        """Rows rows[0], rows[1], ... as an array (n, d1, ...)."""
        a = self._row_ids(rows)
        settle()
        deref(self.t).settle_all(host_backend())
        return np.array(self._rows_array(self._view()[a]), dtype=np.float64)

    def row_as_array(self, row):
        """Row number `row` as an array (d1, ...)."""
        return self.rows_as_array([row])[0]

    def init_from_array(self, arr):
        """Overwrite the table; shape (V, d1, ...). With fewer rows than the table has, the first rows."""
        rows = min(np.shape(arr)[0], len(self)) if np.ndim(arr) and np.shape(arr)[0] else len(self)
        flat = self._flat_rows(arr, rows)
        settle()
        deref(self.t).settle_all(host_backend())
        deref(self.t).keep_numbers()
        self._view(True)[:rows] = flat
        self._changed()

    def init_row(self, i, row):
        """Overwrite row i."""
        i = int(self._row_ids([i])[0])
        a = _numbers(row, "init_row")
        if <size_t> a.size == deref(self.t).row_size:
            a = a.reshape(_shape_of(deref(self.t).row_dim), order="F")
        flat = self._flat_rows(a[None], 1)
        settle()
        deref(self.t).settle_all(host_backend())
        deref(self.t).keep_row(i)
        self._view(True)[i] = flat[0]
        self._changed()

    cdef int _changed(self) except -1:
        _outdate(self.last, self.id, self.stamp)
        _outdate(self.rows_last, self.rows_id, self.rows_stamp)
        return 0

    def _grad_view(self):
        """Row ids and gradients (n, row size) of the rows touched since the last update."""
        settle()
        cdef Py_ssize_t n = deref(self.t).touched.size()
        if n == 0:
            return np.zeros(0, dtype=np.int64), np.zeros((0, deref(self.t).row_size), dtype=np.float32)
        cdef uint32_t[::1] ids = <uint32_t[:n]> deref(self.t).touched.data()
        cdef Py_ssize_t width = deref(self.t).row_size
        cdef float[:, ::1] grad = <float[:n, :width]> deref(self.t).gradients(host_backend())
        return np.asarray(ids).astype(np.int64), np.asarray(grad)

    def grad_as_array(self):
        """The accumulated gradient as a dense array (V, d1, ...), in float64."""
        return self._grads().astype(np.float64)

    def _grads(self):
        """The accumulated gradient in float32, as it is kept."""
        ids, grad = self._grad_view()
        full = np.zeros((len(self), deref(self.t).row_size), dtype=np.float32)
        full[ids] = grad
        return np.array(self._rows_array(full))

    def rows_grad_as_array(self, rows):
        """The gradients of rows rows[0], rows[1], ..., (n, d1, ...)."""
        return self.grad_as_array()[self._row_ids(rows)]

    def row_grad_as_array(self, row):
        """The gradient of row number `row`."""
        return self.rows_grad_as_array([row])[0]

    def gradient(self):
        """The gradient of the last backward() of the current graph; grad_as_array() is what all passes have added up.

        RuntimeError when no pass of this graph could reach it, or once an update or another pass has changed what is
        added up.
        """
        if not _current().c.valid(self.id, self.stamp):
            raise RuntimeError(f"[gradient] {self._name} is not in the current graph; what is added up is grad_as_array()")
        return Expression.gradient(self)

    def set_rows_grad(self, ids, arr):
        """Overwrite the accumulated gradient by these rows (n, d1, ...) alone; all others are untouched."""
        rows = self._row_ids(ids)
        if len(set(rows.tolist())) != len(rows):
            raise ValueError(f"[set_rows_grad] {self._name}: a row occurs twice")
        flat = self._flat_rows(arr, len(rows))
        settle()
        deref(self.t).clear_grad()
        for i in rows:
            deref(self.t).slot(<uint32_t> i)
        if len(rows):
            self._grad_view()[1][:] = flat

    def zero(self):
        """Set all numbers to 0."""
        settle()
        deref(self.t).settle_all(host_backend())
        deref(self.t).keep_numbers()
        self._view(True)[:] = 0
        self._changed()

    def scale(self, s):
        """Multiply all numbers by s."""
        factor = np.float32(_finite(s, "[scale] the factor"))
        settle()
        deref(self.t).settle_all(host_backend())
        deref(self.t).keep_numbers()
        self._view(True)[:] *= factor
        self._changed()

    def scale_gradient(self, s):
        """Multiply the accumulated gradient by s."""
        factor = np.float32(_finite(s, "[scale_gradient] the factor"))
        ids, grad = self._grad_view()
        grad *= factor

    def zero_gradient(self):
        """Forget the accumulated gradient."""
        settle()
        deref(self.t).clear_grad()

    def is_updated(self):
        """False when frozen."""
        return deref(self.t).updated

    def set_updated(self, b):
        """False freezes the table."""
        global _n_frozen
        _n_frozen += 1
        settle()
        deref(self.t).updated = bool(b)
        self.stamp = self.rows_stamp = 0xffffffff

    def expr(self, update=False):
        """The whole table {d1, ..., V} as an expression; a constant unless update=True."""
        return self if update else _op1(op_by_name(b"nobackprop"), self)

    def save(self, fname, key="", append=False):
        """Write the values as text in DyNet's format, under this name or ``key`` ('/...')."""
        from dynet_lite import io
        io.save_parameter(self, fname, key, append)

    def populate(self, fname, key=""):
        """Fill in the values of the file's entry ``key`` (a full name; this one's by default)."""
        from dynet_lite import io
        io.populate_parameter(self, fname, key)

    def write_to_textfile(self, fname, key="", append=False):
        """DyNet's other name of save()."""
        self.save(fname, key, append)

    def populate_from_textfile(self, fname, key=""):
        """DyNet's other name of populate()."""
        self.populate(fname, key)

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
    """A row (or a batch of rows) of a table; set() looks up other rows in the same node."""

    def set(self, index):
        cdef NodeId i = self.use()
        a = np.atleast_1d(np.asarray(index))
        if a.dtype.kind == "f" and a.size and (a == np.floor(a)).all():
            a = a.astype(np.int64)
        if a.ndim != 1 or a.size == 0 or a.dtype.kind not in "iu":
            raise TypeError(f"[set] a row number or a list of them is needed; got {_shown(index)}")
        if a.min() < 0 or a.max() > 0xffffffff:
            raise _errors.OutOfRangeError(f"[set] rows {a.min()}..{a.max()} are out of range")
        cdef const uint32_t[::1] rows = np.ascontiguousarray(a, dtype=np.uint32)
        settle()
        self.graph.c.set_lookup_ids(i, &rows[0], <uint32_t> rows.shape[0])
        self.graph.outdate()


cdef LookupExpression _empty_lookup = LookupExpression.__new__(LookupExpression)
recycle(LookupExpression)

cdef inline Expression _lookup_expression(ComputationGraph g, NodeId id):
    return _referring(_empty_lookup, g, id)


def lookup(LookupParameters p not None, index=0, update=True):
    """Row `index` of a table: {d...}. update=False: this use gives the table no gradient."""
    try:
        return p.look(_current(), index, update)
    except TypeError as error:
        return _row_of_a_file(p, index, error)


def lookup_batch(LookupParameters p not None, indices, update=True):
    """Rows `indices` of a table as batch elements: {d...} X n."""
    return p.look_batch(_current(), indices, update)
