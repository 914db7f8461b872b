# Cells: functions over expressions that are recorded once per signature and then added to graphs by a loop in C.
# graph/body.h keeps the nodes; here is what a call looks like, how it finds its recording, and how one is made.

cdef enum:
    PART_EXPRESSION = 1   # then: mini-batch, dims
    PART_INTEGER = 2      # one that may differ from call to call
    PART_OBJECT = 3       # anything else: its value or its identity is a part of the signature
    PART_LIST = 4         # of so many parts that follow
    PART_TUPLE = 5        # likewise; one with names is preceded by its type
    PART_STATE = 6        # likewise, preceded by its names

cdef enum:
    MOST_TEMPLATES = 512  # of one cell
    RECENT_TEMPLATES = 4

cdef dict _state_names = {}   # equal names are one tuple
cdef uint64_t _n_calls = 0    # calls of cells, and of what calls them in a loop
cdef uint64_t _reading = 1    # of what recorded functions may have read (structure_changed)


def structure_changed():
    """Something that decides which nodes a function makes is another one now: cells are recorded anew."""
    global _reading
    _reading += 1


@cython.final
cdef class State:
    """Expressions with names: ``s = dy.state(h=h, c=c)``, then ``s.h``, ``s.c``. It cannot be changed."""
    cdef tuple names, values

    def __getattr__(self, name):
        try:
            return self.values[self.names.index(name)]
        except ValueError:
            raise AttributeError(f"[state] there is no {name!r}; there are {', '.join(self.names)}") from None

    def __dir__(self):
        return list(self.names)

    def __len__(self):
        return len(self.names)

    def __iter__(self):
        """The values, in the order in which they were given."""
        return iter(self.values)

    def __getitem__(self, k):
        return self.values[k]

    def __repr__(self):
        return "state(" + ", ".join([f"{n}={v!r}" for n, v in zip(self.names, self.values)]) + ")"


def state_of(dict parts not None):
    """A State with these names and values."""
    names = tuple(parts)
    return _state_of(_state_names.setdefault(names, names), tuple(parts.values()))


def state_names(State s not None):
    """The names of the parts, in the order in which they were given."""
    return s.names


cdef inline State _state_of(tuple names, tuple values):
    cdef State s = State.__new__(State)
    s.names, s.values = names, values
    return s


@cython.final
cdef class Frame:
    """The arguments of a call, flat: what they look like, their nodes, their integers, and everything else."""
    cdef Vec[uint32_t] shape
    cdef Vec[NodeId] ids
    cdef Vec[int32_t] ints
    cdef list objects

    def __cinit__(self):
        self.objects = []

    cdef int clear(self) except -1:
        self.shape.clear()
        self.ids.clear()
        self.ints.clear()
        if self.objects:
            self.objects.clear()
        return 0

    cdef int push_node(self, ComputationGraph g, NodeId id) except -1:
        cdef const Dim* d = &g.c.dim(id)
        cdef uint32_t k
        cdef uint32_t* to = self.shape.extend(2 + d.nd)
        to[0] = PART_EXPRESSION | d.nd << 8
        to[1] = d.bd
        for k in range(d.nd):
            to[2 + k] = d.d[k]
        self.ids.push_back(id)
        return 0

    cdef int push_object(self, object v) except -1:
        self.shape.push_back(PART_OBJECT)
        self.objects.append(v)
        return 0

    cdef int push_parts(self, uint32_t kind, object parts, ComputationGraph g, bint plain) except -1:
        self.shape.push_back(kind | <uint32_t> len(parts) << 8)
        for one in parts:
            self.push(g, one, plain)
        return 0

    cdef int push(self, ComputationGraph g, object v, bint plain) except -1:
        """plain: integers are objects."""
        cdef object kind = type(v)
        if kind is Expression:
            return self.push_node(g, _arg(g, v))
        if kind is int and not plain:
            self.shape.push_back(PART_INTEGER)
            self.ints.push_back(_int32(v, "[cell] an integer argument"))
            return 0
        if kind is State:
            self.push_object((<State> v).names)
            return self.push_parts(PART_STATE, (<State> v).values, g, plain)
        if kind is list:
            return self.push_parts(PART_LIST, v, g, plain)
        if isinstance(v, tuple):
            if kind is not tuple:
                self.push_object(kind)
            return self.push_parts(PART_TUPLE, v, g, plain)
        if isinstance(v, Expression) and kind is not LookupParameters:
            return self.push_node(g, _arg(g, v))
        if isinstance(v, np.integer):
            return self.push(g, int(v), plain)
        if isinstance(v, np.ndarray):
            if v.dtype.kind in "iu" and v.ndim == 1:
                return self.push_parts(PART_LIST, v.tolist(), g, plain)
            raise TypeError("[cell] an array as an argument: make an expression of it with inputTensor()")
        return self.push_object(v)


cdef object _kept(object v):
    """An object as a template keeps it: a value, or a reference that does not keep it in memory."""
    if v is None or type(v) in (bool, int, str, bytes, float, complex, tuple) or isinstance(v, type):
        return v
    try:
        return weakref.ref(v)
    except TypeError:
        return v

cdef bint _same_object(object kept, object v) except -1:
    cdef double a, b
    if kept is v:
        return True
    if type(kept) is weakref.ref:
        return kept() is v
    if type(kept) is not type(v):
        return False
    if type(v) is float:
        a, b = kept, v
        return memcmp(&a, &b, sizeof(double)) == 0
    if type(v) in (int, str, bytes, complex):
        return kept == v
    return False   # bools and None are the same object; names of states are

cdef object _hashable(object v):
    if type(v) is float:
        return float, (<object> v).hex()   # 0.0 and -0.0 are two
    return (type(v), v) if type(v) in (bool, int, str, bytes, float, complex) else id(v)


@cython.final
cdef class Template:
    """What a cell does for arguments of one signature."""
    cdef Body body
    cdef Vec[uint32_t] shape     # of the arguments
    cdef list objects
    cdef list outside            # (reference to a weight, for single rows)
    cdef Vec[NodeId] entered     # these in a graph:
    cdef uint32_t generation     # of the nodes that it made then,
    cdef uint64_t frozen         # when weights had been frozen so often
    cdef uint64_t call           # the last one,
    cdef bint copies             # at each of which rows of tables are copied
    cdef object result           # an int: an output; tuple, list or State of such; anything else inside _Constant
    cdef Vec[uint32_t] out       # value of each output
    cdef int flat                # outputs are parts of the result itself, all of them: 1 the result, 2 a tuple, 3 a state
    cdef int carried             # in scans: how many outputs are the state; -1: not known yet
    cdef bint paired             # and whether the result is a pair of the state and another output

    cdef bint fits(self, Frame f) except -1:
        cdef size_t n = self.shape.size(), k
        if n != f.shape.size() or memcmp(self.shape.data(), f.shape.data(), n * sizeof(uint32_t)):
            return False
        for k in range(len(self.objects)):
            if not _same_object(self.objects[k], f.objects[k]):
                return False
        return True

    cdef bint enter(self, ComputationGraph g) except -1:
        """Weights into the graph; False when one of them is gone."""
        if self.copies and self.call != _n_calls:
            settle()
        self.call = _n_calls
        if self.generation == g.c.generation() and self.frozen == _n_frozen:
            return True
        return self._enter(g)

    cdef bint _enter(self, ComputationGraph g) except -1:
        cdef Py_ssize_t k
        for k in range(len(self.outside)):
            ref, rows = <tuple> (<list> self.outside)[k]
            weight = ref()
            if weight is None:
                return False
            self.entered[k] = (<LookupParameters> weight).rows_node(g) if rows else (<Expression> weight).enter(g)
        self.body.enter(deref(g.c), self.entered.data())
        self.generation, self.frozen = g.c.generation(), _n_frozen
        return True

    cdef int add(self, ComputationGraph g, Frame f) except -1:
        self.body.add_to(deref(g.c), f.ids.data(), f.ints.data())
        return 0

    cdef object built(self, ComputationGraph g, object part):
        """A part of the result of the last call."""
        if type(part) is int:
            return _expression(g, self.body.node(self.out[<size_t> part]))
        if type(part) is _Constant:
            return (<_Constant> part).value
        if type(part) is State:
            return _state_of((<State> part).names, tuple([self.built(g, one) for one in (<State> part).values]))
        if type(part) is list:
            return [self.built(g, one) for one in <list> part]
        parts = [self.built(g, one) for one in <tuple> part]
        return tuple(parts) if type(part) is tuple else type(part)(*parts)

    cdef object answer(self, ComputationGraph g):
        """The result of the last call."""
        cdef Py_ssize_t k, n
        cdef tuple parts
        if self.flat == 1:
            return _expression(g, self.body.node(self.out[0]))
        if self.flat == 0:
            return self.built(g, self.result)
        n = <Py_ssize_t> self.out.size()
        parts = PyTuple_New(n)
        for k in range(n):
            e = _expression(g, self.body.node(self.out[k]))
            Py_INCREF(e)
            PyTuple_SET_ITEM(parts, k, e)
        return parts if self.flat == 2 else _state_of((<State> self.result).names, parts)

    cdef int hand_on(self, ComputationGraph g, Frame f, object part, const NodeId* outputs) except -1:
        """A part of a result as an argument of the next call; outputs: nodes of all outputs."""
        if type(part) is int:
            return f.push_node(g, outputs[<size_t> part])
        if type(part) is _Constant:
            return f.push_object((<_Constant> part).value)
        if type(part) is State:
            f.push_object((<State> part).names)
            f.shape.push_back(PART_STATE | <uint32_t> len((<State> part).values) << 8)
            for one in (<State> part).values:
                self.hand_on(g, f, one, outputs)
            return 0
        if type(part) is not list and type(part) is not tuple:
            f.push_object(type(part))
        f.shape.push_back((PART_LIST if type(part) is list else PART_TUPLE) | <uint32_t> len(part) << 8)
        for one in part:
            self.hand_on(g, f, one, outputs)
        return 0


@cython.final
cdef class _Constant:
    cdef object value

    def __cinit__(self, value):
        self.value = value


# ---- recording -------------------------------------------------------------------------------------------------------

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
    cdef ComputationGraph graph, scratch
    cdef Trace trace
    cdef uint32_t n_ints
    cdef Cell cell

    cdef object stand_in(self, object v, object argument, bint plain):
        cdef IndexStandIn index
        cdef object kind = type(v)
        if kind is int or isinstance(v, np.integer):
            if plain:
                return v
            index = IndexStandIn.__new__(IndexStandIn)
            index.trace, index.number, index.argument = self.trace, self.n_ints, argument
            self.n_ints += 1
            return index
        if isinstance(v, Expression) and kind is not LookupParameters:
            return _expression(self.scratch, self.scratch.c.add_input(self.graph.c.dim(_arg(self.graph, v))))
        if kind is State:
            return _state_of((<State> v).names, tuple([self.stand_in(one, argument, plain) for one in (<State> v).values]))
        if kind is list:
            return [self.stand_in(one, argument, plain) for one in v]
        if isinstance(v, tuple):
            parts = [self.stand_in(one, argument, plain) for one in v]
            return tuple(parts) if kind is tuple else kind(*parts)
        if isinstance(v, np.ndarray):
            return [self.stand_in(one, argument, plain) for one in v.tolist()]
        return v

    cdef object part(self, Template t, object v):
        """A part of what the function gave, as a Template has it."""
        if isinstance(v, Expression) and type(v) is not LookupParameters:
            t.out.push_back(_arg(self.scratch, v))
            return <object> (<int> t.out.size() - 1)
        if type(v) is State:
            return _state_of((<State> v).names, tuple([self.part(t, one) for one in (<State> v).values]))
        if type(v) is list:
            return [self.part(t, one) for one in v]
        if isinstance(v, tuple):
            parts = [self.part(t, one) for one in v]
            return tuple(parts) if type(v) is tuple else type(v)(*parts)
        if type(v) is IndexStandIn:
            raise _refuses_numbers(v)
        if v is None or type(v) in (bool, int, float, str):
            return _Constant(v)
        raise _errors.CellError(
            f"[cell {self.cell.__name__}] gives {_shown(v)}; a cell gives an expression, a tuple or list of them, or "
            "dy.state(h=..., c=...)")

    cdef Template run(self, tuple args, dict kwargs):
        cdef Template t = Template.__new__(Template)
        cdef uint64_t seed = _seed_now()
        self.scratch = ComputationGraph()
        _set_seed_now(seed)   # as if it had not been made
        self.trace = self.scratch.trace = Trace(self.cell.__name__)
        self.trace.keys = <size_t> &self.scratch.keys
        given = [self.stand_in(v, k, k in self.cell.plain) for k, v in enumerate(args)]
        named = {k: self.stand_in(v, k, k in self.cell.plain) for k, v in kwargs.items()}
        cdef uint32_t n_args = self.scratch.c.size()
        try:
            with self.scratch:
                result = self.cell.function(*given, **named)
                t.result = self.part(t, result)
        finally:
            self.trace.done = True
        self.describe(t)
        for node, batched, update in self.trace.lookups:
            t.body.lookup(node, batched, update)
        for node, at, number in self.trace.fills:
            t.body.fill(node, at, number)
        t.outside = []
        for weight, rows, node in self.trace.outside:
            t.outside.append((weakref.ref(weight), rows))
            t.body.outside(node)
        t.body.finish(deref(self.scratch.c), n_args)
        t.entered.resize(len(t.outside))
        t.copies = t.body.copies_rows()
        return t

    cdef int describe(self, Template t) except -1:
        t.carried = -1
        parts = (<State> t.result).values if type(t.result) is State else t.result
        if type(t.result) is int:
            t.flat = 1
        elif type(parts) is tuple and parts and all([type(one) is int for one in parts]):
            t.flat = 3 if type(t.result) is State else 2
        return 0


cdef Template _record_once(Cell cell, ComputationGraph g, tuple args, dict kwargs):
    cdef _Recorder r = _Recorder.__new__(_Recorder)
    r.graph, r.cell = g, cell
    try:
        return r.run(args, kwargs)
    except _UsedAsNumber as used:
        argument = used.argument
    except Exception:   # perhaps because of what stands for an integer
        if r.n_ints == 0:
            raise
        before = set(cell.plain)
        cell.plain |= {*range(len(args)), *kwargs} - cell.indices
        if cell.plain == before:
            raise
        cell.forget()
        try:
            return _record_once(cell, g, args, kwargs)
        except BaseException:
            cell.plain = before
            raise
    if argument in cell.indices:
        raise _errors.CellError(
            f"[cell {cell.__name__}] {cell.argument_name(argument)} is declared as dy.Index, which may choose a row, a "
            "label or a place, but is computed with here; declare it as int, and the cell is recorded for each value")
    cell.plain.add(argument)
    cell.forget()
    return _record_once(cell, g, args, kwargs)

cdef bint _alike_templates(Template a, Template b) except -1:
    cdef size_t k
    if not a.body.same(b.body) or a.out.size() != b.out.size() or len(a.outside) != len(b.outside):
        return False
    for k in range(a.out.size()):
        if a.out[k] != b.out[k]:
            return False
    for (w, rows), (v, lines) in zip(a.outside, b.outside):
        if w() is not v() or rows != lines:
            return False
    return True

cdef Template _record(Cell cell, ComputationGraph g, tuple args, dict kwargs):
    """Twice, for the two must be the same. An integer that the function computes with is taken as it is from then on."""
    cdef Template t = _record_once(cell, g, args, kwargs)
    if not _alike_templates(t, _record_once(cell, g, args, kwargs)):
        raise _errors.CellError(
            f"[cell {cell.__name__}] does not make the same nodes twice for the same arguments: it reads what "
            "changes, such as a counter or numpy.random. Give that as an argument")
    return t


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
    cdef set plain             # and of those whose integers are a part of the signature
    cdef object read_by        # function -> [(where, key, value)]: what the function reads besides its arguments
    cdef list read
    cdef uint64_t reading, call
    cdef dict templates
    cdef list recent
    cdef Frame frame
    cdef bint warned
    cdef dict of_objects       # id -> (weak reference, Cell), for methods
    cdef object __weakref__

    def __init__(self, function, names, indices, read_by):
        self.function = self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.names, self.indices, self.read_by = names, set(indices), read_by
        self.plain = set()
        self.frame = Frame()
        self.of_objects = {}
        self.forget()

    cdef int forget(self) except -1:
        self.templates, self.recent, self.read = {}, [], None
        return 0

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
            objects = self.of_objects
            try:
                ref = weakref.ref(owner, lambda _: objects.pop(key, None))
            except TypeError:
                raise TypeError(f"[cell {self.__name__}] objects of {type(owner).__name__} cannot be referred to weakly; "
                                "add '__weakref__' to its __slots__") from None
            own = Cell(_MethodOf(self.function, ref), self.names[1:], _one_less(self.indices), self.read_by)
            objects[key] = ref, own
        return _BoundCell(own, owner)

    def __call__(self, *args, **kwargs):
        global _n_calls
        cdef ComputationGraph g = _current()
        cdef Template t
        if _by_hand(g):
            return self._by_hand(g, args, kwargs)
        _n_calls += 1
        t = self.template(g, args, kwargs)
        t.add(g, self.frame)
        return t.answer(g)

    cdef object _by_hand(self, ComputationGraph g, tuple args, dict kwargs):
        """The nodes one by one; in checks after a comparison with what is recorded."""
        global _n_calls
        if g.trace is None and not g.for_file and _settings.cells == "check":
            _n_calls += 1
            if not _alike_templates(self.template(g, args, kwargs), _record(self, g, args, kwargs)):
                raise _errors.CellError(
                    f"[cell {self.__name__}] makes other nodes now than when it was recorded for these arguments: it reads "
                    "what has changed since. Give that as an argument")
        return self.function(*args, **kwargs)

    cdef int fill(self, ComputationGraph g, tuple args, dict kwargs) except -1:
        cdef Frame f = self.frame
        cdef Py_ssize_t k
        f.clear()
        if not self.plain:
            for v in args:
                f.push(g, v, False)
        else:
            for k in range(len(args)):
                f.push(g, args[k], k in self.plain)
        for name, v in kwargs.items():
            f.push_object(name)
            f.push(g, v, name in self.plain)
        return 0

    cdef Template template(self, ComputationGraph g, tuple args, dict kwargs):
        """The recording for these arguments; they are in the frame, and weights in the graph."""
        cdef Template t
        self.fill(g, args, kwargs)
        t = self.find(g)
        if t is None:
            new = _record(self, g, args, kwargs)
            self.fill(g, args, kwargs)   # what was recorded may have used the frame, and taken integers another way
            t = self.note(new)
            t.enter(g)
        return t

    cdef int check_read(self) except -1:
        """Recordings go when what the function reads besides its arguments has changed."""
        if self.call == _n_calls:
            return 0
        self.call = _n_calls
        if self.reading != _reading:
            self.reading = _reading
            self.forget()
        if self.read is None:
            self.read = self.read_by(self.function)
            return 0
        for where, key, value in self.read:
            if (where.get(key, _missing) if type(where) is dict else _content(where, key)) is not value:
                self.forget()
                self.read = self.read_by(self.function)
                return 0
        return 0

    cdef Template find(self, ComputationGraph g):
        """The recording that fits the frame; None when there is none."""
        cdef Template t
        cdef Py_ssize_t k
        self.check_read()
        for k in range(len(self.recent)):
            t = <Template> (<list> self.recent)[k]
            if t.fits(self.frame):
                return t if t.enter(g) else self.drop()
        if len(self.templates) <= RECENT_TEMPLATES:
            return None
        t = self.templates.get(self.key())
        if t is None or not t.fits(self.frame):
            return None
        self.recent.insert(0, t)
        self.recent.pop()
        return t if t.enter(g) else self.drop()

    cdef Template drop(self):
        self.forget()
        return None

    cdef object key(self):
        cdef Frame f = self.frame
        return (<char*> f.shape.data())[:f.shape.size() * sizeof(uint32_t)], tuple([_hashable(v) for v in f.objects])

    cdef Template note(self, Template t):
        """Keeps a recording for what is in the frame."""
        cdef Frame f = self.frame
        if len(self.templates) >= MOST_TEMPLATES:
            if not self.warned:
                self.warned = True
                import warnings
                warnings.warn(
                    f"[cell {self.__name__}] has been recorded for {MOST_TEMPLATES} signatures, each takes time and memory: "
                    "an argument has many values. Integers that only choose rows, labels or places are no part of it",
                    stacklevel=2)
            self.forget()
            self.check_read()
        t.shape.resize(f.shape.size())
        if f.shape.size():
            memcpy(t.shape.data(), f.shape.data(), f.shape.size() * sizeof(uint32_t))
        t.objects = [_kept(v) for v in f.objects]
        self.templates[self.key()] = t
        self.recent.insert(0, t)
        del self.recent[RECENT_TEMPLATES:]
        return t

    def __reduce__(self):
        raise TypeError(f"[cell {self.__name__}] a cell is code and is not copied or pickled; keep its parameters")

    def __repr__(self):
        return f"<cell {self.__name__}, {len(self.templates)} signatures>"


MISSING = object()   # what is read of a variable that has no value
cdef object _missing = MISSING

cdef object _content(object where, object key):
    """What a closure's variable, an attribute or an item is."""
    try:
        return where.cell_contents if key is None else where[key]
    except (ValueError, LookupError):
        return _missing

cdef set _one_less(set numbers):
    return {n - 1 if type(n) is int else n for n in numbers}

cdef bint _by_hand(ComputationGraph g) except -1:
    """Are nodes made one by one: while a cell is recorded, where each is run or checked, and on request?"""
    return g.trace is not None or g.immediate or g.checked or g.for_file or _settings.cells != "recorded"


@cython.final
cdef class _MethodOf:
    """A function with its first argument, which it does not keep in memory."""
    cdef readonly object function, ref

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

def cells_by_hand():
    """Are the nodes of cells made one by one in the current graph?"""
    return _by_hand(_current())
