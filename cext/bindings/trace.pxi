# What is noted while the function of a cell runs over stand-ins, in a graph of its own (recording.pxi).

class _UsedAsNumber(BaseException):
    """An integer argument was computed with: the cell is recorded for its value. Not caught by what a cell may catch."""

    def __init__(self, path):
        self.path = path


@cython.final
cdef class Trace:
    """Notes for a Body: which weights came in, how rows were looked up, and where integers of the call went."""
    cdef str name        # of the cell, for messages
    cdef bint compiled   # it is a compiled function (compiled.pxi)
    cdef bint done
    cdef list outside    # (weight, for single rows), in the order in which they entered the graph
    cdef dict nodes      # of these
    cdef list lookups    # (node, batched, update)
    cdef list pending    # words of the node that is being built: (place, number of the integer)
    cdef list fills      # (node, place among its member words, number of the integer)
    cdef size_t keys     # address of the buffer of key attributes: they are a part of signatures
    cdef object refused  # the first error for what cannot be recorded; the function may have caught it

    def __cinit__(self, str name, bint compiled):
        self.name, self.compiled = name, compiled
        self.outside, self.nodes, self.lookups, self.pending, self.fills = [], {}, [], [], []

    cdef bint knows(self, weight, bint rows) except -1:
        return (id(weight), rows) in self.nodes

    cdef uint32_t node_of(self, weight, bint rows) except? 0xffffffff:
        return self.nodes[id(weight), rows]

    cdef int entered(self, weight, bint rows, uint32_t node) except -1:
        self.nodes[id(weight), rows] = node
        self.outside.append((weight, rows, node))
        return 0

    cdef int looked_up(self, uint32_t node, bint batched, bint update) except -1:
        self.lookups.append((node, batched, update))
        return 0

    cdef int node_made(self, uint32_t node) except -1:
        for at, number in self.pending:
            self.fills.append((node, at, number))
        self.pending.clear()
        return 0

    cdef object refuse(self, error):
        """The error, which holds even if the function catches it: what it would do then is not what it does otherwise."""
        if self.refused is None and not self.done:   # after it, it would only stay
            self.refused = error
        return error

    cdef object no_value(self):
        if self.compiled:
            return self.refuse(_errors.CompileError(
                f"[compile {self.name}] asks for a value, or runs, renews or changes the graph: a compiled function is "
                "recorded once per structure and has no numbers then. "
                "Return what is asked for and decide outside, compile the parts "
                "before and after it, or leave it uncompiled"))
        return self.refuse(_errors.CellError(
            f"[cell {self.name}] asks for a value, or runs, renews or changes the graph: a cell is recorded once and has no "
            "numbers. Decide outside of it and give the choice as an argument, or write a plain function"))

    cdef object no_numbers_of(self, str called):
        what, kind = ("compile", _errors.CompileError) if self.compiled else ("cell", _errors.CellError)
        return self.refuse(kind(
            f"[{what} {self.name}] calls {called}, a compiled function, which gives numbers: keep the function that it is "
            "made of under a name of its own, and call that"))

    cdef object not_an_argument(self):
        if self.compiled:
            return self.refuse(_errors.CompileError(
                f"[compile {self.name}] uses an expression that was made outside of it: make it inside, or give its numbers "
                "as an array. Only parameters and tables are taken from outside"))
        return self.refuse(_errors.CellError(
            f"[cell {self.name}] uses an expression that was made outside of it: give it as an argument, alone or in a "
            "tuple, list or dy.state. Only parameters and tables are taken from outside"))


cdef object _refuses_numbers(IndexStandIn self):
    if self.trace.done:
        return _errors.CellError(f"[{self.trace.name}] an integer argument was kept beyond the call; that is not "
                                 "possible")
    return self.trace.refuse(_UsedAsNumber(self.path))


cdef Trace _no_trace = Trace("cell", False)   # that is done, of one that no recording made
_no_trace.done = True


@cython.final
cdef class IndexStandIn:
    """Stands for an integer argument while a cell is recorded: good for rows, labels and places, and nothing else."""
    cdef Trace trace
    cdef uint32_t number     # among the integers of the call
    cdef tuple path          # number or name of the argument that it is, or is a part of, and keys of parts in parts

    def __cinit__(self):
        self.trace = _no_trace

    cdef int note(self, size_t buffer, size_t at) except -1:
        """It becomes the next word of a node's attributes."""
        if self.trace.done or buffer == self.trace.keys:
            raise _refuses_numbers(self)
        self.trace.pending.append((at, self.number))
        return 0

    cdef int is_row(self, uint32_t node, size_t at) except -1:
        """It is row `at` of a look-up."""
        if self.trace.done:
            raise _refuses_numbers(self)
        self.trace.fills.append((node, at, self.number))
        return 0

    @property
    def __class__(self):
        return int   # for isinstance()

    def __index__(self):
        raise _refuses_numbers(self)

    def __int__(self):
        raise _refuses_numbers(self)

    def __float__(self):
        raise _refuses_numbers(self)

    def __bool__(self):
        raise _refuses_numbers(self)

    def __hash__(self):
        raise _refuses_numbers(self)

    def __richcmp__(self, other, int op):
        raise _refuses_numbers(self)

    def __add__(self, other):
        raise _refuses_numbers(self)

    def __radd__(self, other):
        raise _refuses_numbers(self)

    def __sub__(self, other):
        raise _refuses_numbers(self)

    def __rsub__(self, other):
        raise _refuses_numbers(self)

    def __mul__(self, other):
        raise _refuses_numbers(self)

    def __rmul__(self, other):
        raise _refuses_numbers(self)

    def __truediv__(self, other):
        raise _refuses_numbers(self)

    def __rtruediv__(self, other):
        raise _refuses_numbers(self)

    def __floordiv__(self, other):
        raise _refuses_numbers(self)

    def __rfloordiv__(self, other):
        raise _refuses_numbers(self)

    def __mod__(self, other):
        raise _refuses_numbers(self)

    def __rmod__(self, other):
        raise _refuses_numbers(self)

    def __pow__(self, other, modulo):
        raise _refuses_numbers(self)

    def __rpow__(self, other, modulo):
        raise _refuses_numbers(self)

    def __and__(self, other):
        raise _refuses_numbers(self)

    def __or__(self, other):
        raise _refuses_numbers(self)

    def __xor__(self, other):
        raise _refuses_numbers(self)

    def __lshift__(self, other):
        raise _refuses_numbers(self)

    def __rshift__(self, other):
        raise _refuses_numbers(self)

    def __neg__(self):
        raise _refuses_numbers(self)

    def __abs__(self):
        raise _refuses_numbers(self)

    def __str__(self):
        raise _refuses_numbers(self)

    def __repr__(self):
        if self.trace.done:   # in a trace or a debugger
            return f"<an integer argument of {self.trace.name}>"
        raise _refuses_numbers(self)

    def __format__(self, spec):
        raise _refuses_numbers(self)

    def __getattr__(self, name):
        if name == "__iter__" or name == "__next__":
            raise AttributeError(name)
        raise _refuses_numbers(self)
