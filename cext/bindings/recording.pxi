# Recording the function of a cell, or of a compiled function, and cells: a call finds what is recorded (templates.pxi)
# and adds it to the graph.

cdef Expression _look_traced(LookupParameters table, ComputationGraph g, list ids, bint batched, bint update):
    """A look-up in a cell that is recorded: its rows may be the cell's arguments."""
    cdef Vec[uint32_t] rows
    cdef Py_ssize_t k
    for one in ids:
        if type(one) is IndexStandIn:
            rows.push_back(0)
            continue
        row = _as_int(one, "[lookup] a row number")
        row += deref(table.t).rows if row < 0 and not batched else 0
        if not 0 <= row < deref(table.t).rows:
            raise _errors.OutOfRangeError(f"[lookup] row {one} of {table._name}, a table with {deref(table.t).rows} rows")
        rows.push_back(row)
    if rows.empty():
        raise ValueError("[lookup_batch] a list of row numbers is needed; got an empty one")
    cdef NodeId id = g.c.add_lookup(table.rows_node(g), rows.data(), <uint32_t> rows.size(), batched, update)
    g.trace.looked_up(id, batched, update)
    for k in range(len(ids)):
        if type(ids[k]) is IndexStandIn:
            (<IndexStandIn> ids[k]).is_row(id, k)
    return _lookup_expression(g, id)


@cython.final
cdef class _Recorder:
    """Runs the function of a cell once, over stand-ins for the arguments of a call."""
    cdef ComputationGraph graph, scratch   # no graph: a compiled function
    cdef Trace trace
    cdef uint32_t n_ints, n_arrays
    cdef bint takes_weights   # as arguments
    cdef bint whole           # integers are given as they are, but for those that are declared to be dy.Index
    cdef Cell cell
    cdef Template template
    cdef list within          # as in Frame

    def __cinit__(self):
        self.within = []

    cdef object plain(self, object where):
        return True if self.whole and where not in self.cell.indices else self.cell.plain.get(where)

    cdef object stand_in(self, object v, tuple path, object plain):
        """path: the argument that it is, or is a part of, and the keys that lead to it."""
        cdef IndexStandIn index
        cdef int32_t n
        cdef object kind = type(v)
        if isinstance(v, _array_type) and v.dtype.kind in "iu" and (v.ndim or self.graph is not None):
            return self.stand_in_of_integers(v, path, plain)
        if self.graph is None and isinstance(v, (_array_type, _floating_type, Parameters)):
            return v if isinstance(v, Parameters) else _input_of(self.scratch, v)
        if kind is int or isinstance(v, np.integer):
            if plain is True or not _may_choose(int(v), &n):
                return v
            index = IndexStandIn.__new__(IndexStandIn)
            index.trace, index.number, index.path = self.trace, self.n_ints, path
            self.n_ints += 1
            return index
        if isinstance(v, Expression) and kind is not LookupParameters:
            return self.stand_in_of_node(_arg(self.graph, v))
        if _has_parts(v) and not _is_among(self.within, v):
            self.within.append(v)
            try:
                return _made_like(v, [self.stand_in(one, (*path, key), _inner(plain, key))
                                      for key, one in zip(_keys_of(v), _parts_of(v))])
            finally:
                self.within.pop()
        return v

    cdef object stand_in_of_integers(self, object v, tuple path, object plain):
        """An array is one for the function, too, for which `*`, `+` and `==` mean other things than for a list."""
        cdef Py_ssize_t k
        if plain is True:
            return v.copy()
        if v.ndim == 0:
            return self.stand_in(int(v), path, plain)
        found = np.empty(v.shape, dtype=object)
        flat = found.ravel()
        for k, one in enumerate(np.asarray(v).ravel().tolist()):
            flat[k] = self.stand_in(one, path, plain)
        return found

    cdef object stand_in_of_node(self, NodeId id):
        cdef NodeId mine = self.scratch.c.add_input(self.graph.c.dim(id))
        cdef uint32_t role = _role(self.graph, id)
        self.takes_weights |= (role & ROLE_WEIGHT) != 0
        if role & ROLE_ROW:
            self.scratch.c.mark(mine, kRowToCome)
        return _expression(self.scratch, mine)

    cdef object part(self, Template t, object v):
        """A part of what the function gave, as a Template has it."""
        if isinstance(v, Expression) and type(v) is not LookupParameters:
            t.out.push_back(_arg(self.scratch, v))
            return <object> (<int> t.out.size() - 1)
        if _has_parts(v):
            enter_nested(b" in results that are nested too deep")
            try:
                return _made_like(v, [self.part(t, one) for one in _parts_of(v)])
            finally:
                leave_nested()
        if type(v) is IndexStandIn:
            raise _refuses_numbers(v)
        if v is None or type(v) in (bool, int, float, str):
            return _Constant(v)
        what = "compile" if self.trace.compiled else "cell"
        raise (_errors.CompileError if self.trace.compiled else _errors.CellError)(
            f"[{what} {self.cell.__name__}] gives {_shown(v)}; it must give an expression, or a tuple, "
            "list, dict, dataclass or dy.state(h=..., c=...) of some")

    cdef Template run(self, tuple args, dict kwargs):
        cdef Template t = Template.__new__(Template)
        cdef uint64_t seed = _seed_now()
        self.scratch = ComputationGraph(self.cell.memory)
        _set_seed_now(seed)   # as if it had not been made
        self.trace = self.scratch.trace = Trace(self.cell.__name__, self.graph is None)
        self.template = t
        self.trace.keys = <size_t> &self.scratch.keys
        given = [self.stand_in(v, (k,), self.plain(k)) for k, v in enumerate(args)]
        named = {k: self.stand_in(v, (k,), self.plain(k)) for k, v in kwargs.items()}
        cdef uint32_t n_args = self.scratch.c.size()
        self.n_arrays = n_args
        if self.graph is None:
            self.scratch.given, self.scratch.given_to = n_args, self.cell.__name__
        self.count(t)
        self.scratch.__enter__()
        try:  # a `with` would add a frame to traces
            result = self.cell.function(*given, **named)
            refused = self.trace.refused
            if refused is not None:   # the function has caught it
                raise refused
            t.result = self.part(t, result)
        finally:
            self.trace.refused = None   # whose traceback leads back here
            self.scratch.__exit__()
            self.trace.done = True
        self.describe(t)
        self.rewrite(t)
        for node, batched, update in self.trace.lookups:
            t.body.lookup(node, batched, update)
        for node, at, number in self.trace.fills:
            t.body.fill(node, at, number)
        t.outside = []
        for weight, rows, node in self.trace.outside:
            t.outside.append((weakref.ref(weight), rows, weight.is_updated()))
            t.body.outside(node)
        t.body.finish(deref(self.scratch.c), n_args)
        t.entered.resize(len(t.outside))
        t.copies = t.body.copies_rows()
        return t

    cdef int count(self, Template t) except -1:
        cdef NodeId k
        t.n_ints = self.n_ints
        if self.graph is not None:
            t.n_ids = self.n_arrays
            return 0
        for k in range(self.n_arrays):
            t.n_numbers += self.scratch.c.dim(k).size()
        return 0

    cdef int rewrite(self, Template t) except -1:
        """Passes look at the nodes here, once, and not at those of each call. Weights may be other ones at the next."""
        t.any_graph = self.graph is None or self.takes_weights
        if t.any_graph:
            return 0
        t.passes = passes_ahead(self.graph.x.passes())
        rewrite_ahead(deref(self.scratch.c), t.passes, _settings.verify)
        return 0

    cdef int describe(self, Template t) except -1:
        t.carried = -1
        parts = (<State> t.result).values if type(t.result) is State else t.result
        if type(t.result) is int:
            t.flat = 1
        elif type(parts) is tuple and parts and all([type(one) is int for one in parts]):
            t.flat = 3 if type(t.result) is State else 2
        return 0


cdef Template _record_once(Cell cell, ComputationGraph g, tuple args, dict kwargs):
    return _recorded(cell, g, args, kwargs).template

cdef _Recorder _recorded(Cell cell, ComputationGraph g, tuple args, dict kwargs):
    cdef _Recorder r = _Recorder.__new__(_Recorder)
    cdef tuple path = None
    cdef set free = {*range(len(args)), *kwargs} - cell.indices
    r.graph, r.cell = g, cell
    try:
        r.run(args, kwargs)
        return r
    except _UsedAsNumber as used:
        path = used.path
    except Exception as error:   # perhaps because of what stands for an integer
        if r.n_ints == 0 or all([cell.plain.get(k) is True for k in free]):
            raise _at_user(error)
    if path is None:   # out of the handler: the next error is not one "during handling" of this one
        return _recorded_for_values(cell, g, args, kwargs, free)
    if path[0] in cell.indices:
        raise _errors.CellError(
            f"[cell {cell.__name__}] {cell.argument_name(path[0])} is declared as dy.Index, which may choose a row, a "
            "label or a place, but is computed with here; declare it as int, and the cell is recorded for each value")
    cell.plain[path[0]] = _more_plain(cell.plain.get(path[0]), path[1:])
    cell.begin_anew()
    return _recorded(cell, g, args, kwargs)

cdef _Recorder _recorded_for_values(Cell cell, ComputationGraph g, tuple args, dict kwargs, set free):
    """With all integers as they are, but for those that are declared to be dy.Index."""
    before = cell.plain
    cell.plain = {**before, **dict.fromkeys(free, True)}
    cell.begin_anew()
    try:
        return _recorded(cell, g, args, kwargs)
    except BaseException as error:
        cell.plain = before
        cell.n_anew += 1   # what other threads have begun meanwhile
        raise _at_user(error)

cdef bint _alike_templates(Template a, Template b, bint whole=False) except -1:
    """whole: b was recorded with integers as they are."""
    cdef size_t k
    cdef bint same = a.body.same_but_filled(b.body) if whole else a.body.same(b.body)
    if not same or a.out.size() != b.out.size() or len(a.outside) != len(b.outside):
        return False
    for k in range(a.out.size()):
        if a.out[k] != b.out[k]:
            return False
    for (w, rows, _), (v, lines, _) in zip(a.outside, b.outside):
        if w() is not v() or rows != lines:
            return False
    return _alike_results(a.result, b.result)

cdef bint _alike_results(object a, object b) except -1:
    """What stands beside the expressions of a result is the same at each call, too."""
    if type(a) is not type(b):
        return False
    if type(a) is int:
        return a == b
    if type(a) is _Constant:
        a, b = (<_Constant> a).value, (<_Constant> b).value
        return type(a) is type(b) and (a == b or a != a and b != b)
    if type(a) is dict and list(a) != list(b) or type(a) is State and (<State> a).names != (<State> b).names:
        return False
    cdef list ones = list(_parts_of(a)), others = list(_parts_of(b))
    return len(ones) == len(others) and all([_alike_results(one, other) for one, other in zip(ones, others)])

cdef Template _record(Cell cell, ComputationGraph g, tuple args, dict kwargs):
    """Twice, for the two must be the same. An integer that the function computes with is taken as it is from then on."""
    return _recorded_twice(cell, g, args, kwargs).template

cdef bint _is_same_for_integers(_Recorder r, tuple args, dict kwargs) except -1:
    """Does the function make the same of the integers as of what stands for them, which has another type? Where an integer
    is out of range, calls will say so."""
    cdef _Recorder whole = _Recorder.__new__(_Recorder)
    whole.graph, whole.cell, whole.whole = r.graph, r.cell, True
    try:
        return _alike_templates(r.template, whole.run(args, kwargs), True)
    except IndexError:
        return True
    except Exception:
        return False

cdef _Recorder _recorded_twice(Cell cell, ComputationGraph g, tuple args, dict kwargs):
    from dynet_lite.reading import random_states

    cdef uint64_t begun = cell.n_anew
    cdef _Recorder r = _recorded(cell, g, args, kwargs)
    cdef set free = {*range(len(args)), *kwargs} - cell.indices
    cdef bint differs
    for _ in range(RUNS_THAT_DRAW):   # another thread may have drawn meanwhile
        before = random_states(cell.read)
        differs = r.n_ints != 0 and not _is_same_for_integers(r, args, kwargs)
        if (r.n_ints == 0 or differs) and not _alike_templates(r.template, _record_once(cell, g, args, kwargs)):
            if cell.n_anew != begun:   # another thread has recorded meanwhile, and integers are taken in another way now
                return _recorded_twice(cell, g, args, kwargs)
            raise _not_recorded(r, "does not make the same nodes twice for the same arguments: it reads what changes, such "
                                "as a counter or numpy.random. Give that as an argument")
        if differs and not all([cell.plain.get(k) is True for k in free]):   # it asks for their type
            _recorded_for_values(cell, g, args, kwargs, free)
            return _recorded_twice(cell, g, args, kwargs)
        if random_states(cell.read) == before:
            return r
    raise _not_recorded(r, "draws random numbers of Python or NumPy, and a recording would repeat those that it was made "
                        "with. Draw them outside and give them as arguments")

cdef object _not_recorded(_Recorder r, str why):
    what, kind = ("compile", _errors.CompileError) if r.trace.compiled else ("cell", _errors.CellError)
    return kind(f"[{what} {r.cell.__name__}] {why}")


# ---- cells -----------------------------------------------------------------------------------------------------------

cdef class Cell:
    """A function over expressions that is recorded once per signature. Made by ``@dy.cell``, which tells all about it.

    ``function``: what it was made of; calling that makes the nodes one by one.
    """
    cdef readonly object function
    cdef readonly str __name__
    cdef readonly object __wrapped__
    cdef object names          # of the positional arguments
    cdef set indices           # numbers or names of arguments that are declared as Index,
    cdef dict plain            # of those that have integers which are a part of the signature: which, as in Frame.push()
    cdef object read_by        # function -> [(where, key, value)]: what the function reads besides its arguments
    cdef list read
    cdef uint64_t reading, call
    cdef uint64_t n_anew       # how often its recordings went
    cdef dict templates
    cdef list recent
    cdef Frame spare           # for the next call; None while one has it
    cdef _Memory memory        # of a compiled function: that of all its graphs, for one runs at a time
    cdef bint warned
    cdef dict of_objects       # id -> (weak reference, Cell), for methods
    cdef object __weakref__

    def __cinit__(self):
        self.plain, self.indices, self.of_objects = {}, set(), {}
        self.templates, self.recent = {}, []

    def __init__(self, function, names, indices, read_by):
        self.function = self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.names, self.indices, self.read_by = names, set(indices), read_by
        self.forget()

    cdef int forget(self) except -1:
        self.templates, self.recent, self.read = {}, [], None
        return 0

    cdef int begin_anew(self) except -1:
        """Recordings go. What the function reads is looked at before the next one is made: it may change soon after."""
        self.n_anew += 1
        self.forget()
        return self.check_read()

    def signatures(self):
        """How many signatures are recorded."""
        return len(self.templates)

    cdef str argument_name(self, where):
        if type(where) is str:
            return repr(where)
        return repr(self.names[where]) if where < len(self.names) else f"argument {where + 1}"

    def __get__(self, owner, kind):
        """A cell that is a method: it is recorded for each object."""
        if owner is None:
            return self
        cdef Cell own = None
        key = id(owner)
        found = self.of_objects.get(key)
        if found is not None and found[0]() is owner:
            own = found[1]
        else:
            ref = self._ref_of(owner, "cell")
            own = Cell(_MethodOf(self.function, ref), self.names[1:], _one_less(self.indices), self.read_by)
            self.of_objects[key] = ref, own
        return _BoundCell(own, owner)

    def _ref_of(self, owner, what):
        """A reference to an object that it is a method of; with the object goes what is recorded for it."""
        objects, key = self.of_objects, id(owner)
        try:
            return weakref.ref(owner, lambda _: objects.pop(key, None))
        except TypeError:
            raise TypeError(f"[{what} {self.__name__}] objects of {type(owner).__name__} cannot be referred to weakly; "
                            "add '__weakref__' to its __slots__") from None

    def __call__(self, *args, **kwargs):
        global _n_calls
        cdef ComputationGraph g = _current()
        cdef Template t
        if _by_hand(g):
            return self._by_hand(g, args, kwargs)
        _n_calls += 1
        cdef Frame f = self.take_frame()
        t = self.template(g, f, args, kwargs)
        t.add(g, f)
        answer = t.answer(g, f)
        self.spare = f
        return answer

    cdef Frame take_frame(self):
        """One that no other call has, of another thread or of what arguments do when they are looked at."""
        cdef Frame f = self.spare
        self.spare = None
        return Frame() if f is None else f

    cdef object _by_hand(self, ComputationGraph g, tuple args, dict kwargs):
        """The nodes one by one; in checks after a comparison with what is recorded."""
        global _n_calls
        if g.trace is None and not g.for_file and _settings.cells == "check":
            _n_calls += 1
            if not _alike_templates(self.template(g, self.take_frame(), args, kwargs), _record(self, g, args, kwargs)):
                raise _errors.CellError(
                    f"[cell {self.__name__}] makes other nodes now than when it was recorded for these arguments: it reads "
                    "what has changed since. Give that as an argument")
        return self.function(*args, **kwargs)

    cdef int fill(self, ComputationGraph g, Frame f, tuple args, dict kwargs) except -1:
        cdef Py_ssize_t k
        f.clear(g)
        if not self.plain:
            for v in args:
                f.push(g, v, None)
        else:
            for k in range(len(args)):
                f.push(g, args[k], self.plain.get(k))
        for name, v in kwargs.items():
            f.push_object(name)
            f.push(g, v, self.plain.get(name))
        return 0

    cdef Template template(self, ComputationGraph g, Frame f, tuple args, dict kwargs):
        """The recording for these arguments; they are in the frame then, and weights in the graph."""
        cdef Template t
        self.fill(g, f, args, kwargs)
        t = self.find(g, f)
        if t is None:
            t = self.note(self.record_into(g, f, args, kwargs), f)
            t.enter(g)
        return t

    cdef Template record_into(self, ComputationGraph g, Frame f, tuple args, dict kwargs):
        """A new recording, with its arguments in the frame."""
        cdef uint64_t begun
        cdef Template new
        while True:
            begun = self.n_anew
            new = _record(self, g, args, kwargs)
            self.fill(g, f, args, kwargs)   # integers may be taken in another way now
            if new.is_of(f):
                return new
            if self.n_anew == begun:   # no other thread has recorded meanwhile either
                raise self.changes()

    cdef object changes(self):
        return RuntimeError(f"[{self.__name__}] an argument gives other items each time that it is read")

    cdef int check_read(self) except -1:
        """Recordings go when what the function reads besides its arguments has changed."""
        if self.call == _n_calls and self.read is not None:
            return 0
        self.call = _n_calls
        if self.reading != _reading:
            self.reading = _reading
            self.forget()
        if self.read_by is None:   # __init__ was not called
            raise TypeError("[cell] a cell is made by @dy.cell")
        if self.read is None:
            if self.templates:   # forget() came while one was recorded
                self.forget()
            self.read = self.read_by(self.function)
            return 0
        if not _unchanged(self.read):
            self.forget()
            self.read = self.read_by(self.function)
        return 0

    cdef list read_of(self, list objects):
        """What the function may read of arguments that are objects, such as attributes that it names."""
        cdef list given = [v for v in objects
                           if type(v) not in _value_types and not (isinstance(v, type) and issubclass(v, tuple))]
        return self.read_by(self.function, given) if given else []

    cdef Template find(self, ComputationGraph g, Frame f):
        """The recording that fits the frame; None when there is none."""
        cdef Template t
        cdef Py_ssize_t k
        self.check_read()
        for k in range(len(self.recent)):
            t = <Template> (<list> self.recent)[k]
            if t.fits(f):
                return t if t.enter(g) else self.drop()
        if len(self.templates) <= RECENT_TEMPLATES:
            return None
        t = self.templates.get(self.key(f))
        if t is None or not t.fits(f):
            return None
        self.recent.insert(0, t)
        self.recent.pop()
        return t if t.enter(g) else self.drop()

    cdef Template drop(self):
        self.begin_anew()
        return None

    cdef uint64_t key(self, Frame f) except? 0:
        """A hash of what the arguments look like. Whether they do is told by Template.fits()."""
        cdef uint64_t h = mix_all(0, f.shape.data(), f.shape.size())
        for v in f.objects:
            h = mix(h, <uint64_t> <Py_hash_t> hash(_hashable(v)))
        return h

    cdef Template note(self, Template t, Frame f):
        """Keeps a recording for what is in the frame."""
        if len(self.templates) >= MOST_TEMPLATES:
            if not self.warned:
                self.warned = True
                import warnings
                warnings.warn(
                    f"[cell {self.__name__}] has been recorded for {MOST_TEMPLATES} signatures, each takes time and memory: "
                    "an argument has many values. Integers that only choose rows, labels or places are no part of it",
                    stacklevel=_level_of_user())
            self.begin_anew()
        t.note(f, self)
        self.templates[self.key(f)] = t
        self.recent.insert(0, t)
        del self.recent[RECENT_TEMPLATES:]
        return t

    def __reduce__(self):
        raise TypeError(f"[cell {self.__name__}] a cell is code and is not copied or pickled; keep its parameters")

    def __repr__(self):
        return f"<cell {self.__name__}, {len(self.templates)} signatures>"


cdef set _one_less(set numbers):
    return {n - 1 if type(n) is int else n for n in numbers}

cdef bint _by_hand(ComputationGraph g) except -1:
    """Are nodes made one by one: while a cell is recorded, where each is run or checked, and on request?"""
    return g.trace is not None or g.immediate or g.checked or g.for_file or _settings.cells != "recorded"


@cython.final
cdef class _MethodOf:
    """A function with its first argument, which it does not keep in memory."""
    cdef readonly object function, ref
    cdef public list read   # of its cell, for dynet_lite/reading.py
    cdef object __weakref__

    def __cinit__(self, function, ref):
        self.function, self.ref = function, ref

    @property
    def __name__(self):
        return self.function.__name__

    def __call__(self, *args, **kwargs):
        return self.function(self.ref(), *args, **kwargs)


@cython.final
cdef class _BoundCell:
    """A cell of an object: ``model.step``."""
    cdef readonly Cell cell
    cdef object owner   # keeps it

    def __cinit__(self, Cell cell, owner):
        self.cell, self.owner = cell, owner

    def __call__(self, *args, **kwargs):
        return self.cell(*args, **kwargs)

    def signatures(self):
        """How many signatures are recorded for this object."""
        return self.cell.signatures()

    @property
    def __name__(self):
        return self.cell.__name__

    def __repr__(self):
        return f"<cell {self.cell.__name__} of {self.owner!r}>"


cdef Cell _cell_of(object c):
    """None for what is no cell."""
    if type(c) is Cell:
        return <Cell> c
    return (<_BoundCell> c).cell if type(c) is _BoundCell else None

def is_cell(c):
    """Is it a cell, perhaps of an object?"""
    return _cell_of(c) is not None

def is_method(function):
    """Is it the function of a cell together with its object? Then it has .function and .ref."""
    return type(function) is _MethodOf

def see_no_cell(what):
    """CellError while a cell is recorded: a part of a graph, where `what` is one for the whole."""
    cdef ComputationGraph g = _current()
    if g.trace is not None and not g.trace.compiled:
        raise g.trace.refuse(_errors.CellError(
            f"[cell {g.trace.name}] uses {what}, which is drawn once for a whole graph, and is recorded as a part of one: "
            "write a plain function"))

def cells_by_hand():
    """Are the nodes of cells made one by one in the current graph?"""
    return _by_hand(_current())
