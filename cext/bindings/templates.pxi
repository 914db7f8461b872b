# Cells: functions over expressions that are recorded once per signature and then added to graphs by a loop in C.
# graph/body.h keeps the nodes; here is what a call looks like, how it finds its recording, and how one is made.

cdef extern from "nesting.h" namespace "dnl":
    int enter_nested(const char*) except -1
    void leave_nested()

cdef extern from *:
    void PyObject_GC_UnTrack(object)

cdef enum:
    PART_EXPRESSION = 1   # then: its role, mini-batch, dims
    PART_INTEGER = 2      # one that may differ from call to call
    PART_OBJECT = 3       # anything else: its value or its identity is a part of the signature
    PART_LIST = 4         # of so many parts that follow
    PART_TUPLE = 5        # likewise; one with names is preceded by its type
    PART_STATE = 6        # likewise, preceded by its names
    PART_ARRAY = 7        # then: dims; only of compiled functions
    PART_DICT = 8         # of so many parts that follow; the keys are objects
    PART_ATTRIBUTES = 9   # likewise, with names, of an object of a dataclass; preceded by its class
    PART_INTEGERS = 10    # an array of them; then: dims, its type, and its items or all of them as an object

cdef enum:            # of an argument, what passes ask:
    ROLE_ROW = 1      # is it a row of a table?
    ROLE_WEIGHT = 2   # is it made of weights alone?

cdef enum:
    MOST_TEMPLATES = 512  # of one cell
    RECENT_TEMPLATES = 4
    RUNS_THAT_DRAW = 4    # of a function, until it is refused
    MOST_PLAIN = 8        # parts of one argument whose integers are looked at one by one
    TYPE_OF_PYTHON = 1 << 9   # in __flags__: the class was made by Python code

cdef dict _state_names = {}   # equal names are one tuple
cdef uint64_t _n_calls = 0    # calls of cells, and of what calls them in a loop
cdef tuple _value_types = (type(None), bool, int, str, bytes, float, complex, tuple)   # of objects that do not change
cdef object _text_type = np.str_
cdef object _slot_type = type(object.__init__)   # of methods that are not written in Python
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

    def __reduce__(self):
        return state_of, (dict(zip(self.names, self.values)),)   # equal names are one tuple again

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

cdef inline bint _may_choose(object v, int32_t* to) except -1:
    """May an integer choose a row, a label or a place? Then it is put there. Greater ones are there to be computed with."""
    cdef int overflow = 0
    cdef long long n = PyLong_AsLongLongAndOverflow(v, &overflow)
    to[0] = <int32_t> n
    return overflow == 0 and -0x80000000 <= n <= 0x7fffffff

# What arguments and results are made of.
cdef inline bint _has_parts(object v):
    return (type(v) is list or type(v) is ExpressionList or type(v) is State or type(v) is dict or isinstance(v, tuple)
            or _is_of_dataclass(v))

cdef inline bint _is_of_dataclass(object v):
    return hasattr(type(v), "__dataclass_fields__") and _is_all_attributes(type(v))

cdef bint _is_all_attributes(object kind) except -1:
    """Are attributes all that objects of a class have? Not of those derived from dict; members of an Enum are unique."""
    if issubclass(kind, enum.Enum):
        return False
    while kind.__flags__ & TYPE_OF_PYTHON:
        kind = kind.__base__
    return kind is object

cdef bint _is_among(list objects, object v):
    for one in objects:
        if one is v:
            return True
    return False

cdef inline object _parts_of(object v):
    if type(v) is State:
        return (<State> v).values
    if type(v) is list or isinstance(v, tuple):
        return v
    if type(v) is ExpressionList:
        return (<ExpressionList> v).items()
    return list(v.values()) if type(v) is dict else [getattr(v, name) for name in _attributes_of(v)]

cdef object _keys_of(object v):
    """What tells the parts of v apart where a function computes with integers of some. All items of a list are alike."""
    if type(v) is State:
        return (<State> v).names
    if type(v) is list or type(v) is ExpressionList:
        return itertools.repeat(None)
    if isinstance(v, tuple):
        return itertools.count()
    return [key if type(key) in (str, int) else None for key in (v if type(v) is dict else _attributes_of(v))]

cdef inline object _inner(object plain, object key):
    """Which integers of a part are a part of the signature: as in Frame.push()."""
    return plain.get(key) if type(plain) is dict else plain

cdef object _more_plain(object plain, tuple path):
    """That, and also the integer that these keys lead to. If it is one of many, all others beside it, too."""
    if plain is True or not path:
        return True
    more = dict(plain or {})
    more[path[0]] = _more_plain(more.get(path[0]), path[1:])
    return more if len(more) <= MOST_PLAIN else True

cdef object _made_like(object v, list parts):
    """These parts put together as those of v are."""
    if type(v) is State:
        return _state_of((<State> v).names, tuple(parts))
    if type(v) is list or type(v) is ExpressionList:
        return parts
    if isinstance(v, tuple):
        return tuple(parts) if type(v) is tuple else type(v)(*parts)
    if type(v) is dict:
        return dict(zip(v, parts))
    made = object.__new__(type(v))   # copying would run code of the program
    for name, one in zip(_attributes_of(v), parts):
        object.__setattr__(made, name, one)   # it may be frozen
    return made

cdef list _attributes_of(object v):
    """Names of what an object of a dataclass has: its fields, and what its methods or bases have added."""
    cdef list names = [field.name for field in dataclasses.fields(v) if hasattr(v, field.name)]
    names += [name for name in getattr(v, "__dict__", ()) if name not in names]
    return names + [name for name in copyreg._slotnames(type(v)) if name not in names and hasattr(v, name)]

def named_parts(v):
    """The parts of a state, a dict or an object of a dataclass, by name; None of anything else."""
    if type(v) is dict:
        return v
    if type(v) is State:
        return dict(zip((<State> v).names, (<State> v).values))
    return {name: getattr(v, name) for name in _attributes_of(v)} if _is_of_dataclass(v) else None


@cython.final
cdef class Frame:
    """The arguments of a call, flat: what they look like, their nodes, their integers, and everything else."""
    cdef Vec[uint32_t] shape
    cdef Vec[NodeId] ids
    cdef Vec[int32_t] ints
    cdef Vec[float] numbers   # of arrays, one behind the other
    cdef list objects
    cdef uint32_t generation  # of the graph when the arguments were looked at
    cdef Vec[NodeId] outputs  # nodes of the last call's results
    cdef list within          # objects of dataclasses that are being looked at: what leads back to one is an object

    def __cinit__(self):
        self.objects, self.within = [], []

    cdef int clear(self, ComputationGraph g) except -1:
        self.generation = 0 if g is None else g.c.generation()
        self.numbers.clear()
        self.shape.clear()
        self.ids.clear()
        self.ints.clear()
        if self.objects:
            self.objects.clear()
        return 0

    cdef int clear_row(self, ComputationGraph g) except -1:
        """For arguments that look like those before, of one call or of more: what they look like stays."""
        self.generation = g.c.generation()
        self.ids.clear()
        self.ints.clear()
        return 0

    cdef int see_graph(self, ComputationGraph g) except -1:
        """What looks at arguments, and what makes the user's kinds of tuples, may run Python code."""
        if self.generation != g.c.generation():
            raise RuntimeError("[cell] the graph was renewed or reverted meanwhile")
        return 0

    cdef int push_node(self, ComputationGraph g, NodeId id) except -1:
        cdef const Dim* d = &g.c.dim(id)
        cdef uint32_t k
        cdef uint32_t* to = self.shape.extend(3 + d.nd)
        to[0] = PART_EXPRESSION | d.nd << 8
        to[1] = _role(g, id)
        to[2] = d.bd
        for k in range(d.nd):
            to[3 + k] = d.d[k]
        self.ids.push_back(id)
        return 0

    cdef int push_object(self, object v) except -1:
        self.shape.push_back(PART_OBJECT)
        self.objects.append(v)
        return 0

    cdef int push_whole(self, ComputationGraph g, object v) except -1:
        """What has no parts: by its value if it can be told by few others, else by which object it is."""
        if type(v) is range or type(v) is slice:
            self.push_object(type(v))
            self.push_object(v.start)
            self.push_object(v.stop)
            return self.push_object(v.step)
        if type(v) is _text_type:
            return self.push_object(str(v))
        if PyIter_Check(v) and type(type(v).__next__) is _slot_type and not isinstance(v, io.IOBase):
            raise TypeError(f"[{'compile' if g is None else 'cell'}] a {type(v).__name__} can be read once, but a function "
                            "runs more than once when it is recorded: give a list of what is in it")
        return self.push_object(v)

    cdef int push_parts(self, uint32_t kind, object v, ComputationGraph g, object plain) except -1:
        parts = _parts_of(v)
        self.shape.push_back(kind | <uint32_t> len(parts) << 8)
        return self.push_each(v, parts, g, plain)

    cdef int push_tuple(self, ComputationGraph g, tuple v, object plain) except -1:
        """The same, quicker for integers in it."""
        cdef PyObject* one
        cdef Py_ssize_t k
        cdef int32_t n
        if plain is not None:
            return self.push_parts(PART_TUPLE, v, g, plain)
        self.shape.push_back(PART_TUPLE | <uint32_t> len(v) << 8)
        enter_nested(b" in arguments that are nested too deep")
        try:
            for k in range(len(v)):
                one = PyTuple_GET_ITEM(v, k)   # not counted: v holds it
                if PyLong_CheckExact(<object> one) and _may_choose(<object> one, &n):
                    self.shape.push_back(PART_INTEGER)
                    self.ints.push_back(n)
                elif PyTuple_CheckExact(<object> one):
                    self.push_tuple(g, <tuple> <object> one, None)
                else:
                    self.push(g, <object> one, None)
        finally:
            leave_nested()
        return 0

    cdef int push_each(self, object v, object parts, ComputationGraph g, object plain) except -1:
        enter_nested(b" in arguments that are nested too deep")
        try:
            if type(plain) is dict:
                for key, one in zip(_keys_of(v), parts):
                    self.push(g, one, plain.get(key))
            else:
                for one in parts:
                    self.push(g, one, plain)
        finally:
            leave_nested()
        return 0

    cdef int push_integers(self, object v, object plain, str what) except -1:
        """An array of integers; one without dims counts as an integer."""
        cdef int32_t n
        cdef Py_ssize_t k
        _see_unmasked(v, what)
        if v.ndim == 0:
            return self.push(None, int(v), plain)
        cdef object kind = v.dtype, extents = v.shape
        cdef uint32_t* to = self.shape.extend(2 + len(extents))
        to[0] = PART_INTEGERS | <uint32_t> len(extents) << 8
        to[1] = kind.num
        for k in range(len(extents)):
            to[2 + k] = extents[k]
        if plain is True:
            self.push_object(kind.str)
            return self.push_object(v.tobytes())
        for one in v.tolist() if len(extents) == 1 else np.asarray(v).ravel().tolist():
            if _may_choose(one, &n):
                self.shape.push_back(PART_INTEGER)
                self.ints.push_back(n)
            else:
                self.push_object(one)
        return 0

    cdef object push_names(self, object v):
        """What there is to tell of a dict, or of an object of a dataclass, besides its parts, which it gives."""
        names, kind = v, PART_DICT
        if type(v) is not dict:
            names, kind = _attributes_of(v), PART_ATTRIBUTES
            self.push_object(type(v))
        self.shape.push_back(<uint32_t> kind | <uint32_t> len(names) << 8)
        self.objects.extend(names)
        return _parts_of(v)

    cdef int push(self, ComputationGraph g, object v, object plain) except -1:
        """plain: True where integers are objects, a dict that says so of parts by their keys, or None. No graph: for a
        compiled function, which takes arrays and no expressions.
        """
        cdef object kind = type(v)
        cdef int32_t n
        if kind is int and plain is not True and _may_choose(v, &n):
            self.shape.push_back(PART_INTEGER)
            self.ints.push_back(n)
            return 0
        if kind is tuple:   # early: trees are nested tuples
            return self.push_tuple(g, v, plain)
        if v is None or kind is str or kind is float:
            return self.push_object(v)
        if g is None and isinstance(v, (_array_type, _floating_type, Expression)):
            return _push_data(self, v, plain)
        if kind is Expression:
            return self.push_node(g, _arg(g, v))
        if kind is State:
            self.push_object((<State> v).names)
            return self.push_parts(PART_STATE, v, g, plain)
        if kind is list or kind is ExpressionList:
            return self.push_parts(PART_LIST, v, g, plain)
        if kind is dict:
            return self.push_each(v, self.push_names(v), g, plain)
        if isinstance(v, tuple):
            self.push_object(kind)
            return self.push_parts(PART_TUPLE, v, g, plain)
        if isinstance(v, Expression) and kind is not LookupParameters:
            return self.push_node(g, _arg(g, v))
        if isinstance(v, np.integer):
            return self.push(g, int(v), plain)
        if isinstance(v, np.floating):
            return self.push_object(float(v))   # by its value
        if isinstance(v, _array_type):
            if v.dtype.kind in "iu":
                return self.push_integers(v, plain, "cell")
            raise TypeError("[cell] an array as an argument: make an expression of it with inputTensor()")
        if not _is_of_dataclass(v) or _is_among(self.within, v):
            return self.push_whole(g, v)
        self.within.append(v)
        try:
            return self.push_each(v, self.push_names(v), g, plain)
        finally:
            self.within.pop()


cdef inline uint32_t _role(ComputationGraph g, NodeId id):
    return (ROLE_ROW if g.c.is_row(id) else 0) | (ROLE_WEIGHT if g.c.node(id).flags & kWeight else 0)


cdef object _kept(object v, object gone):
    """An object as a template keeps it: a value, or a reference that does not keep it in memory, and calls gone(_)."""
    if type(v) in _value_types or isinstance(v, type):
        return v
    try:
        return weakref.ref(v, gone)
    except TypeError:
        return v

def _emptying(list read not None):
    """To be called when an object goes: what was read of it goes, too."""
    def gone(_):
        read.clear()
    return gone

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
    cdef size_t n_ids, n_ints, n_numbers   # of them when it was recorded
    cdef list objects
    cdef list read               # what the function may read of these; None: nothing
    cdef list outside            # (reference to a weight, for single rows, was it updated)
    cdef uint32_t passes         # that have looked at the body
    cdef bint any_graph          # whatever its passes are
    cdef Vec[NodeId] entered     # these in a graph:
    cdef uint32_t generation     # of the nodes that it made then,
    cdef uint64_t frozen         # when weights had been frozen so often
    cdef uint64_t call           # the last one,
    cdef bint copies             # at each of which rows of tables are copied
    cdef object result           # an int: an output; tuple, list or State of such; anything else inside _Constant
    cdef Vec[uint32_t] out       # value of each output
    cdef Vec[uint32_t] handed    # what the result looks like as an argument, once it has been one, if it is flat
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
        return self.read is None or _unchanged(self.read)

    cdef int note(self, Frame f, Cell c) except -1:
        """The arguments that it is for."""
        cdef size_t n = f.shape.size()
        self.shape.resize(n)
        if n:
            memcpy(self.shape.data(), f.shape.data(), n * sizeof(uint32_t))
        cdef list read = c.read_of(f.objects)
        self.read = read or None
        gone = None if self.read is None else _emptying(read)
        self.objects = [_kept(v, gone) for v in f.objects]
        return 0

    cdef bint is_of(self, Frame f):
        """Were the arguments the same when it was recorded? A tuple of the user's kind may give other items each time."""
        return self.n_ids == f.ids.size() and self.n_ints == f.ints.size() and self.n_numbers == f.numbers.size()

    cdef bint enter(self, ComputationGraph g) except -1:
        """Weights into the graph; False when one is gone, or passes would see others: which are on, what is frozen."""
        if self.copies and self.call != _n_calls:
            settle()
        self.call = _n_calls
        if self.generation == g.c.generation() and self.frozen == _n_frozen:
            return True
        return self._enter(g)

    cdef bint _enter(self, ComputationGraph g) except -1:
        cdef Py_ssize_t k
        if not self.any_graph and passes_ahead(g.x.passes()) != self.passes:
            return False
        for k in range(len(self.outside)):
            ref, rows, updated = <tuple> (<list> self.outside)[k]
            weight = ref()
            if weight is None or not self.any_graph and weight.is_updated() != updated:
                return False
            self.entered[k] = (<LookupParameters> weight).rows_node(g) if rows else (<Expression> weight).enter(g)
        self.body.enter(deref(g.c), self.entered.data())
        self.generation, self.frozen = g.c.generation(), _n_frozen
        return True

    cdef int add(self, ComputationGraph g, Frame f, Py_ssize_t calls=1) except -1:
        """Adds the nodes of calls. The frame has the outputs then: the body belongs to all threads."""
        cdef size_t n = self.out.size()
        f.see_graph(g)
        if self.generation != g.c.generation() and not self.enter(g):   # for another graph since find()
            raise RuntimeError("[cell] a weight that it reads is gone")
        f.outputs.resize(calls * n)
        self.body.add_to(deref(g.c), <uint32_t> calls, f.ids.data(), f.ints.data(), <uint32_t> self.n_ints,
                         self.out.data(), <uint32_t> n, f.outputs.data())
        return 0

    cdef object built(self, ComputationGraph g, Frame f, object part):
        """A part of the result of the call that the frame was added for."""
        if type(part) is int:
            f.see_graph(g)   # the user's kinds of tuples are made by code of the user's
            return _expression(g, f.outputs[<size_t> part])
        if type(part) is _Constant:
            return (<_Constant> part).value
        return _made_like(part, [self.built(g, f, one) for one in _parts_of(part)])

    cdef object answer(self, ComputationGraph g, Frame f, Py_ssize_t call=0):
        """The whole result, of the first call if it is not flat."""
        cdef Py_ssize_t k, n
        cdef tuple parts
        if self.flat == 1:
            return _expression(g, f.outputs[call])
        if self.flat == 0:
            return self.built(g, f, self.result)
        n = <Py_ssize_t> self.out.size()
        parts = PyTuple_New(n)
        f.see_graph(g)   # garbage may have been collected, and code of the user's run
        for k in range(n):
            e = _expression(g, f.outputs[call * n + k])
            Py_INCREF(e)
            PyTuple_SET_ITEM(parts, k, e)
        PyObject_GC_UnTrack(parts)   # the cycle collector does not look into expressions
        return parts if self.flat == 2 else _state_of((<State> self.result).names, parts)

    cdef int hand_on_all(self, ComputationGraph g, Frame f, const NodeId* outputs) except -1:
        """The whole result as an argument of the next call. What it looks like is the same after each call."""
        cdef size_t n, begin = f.shape.size()
        if self.flat == 0 or self.handed.empty():
            self.hand_on(g, f, self.result, outputs)
            if self.flat == 0:
                return 0
            n = f.shape.size() - begin
            memcpy(self.handed.extend(n), f.shape.data() + begin, n * sizeof(uint32_t))
            return 0
        if self.flat == 3:
            f.objects.append((<State> self.result).names)
        n = self.handed.size()
        memcpy(f.shape.extend(n), self.handed.data(), n * sizeof(uint32_t))
        n = self.out.size()
        memcpy(f.ids.extend(n), outputs, n * sizeof(NodeId))
        return 0

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
        if type(part) is not list and not isinstance(part, tuple):
            for one in f.push_names(part):
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
