# Which graph is the current one of a thread.

_thread = threading.local()   # owns the graphs of this thread: .stack
_common = None                # the graph that all threads begin with where dynet_lite stands in for DyNet, which has one


cdef list _stack():
    try:
        return _thread.stack
    except AttributeError:
        _thread.stack = []
        return _thread.stack

cdef void _make_current(ComputationGraph g) noexcept:
    cdef PyObject** slot = <PyObject**> &current_graph()
    slot[0] = <PyObject*> g if g is not None else NULL

cdef inline ComputationGraph _current():
    """The graph that nodes are added to."""
    cdef PyObject* p = current_graph()
    if p != NULL and not (<ComputationGraph> p).busy:
        return <ComputationGraph> p
    return _first_graph()

cdef ComputationGraph _first_graph():
    global _common, _keeps_gil
    cdef PyObject* p = current_graph()
    cdef ComputationGraph g
    if p != NULL:   # it is the current graph of several threads
        (<ComputationGraph> p)._not_busy()
        return <ComputationGraph> p
    if _settings.is_dynet and _common is not None:
        g = _common
        _keeps_gil = True
    else:
        g = ComputationGraph()
        if _settings.is_dynet:
            _common = g
    _stack().append(g)
    _make_current(g)
    g._not_busy()
    return g

def replace_graph():
    """After a change of backend: a new graph in the place of the current one, unless that belongs to a 'with' block."""
    global _common
    cdef list stack = _stack()
    cdef ComputationGraph g = _current()
    if g.entered:
        return g
    g = ComputationGraph()
    if _settings.is_dynet:
        _common = g
    if stack:
        stack[len(stack) - 1] = g
    else:
        stack.append(g)
    _make_current(g)
    return g

def renewed(immediate_compute, check_validity, autobatching):
    """The current graph, renewed; another one if the backend has changed."""
    cdef ComputationGraph g = _current()
    if g.backend != _settings.backend:
        g = replace_graph()
    return g.renew(immediate_compute, check_validity, autobatching)

def cg():
    """The current graph of this thread."""
    return _current()

def existing_cg():
    """The current graph of this thread; None before its first."""
    cdef PyObject* p = current_graph()
    return None if p == NULL else <ComputationGraph> p
