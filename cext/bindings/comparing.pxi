# Arrays that a compiled function was given are expressions while it runs. Which are these, and what may a program ask of an
# expression without its numbers? Is it there, is it this one; but not which is greater, nor what hangs on numbers given.

cdef tuple _comparable = (int, float, np.number, np.bool_, np.ndarray)

cdef inline bint _takes_part(OpId op):
    """What indexing makes,"""
    return op in (OP__pick, OP__pick_range, OP__slice, OP__select)

cdef inline bint _is_operator(OpId op):
    """and what Python's operators make: NumPy's arrays have these, too."""
    return op in (OP_negate, OP_abs, OP_add, OP_sub, OP_matmul, OP_cdiv, OP_pow, OP_add_const, OP_const_minus, OP_scale,
                  OP_const_div, OP_pow_const, OP_const_pow)

cdef object _no_order(Expression e):
    _see_not_given(e, 0)
    return TypeError("[x < y] an expression has no order; compare its value(): x.value() < y.value()")

cdef int _see_not_given(Expression e, object other) except -1:
    """An error if it is compared with numbers, and stands for some that a compiled function was given, or computes with
    them."""
    cdef ComputationGraph g = e.graph
    if g is None or g.given == 0 or e is other or not _is_computed_of_given(e):
        return 0
    if not isinstance(other, _comparable) and not _is_computed_of_given(other):
        return 0
    error = _errors.CompileError(
        f"[compile {g.given_to}] decides by numbers of an array that it was given: these are data, and other ones at the "
        "next call. Give what decides as a float, a bool or a list of these")
    raise error if g.trace is None else g.trace.refuse(error)

cdef Py_hash_t _key_of(Expression e) except? -1:
    """By identity, as == is. One number of NumPy's is found in a set or dict by its value; arrays cannot be keys there."""
    cdef ComputationGraph g = e.graph
    if g is not None and g.given != 0 and g.c.valid(e.id, e.stamp) and g.c.dim(e.id).size() == 1:
        _see_not_given(e, 0)
    return <Py_hash_t> ((<size_t> <void*> e) >> 4)

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
        if not g.c.nargs(id) or not _takes_part(op):
            return False
        id = g.c.operands(id)[0]
    return True

cdef bint _is_computed_of_given(object v) except -1:
    """Is it such an array, or one of them alone and numbers with Python's operators? Then the function that is not compiled
    has an array of NumPy's, whose truth and equality hang on its numbers. Of an expression they do not: what weights,
    functions of ours, or inputs have a part in is one there, too."""
    if not isinstance(v, Expression):
        return False
    cdef ComputationGraph g = (<Expression> v).graph
    cdef NodeId id = (<Expression> v).id
    cdef OpId op
    cdef uint32_t k
    if g is None or g.given == 0 or not g.c.valid(id, (<Expression> v).stamp):
        return False
    cdef list waiting = [id]
    cdef set seen = {id}   # y + y, again and again
    while waiting:
        id = waiting.pop()
        if id < g.given:
            continue
        op = g.c.signature(id).op
        if not g.c.nargs(id) or not _takes_part(op) and not _is_operator(op):
            return False
        for k in range(g.c.nargs(id)):
            if g.c.operands(id)[k] not in seen:
                seen.add(g.c.operands(id)[k])
                waiting.append(g.c.operands(id)[k])
    return True

cdef bint _are_of_given(object v) except -1:
    """Is it a list of such, and not empty?"""
    if type(v) is not list and type(v) is not tuple or len(v) == 0:
        return False
    for one in v:
        if not _is_of_given(one):
            return False
    return True
