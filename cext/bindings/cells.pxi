# Recurrent layers: the nodes of a step or of a whole sequence in one call. Used by dynet_lite/builders.

cdef extern from "graph/cell_layer.h" namespace "dnl":
    cdef cppclass CellKind:
        OpId project
        OpId mask
        OpId first
        OpId step
        int n_u
        int n_first
        bint has_cell
        Word key
        int n_key
    cdef cppclass CellLayer:
        NodeId b
        NodeId wx
        NodeId u[3]
        NodeId mask_x
        NodeId mask_h
        NodeId masked_x(CGraph&, const CellKind&, NodeId) except +raise_python_error
        NodeId masked_h(CGraph&, const CellKind&, NodeId) except +raise_python_error
        NodeId project(CGraph&, const CellKind&, NodeId) except +raise_python_error
        NodeId cell(CGraph&, const CellKind&, NodeId, NodeId, NodeId) except +raise_python_error
        NodeId step(CGraph&, const CellKind&, NodeId, NodeId, NodeId) except +raise_python_error
        void along(CGraph&, const CellKind&, NodeId*, uint32_t, const int32_t*, bint, NodeId,
                   NodeId) except +raise_python_error

cdef extern from *:
    """
    #include "base/few.h"
    using CellLayers = dnl::Few<dnl::CellLayer, 4>;
    using CellWeights = dnl::Few<dnl::NodeId, 48>;
    """
    cdef cppclass CellLayers:
        size_t size()
        CellLayer& operator[](size_t)
        void push_back(const CellLayer&)
    cdef cppclass CellWeights:
        size_t size()
        NodeId& operator[](size_t)
        void push_back(const NodeId&)

cdef NodeId NO_NODE = 0xffffffff

# kind: op of the first step, op of further steps, recurrent weights, those of them that the first step takes too
# (the last n), has a cell state, has a forget bias
cdef dict CELL_KINDS = {
    "lstm": (OP__lstm_start, OP__lstm_step, 1, 0, True, True),
    "rnn": (OP_tanh, OP__rnn_step, 1, 0, False, False),
    "gru": (OP__gru_start, OP__gru_step, 2, 0, False, False),
    "coupled": (OP__coupled_lstm_start, OP__coupled_lstm_step, 3, 1, True, False),
    "fast": (OP__coupled_lstm_start, OP__coupled_lstm_step, 1, 0, True, False),
}


# no_gc: nothing that it holds refers back to it.
@cython.final
@cython.no_gc
cdef class CellStack:
    """The layers of a recurrent builder in one graph. Each step of a layer is an input projection and a cell node.

    ``layers``: per layer (b, Wx, recurrent weights), all of them expressions of the current graph or tuples of some, which
    are joined.
    """
    cdef GraphLink link     # of their graph: builders keep stacks
    cdef NodeId last        # the newest of the weights: while it is there, all are
    cdef uint32_t stamp
    cdef uint64_t made_after   # how many updates there had been
    cdef object given       # the layers as given, if they are made of parameters alone, which enter any graph; else None
    cdef CellLayers layers
    cdef CellKind kind
    cdef list alone         # see apart()

    def __cinit__(self):
        self.link = GraphLink()

    def __init__(self, str kind not None, layers, float forget_bias=1.0):
        first_op, step_op, n_u, n_first, has_cell, has_key = CELL_KINDS[kind]
        self.kind.project, self.kind.mask, self.kind.first, self.kind.step = OP_affine_transform, OP_cmult, first_op, step_op
        self.kind.n_u, self.kind.n_first = n_u, n_first
        self.kind.has_cell = has_cell
        self.kind.key.f = forget_bias
        self.kind.n_key = 1 if has_key else 0
        for layer in layers:
            if len(layer[2]) != self.kind.n_u:
                raise ValueError(f"[{kind}] {n_u} recurrent weights are needed; got {len(layer[2])}")
        self._enter(layers)

    cdef CellStack again(self):
        """The same layers in the current graph; None if more than parameters is needed to make them."""
        if self.given is None:
            return None
        cdef CellStack stack = CellStack.__new__(CellStack)
        stack.kind = self.kind
        stack._enter(self.given)
        return stack

    cdef CellStack _empty(self):
        """One of this graph and kind, for layers to come."""
        cdef CellStack stack = CellStack.__new__(CellStack)
        stack.link, stack.last, stack.stamp, stack.kind = self.link, self.last, self.stamp, self.kind
        stack.made_after = self.made_after
        return stack

    def masked(self, builder, batch_size):
        """The same layers with new masks on inputs and previous h's, for inputs of this batch size."""
        cdef CellLayer l
        cdef Py_ssize_t layer, n = <Py_ssize_t> self.layers.size()
        cdef ComputationGraph g = self._graph()
        cdef CellStack stack = self._empty()
        p, p_h = builder._rates
        size = builder.input_dim
        for layer in range(n):
            l = self.layers[layer]
            l.mask_x = stack._mask(g, size, p, batch_size)
            size = builder.hidden_dim
            l.mask_h = stack._mask(g, size, p_h, batch_size)
            stack.layers.push_back(l)
        stack.stamp = g.c.stamp(stack.last)
        return stack

    cdef NodeId _mask(self, ComputationGraph g, size, p, batch_size) except? 0xffffffff:
        mask = _drop_mask(size, p, batch_size)
        return NO_NODE if mask is None else self._weight(g, mask)

    def apart(self):
        """A stack of each layer alone; the same ones for all who ask."""
        cdef Py_ssize_t layer, n = <Py_ssize_t> self.layers.size()
        cdef CellStack stack
        if self.alone is None:
            self.alone = []
            for layer in range(n):
                stack = self._empty()
                stack.layers.push_back(self.layers[layer])
                self.alone.append(stack)
        return self.alone

    cdef int _enter(self, layers) except -1:
        cdef CellLayer l
        cdef int k
        cdef ComputationGraph g = _current()
        self.link, self.given, self.made_after = g.link, layers, _n_updates
        self.last = 0
        for layer in layers:
            l.b = self._weight(g, layer[0])
            l.wx = self._weight(g, layer[1])
            for k in range(self.kind.n_u):
                l.u[k] = self._weight(g, layer[2][k])
            l.mask_x = l.mask_h = NO_NODE
            self.layers.push_back(l)
        self.stamp = g.c.stamp(self.last)
        return 0

    cdef NodeId _weight(self, ComputationGraph g, e) except? 0xffffffff:
        cdef NodeId id
        cdef Word dim
        if type(e) is tuple:
            g.row.clear()
            for part in <tuple> e:
                id = self._part(g, part)
                g.row.push_back(id)
            dim.i = 0
            id = self._node(g, OP_concatenate, g.row.data(), <int> g.row.size(), &dim, 1)
        else:
            id = self._part(g, e)
        g.c.keep(id)
        if id > self.last:
            self.last = id
        return id

    cdef NodeId _part(self, ComputationGraph g, e) except? 0xffffffff:
        if type(e) is not Parameters:
            self.given = None
        return _arg(g, e)

    cdef bint is_alive(self):
        """False when the graph was renewed, or reverted to before the weights entered it."""
        return _current().c.valid(self.last, self.stamp)

    cdef bint is_of_now(self):
        """Alive, and not from before the last update: then what is computed from weights is computed anew."""
        return self.made_after == _n_updates and self.is_alive()

    cdef ComputationGraph _graph(self):
        cdef ComputationGraph g = self.link.get()
        if g is None or not g.c.valid(self.last, self.stamp):
            raise _errors.StaleExpressionError(
                "[add_input] the state belongs to a graph that was renewed or reverted; call initial_state() again")
        return g

    cdef NodeId _node(self, ComputationGraph g, OpId op, const NodeId* args, int n, const Word* key,
                      int n_key) except? 0xffffffff:
        cdef NodeId id = g.c.add(op, args, n, key, n_key, NULL, 0)
        if g.immediate or g.checked:
            g.node_added(id)
        return id

    cdef NodeId _one(self, ComputationGraph g, CellLayer* l, NodeId x, NodeId h, NodeId c) except? 0xffffffff:
        """One step of one layer; the node of its h."""
        cdef NodeId id
        if not (g.immediate or g.checked):
            return l.step(deref(g.c), self.kind, x, h, c)
        if l.mask_x != NO_NODE:
            x = l.masked_x(deref(g.c), self.kind, x)
            g.node_added(x)
        if l.mask_h != NO_NODE and h != NO_NODE:
            h = l.masked_h(deref(g.c), self.kind, h)
            g.node_added(h)
        x = l.project(deref(g.c), self.kind, x)
        g.node_added(x)
        g.c.mark(x, kInner)
        id = l.cell(deref(g.c), self.kind, x, h, c)
        g.node_added(id)
        return id

    cdef int _see_layers(self, tuple h, tuple c) except -1:
        cdef Py_ssize_t n = <Py_ssize_t> self.layers.size()
        if h is not None and len(h) != n or c is not None and len(c) != n:   # a state of a builder whose layers were changed
            raise ValueError(f"[add_input] the state must have {n} layers")
        return 0

    cdef int _state(self, ComputationGraph g, tuple h, tuple c, Py_ssize_t layer, NodeId* h_node, NodeId* c_node) except -1:
        h_node[0] = c_node[0] = NO_NODE
        if h is None:
            return 0
        h_node[0] = _arg(g, h[layer])
        if self.kind.has_cell:
            c_node[0] = _arg(g, c[layer]) if c is not None else h_node[0] + 1
        return 0

    cpdef tuple step(self, x, tuple h, tuple c):
        """New h's of all layers, a tuple, for one input.

        h: the previous ones, or None for zero state; c: the previous cells, or None when they are those of h.
        """
        cdef NodeId x_node, h_node, c_node
        cdef Py_ssize_t layer, n = <Py_ssize_t> self.layers.size()
        cdef Expression e
        cdef tuple out = PyTuple_New(n)   # before there are nodes for it: see _put_expressions()
        cdef ComputationGraph g = self._graph()
        x_node = _arg(g, x)
        self._see_layers(h, c)
        for layer in range(n):
            self._state(g, h, c, layer, &h_node, &c_node)
            x_node = self._one(g, &self.layers[layer], x_node, h_node, c_node)
            e = _expression(g, x_node)
            Py_INCREF(e)
            PyTuple_SET_ITEM(out, layer, e)
        return out

    cpdef list run(self, xs, tuple h, tuple c, bint every=False, list after=None):
        """h's of the last layer for a list of inputs; every: for each input a tuple of the h's of all layers.

        after: which input each follows (see _follow); None: the one before it.
        """
        cdef Vec[int32_t] order
        if type(xs) is not list and type(xs) is not tuple:   # one of the user's kinds may give more than its length says
            xs = list(xs)
        _follow(order, after, None, False, len(xs))
        if not every:
            return self.outputs(xs, h, c, order, False, False)
        cdef Py_ssize_t layer, n = <Py_ssize_t> self.layers.size()
        cdef list all_layers = [[None] * len(xs) for _ in range(n)]   # see _put_expressions()
        cdef ComputationGraph g = self._begin(xs, h, c, order)
        for layer in range(n):
            self._along(g, h, c, layer, order, False)
            _put_expressions(all_layers[layer], g, g.row)
        return list(zip(*all_layers))

    cdef object outputs(self, xs, tuple h, tuple c, const Vec[int32_t]& order, bint reverse, bint to_come):
        """h's of the last layer for inputs of which each follows another as `order` says (see _follow).

        to_come: as an ExpressionList, else as a list.
        """
        cdef ExpressionList out = ExpressionList.__new__(ExpressionList) if to_come else None
        cdef list made = None if to_come else [None] * len(xs)   # before there are nodes for it: see _put_expressions()
        cdef ComputationGraph g = self._begin(xs, h, c, order)
        cdef Py_ssize_t layer
        for layer in range(<Py_ssize_t> self.layers.size()):
            self._along(g, h, c, layer, order, reverse)
        if not to_come:
            return _put_expressions(made, g, g.row)
        out.begin(g, g.row.size())
        out.nodes.push(g.row.data(), g.row.size())
        return out

    cdef ComputationGraph _begin(self, xs, tuple h, tuple c, const Vec[int32_t]& order):
        """The graph, whose row has the nodes of the inputs then."""
        cdef ComputationGraph g = self._graph()
        self._see_layers(h, c)
        g.row.clear()
        _push_nodes(g.row, g, xs)
        if not order.empty() and g.row.size() != order.size():
            raise RuntimeError("[transduce] a list changed while it was read")
        return g

    cdef int _along(self, ComputationGraph g, tuple h, tuple c, Py_ssize_t layer, const Vec[int32_t]& order,
                    bint reverse) except -1:
        """One layer: in place of each input in the graph's row comes its h."""
        cdef NodeId h_node, c_node, h_first, c_first
        cdef Py_ssize_t t, k, steps = <Py_ssize_t> g.row.size()
        cdef int32_t before
        cdef CellLayer* l = &self.layers[layer]
        cdef NodeId* row = g.row.data()
        cdef const int32_t* follows = NULL
        self._state(g, h, c, layer, &h_first, &c_first)
        if not (g.immediate or g.checked):
            if not order.empty():
                follows = order.data()
            l.along(deref(g.c), self.kind, row, <uint32_t> steps, follows, reverse, h_first, c_first)
            return 0
        for k in range(steps):
            t = steps - 1 - k if reverse else k
            before = <int32_t> (t - 1) if order.empty() else order.data()[t]
            h_node = row[before] if before >= 0 else h_first
            c_node = h_node + 1 if before >= 0 else c_first
            row[t] = self._one(g, l, row[t], h_node, c_node)
        return 0


cdef int _follow(Vec[int32_t]& order, after, lengths, bint reverse, Py_ssize_t n) except -1:
    """Of n inputs which one each follows: the number of another, or -1 for the state at the start. Nothing where each
    follows the one before it.

    after: as transduce() is given it, or None. Then inputs follow one another, from the last to the first where
    `reverse`; lengths: of the sentences that they are; None: one.
    """
    if after is None and lengths is None and not reverse:
        return 0
    if after is not None:
        if lengths is not None or reverse:
            raise ValueError("[transduce] `after` says all: `lengths` and `reverse` cannot be given, too")
        return _follow_after(order, after, n)
    cdef Vec[int32_t] ends
    cdef int32_t i, begin = 0, end
    cdef size_t k
    _sentences(ends, lengths, n, "transduce")
    order.resize(n)
    for k in range(ends.size()):
        end = ends[k]
        for i in range(begin, end):
            order[i] = i + 1 if reverse else i - 1
        if end > begin:
            order[end - 1 if reverse else begin] = -1
        begin = end
    return 0

cdef int _sentences(Vec[int32_t]& ends, lengths, Py_ssize_t n, str what) except -1:
    """Where each sentence ends.

    lengths: how many of the n inputs belong to each sentence, one behind the other; None: one has all.
    """
    cdef list given = [n] if lengths is None else _given_numbers(lengths, f"[{what}] `lengths` needs a list of numbers")
    cdef Py_ssize_t end = 0, length
    for one in given:
        length = _int32(one, f"[{what}] a length")
        if not 0 <= length <= n - end:
            break
        end += length
        ends.push_back(<int32_t> end)
    else:
        if end == n:
            return 0
    raise ValueError(f"[{what}] the lengths must be 0 or more, and their sum {n}, the number of inputs; got "
                     f"{_shown(given)}")

def sentence_ends(lengths, Py_ssize_t n, str what not None):
    """Where each of the sentences ends that have these lengths and are n inputs together."""
    cdef Vec[int32_t] ends
    _sentences(ends, lengths, n, what)
    return [ends[k] for k in range(ends.size())]

cdef int _follow_after(Vec[int32_t]& order, after, Py_ssize_t n) except -1:
    cdef list given = _given_numbers(after, f"[transduce] `after` needs a list of {n} numbers")
    cdef Py_ssize_t i
    cdef int32_t k
    if len(given) != n:
        raise ValueError(f"[transduce] `after` needs a number for each of {n} inputs; got {len(given)}")
    order.resize(n)
    for i in range(n):
        k = _int32(given[i], "[transduce] a number of `after`")
        if k < -1 or k >= i:
            raise ValueError(f"[transduce] after[{i}] must be -1 or the number of an earlier input; got {k}")
        order[i] = k
    return 0

cdef list _given_numbers(numbers, str needed):
    if not _gives_items(numbers):
        raise TypeError(f"{needed}; got {_shown(numbers)}")
    return list(numbers)


@cython.final
cdef class TreeNode:
    """A node of a tree, as a tree builder made it."""
    cdef tuple _h   # of each layer

    def __init__(self, *args, **kwargs):
        raise TypeError("[TreeNode] a node of a tree comes from node() of a tree builder")

    def output(self):
        """h of the last layer, {hidden_dim}."""
        return self._h[len(self._h) - 1]   # there is one at least

    def h(self):
        """The h's, {hidden_dim}, one per layer."""
        return self._h

    def s(self):
        """The cells of all layers, then their h's, {hidden_dim} each."""
        return (*[_second(h) for h in self._h], *self._h)


@cython.final
cdef class TreeStack:
    """The layers of a tree LSTM builder in one graph.

    ``layers``: per layer (b_iog, W_iog, b_f, W_f, recurrent weights): one per child (``n_ary``), or those that act on
    the children's sum and on each child. ``size``: floats of h.
    """
    cdef GraphLink link     # of their graph: builders keep stacks
    cdef NodeId last, zero
    cdef uint32_t stamp, zero_stamp
    cdef bint n_ary
    cdef Word key
    cdef uint32_t size
    cdef CellWeights weights   # all layers, one after another
    cdef int n_weights, n_layers

    def __cinit__(self):
        self.link = GraphLink()

    def __init__(self, bint n_ary, layers, uint32_t size, float forget_bias):
        cdef NodeId id
        cdef ComputationGraph g = _current()
        self.link = g.link
        self.n_ary = n_ary
        self.key.f = forget_bias
        self.size = size
        self.zero = NO_NODE
        self.n_layers = len(layers)
        for layer in layers:
            for e in (*layer[:4], *layer[4]):
                id = _arg(g, e)
                g.c.keep(id)
                self.last = max(self.last, id)
                self.weights.push_back(id)
        self.n_weights = <int> self.weights.size() // self.n_layers
        self.stamp = g.c.stamp(self.last)

    def alive(self):
        """False when the graph was renewed, or reverted to before the weights entered it."""
        return _current().c.valid(self.last, self.stamp)

    cdef NodeId _node(self, ComputationGraph g, OpId op, const NodeId* args, int n, const Word* key,
                      int n_key) except? 0xffffffff:
        cdef NodeId id = g.c.add(op, args, n, key, n_key, NULL, 0)
        if g.immediate or g.checked:
            g.node_added(id)
        return id

    cdef NodeId _projection(self, ComputationGraph g, NodeId b, NodeId w, NodeId x) except? 0xffffffff:
        """w x + b; b alone without x."""
        cdef NodeId a[3]
        if x == NO_NODE:
            return b
        a[0] = b
        a[1] = w
        a[2] = x
        return self._node(g, OP_affine_transform, a, 3, NULL, 0)

    cdef NodeId _absent(self, ComputationGraph g) except? 0xffffffff:
        """h and c of a child that is not there."""
        if self.zero == NO_NODE or not g.c.valid(self.zero, self.zero_stamp):  # reverted
            self.zero = (<Expression> zeros(self.size)).id
            self.zero_stamp = g.c.stamp(self.zero)
        return self.zero

    cdef int _push_child(self, ComputationGraph g, child, Py_ssize_t layer) except -1:
        cdef NodeId h
        cdef tuple layers
        if child is None:
            h = self._absent(g)
            g.row.push_back(h)
            g.row.push_back(h)
        else:
            layers = (<TreeNode?> child)._h
            if layers is None or len(layers) != self.n_layers:
                raise ValueError(f"[add_input] a child must be a node of a builder with {self.n_layers} layers")
            h = _arg(g, layers[layer])
            g.row.push_back(h)
            h += 1
            g.row.push_back(h)
        return 0

    def node(self, x, children):
        """A TreeNode. x: its input, or None. children: TreeNodes, None for an absent one."""
        cdef NodeId x_node
        cdef NodeId* w
        cdef Py_ssize_t layer, k, n
        cdef list out = [None] * self.n_layers
        cdef TreeNode node = TreeNode.__new__(TreeNode)
        cdef ComputationGraph g = self.link.get()
        if type(children) is not list and type(children) is not tuple:
            children = list(children)
        n = len(children)
        if g is None or not g.c.valid(self.last, self.stamp):
            raise _errors.StaleExpressionError(
                "[add_input] the tree belongs to a graph that was renewed or reverted; start it again")
        if self.n_ary and n > self.n_weights - 4:
            raise ValueError(f"[add_input] at most {self.n_weights - 4} children; got {n}")
        x_node = NO_NODE if x is None else _arg(g, x)
        for layer in range(self.n_layers):
            w = &self.weights[layer * self.n_weights]
            g.row.clear()
            g.row.push_back(self._projection(g, w[0], w[1], x_node))
            if n == 0:
                x_node = self._node(g, OP__tree_lstm_leaf, g.row.data(), 1, NULL, 0)
            else:
                g.row.push_back(self._projection(g, w[2], w[3], x_node))
                if not self.n_ary:
                    g.row.push_back(w[4])
                    g.row.push_back(w[5])
                for k in range(n):
                    self._push_child(g, children[k], layer)
                    if self.n_ary:
                        g.row.push_back(w[4 + k])
                x_node = self._node(g, OP__nary_tree_lstm if self.n_ary else OP__child_sum_tree_lstm, g.row.data(),
                                    <int> g.row.size(), &self.key, 1)
            out[layer] = _expression(g, x_node)
        node._h = tuple(out)
        return node


def _second(Expression e not None):
    """The second output of a cell node (its c) from the first (its h)."""
    cdef NodeId i = e.use()
    cdef ComputationGraph g = e.home()
    if g.c.node(i).flags & (kOutput | kLeaf) or g.c.signature(i).visible < 2:
        raise ValueError("[cell] the expression is not the output of a cell with two outputs")
    return _expression(g, i + 1)


def _join_pairs(a not None, b not None):
    """concatenate([a[i], b[i]]) for all i, as a list."""
    cdef ComputationGraph g = _current()
    cdef NodeId args[2]
    cdef Word d
    cdef Py_ssize_t i, n = len(a)
    cdef list out = [None] * n
    g.row.clear()
    _push_nodes(g.row, g, a)
    _push_nodes(g.row, g, b)
    if g.row.size() < <size_t> (2 * n):
        raise ValueError(f"[BiRNNBuilder] both directions must give as many outputs; got {n} and {len(b)}")
    d.i = 0
    for i in range(n):
        args[0] = g.row[i]
        args[1] = g.row[n + i]
        out[i] = _made(g, g.c.add(OP_concatenate, args, 2, &d, 1, NULL, 0))
    return out


def _cell_node(str op not None, list args not None, keys=()):
    """A node of an internal cell op whose optional arguments or key attributes the generated function cannot give."""
    cdef ComputationGraph g = _current()
    g.args.clear()
    g.keys.clear()
    g.members.clear()
    cdef uint32_t turn = g.next_turn()
    cdef OpId id = op_by_name(op.encode())
    _push_args(id, g, args)
    for k in keys:
        _push_float(g.keys, k, op)
    return _op_of_turn(g, id, turn)
