# What a program may ask of an expression without its numbers: is it there, is it this one? Not which is greater; and not
# what decides by the numbers of an array that a compiled function was given, which is an expression while it runs.

cdef tuple _comparable = (int, float, np.number, np.bool_, np.ndarray)

cdef object _no_order(Expression e):
    _see_not_given(e, 0)
    return TypeError("[x < y] an expression has no order; compare its value(): x.value() < y.value()")

cdef int _see_not_given(Expression e, object other) except -1:
    """An error if it is compared with a number, and stands for numbers that a compiled function was given."""
    cdef ComputationGraph g = e.graph
    if g is None or g.given == 0 or not isinstance(other, _comparable):
        return 0
    if not g.c.valid(e.id, e.stamp) or not _is_given(g, e.id):
        return 0
    error = _errors.CompileError(
        f"[compile {g.given_to}] decides by numbers of an array that it was given: these are data, and other ones at the "
        "next call. Give what decides as a float, a bool or a list of these")
    raise error if g.trace is None else g.trace.refuse(error)

cdef bint _is_given(ComputationGraph g, NodeId id):
    """Is it an array that a compiled function was given, or a part of one?"""
    cdef OpId op
    while id >= g.given:
        op = g.c.signature(id).op
        if op not in (OP__pick, OP__pick_range, OP__slice, OP__select):
            return False
        id = g.c.operands(id)[0]
    return True
