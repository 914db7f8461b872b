# Parameters: the numbers that are trained; lookup tables are in tables.pxi. Collections are Python (dynet_lite/params.py).

cdef uint64_t _n_frozen = 0   # how often weights were frozen or set free: they then enter graphs anew

cdef float[::1] _floats(float* p, size_t n):
    """A view of numbers that someone else owns."""
    cdef Py_ssize_t size = n
    return <float[:size]> p if size else np.zeros(0, dtype=np.float32)


cdef float* _place(object numbers) except? NULL:
    """Where the numbers of an array that was just made lie; a typed view costs more than a small copy."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(numbers, &buffer, PyBUF_WRITABLE)
    cdef float* place = <float*> buffer.buf
    PyBuffer_Release(&buffer)
    return place


cdef object _of_shape(object flat, const Dim& d):
    """Column-major numbers as an array."""
    return flat if d.nd == 1 else flat.reshape(_shape_of(d), order="F")


cdef object _copied(Store& numbers):
    """A copy, flat, of what lies wherever it lies."""
    # Not NumPy's copying, which may let other threads go on meanwhile, and these may write the numbers.
    out = np.empty(numbers.size(), dtype=np.float32)
    cdef float[::1] to = out
    if numbers.size():
        memcpy(&to[0], numbers.host(), numbers.size() * sizeof(float))
    return out


cdef object _copied_between_passes(GradientMutex* in_use, Store* numbers):
    """The same of a weight's numbers, or of its gradient, which a pass of another thread may be working with."""
    settle()
    out = np.empty(numbers.size(), dtype=np.float32)
    cdef float* to = _place(out)
    _begin_pass()   # as one: no fork meanwhile
    try:
        with nogil:
            copy_numbers(deref(in_use), deref(numbers), to)
    finally:
        _end_pass()
    return out


cdef int _take(GradientMutex& m) except -1:
    """Whoever has it may ask for the GIL (_backward_watched), so nobody waits for it with that. To be unlocked before
    the GIL goes."""
    while not m.try_lock():
        _time.sleep(0)
    return 0


cdef double _finite(object v, str where) except? -77:
    """A number that a float32 can hold."""
    number = _as_float(v, where)
    if not -3.4028234e38 <= number <= 3.4028234e38:
        raise ValueError(f"{where} must be a finite number; got {v}")
    return number


class Shape(tuple):
    """The shape of a parameter: a tuple that may also be called, because ``shape()`` is a method in DyNet."""

    __slots__ = ()

    def __call__(self):
        """The shape as an ordinary tuple."""
        return tuple(self)


cdef int _outdate(GraphLink link, NodeId id, uint32_t stamp) except -1:
    """If this node is there, its graph runs again at the next value, unless graphs keep the weights that they began with."""
    if keeps_weights():
        return 0
    cdef ComputationGraph g = link.get() if link is not None else None
    if g is not None and g.c.valid(id, stamp):
        g.outdate()
    return 0


cdef bint _was_read(GraphLink link, NodeId id, uint32_t stamp):
    """Is this node there, and has it run?"""
    cdef ComputationGraph g = link.get() if link is not None else None
    return g is not None and g.c.valid(id, stamp) and g.x.done(id)


cdef bint _making_weight = False   # by make(): others would have no numbers

cdef object _new_weight(object kind):
    global _making_weight
    _making_weight = True
    try:
        return kind.__new__(kind)
    finally:
        _making_weight = False


cdef class Weight(Expression):
    """What Parameters and LookupParameters share."""
    cdef str _name
    cdef object _shape   # once somebody has asked for it

    cdef GraphLink last        # the graph that it entered last,
    cdef NodeId last_id        # its node there,
    cdef uint32_t last_stamp   # and that node's stamp: a change of set_updated() leaves this one

    cdef NodeId search(self, ComputationGraph g):
        """The node that it is in g; NO_NODE: it is not there."""
        return NO_NODE

    cdef bint find(self, ComputationGraph g):
        """Is it in g? Since then it may have entered other graphs: those of other threads, of `with` blocks."""
        if g.c.valid(self.id, self.stamp):
            return True
        if self.last is None or (self.last is g.link and self.stamp == self.last_stamp):
            return False   # it has been in no other since
        cdef NodeId id = self.search(g)
        if id != NO_NODE:
            self.becomes(g, id)
        return id != NO_NODE

    cdef void becomes(self, ComputationGraph g, NodeId id):
        """From now on this is its node, which may have been made before a revert."""
        self.id, self.stamp = id, g.c.stamp(id)
        if not g.passing:
            self.last, self.last_id, self.last_stamp = g.link, id, self.stamp

    def name(self):
        """The full name in its collection, such as /encoder/_0."""
        return self._name

    def expr(self, update=False):
        """The weight, or the whole table {d1, ..., V}, in the current graph: a constant, or with update=True one that gets a
        gradient. As in DyNet.
        """
        return self if _truth(update, "[expr] update") else _op1(op_by_name(b"nobackprop"), self)

    def gradient(self):
        """The gradient of the last backward() of the current graph. grad_as_array() is the sum over all passes.

        Of a table it is (d1, ..., V). RuntimeError if the weight is not in that graph, or if its accumulated gradient has
        changed since, by an update or another backward().
        """
        if not self.find(_current()):
            raise RuntimeError(f"[gradient] {self._name} is not in the current graph; what is added up is grad_as_array()")
        return Expression.gradient(self)

    def save(self, fname, key="", append=False):
        """Write the numbers to a text file in DyNet's format, under the full name or ``key`` (which begins with '/').

        ValueError for a bad key, OSError if the file cannot be written.
        """
        from dynet_lite import io
        io.save_parameter(self, fname, key, append)

    def populate(self, fname, key=""):
        """Read the numbers from DyNet's text file: the entry named ``key``, or without a key that of this parameter's
        full name.

        FileNotFoundError if there is no such file, ValueError if it has no such entry or the entry has another shape.
        """
        from dynet_lite import io
        io.populate_parameter(self, fname, key)

    def write_to_textfile(self, fname, key="", append=False):
        """DyNet's other name for save()."""
        self.save(fname, key, append)

    def populate_from_textfile(self, fname, key=""):
        """DyNet's other name for populate()."""
        self.populate(fname, key)


cdef class Parameters(Weight):
    """A weight, from ParameterCollection.add_parameters(). It can be used as an expression in any graph.

    Arrays that come from its methods, or are given to them, have its shape (d1, d2, ...).
    """
    cdef shared_ptr[Parameter] p
    cdef uint32_t constant_stamp   # that of the graph in which expr() was last called

    def __cinit__(self):
        if not _making_weight:   # also a class of the user's, whose __init__ may not call ours
            raise _made_by_class(self)

    @staticmethod
    def make(shape, name):
        """A parameter of zeros. Users call ParameterCollection.add_parameters()."""
        cdef Parameters self = _new_weight(Parameters)
        cdef Dim d
        _dim_from(shape, 1, &d, "add_parameters", least=0)   # an empty weight or table may be made and saved, but not used
        self.p = make_shared[Parameter](d)
        self._name = name
        _named[<size_t> self.p.get()] = self
        return self

    cdef NodeId use(self) except? 0xffffffff:
        return self.enter(_current())

    cdef ComputationGraph home(self):
        return _current()

    cdef NodeId enter(self, ComputationGraph g) except? 0xffffffff:
        if g.c.valid(self.id, self.stamp):
            return self.id
        if deref(self.p).size() == 0:
            raise ValueError(f"[Parameters] {self._name} is empty: its shape is {self.shape}")
        if g.trace is not None:
            if not g.trace.knows(self, False):
                g.trace.entered(self, False, g.c.add_parameter(self.p))
            return g.trace.node_of(self, False)
        if not self.find(g):
            self.becomes(g, g.c.add_parameter(self.p))
        return self.id

    cdef NodeId search(self, ComputationGraph g):
        return g.c.find_parameter(deref(self.p))

    cpdef Parameters _anew(self):
        """What lists of weights hold: an object of its own if the graph keeps other numbers than those of now. DyNet makes
        one for each list, and so shows what is there after an update, although the graph has not been renewed.
        """
        cdef ComputationGraph g = _current()
        if not g.c.valid(self.id, self.stamp) or not g.c.is_behind(self.id):
            return self
        cdef Parameters other = _new_weight(Parameters)
        other.p = self.p
        other._name = self._name
        return other

    @property
    def shape(self):
        """The dims (d1, d2, ...). ``shape()`` gives the same, as in DyNet."""
        if self._shape is None:
            self._shape = Shape(_shape_of(deref(self.p).dim))
        return self._shape

    def __len__(self):
        return self.shape[0]

    def as_array(self):
        """A copy of the numbers, as float64, like DyNet's."""
        return _of_shape(self._flat().astype(np.float64), deref(self.p).dim)

    def _values(self):
        """A copy of the numbers in float32, as they are kept."""
        return _of_shape(self._flat(), deref(self.p).dim)

    cdef object _flat(self):
        cdef Parameter* p = self.p.get()
        return _copied_between_passes(&p.in_use, &p.value)

    def grad_as_array(self):
        """A copy of the accumulated gradient, as float64: what all backward passes since the last update have added up.
        """
        return self._grads().astype(np.float64)

    def _grads(self):
        """A copy of the accumulated gradient in float32, as it is kept."""
        cdef Parameter* p = self.p.get()
        return _of_shape(_copied_between_passes(&p.in_use, &p.grad), p.dim)

    def set_value(self, arr):
        """Replace all numbers. ValueError if the array has another shape, or numbers that do not fit a float32.

        The graph that used the weight last runs again at the next value(), with the new numbers and with new random
        ones. Other graphs keep the values they have; with ``dy.configure(keep_weights=True)``, as in DyNet, all do.
        """
        a = _numbers(arr, "set_value")
        if a.shape != self.shape and a.shape != self.shape + (1,):
            raise ValueError(f"[set_value] {self._name} has shape {self.shape}; got {a.shape}")
        self._overwrite(np.ascontiguousarray(a.ravel(order="F")))

    cdef int _overwrite(self, object flat) except -1:
        """All numbers, column-major in float32."""
        cdef const float* numbers = _first(flat)
        cdef Parameter* p = self.p.get()
        settle()   # not before: the user's code that gives numbers may put off a step
        cdef bint leave = keeps_weights() and _was_read(self.last, self.last_id, self.last_stamp)
        _begin_pass()   # as one: no fork meanwhile
        try:
            with nogil:
                p.overwrite(numbers, leave)
        finally:
            _end_pass()
        return self._changed()

    def load_array(self, arr):
        """DyNet 1's name for set_value(); warns once."""
        from dynet_lite.compat import old_names
        old_names.warn_once("load_array", "set_value(array)", stacklevel=2)
        self.set_value(arr)

    cdef int _changed(self) except -1:
        """Values changed from outside: expressions that use them are computed again, in the graph it entered last."""
        _outdate(self.last, self.last_id, self.last_stamp)
        return 0

    def zero(self):
        """Set all numbers to 0."""
        self._overwrite(np.zeros(deref(self.p).size(), dtype=np.float32))

    def scale(self, s):
        """Multiply all numbers by s. ValueError if s is not finite."""
        factor = np.float32(_finite(s, "[scale] the factor"))
        self._overwrite(self._flat() * factor)

    def clip_inplace(self, left, right):
        """Move all numbers into the range [left, right]. ValueError unless left <= right."""
        low, high = _as_float(left, "[clip_inplace] left"), _as_float(right, "[clip_inplace] right")
        if not low <= high:
            raise ValueError(f"[clip_inplace] two numbers with left <= right are needed; got {left}, {right}")
        cdef float least = <float> low, most = <float> high   # too large for a float32: infinity, which clips nothing
        self._overwrite(np.asarray(self._flat().clip(np.float32(least), np.float32(most)), dtype=np.float32))

    def scale_gradient(self, s):
        """Multiply the accumulated gradient by s. ValueError if s is not finite."""
        cdef float factor = <float> _finite(s, "[scale_gradient] the factor")
        cdef Parameter* p = self.p.get()
        settle()
        _begin_pass()
        try:
            with nogil:
                p.scale_grad(factor)
        finally:
            _end_pass()

    def zero_gradient(self):
        """Forget the accumulated gradient."""
        settle()
        _take(deref(self.p).in_use)
        deref(self.p).clear_grad()
        deref(self.p).in_use.unlock()

    def set_grad(self, arr):
        """Replace the accumulated gradient, for tests and updates by hand. ValueError if the array has another shape."""
        a = _numbers(arr, "set_grad")
        if a.shape != self.shape:
            raise ValueError(f"[set_grad] {self._name} has shape {self.shape}; got {a.shape}")
        flat = np.ascontiguousarray(a.ravel(order="F"))
        cdef const float* numbers = _first(flat)
        cdef Parameter* p = self.p.get()
        settle()   # as in set_value()
        _begin_pass()
        try:
            with nogil:
                p.overwrite_grad(numbers)
        finally:
            _end_pass()

    def is_updated(self):
        """False if the parameter is frozen."""
        return deref(self.p).updated

    def set_updated(self, b):
        """Freeze the parameter (False) or release it (True). Trainers leave a frozen one alone, and graphs made from
        now on compute no gradient for it.
        """
        global _n_frozen
        cdef bint updated = _truth(b, "[set_updated] b")
        if updated == deref(self.p).updated:
            return
        _n_frozen += 1
        settle()
        deref(self.p).updated = updated
        self.stamp = 0xffffffff   # entered again with the new setting

    def expr(self, update=False):
        """The parameter in the current graph: a constant, or with update=True one that gets a gradient. As in DyNet."""
        if _truth(update, "[expr] update"):
            return self
        cdef uint32_t stamp = _current().c.generation()
        cdef Parameters of = self if self.constant_stamp == stamp else self._anew()
        if of is self:
            self.constant_stamp = stamp   # from here on it stays what it is
        return _op1(op_by_name(b"nobackprop"), of)

    def __reduce__(self):
        return _restore_parameter, (self._name, self._values(), self.is_updated())

    def __deepcopy__(self, memo):
        copy = memo[id(self)] = _restore_parameter(self._name, self._values(), self.is_updated())
        return copy

    def __repr__(self):
        return f"<parameter {self._name} {deref(self.p).dim.text().decode()}>"

    def __iter__(self):
        for k in range(len(self)):
            yield self[k]

def _restore_parameter(name, values, updated):
    """A parameter out of a pickle; gradients are not kept."""
    p = Parameters.make(values.shape, name)
    p.set_value(values)
    p.set_updated(updated)
    return p


def keep_weights(bint on):
    """Whether a graph that goes on after an update keeps the weights it began with; for the whole process."""
    settle()
    keep_weights_(on)
