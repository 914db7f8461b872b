# Calls of a cell in a loop: over a list, along a sequence, over trees. dynet_lite/cells.py tells what they mean, checks
# their arguments and has the same loops in Python.


cdef enum:
    KIND_INTEGER = 0xffffffff   # of an argument; otherwise an expression that looks like this (_looks),
    KIND_OTHER = 0xfffffffe     # or anything else
    ROWS_AT_ONCE = 256          # whose nodes are added before expressions of them are made: they are still in the caches

ctypedef const NodeId* NodesOfList
ctypedef Vec[NodesOfList] Columns

cdef uint32_t _kind(ComputationGraph g, object v, object plain) except? 0xfffffffe:
    cdef int32_t n
    if type(v) is int:
        return KIND_OTHER if plain is True or not _may_choose(v, &n) else KIND_INTEGER
    if isinstance(v, Expression) and type(v) is not LookupParameters:
        return _looks(g, _arg(g, v))
    return KIND_OTHER

cdef inline uint32_t _looks(ComputationGraph g, NodeId id):
    """What a signature says of an expression: its dims, of which a graph has few, and its role."""
    return g.c.node(id).dim | _role(g, id) << 28

cdef bint _pushed(Frame f, ComputationGraph g, object v, uint32_t kind) except -1:
    """The node or the integer alone, when the argument is of this kind."""
    cdef NodeId id
    cdef int32_t n
    if kind == KIND_INTEGER:
        if type(v) is not int or not _may_choose(v, &n):
            return False
        f.ints.push_back(n)
        return True
    if kind == KIND_OTHER or type(v) is not Expression and (not isinstance(v, Expression) or type(v) is LookupParameters):
        return False
    id = _arg(g, v)
    f.ids.push_back(id)
    return _looks(g, id) == kind


cdef inline object _item(object xs, Py_ssize_t i, str what):
    """xs[i] of a list that the user's code may have made shorter since it was measured."""
    cdef list items
    if type(xs) is list:
        items = <list> xs
    elif type(xs) is ExpressionList and (<ExpressionList> xs).made is None:
        return (<ExpressionList> xs).at(i)
    else:
        items = _as_plain(xs)
    if i >= len(items):
        raise RuntimeError(f"[{what}] a list changed while it was read")
    return items[i]

cdef inline int _see_nodes(ComputationGraph g, uint32_t begun, str what) except -1:
    if g.c.generation() != begun:
        raise RuntimeError(f"[{what}] the graph was renewed or reverted meanwhile")
    return 0

cdef int _see_unchanged(ComputationGraph g, uint32_t begun, tuple lists, Py_ssize_t n, str what) except -1:
    """After code of the user's, as that of the cell: the nodes of before are there, and n items of each list."""
    _see_nodes(g, begun, what)
    for one in lists:
        if len(one) < n:
            raise RuntimeError(f"[{what}] a list changed while it was read")
    return 0


cdef int _take_back(ComputationGraph g, const GraphMark& end, uint32_t begun) except -1:
    """Removes the nodes from `end` on, of a loop that failed; begun: the generation then. They stay where they may be
    needed: when they have run, or an expression refers to one."""
    if g.c.generation() != begun or g.c.size() == end.nodes or g.busy or not settled() or g.x.begun(end.nodes) \
            or g.c.held_since(end.nodes):
        return 0
    g.turn += 1
    g.c.return_to(end)
    return 0


ctypedef object (*Loop)(Cell, ComputationGraph, tuple)

cdef object _all_or_nothing(Loop loop, cell, ComputationGraph g, tuple given):
    """What a loop over calls of a cell gives. If it fails, the nodes of its first calls are taken back."""
    cdef GraphMark end = g.c.end()
    cdef uint32_t begun = g.c.generation()
    try:
        return loop(_cell_of(cell), g, given)
    except BaseException:
        _take_back(g, end, begun)
        raise


def map_cell(cell, tuple lists not None):
    """[cell(*row) for row in zip(*lists)]. None where that is to be done in Python: see dynet_lite/cells.py."""
    cdef ComputationGraph g = _current()
    if len(lists) == 0 or _by_hand(g):
        return None
    for one in lists:
        if type(one) is not list and type(one) is not ExpressionList or len(one) != len(lists[0]):
            return None
    return _all_or_nothing(_mapped, cell, g, lists)

cdef object _mapped(Cell c, ComputationGraph g, tuple lists):
    global _n_calls
    cdef Frame f = c.take_frame()
    cdef Template t
    cdef Vec[uint32_t] kinds   # of the arguments of the row before
    cdef Columns columns       # of each list its nodes, or NULL where its items must be looked at
    cdef Py_ssize_t i = 0, k, m, n = len(lists[0])
    cdef uint32_t begun = g.c.generation()
    cdef ExpressionList to_come = None   # the results, where an argument is one and as long as they are expressions
    cdef list out = None                 # else
    for one in lists:
        columns.push_back(_nodes_of(g, one))
        if type(one) is ExpressionList and to_come is None:
            to_come = _list_to_come(g, n)
    if to_come is None:
        out = [None] * n
    else:
        lists = tuple([one if columns[k] != NULL else _as_plain(one) for k, one in enumerate(lists)])
    _n_calls += 1
    while i < n:
        _see_nodes(g, begun, "map")
        t = _template_of_row(c, g, f, lists, columns, i)
        _see_nodes(g, begun, "map")
        kinds.clear()
        for k in range(len(lists)):
            kinds.push_back(_kind_in(g, lists[k], _column(lists, columns, k), i, c.plain.get(k)))
        _see_unchanged(g, begun, lists, n, "map")
        if out is None and t.flat != 1:
            out = to_come.items() + [None] * (n - i)
        m = 1
        while m:
            t.add(g, f, m)
            if out is None and not to_come.nodes.push(f.outputs.data(), m):   # arguments that it gives back
                out = to_come.items() + [None] * (n - i)
            if out is None:
                i += m
            else:
                f.see_graph(g)   # to make a list may collect garbage, and code of the user's runs
                for k in range(m):
                    put_item(out, i, t.answer(g, f, k))
                    i += 1
            if t.flat == 0:   # made by code of the user's
                _see_unchanged(g, begun, lists, n, "map")
            m = _rows_like(f, g, lists, columns, i, min(n, i + (1 if t.flat == 0 else ROWS_AT_ONCE)), kinds)
    c.spare = f
    return to_come if out is None else out

cdef inline const NodeId* _column(tuple lists, const Columns& columns, Py_ssize_t k):
    """The nodes of list k. NULL: its items must be looked at, as where code of the user's has looked into it meanwhile."""
    if columns.data()[k] == NULL or (<ExpressionList> lists[k]).made is not None:
        return NULL
    return columns.data()[k]

cdef uint32_t _kind_in(ComputationGraph g, object xs, const NodeId* nodes, Py_ssize_t i, object plain) except? 0xfffffffe:
    """The kind of an item of a list; nodes: those of the list, or NULL."""
    return _looks(g, nodes[i]) if nodes != NULL else _kind(g, _item(xs, i, "map"), plain)

cdef Py_ssize_t _rows_like(Frame f, ComputationGraph g, tuple lists, const Columns& columns, Py_ssize_t begin,
                           Py_ssize_t end, const Vec[uint32_t]& kinds) except -1:
    """How many rows from `begin` on have arguments of these kinds. They are in the frame then."""
    cdef Py_ssize_t k, n = end - begin, width = len(lists)
    cdef size_t n_ints = 0, n_ids = 0, ints = 0, ids = 0
    cdef const NodeId* nodes
    f.clear_row(g)
    for k in range(width):
        n_ints += kinds.data()[k] == KIND_INTEGER
    n_ids = width - n_ints
    f.ids.resize(n * n_ids)
    f.ints.resize(n * n_ints)
    for k in range(width):   # list by list
        nodes = _column(lists, columns, k)
        if nodes != NULL:
            n = _nodes_like(g, nodes + begin, n, kinds.data()[k], f.ids.data() + ids, n_ids)
            ids += 1
        elif kinds.data()[k] == KIND_INTEGER:
            n = _integers(_as_plain(lists[k]), begin, n, f.ints.data() + ints, n_ints)
            ints += 1
        else:
            n = _expressions_like(g, _as_plain(lists[k]), begin, n, kinds.data()[k], f.ids.data() + ids, n_ids)
            ids += 1
        if n == 0:
            break
    f.ids.resize(n * n_ids)
    f.ints.resize(n * n_ints)
    return n

# How many of n items look like the first ones of their list; they are put where every step-th place is theirs. No code of
# the user's runs, and there is no error: what is no such item is left to _template_of_row(), and so is a list that has
# become shorter, as it may where results are made and garbage is collected.

cdef Py_ssize_t _nodes_like(ComputationGraph g, const NodeId* nodes, Py_ssize_t n, uint32_t kind, NodeId* to, size_t step):
    cdef Py_ssize_t i
    cdef uint32_t sig = 0xffffffff, flags = 0   # of a node that looks so
    for i in range(n):
        if g.c.node(nodes[i]).sig != sig or (g.c.node(nodes[i]).flags ^ flags) & (kWeight | kRowToCome):
            if _looks(g, nodes[i]) != kind:
                return i
            sig, flags = g.c.node(nodes[i]).sig, g.c.node(nodes[i]).flags
        to[i * step] = nodes[i]
    return n

cdef inline Py_ssize_t _left(list items, Py_ssize_t begin, Py_ssize_t n):
    """How many of n items from `begin` on are there."""
    return max(0, min(n, len(items) - begin))

cdef Py_ssize_t _integers(list items, Py_ssize_t begin, Py_ssize_t n, int32_t* to, size_t step) except -1:
    cdef Py_ssize_t i
    n = _left(items, begin, n)
    for i in range(n):
        v = items[begin + i]
        if type(v) is not int or not _may_choose(v, &to[i * step]):
            return i
    return n

cdef Py_ssize_t _expressions_like(ComputationGraph g, list items, Py_ssize_t begin, Py_ssize_t n, uint32_t kind, NodeId* to,
                                  size_t step) except -1:
    cdef Py_ssize_t i
    cdef Expression e
    if kind == KIND_OTHER:
        return 0
    n = _left(items, begin, n)
    for i in range(n):
        v = items[begin + i]
        if not isinstance(v, Expression) or type(v) is LookupParameters:
            return i
        e = <Expression> v
        if not g.c.valid(e.id, e.stamp) or _looks(g, e.id) != kind:
            return i
        to[i * step] = e.id
    return n

cdef Template _template_of_row(Cell c, ComputationGraph g, Frame f, tuple lists, const Columns& columns, Py_ssize_t i):
    """The recording for row i, whose arguments are then in the frame."""
    cdef Py_ssize_t k
    cdef const NodeId* nodes
    cdef Template t
    f.clear(g)
    for k in range(len(lists)):
        nodes = _column(lists, columns, k)
        if nodes != NULL:
            f.see_graph(g)   # the arguments before may have run code of the user's
            f.push_node(g, nodes[i])
        else:
            f.push(g, _item(lists[k], i, "map"), c.plain.get(k))
    t = c.find(g, f)
    return c.template(g, f, tuple([_item(one, i, "map") for one in lists]), {}) if t is None else t


cdef int _see_carried(Cell c, Template t, object init) except -1:
    """Is the result of a step the next state, or a pair of that and an output?"""
    if _same_form(t.result, init):
        t.carried, t.paired = <int> t.out.size(), False
    elif type(t.result) is tuple and len(t.result) == 2 and _same_form(t.result[0], init):
        t.carried, t.paired = _count(t.result[0]), True
    else:
        raise not_a_step(c)
    return 0

def not_a_step(cell):
    """The error of a cell that does not step a state on."""
    return _errors.CellError(
        f"[cell {cell.__name__}] is a step of a recurrent layer: it gives the next state, which is made up like the one "
        "before, or a pair of that and an output")

cdef bint _same_form(object result, object v) except -1:
    """Is a part of a result made up like an argument? Dims may differ."""
    if type(result) is int:
        return isinstance(v, Expression)
    if type(result) is _Constant:
        return (<_Constant> result).value is v or type(v) in (int, float, str) and (<_Constant> result).value == v
    v = _as_plain(v)
    if type(result) is not type(v):
        return False
    named = named_parts(result)
    if named is not None:   # the names may have another order
        given = named_parts(v)
        return named.keys() == given.keys() and all([_same_form(one, given[name]) for name, one in named.items()])
    return len(result) == len(v) and all([_same_form(a, b) for a, b in zip(result, v)])

cdef int _count(object result) except -1:
    """Outputs in a part of a result."""
    if type(result) is int or type(result) is _Constant:
        return type(result) is int
    cdef int n = 0
    for one in _parts_of(result):
        n += _count(one)
    return n


def scan_cell(cell, init, list xs not None, bint reverse, lengths=None):
    """(what the steps give, the last state, is the former beside the state?), for steps cell(state, x).

    lengths: see dynet_lite/cells.py; then a list of last states.
    """
    return _all_or_nothing(_scanned, cell, _current(), (init, xs, reverse, lengths))

cdef object _scanned(Cell c, ComputationGraph g, tuple given):
    global _n_calls
    init, lengths = given[0], given[3]
    cdef list xs = given[1], last = []
    cdef bint reverse = given[2], paired = False
    cdef Vec[int32_t] ends
    cdef Py_ssize_t begin = 0
    cdef size_t k
    cdef list out = [None] * len(xs)
    cdef uint32_t begun = g.c.generation()
    _sentences(ends, lengths, len(xs), "scan")
    cdef Frame f = c.take_frame()
    _n_calls += 1
    for k in range(ends.size()):
        _see_nodes(g, begun, "scan")
        last.append(_scan_one(c, g, f, init, xs, begin, ends[k], reverse, out, &paired))
        begin = ends[k]
    c.spare = f
    return out, last[0] if lengths is None else last, paired

cdef object _scan_one(Cell c, ComputationGraph g, Frame f, init, list xs, Py_ssize_t begin, Py_ssize_t end, bint reverse,
                      list out, bint* paired):
    """The last state of a sentence, the inputs from `begin` to `end`. What its steps give goes to these places of `out`."""
    cdef Template t = None, before
    cdef uint32_t kind = KIND_OTHER   # of the input before, where the next step may have the same signature
    cdef Py_ssize_t i, k, m
    cdef uint32_t begun = g.c.generation()
    last = init
    for k in range(begin, end):
        i = begin + end - 1 - k if reverse else k
        x = _item(xs, i, "scan")
        if t is not None:
            f.see_graph(g)   # the outputs of before are the next arguments
        if kind != KIND_OTHER:
            f.clear_row(g)
            for m in range(t.carried):
                f.ids.push_back(f.outputs[m])
        if kind == KIND_OTHER or not _pushed(f, g, x, kind):
            before, t = t, _template_of_step(c, g, f, t, init, x)
            if t.carried < 0:
                _see_carried(c, t, init)
            kind = _kind(g, x, c.plain.get(1)) if t is before else KIND_OTHER
            _see_unchanged(g, begun, (xs,), end, "scan")
        t.add(g, f)
        put_item(out, i, t.built(g, f, t.result[1]) if t.paired else t.answer(g, f))
        if k == end - 1:
            last = t.built(g, f, t.result[0]) if t.paired else out[i]
            paired[0] = t.paired
        elif t.paired or t.flat == 0:
            _see_unchanged(g, begun, (xs,), end, "scan")
    return last

cdef Template _template_of_step(Cell c, ComputationGraph g, Frame f, Template before, init, x):
    """The recording for a step after the one of `before`, or the first one; its arguments are then in the frame."""
    cdef Template t
    f.clear(g)
    if before is None:
        f.push(g, init, c.plain.get(0))
    else:
        before.hand_on(g, f, _state_part(before), f.outputs.data())
    f.push(g, x, c.plain.get(1))
    t = c.find(g, f)
    if t is not None:
        return t
    return c.template(g, f, (init if before is None else before.built(g, f, _state_part(before)), x), {})

cdef object _state_part(Template t):
    return t.result[0] if t.paired else t.result


cdef int _earlier(object child, Py_ssize_t i) except -1:
    """Number of a child of node i."""
    cdef int overflow = 0
    cdef object number = child if type(child) is int else _as_int(child, "[recurse] the number of a child")
    cdef long long k = PyLong_AsLongLongAndOverflow(number, &overflow)
    if overflow or not 0 <= k < i:
        raise ValueError(f"[recurse] children[{i}] must be numbers of earlier nodes; got {child}")
    return <int> k

def earlier(children, i):
    """children of node i as a tuple of ints and None. ValueError unless they are earlier nodes."""
    return tuple([None if child is None else _earlier(child, i) for child in children])


def recurse_cell(cell, list inputs not None, list children not None):
    """[cell(inputs[i], *results of children[i])], each after its children."""
    return _all_or_nothing(_recursed, cell, _current(), (inputs, children))

cdef object _recursed(Cell c, ComputationGraph g, tuple given):
    global _n_calls
    cdef list inputs = given[0], children = given[1]
    cdef Frame f = c.take_frame()
    cdef Template t, below
    cdef Vec[NodeId] outputs
    cdef Vec[uint32_t] begin
    cdef Py_ssize_t i, n = len(inputs)
    cdef uint32_t begun = g.c.generation()
    cdef size_t k
    cdef list out = [None] * n, made = [None] * n
    _n_calls += 1
    for i in range(n):
        row, x = _item(children, i, "recurse"), _item(inputs, i, "recurse")
        if type(row) is not tuple and type(row) is not list:
            row = tuple(row)
        f.clear(g)
        f.push(g, x, c.plain.get(0) if c.plain else None)
        _see_nodes(g, begun, "recurse")
        for child in row:
            if child is None:
                f.push_object(None)
                continue
            k = _earlier(child, i)
            if type(child) is not int:
                _see_nodes(g, begun, "recurse")
            below = <Template> made[k]
            below.hand_on_all(g, f, outputs.data() + begin[k])
        t = c.find(g, f)
        if t is None:
            t = c.template(g, f, (x, *[None if child is None else out[child] for child in row]), {})
        _see_nodes(g, begun, "recurse")
        t.add(g, f)
        made[i] = t
        begin.push_back(<uint32_t> outputs.size())
        k = f.outputs.size()
        memcpy(outputs.extend(k), f.outputs.data(), k * sizeof(NodeId))
        put_item(out, i, t.answer(g, f))
    c.spare = f
    return out
