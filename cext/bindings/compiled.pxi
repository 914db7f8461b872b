# Compiled functions: graphs that are kept with their plans, one for each structure of the arguments, and run again over new
# data. What is structure and what is data is told by the frame of a call, as for cells (templates.pxi).

cdef object _floating_type = np.floating
cdef uint64_t _compiled_calls = 0      # of compiled functions, in this process,
cdef uint64_t _compiled_recorded = 0   # structures that were recorded for them,
cdef uint64_t _compiled_dropped = 0    # and of these dropped again
cdef dict _all_settings = {}           # equal settings are one tuple
cdef tuple _settings_seen = None       # those in force
cdef uint64_t _settings_seen_at = 0    # when settings had been changed so often
cdef bint _settings_seen_keep = False


cdef tuple _settings_now():
    """What graphs are made under: a recording is good for these settings alone. Equal ones are one object."""
    global _settings_seen, _settings_seen_at, _settings_seen_keep
    if _settings_seen is None or _settings_seen_at != _settings_changed or _settings_seen_keep != keeps_weights():
        _settings_seen_at, _settings_seen_keep = _settings_changed, keeps_weights()
        new = tuple([getattr(_settings, name) for name, _, _ in SETTINGS if name not in ("cells", "compile")])
        new += (_settings.is_dynet, bool(_settings_seen_keep))
        _settings_seen = _all_settings.setdefault(new, new)
    return _settings_seen


def compiled_stats():
    """Calls of compiled functions, structures recorded, and of these dropped again, since the process began."""
    return {"compiled_calls": _compiled_calls, "compiled_recorded": _compiled_recorded,
            "compiled_dropped": _compiled_dropped}


cdef object _takes_no_expressions():
    return TypeError("[compile] a compiled function takes numbers: arrays, integers, lists of these. Expressions belong to "
                     "one graph; make them inside of it")


# ---- arrays ----------------------------------------------------------------------------------------------------------

cdef int _push_data(Frame f, object v, object plain) except -1:
    """An argument that only compiled functions take: an array, or a weight. Expressions have no data to give."""
    if isinstance(v, (Parameters, LookupParameters)):
        return f.push_object(v)
    if isinstance(v, Expression):
        raise _takes_no_expressions()
    if isinstance(v, _array_type) and v.dtype.kind in "iu" and v.ndim:
        return f.push_integers(v, plain, "compile")
    if not _push_floats_of(f, v):
        _push_any_array(f, v)
    return 0

cdef bint _push_floats_of(Frame f, object v) except -1:
    """The commonest arrays, vectors of floats and doubles, without NumPy. False: it is another one."""
    cdef Py_buffer b
    cdef Py_ssize_t k, n
    cdef float* to
    cdef uint32_t* shape
    try:
        PyObject_GetBuffer(v, &b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    except (ValueError, BufferError):   # columns first, or with gaps
        return False
    cdef bint single = b.format != NULL and b.format[0] == c"f" and b.format[1] == 0
    cdef bint double_ = b.format != NULL and b.format[0] == c"d" and b.format[1] == 0
    cdef bint taken = b.ndim == 1 and b.shape[0] > 0 and (single or double_) and not (
        double_ and not fit_floats(<const double*> b.buf, b.shape[0]))
    if taken:
        n = b.shape[0]
        shape = f.shape.extend(2)
        shape[0] = PART_ARRAY | 1 << 8
        shape[1] = <uint32_t> n
        to = f.numbers.extend(n)
        if single:
            memcpy(to, b.buf, n * sizeof(float))
        else:
            for k in range(n):
                to[k] = <float> (<double*> b.buf)[k]
    PyBuffer_Release(&b)
    return taken

cdef int _push_any_array(Frame f, object v) except -1:
    cdef Dim d
    cdef uint32_t k
    flat = _dims_and_numbers(v, &d)
    cdef const float[::1] view = flat
    cdef uint32_t* shape = f.shape.extend(1 + d.nd)
    shape[0] = PART_ARRAY | d.nd << 8
    for k in range(d.nd):
        shape[1 + k] = d.d[k]
    memcpy(f.numbers.extend(d.size()), &view[0], d.size() * sizeof(float))
    return 0

cdef object _dims_and_numbers(object v, Dim* d):
    """Numbers of an array in the engine's order."""
    _see_unmasked(v, "compile")
    a = np.atleast_1d(np.asarray(v))
    if a.dtype.kind not in "fiub":
        raise TypeError(f"[compile] an array of numbers is needed; got one of {a.dtype}")
    if a.size == 0:
        raise ValueError("[compile] an array is empty")
    _dim_from(a.shape, 1, d, "compile")
    return np.ascontiguousarray(_singles(a.ravel(order="F"), "compile"))

cdef Expression _input_of(ComputationGraph g, object v):
    """An array, or a number of NumPy's, as an input."""
    cdef Dim d
    flat = _dims_and_numbers(v, &d)
    return _input(g, d, flat)

cdef Expression _reshaped(Expression e, object shape, object batch):
    return reshape(e, shape, batch)


# ---- one structure ---------------------------------------------------------------------------------------------------

@cython.final
cdef class _Program:
    """A graph that is kept for one structure."""
    cdef Template template
    cdef ComputationGraph graph
    cdef Feed feed
    cdef Vec[NodeId] inputs       # of the arrays, in their order
    cdef list outputs             # expressions of them; they keep their values
    cdef tuple settings
    cdef uint64_t frozen          # when weights had been frozen so often
    cdef tuple updated            # (reference to a weight, is it updated?)
    cdef uint64_t used            # by this call last
    cdef bint ran
    cdef bint failed              # half-way: it is not run again

    cdef bint good(self) except -1:
        """Is it what would be recorded now, under these settings and with these weights?"""
        if self.failed or self.settings is not _settings_now():
            return False
        if self.frozen != _n_frozen:
            for ref, updated in self.updated:
                weight = ref()
                if weight is None or weight.is_updated() != updated:
                    return False
            self.frozen = _n_frozen
        return True

    cdef int give(self, Frame f) except -1:
        """The data of a call."""
        cdef ComputationGraph g = self.graph
        cdef const float* numbers = f.numbers.data()
        cdef size_t k, n
        for k in range(self.inputs.size()):
            n = g.c.dim(self.inputs[k]).size()
            memcpy(g.c.input_data(self.inputs[k]), numbers, n * sizeof(float))
            numbers += n
        g.c.seed_state = _next_seed()   # before anything can fail: the function itself would have renewed the graph
        self.feed.give(deref(g.c), f.ints.data())
        g.x.invalidate()
        return 0

    cdef int forward(self) except -1:
        cdef ComputationGraph g = self.graph
        cdef Expression e
        _begin_pass()
        self.failed = True
        try:
            if _holds_gil():
                g.x.forward(False)
            else:
                with nogil:
                    g.x.forward(False)
            self.failed = False
        finally:
            _end_pass()
        if not self.ran:
            self.ran = True
            self.feed.rewritten(deref(g.c))
            for e in self.outputs:
                g.c.keep(e.id)
        return 0

    cdef int backward(self) except -1:
        global _n_backwards
        cdef ComputationGraph g = self.graph
        _n_backwards += 1
        cdef NodeId loss = (<Expression> self.outputs[0]).id
        _begin_pass()
        try:
            if _holds_gil():
                g.x.backward(loss, False, _is_alone())
            else:
                with nogil:
                    g.x.backward(loss, False)
        finally:
            _end_pass()
        return 0

    cdef object value(self, object part):
        """A part of the result: numbers where the function gave expressions."""
        if type(part) is int:
            return _value_of(<Expression> (<list> self.outputs)[<Py_ssize_t> part])
        if type(part) is _Constant:
            return (<_Constant> part).value
        return _made_like(part, [self.value(one) for one in _parts_of(part)])


cdef object _value_of(Expression e):
    """What a compiled function gives for an expression: a float, or an array of float32."""
    cdef ComputationGraph g = e.home()
    cdef NodeId i = e.use()
    cdef float v
    if g.c.dim(i).size() == 1 and g.c.dim(i).nd <= 1:
        g.x.read_value(i, &v)
        return <double> v
    return e._copy_out(g, i, np.float32)


cdef _Program _program(Compiled c, tuple args, dict kwargs):
    """Records the structure of these arguments."""
    global _n_graphs, _compiled_recorded
    cdef _Recorder r = _recorded_twice(c, None, args, kwargs)
    cdef _Program p = _Program.__new__(_Program)
    cdef ComputationGraph g = r.scratch
    cdef Template t = r.template
    cdef NodeId k
    cdef size_t o
    if c.trains and t.out.empty():
        raise _errors.CompileError(f"[compile {c.__name__}] gives no expression to be the loss")
    for k in range(r.n_arrays):
        p.inputs.push_back(k)
    batched = {node: b for node, b, _ in r.trace.lookups}
    for node, at, number in r.trace.fills:
        p.feed.note(deref(g.c), node, at, number, not batched.get(node, True))
    p.outputs = [_expression(g, t.out[o]) for o in range(t.out.size())]
    p.updated = tuple([(weakref.ref(w, c.drop_all), w.is_updated()) for w, _, _ in r.trace.outside])
    p.frozen, p.settings = _n_frozen, _settings_now()
    g.trace = None
    p.graph, p.template = g, t
    c.memory = g.memory
    _n_graphs -= 1   # nothing is pending in it between calls, so that steps of others may overlap
    g.counted = False
    _compiled_recorded += 1
    return p


# ---- functions -------------------------------------------------------------------------------------------------------

cdef class Compiled(Cell):
    """A function over data that is recorded once per structure. Made by ``dy.compile``, which tells all about it."""
    cdef object trainer
    cdef bint trains
    cdef Py_ssize_t most
    cdef CallLock lock
    cdef uint64_t forks             # when the lock was made
    cdef object drop_all            # called when a weight goes
    cdef _Program last
    cdef bint running
    cdef uint64_t n_dropped

    def __init__(self, function, names, indices, read_by, trainer, bint trains, Py_ssize_t most):
        Cell.__init__(self, function, names, indices, read_by)
        self.trainer, self.trains, self.most = trainer, trains, most
        self.make_lock()
        me = weakref.ref(self)

        def drop_all(_):
            this = me()
            if this is not None:
                this.forget_structures()
        self.drop_all = drop_all

    cdef int make_lock(self) except -1:
        self.lock, self.forks = CallLock(), _n_forks
        return 0

    def forget_structures(self):
        """Drop all that is recorded, and its memory."""
        self.forget()

    cdef int forget(self) except -1:
        global _compiled_dropped
        if self.templates:
            _compiled_dropped += len(self.templates)
        self.last = self.memory = None
        return Cell.forget(self)

    def __call__(self, *args, **kwargs):
        cdef ComputationGraph g
        cdef PyObject* now = current_graph()
        if now != NULL and (<ComputationGraph> now).trace is not None:
            raise (<ComputationGraph> now).trace.no_numbers_of(self.__name__)
        if self.forks != _n_forks:   # a thread that there is no more may have been in here
            self.make_lock()
            self.running = False
            self.forget()
        cdef CallLock lock = self.lock   # this one: in a process that is forked meanwhile there is another
        lock.acquire()
        try:   # a `with` would leave a frame of its own in traces
            settle()
            if not _settings.compile or _settings.cells == "inline":
                return self._run_inline(args, kwargs)
            return self._run(args, kwargs)
        finally:
            lock.release()

    cdef object _run(self, tuple args, dict kwargs):
        global _n_calls, _compiled_calls
        cdef _Program p = None
        _n_calls += 1
        _compiled_calls += 1
        cdef Frame f = self.take_frame()
        try:
            p = self._program(f, args, kwargs)
        finally:
            if p is None:
                _next_seed()   # as in give(): random numbers go on alike, whatever has failed
        if self.running or p.graph.busy:   # the graphs of all structures share their memory
            raise RuntimeError(f"[compile {self.__name__}] is called while it runs")
        p.used = _compiled_calls
        self.running = p.graph.busy = True
        try:
            p.give(f)
            p.forward()
            if self.trains:
                p.backward()
            result = p.value(p.template.result)
        finally:
            self.running = p.graph.busy = False
            p.graph.x.invalidate()   # its values need no old weights
            self.spare = f
        if self.trainer is not None:
            self.trainer.update()
        return result

    cdef _Program _program(self, Frame f, tuple args, dict kwargs):
        """The recording for these arguments, whose data are in the frame then."""
        cdef _Program p
        self.fill(None, f, args, kwargs)
        self.check_read()
        p = self.last
        if p is not None and p.template.fits(f) and p.good():
            return self._checked(p, args, kwargs)
        p = self.templates.get(self._key(f))
        if p is not None:
            p.graph.x.fetch()
        if p is not None and p.template.fits(f) and p.good():
            self.last = p
            return self._checked(p, args, kwargs)
        p = _program(self, args, kwargs)
        self.fill(None, f, args, kwargs)   # integers may be taken in another way now
        if not p.template.is_of(f):
            raise self.changes()
        self._note(p, f)
        return p

    cdef _Program _checked(self, _Program p, tuple args, dict kwargs):
        if _settings.cells == "check" and not _alike_templates(p.template, _record(self, None, args, kwargs)):
            raise _errors.CompileError(
                f"[compile {self.__name__}] makes other nodes now than when it was recorded for this structure: it reads "
                "what has changed since. Give that as an argument")
        return p

    cdef uint64_t _key(self, Frame f) except? 0:
        cdef tuple settings = _settings_now()
        return mix(self.key(f), <uint64_t> <PyObject*> settings)

    cdef int _note(self, _Program p, Frame f) except -1:
        global _compiled_dropped
        self._make_room()
        p.template.note(f, self)
        cdef object key = self._key(f)
        if key in self.templates:
            _compiled_dropped += 1
        self.templates[key] = self.last = p
        return 0

    cdef int _make_room(self) except -1:
        """What has not been called for longest goes."""
        global _compiled_dropped
        cdef _Program p
        while len(self.templates) >= self.most:
            oldest, least = None, 0
            for key, p in self.templates.items():
                if oldest is None or p.used < least:
                    oldest, least = key, p.used
            del self.templates[oldest]
            _compiled_dropped += 1
            self.n_dropped += 1
        if self.n_dropped > <uint64_t> (4 * self.most) and not self.warned:
            self.warned = True
            import warnings
            warnings.warn(
                f"[compile {self.__name__}] has been recorded for more than {4 * self.most} structures, and keeps "
                f"{self.most}: recording takes longer than a call that is not compiled. "
                "Numbers that only are data had better be arrays",
                stacklevel=_level_of_user())
        return 0

    cdef object _run_inline(self, tuple args, dict kwargs):
        """The function itself, in a graph of its own."""
        cdef ComputationGraph g = ComputationGraph().renew()
        g.passing = True
        with g:
            given = [_with_inputs(g, v, []) for v in args]
            named = {k: _with_inputs(g, v, []) for k, v in kwargs.items()}
            g.given, g.given_to = g.c.size(), self.__name__
            result = self.function(*given, **named)
            first = _first_expression(result)
            if self.trains:
                if first is None:
                    raise _errors.CompileError(f"[compile {self.__name__}] gives no expression to be the loss")
                first.backward()
            numbers = _numbers_of(result)
        if self.trainer is not None:
            self.trainer.update()
        return numbers

    def structures(self):
        """How many structures are kept."""
        return len(self.templates)

    def run_again(self):
        """The graph that was run last, after another run with the same data; None before any call."""
        cdef _Program p
        cdef CallLock lock = self.lock
        lock.acquire()
        try:
            p = self.last
            if p is None or p.failed or self.running or p.graph.busy:
                return None
            settle()
            p.forward()
            return p.graph
        finally:
            lock.release()

    def __get__(self, owner, kind):
        """A method: it is compiled for each object."""
        if owner is None:
            return self
        found = self.of_objects.get(id(owner))
        if found is None or found[0]() is not owner:
            ref = self._ref_of(owner, "compile")
            own = Compiled(_MethodOf(self.function, ref), self.names[1:], _one_less(self.indices), self.read_by,
                           self.trainer, self.trains, self.most)
            found = self.of_objects[id(owner)] = ref, own
        return _BoundCompiled(found[1], owner)

    def __repr__(self):
        return f"<compiled {self.__name__}, {len(self.templates)} structures>"


@cython.final
cdef class _BoundCompiled:
    """A compiled function of an object: ``model.step``."""
    cdef readonly Compiled function
    cdef object owner   # keeps it

    def __cinit__(self, Compiled function, owner):
        self.function, self.owner = function, owner

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def structures(self):
        """How many structures are kept for this object."""
        return self.function.structures()

    def forget_structures(self):
        """Drop all that is recorded for this object, and its memory."""
        self.function.forget_structures()

    @property
    def __name__(self):
        return self.function.__name__

    def __repr__(self):
        return f"<compiled {self.function.__name__} of {self.owner!r}>"


cdef object _with_inputs(ComputationGraph g, object v, list within):
    """Arguments as the function sees them: arrays of floats are inputs. within: as in Frame."""
    if isinstance(v, (_array_type, _floating_type)):
        return v.copy() if isinstance(v, _array_type) and v.dtype.kind in "iu" and v.ndim else _input_of(g, v)
    if _has_parts(v) and not (_is_of_dataclass(v) and _is_among(within, v)):
        enter_nested(b" in arguments that are nested too deep")
        within.append(v)
        try:
            return _made_like(v, [_with_inputs(g, one, within) for one in _parts_of(v)])
        finally:
            within.pop()
            leave_nested()
    if isinstance(v, Expression) and not isinstance(v, (Parameters, LookupParameters)):
        raise _takes_no_expressions()
    return v

cdef Expression _first_expression(object result):
    if isinstance(result, Expression):
        return result
    if _has_parts(result):
        enter_nested(b" in results that are nested too deep")
        try:
            for one in _parts_of(result):
                found = _first_expression(one)
                if found is not None:
                    return found
        finally:
            leave_nested()
    return None

cdef object _numbers_of(object result):
    if isinstance(result, Expression):
        (<Expression> result).forward()
        return _value_of(result)
    if _has_parts(result):
        enter_nested(b" in results that are nested too deep")
        try:
            return _made_like(result, [_numbers_of(one) for one in _parts_of(result)])
        finally:
            leave_nested()
    return result
