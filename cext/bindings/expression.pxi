# Expression: a handle to a node. Arguments, operators, values.

cdef extern from "recycle.h" namespace "dnl":
    void recycle(object type)
    object one_like(PyObject* empty)
    int put_item(list items, Py_ssize_t i, object o) except -1

_new_array = np.empty

cdef object _elsewhere(str name):
    return _Elsewhere(name, _pytorch_names.EXPRESSION[name])

# Expressions refer to their graph and nothing refers back, so the cycle collector need not see them.
@cython.no_gc
cdef class Expression:
    """A value that will be computed: a node of a graph.

    Its shape is known at once. Its numbers are computed when ``value()``, ``npvalue()``, ``forward()`` or
    ``backward()`` asks for them. ``*`` and ``@`` are the matrix product; ``+``, ``-``, ``/`` and ``cmult`` work element
    by element and broadcast. Unlike NumPy's, dims are aligned from the first.
    """
    cdef ComputationGraph graph   # None in weights, which outlive graphs
    cdef NodeId id
    cdef uint32_t stamp
    cdef Handle handle   # counted by the graph: what no expression refers to may be fused into its reader
    cdef object __weakref__

    # NumPy arrays on the left leave operators to us. There is no __array_ufunc__: NumPy's functions then ask __array__,
    # which says what is wrong.
    __array_priority__ = 1000

    # Names of PyTorch's, which say what to write instead.
    cpu = _elsewhere("cpu")
    cuda = _elsewhere("cuda")
    data = _elsewhere("data")
    detach = _elsewhere("detach")
    grad = _elsewhere("grad")
    mean = _elsewhere("mean")
    requires_grad = _elsewhere("requires_grad")
    requires_grad_ = _elsewhere("requires_grad_")
    size = _elsewhere("size")
    squeeze = _elsewhere("squeeze")
    sum = _elsewhere("sum")
    to = _elsewhere("to")
    unsqueeze = _elsewhere("unsqueeze")
    view = _elsewhere("view")

    def __dir__(self):
        return _pytorch_names.listed(self)

    def __init__(self, *args, **kwargs):
        """An empty placeholder, as in DyNet: of no use until a real expression takes its place. TypeError for any
        argument.
        """
        if args or kwargs or type(self) is not Expression:
            raise _made_by_class(self)

    cdef NodeId use(self) except? 0xffffffff:
        """The node in its own graph; an error when it is gone."""
        if self.graph is None or not self.graph.c.valid(self.id, self.stamp):
            raise _stale(self)
        return self.id

    cdef ComputationGraph home(self):
        """The graph of the node that use() gives."""
        return self.graph

    cdef NodeId enter(self, ComputationGraph g) except? 0xffffffff:
        """The node in graph g; parameters enter a new graph by themselves."""
        if self.graph is None or not self.graph.c.valid(self.id, self.stamp):
            raise _stale(self)
        if g.trace is not None:
            raise g.trace.not_an_argument()
        raise _errors.StaleExpressionError("[Expression] made in another graph than the current one; a node may only "
                                           "use nodes of its own graph")

    # ---- shape -------------------------------------------------------------------------------------------------
    def dim(self):
        """((d1, d2, ...), batch size). Known before anything is computed."""
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        found = _dim_tuple(g.c.dim(i))
        return found if g.sized is None else (found[0], g.sized(self, found[1]))

    @property
    def shape(self):
        """The dims (d1, d2, ...), without the mini-batch."""
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        return _shape_of(g.c.dim(i))

    @property
    def batch_size(self):
        """The number of batch elements; 1 if there is no mini-batch."""
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        return g.c.dim(i).bd if g.sized is None else g.sized(self, g.c.dim(i).bd)

    @property
    def ndim(self):
        """The number of dims, without the mini-batch."""
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        return g.c.dim(i).nd

    def __len__(self):
        """The size of the first dim."""
        return self.shape[0]

    @property
    def T(self):
        """The transpose: {m,n} -> {n,m}; {n} -> {1,n}. With more than two dims, all of them in reverse order."""
        nd = self.ndim
        return _transpose(self, (1, 0) if nd <= 2 else tuple(range(nd - 1, -1, -1)))

    # ---- values ------------------------------------------------------------------------------------------------
    cdef object _array(self, bint recalculate, dtype):
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        if recalculate:
            g.outdate()
        g.run_to(i)
        i = self.use()
        return self._copy_out(g, i, dtype)

    cdef object _copy_out(self, ComputationGraph g, NodeId i, dtype):
        cdef Dim d = g.c.dim(i)   # a copy: NumPy lets other threads in
        cdef size_t k, n = d.size()
        cdef float few[256]
        cdef double* doubles
        cdef Py_buffer buffer   # a typed view costs as much as the rest
        if n <= 256 and dtype is np.float64:  # scores of a decision: what a greedy parser reads at each step
            flat = _new_array(n)
            g.x.read_value(i, few)
            PyObject_GetBuffer(flat, &buffer, PyBUF_WRITABLE)
            doubles = <double*> buffer.buf
            for k in range(n):
                doubles[k] = few[k]
            PyBuffer_Release(&buffer)
            return flat if d.nd == 1 and d.bd == 1 else flat.reshape(_numpy_shape(d), order="F")
        flat = np.empty(n, dtype=np.float32)
        cdef float[::1] view = flat
        g.x.read_value(i, &view[0])
        if dtype is not np.float32:
            flat = flat.astype(dtype)
        return flat.reshape(_numpy_shape(d), order="F")

    def npvalue(self, recalculate=False):
        """The value as a float64 array of shape (d1, d2, ...). A mini-batch of more than one is a last axis.

        ``recalculate=True`` runs the graph again, with new random numbers.
        """
        return self._array(_truth(recalculate, "[npvalue] recalculate"), np.float64)

    def numpy(self):
        """The value as a float32 array, shaped like npvalue()."""
        return self._array(False, np.float32)

    def __array__(self, dtype=None, copy=None):
        """Numbers for NumPy, if it is told of which type: ``np.asarray(x, dtype=float)``.

        Without a dtype a TypeError, because numbers have no gradients, and ``np.array([E[0], E[1]])`` would lose them
        silently. Where dynet_lite stands in for DyNet the expression becomes an object, as there.
        """
        if dtype is not None and np.dtype(dtype) != object:
            return self._array(False, np.dtype(dtype))
        if dtype is None and not _settings.is_dynet:
            raise TypeError("[Expression] NumPy would make numbers of an expression, and gradients would be lost. "
                            "Use the functions of dynet_lite (dy.tanh(x), dy.esum(xs), dy.concatenate(xs)) and lists; the "
                            "numbers are x.npvalue(), or np.asarray(x, dtype=float)")
        box = np.empty((), dtype=object)
        box[()] = self
        return box

    def vec_value(self, recalculate=False):
        """All numbers as a flat list: column-major, one batch element after another."""
        return self._as_list(_truth(recalculate, "[vec_value] recalculate"))

    cdef list _as_list(self, bint recalculate):
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        if recalculate:
            g.outdate()
        g.run_to(i)
        i = self.use()
        cdef size_t k, n = g.c.dim(i).size()
        cdef float few[256]
        if n > 256:
            return self._copy_out(g, i, np.float64).ravel(order="F").tolist()
        g.x.read_value(i, few)
        return [<double> few[k] for k in range(n)]

    def scalar_value(self, recalculate=False):
        """The value as a float. ValueError unless the expression is one number."""
        return self._number(_truth(recalculate, "[scalar_value] recalculate"))

    cdef double _number(self, bint recalculate) except? -77:
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        if g.c.dim(i).size() != 1:
            raise ValueError(f"[scalar_value] needs one number; got {g.c.dim(i).text().decode()}")
        if recalculate:
            g.outdate()
        g.run_to(i)
        i = self.use()   # other threads were let in
        cdef float v
        g.x.read_value(i, &v)
        return v

    def item(self):
        """The value as a float. ValueError unless the expression is one number."""
        return self.scalar_value()

    def __float__(self):
        return self.scalar_value()

    def value(self, recalculate=False):
        """The value: of one number a float, of a vector a flat list, with two dims or more an array as from npvalue()."""
        cdef bint again = _truth(recalculate, "[value] recalculate")   # may run the user's code: before use()
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        cdef const Dim* d = &g.c.dim(i)
        if d.nd <= 1:
            return self._number(again) if d.size() == 1 else self._as_list(again)
        return self.npvalue(again)

    def set_index(self, i):
        """Let an expression of pick() (also ``e[3]``) or pick_batch() pick another place. The graph then runs again.

        IndexError if i is out of range, TypeError if the expression was not made by these.
        """
        cdef OpId op = self._picked_by()
        cdef Word w
        cdef uint32_t k
        new = [_int32(i, "[set_index] an index")] if op == OP__pick else [_int32(one, "[set_index] an index") for one in i]
        settle()
        op = self._picked_by()   # again: what gives an index may have renewed the graph
        cdef NodeId node = self.use()
        cdef ComputationGraph g = self.home()
        if op == OP__pick_batch and len(new) != <uint32_t> g.c.member(node)[0].i:
            raise ValueError(f"[set_index] {g.c.member(node)[0].i} indices are needed; got {len(new)}")
        old = [g.c.member(node)[k + (op == OP__pick_batch)].i for k in range(len(new))]
        try:
            for k in range(len(new)):
                w.i = new[k]
                g.c.set_member_word(node, k + (op == OP__pick_batch), w)
        except IndexError as error:
            for k in range(len(new)):
                w.i = old[k]
                g.c.set_member_word(node, k + (op == OP__pick_batch), w)
            raise _at_user(error)
        g.outdate()

    cdef OpId _picked_by(self) except *:
        """Op of a node whose index can be set."""
        cdef NodeId node = self.use()
        cdef ComputationGraph g = self.home()
        cdef OpId op = g.c.signature(node).op
        if (not g.c.is_op(node) and not g.c.node(node).flags & kAlias
                or op not in (OP__pick, OP__pick_batch)):
            raise TypeError("[set_index] this expression was not made by pick() or pick_batch()")
        return op

    def tensor_value(self, recalculate=False):
        """The value as a Tensor, with the methods as_numpy(), argmax(), topk() and categorical_sample_log_prob()."""
        global _Tensor
        if _Tensor is None:
            from dynet_lite.tensor import Tensor
            _Tensor = Tensor
        return _Tensor(self._array(_truth(recalculate, "[tensor_value] recalculate"), np.float64), self.dim())

    def forward(self, recalculate=False):
        """Compute the value, and everything else that is pending."""
        cdef bint again = _truth(recalculate, "[forward] recalculate")   # may run the user's code: before use()
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        if again:
            g.outdate()
        g.run_to(i)

    def backward(self, full=False):
        """Compute the gradients of this number, and add them to those of the parameters it depends on.

        ``full=True`` also keeps the gradients of inputs and constants, for gradient(). ValueError unless the expression
        is one number.

        Nodes that ran before an update get gradients at the weights that they read: the weights before the last 8
        updates of this thread are kept, and of small weights more. RuntimeError if older ones are needed.
        """
        cdef bint all_nodes = _truth(full, "[backward] full")   # may run the user's code: before the node is asked for
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        g.run_backward(i, all_nodes)

    def gradient(self):
        """The gradient of the last backward() with respect to this expression, as an array shaped like npvalue().

        Unless it was backward(full=True), 0 for what depends on no weight that is updated, such as an input.
        RuntimeError if there was no backward(), or if this is a weight whose accumulated gradient has changed since
        then, by an update or another backward(). ``weight.grad_as_array()`` is the accumulated gradient.
        """
        cdef NodeId i = self.use()
        cdef ComputationGraph g = self.home()
        settle()
        i = self.use()   # other threads were let in
        cdef Dim d = g.c.dim(i)
        flat = np.empty(d.size(), dtype=np.float32)
        cdef float[::1] view = flat
        cdef GradientRead what = g.x.read_gradient(i, &view[0])
        if what != GradientRead.Given:
            raise RuntimeError(_why_no_gradient(what))
        return flat.astype(np.float64).reshape(_numpy_shape(d), order="F")

    # ---- operators ---------------------------------------------------------------------------------------------
    def __add__(self, other):
        if isinstance(other, Expression):
            return _op2(OP_add, self, other)
        if _is_number(other):
            return _op1f(OP_add_const, self, other)
        return _op2(OP_add, self, other) if _is_array(other) else NotImplemented

    def __radd__(self, other):
        if _is_number(other):
            return _op1f(OP_add_const, self, other)
        return _op2(OP_add, other, self) if _is_array(other) else NotImplemented

    def __sub__(self, other):
        if isinstance(other, Expression):
            return _op2(OP_sub, self, other)
        if _is_number(other):
            return _op1f(OP_add_const, self, -<double> other)   # NumPy's integers have no sign, or too few numbers
        return _op2(OP_sub, self, other) if _is_array(other) else NotImplemented

    def __rsub__(self, other):
        if _is_number(other):
            return _op1f(OP_const_minus, self, other)
        return _op2(OP_sub, other, self) if _is_array(other) else NotImplemented

    def __mul__(self, other):
        if isinstance(other, Expression):
            return _op2(OP_matmul, self, other)
        if _is_number(other):
            return _times(self, other)
        return _op2(OP_matmul, self, other) if _is_array(other) else NotImplemented

    def __rmul__(self, other):
        if _is_number(other):
            return _times(self, other)
        return _op2(OP_matmul, other, self) if _is_array(other) else NotImplemented

    def __matmul__(self, other):
        return _op2(OP_matmul, self, other)

    def __rmatmul__(self, other):
        return _op2(OP_matmul, other, self)

    def __truediv__(self, other):
        if isinstance(other, Expression):
            return _op2(OP_cdiv, self, other)
        if _is_number(other):
            return _divided(self, other)
        return _op2(OP_cdiv, self, other) if _is_array(other) else NotImplemented

    def __rtruediv__(self, other):
        if _is_number(other):
            return _dividing(self, other)
        return _op2(OP_cdiv, other, self) if _is_array(other) else NotImplemented

    def __pow__(self, other, modulo):
        if isinstance(other, Expression):
            return _op2(OP_pow, self, other)
        if _is_number(other):
            return _op1f(OP_pow_const, self, other)
        return NotImplemented

    def __rpow__(self, other, modulo):
        if _is_number(other):
            return _as_base(self, other)
        return NotImplemented

    def __neg__(self):
        return _op1(OP_negate, self)

    def __pos__(self):
        return self

    def __abs__(self):
        return _op1(OP_abs, self)

    def __bool__(self):
        _see_not_given(self, 0)   # asks whether it is 0
        return True   # as in DyNet: `cache = cache or expression` is common

    def __eq__(self, other):
        _see_not_given(self, other)
        return True if self is other else NotImplemented

    def __hash__(self):
        return _key_of(self)

    def __lt__(self, other):
        raise _no_order(self)

    def __le__(self, other):
        raise _no_order(self)

    def __gt__(self, other):
        raise _no_order(self)

    def __ge__(self, other):
        raise _no_order(self)

    def __getitem__(self, index):
        global _getitem
        if _getitem is None:
            from dynet_lite.indexing import getitem
            _getitem = getitem
        cdef Expression part
        try:
            if type(index) is int:
                return _pick(self, index, 0)
            if type(index) is slice or type(index) is tuple:
                part = _plain_part(self, index)
                if part is not None:
                    return part
            return _getitem(self, index)
        except Exception as error:
            raise _at_user(_said_by("x[...]", error))

    def __iter__(self):
        cdef uint32_t k
        for k in range(len(self)):
            yield self[k]

    def __str__(self):
        return repr(self)

    def __repr__(self):
        if self.stamp == 0:
            return "<empty expression>"
        if self.graph is None or not self.graph.c.valid(self.id, self.stamp):
            return "<expression of a graph that is gone>"
        text = f"<expression {self.id}: {self.graph.c.describe(self.id).decode()}"
        settle()
        if self.graph.trace is None and self.graph.x.done(self.id) and self.graph.c.dim(self.id).size() <= 8:
            text += " = " + np.array2string(self._copy_out(self.graph, self.id, np.float32), precision=5, separator=", ")
        return text + ">"

    def __reduce__(self):
        raise TypeError("[Expression] an expression is a part of a graph and cannot be pickled; pickle its npvalue()")


cdef object _getitem = None   # dynet_lite/indexing.py, once it is needed
cdef object _Tensor = None    # dynet_lite/tensor.py, likewise

cdef object _made_by_class(object e):
    return TypeError(f"[{type(e).__name__}] expressions come from functions (inputTensor, lookup, tanh, ...) and "
                     "parameters from a collection; only Expression(), an empty placeholder, is made by its class")

cdef str _why_no_gradient(GradientRead what):
    if what == GradientRead.Gone:
        return ("[gradient] that of the last backward() is gone: the weight's gradients were changed since, as by an "
                "update; ask before that")
    if what == GradientRead.Summed:
        return ("[gradient] nothing referred to this row when backward() was called, so it was only added to the "
                "gradients of the table: row_grad_as_array()")
    return "[gradient] call backward() on a later expression first"

cdef tuple _numpy_shape(const Dim& d):
    shape = _shape_of(d)
    return shape + (d.bd,) if d.bd != 1 else shape

cdef object _stale(Expression e):
    if isinstance(e, Parameters) or isinstance(e, LookupParameters):
        return _errors.StaleExpressionError("[Parameters] not in a graph")
    if e.stamp == 0:
        return _errors.StaleExpressionError("[Expression] empty: a placeholder made by Expression() that nothing replaced")
    return _errors.StaleExpressionError(
        "[Expression] stale: it belongs to a graph that was renewed, reverted or closed; build it again after renew_cg()")

cdef inline bint _is_number(object v):
    return type(v) is float or type(v) is int or isinstance(v, (int, float, np.number))

cdef inline bint _is_array(object v):
    return isinstance(v, np.ndarray)

cdef double _LARGEST = 3.4028234e38   # of the numbers that a float32 holds: NumPy warns of larger ones

cdef Expression _coerce(ComputationGraph g, object v):
    """An expression from an array or a number; anything else is an error.

    None of the user's code runs here, so arguments beside it stay: what only says that it is an array is none.
    """
    if type(v) is float and -_LARGEST < <double> v < _LARGEST or type(v) is int and -(1 << 53) < v < 1 << 53:
        return scalarInput(v)
    if issubclass(type(v), (np.ndarray, np.number)) or type(v) is float or type(v) is int:
        _see_unmasked(v, "Expression")
        return inputTensor(np.atleast_1d(np.asarray(v)))
    raise TypeError(f"[Expression] an expression, an array or a number is needed; got {_shown(v)}")

cdef inline NodeId _arg(ComputationGraph g, object v) except? 0xffffffff:
    """The node of an argument in graph g."""
    cdef Expression e
    if isinstance(v, Expression):
        e = <Expression> v
    else:
        e = _coerce(g, v)
    if g.c.valid(e.id, e.stamp):  # no other graph has its stamp
        return e.id
    return e.enter(g)

cdef inline NodeId _arg_of(OpId op, ComputationGraph g, object v) except? 0xffffffff:
    """The node of an argument of an op, which messages name."""
    if isinstance(v, Expression) and g.c.valid((<Expression> v).id, (<Expression> v).stamp):
        return (<Expression> v).id
    return _other_arg_of(op, g, v)

cdef NodeId _other_arg_of(OpId op, ComputationGraph g, object v) except? 0xffffffff:
    try:
        return _arg(g, v)
    except Exception as error:
        raise _at_user(_said_by(called(op_def(op)).decode(), error))

cdef object _said_by(str called, object error):
    """The error of something inside, in the name of what was called; the user's own stays."""
    if len(error.args) == 1 and type(error.args[0]) is str:
        name, end, rest = (<str> error.args[0]).partition("] ")
        if end and name[1:] in _INSIDE:
            error.args = (f"[{called}] {rest}",)
    return error

# Arguments, and the ops that indices become.
cdef frozenset _INSIDE = frozenset(("Expression", "inputTensor", "pick", "pick_batch_elems", "pick_range", "reshape",
                                    "select_cols", "select_rows", "strided_select"))

cdef int _push_args(OpId op, ComputationGraph g, object es) except -1:
    cdef NodeId id
    if _nodes_of(g, es) != NULL:
        return _push_nodes(g.args, g, es)
    for e in es:
        id = _arg_of(op, g, e)
        g.args.push_back(id)
    return 0

cdef Expression _empty = Expression.__new__(Expression)
recycle(Expression)

cdef inline Expression _referring(Expression empty, ComputationGraph g, NodeId id):
    """An expression like an empty one, of node id."""
    cdef Expression e = <Expression> one_like(<PyObject*> empty)
    e.graph = g
    e.id = id
    e.stamp = g.c.stamp(id)
    e.handle.take(deref(g.c), id, e.stamp)
    return e

cdef inline Expression _expression(ComputationGraph g, NodeId id):
    return _referring(_empty, g, id)

cdef inline Expression _made(ComputationGraph g, NodeId id):
    if g.immediate or g.checked:
        g.node_added(id)
    return _expression(g, id)

cdef Expression _op1(OpId op, object x):
    cdef ComputationGraph g = _current()
    cdef NodeId a = _arg_of(op, g, x)
    return _made(g, g.c.add_unary(op, a))

cdef Expression _op2(OpId op, object x, object y):
    cdef ComputationGraph g = _current()
    cdef uint32_t begun = g.c.generation()
    cdef NodeId a[2]
    a[0] = _arg_of(op, g, x)
    a[1] = _arg_of(op, g, y)
    if g.c.generation() != begun:   # NumPy's warnings may call the user's code
        raise RuntimeError("[graph] it was renewed or reverted while an argument was read")
    return _made(g, g.c.add(op, a, 2, NULL, 0, NULL, 0))

cdef Expression _op1f(OpId op, object x, object c):
    """An op of one argument and one number, which is a member attribute."""
    cdef Word w
    w.f = c   # first: it may run the user's code, which may renew the graph
    cdef ComputationGraph g = _current()
    cdef NodeId a = _arg_of(op, g, x)
    return _made(g, g.c.add(op, &a, 1, NULL, 0, &w, 1))

cdef Expression _op(ComputationGraph g, OpId op):
    """The node described by g.args, g.keys and g.members."""
    cdef NodeId id = g.c.add(op, g.args.data(), <int> g.args.size(), g.keys.data(), <int> g.keys.size(),
                             g.members.data(), <int> g.members.size())
    if g.trace is not None:
        g.trace.node_made(id)
    return _made(g, id)

cdef Expression _op_of_turn(ComputationGraph g, OpId op, uint32_t turn):
    """As _op, for arguments that came from Python: reading one may have run code that made nodes."""
    if g.turn != turn:
        raise RuntimeError("[graph] an argument made nodes while it was read; make a list of it first")
    return _op(g, op)
