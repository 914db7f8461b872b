# Arrays that a compiled function was given are expressions while it runs. Which are these, and what may a program ask of an
# expression without its numbers? Is it there, is it this one; but not which is greater, nor what hangs on numbers given.

cdef tuple _comparable = (int, float, np.number, np.bool_, np.ndarray)

cdef object _no_order(Expression e):
    _see_not_given(e, 0)
    return TypeError("[x < y] an expression has no order; compare its value(): x.value() < y.value()")

cdef int _see_not_given(Expression e, object other) except -1:
    """An error if it is compared with a number, and stands for numbers that a compiled function was given."""
    cdef ComputationGraph g = e.graph
    if g is None or g.given == 0 or not isinstance(other, _comparable) or not _is_of_given(e):
        return 0
    error = _errors.CompileError(
        f"[compile {g.given_to}] decides by numbers of an array that it was given: these are data, and other ones at the "
        "next call. Give what decides as a float, a bool or a list of these")
    raise error if g.trace is None else g.trace.refuse(error)

cdef bint _is_of_given(object v) except -1:
    """Is it an array that a compiled function was given, or a part of one?"""
    if not isinstance(v, Expression):
        return False
    cdef ComputationGraph g = (<Expression> v).graph
    cdef NodeId id = (<Expression> v).id
    cdef OpId op
    if g is None or g.given == 0 or not g.c.valid(id, (<Expression> v).stamp):
        return False
    while id >= g.given:
        op = g.c.signature(id).op
        if op not in (OP__pick, OP__pick_range, OP__slice, OP__select):
            return False
        id = g.c.operands(id)[0]
    return True

cdef bint _are_of_given(object v) except -1:
    """Is it a list of such, and not empty?"""
    if type(v) is not list and type(v) is not tuple or len(v) == 0:
        return False
    for one in v:
        if not _is_of_given(one):
            return False
    return True
