# ExpressionList: the results of a call for many sentences. Most go straight into the next such call, which reads nodes; if
# Python looks into it, it becomes a list.

cdef extern from "graph/held.h" namespace "dnl":
    cdef cppclass HeldNodes:
        void begin(CGraph&, size_t) except +raise_python_error
        bint push(const NodeId*, size_t) except +raise_python_error
        void let_go()
        bint valid(const CGraph&)
        size_t size()
        const NodeId* data()
        uint32_t stamp()


# no_gc_clear: the nodes are given back to the graph at the end.
@cython.final
@cython.no_gc_clear
@cython.collection_type("sequence")
cdef class ExpressionList:
    """A list of expressions, which are made when the first of them is asked for.

    From then on it is a list, which may be changed; isinstance(xs, list) holds from the start. What is taken out of it with
    a slice, and what + gives, are plain lists. There is no __radd__, and [x] + xs is an error: Python would also call it for
    ys += xs, which must extend ys.
    """
    cdef ComputationGraph graph
    cdef HeldNodes nodes   # as they were made
    cdef list made         # the expressions, once there are any

    def __init__(self, items=()):
        """What copies containers makes one of their own kind: of any items."""
        self.made = list(items)

    @property
    def __class__(self):
        return list

    cdef int begin(self, ComputationGraph g, size_t n) except -1:
        """It has no nodes; n of the graph, as it is now, will come."""
        self.graph = g
        self.nodes.begin(deref(g.c), n)
        return 0

    cdef list items(self):
        cdef size_t k
        cdef list made
        if self.made is None:
            made = [None] * <Py_ssize_t> self.nodes.size()
            if self.made is not None:   # garbage was collected, and code of the user's has looked into this list
                return self.made
            for k in range(self.nodes.size()):
                put_item(made, k, self.at(k))
            self.made = made
            self.nodes.let_go()
        return self.made

    cdef Expression at(self, size_t k):
        """A new expression of node k, which may be gone."""
        cdef NodeId id = self.nodes.data()[k]
        if self.graph.c.valid(id, self.nodes.stamp()):
            return _expression(self.graph, id)
        cdef Expression e = Expression.__new__(Expression)
        e.graph, e.id, e.stamp = self.graph, id, self.nodes.stamp()
        return e

    def __len__(self):
        return <Py_ssize_t> self.nodes.size() if self.made is None else len(self.made)

    def __getitem__(self, i):
        return self.items()[i]

    def __setitem__(self, i, e):
        self.items()[i] = e

    def __delitem__(self, i):
        del self.items()[i]

    def __iter__(self):
        return iter(self.items())

    def __reversed__(self):
        return reversed(self.items())

    def __contains__(self, e):
        return e in self.items()

    def __add__(self, other):
        return self.items() + _as_plain(other)

    def __iadd__(self, other):
        cdef list items = self.items()
        items += _as_plain(other)   # it may be this one
        return self

    def __mul__(self, n):
        return self.items() * n

    def __rmul__(self, n):
        return n * self.items()

    def __imul__(self, n):
        cdef list items = self.items()
        items *= n
        return self

    def __eq__(self, other):
        return self.items() == _as_plain(other)

    def __ne__(self, other):
        return self.items() != _as_plain(other)

    def __lt__(self, other):
        return self.items() < _as_plain(other)

    def __le__(self, other):
        return self.items() <= _as_plain(other)

    def __gt__(self, other):
        return self.items() > _as_plain(other)

    def __ge__(self, other):
        return self.items() >= _as_plain(other)

    __hash__ = None

    def __repr__(self):
        return repr(self.items())

    def __reduce_ex__(self, protocol):
        return list, (self.items(),)

    def append(self, e):
        self.items().append(e)

    def clear(self):
        self.items().clear()

    def copy(self):
        return self.items().copy()

    def count(self, e):
        return self.items().count(e)

    def extend(self, es):
        self.items().extend(_as_plain(es))

    def index(self, *args):
        return self.items().index(*args)

    def insert(self, i, e):
        self.items().insert(i, e)

    def pop(self, *args):
        return self.items().pop(*args)

    def remove(self, e):
        self.items().remove(e)

    def reverse(self):
        self.items().reverse()

    def sort(self, **how):
        self.items().sort(**how)


cdef inline object _as_plain(object v):
    """The list in an ExpressionList; anything else as it is."""
    return (<ExpressionList> v).items() if type(v) is ExpressionList else v

cdef ExpressionList _list_to_come(ComputationGraph g, size_t n):
    """One without nodes; n will come."""
    cdef ExpressionList xs = ExpressionList.__new__(ExpressionList)
    xs.begin(g, n)
    return xs

cdef inline const NodeId* _nodes_of(ComputationGraph g, object xs):
    """The nodes of an ExpressionList in whose place no list has come yet, if all are in graph g; else NULL."""
    if type(xs) is not ExpressionList or (<ExpressionList> xs).made is not None or (<ExpressionList> xs).graph is not g \
            or not (<ExpressionList> xs).nodes.valid(deref(g.c)):
        return NULL
    return (<ExpressionList> xs).nodes.data()

cdef list _put_expressions(list out, ComputationGraph g, const Vec[NodeId]& ids):
    """A list that was made for expressions of these nodes, before there were any: where a container is made garbage may be
    collected, and code of the user's runs, which may renew the graph."""
    cdef size_t k
    if <size_t> len(out) != ids.size():
        raise RuntimeError("[transduce] a list changed while it was read")
    for k in range(ids.size()):
        put_item(out, k, _expression(g, ids.data()[k]))
    return out

cdef int _push_nodes(Vec[NodeId]& to, ComputationGraph g, object xs) except -1:
    """The nodes of a list or tuple of arguments."""
    cdef const NodeId* nodes = _nodes_of(g, xs)
    cdef size_t n = len(xs), k
    cdef NodeId id
    cdef NodeId* out
    if nodes != NULL:
        memcpy(to.extend(n), nodes, n * sizeof(NodeId))
        return 0
    if type(xs) is not list:
        for x in xs:
            id = _arg(g, x)
            to.push_back(id)
        return 0
    out = to.extend(n)
    for k in range(n):   # expressions of the graph, as a rule: no code of the user's runs
        x = (<list> xs)[k]
        if not isinstance(x, Expression) or not g.c.valid((<Expression> x).id, (<Expression> x).stamp):
            break
        out[k] = (<Expression> x).id
    else:
        return 0
    to.resize(to.size() - n + k)
    while k < <size_t> len(<list> xs):
        id = _arg(g, (<list> xs)[k])
        to.push_back(id)
        k += 1
    return 0
