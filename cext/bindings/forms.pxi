# Functions of dynet_lite/ops.py, and indices, in the forms that programs mostly use: without Python's lists, shapes and
# arrays. They give None where the arguments are others, or wrong: dynet_lite/ops.py and indexing.py then look closer.

cdef inline bint _is_here(ComputationGraph g, object x, NodeId* node) except -1:
    """Is x an expression of this graph, or a weight? Its node."""
    if not isinstance(x, Expression):
        return False
    if not g.c.valid((<Expression> x).id, (<Expression> x).stamp) and not isinstance(x, Weight):
        return False
    node[0] = _arg(g, x)
    return True


def _alike(x, y):
    """Two expressions whose shapes are equal when missing trailing dims count as 1; False for anything else."""
    cdef ComputationGraph g = _current()
    cdef NodeId a, b
    return _is_here(g, x, &a) and _is_here(g, y, &b) and g.c.dim(a).like(g.c.dim(b))


def _added_to_columns(x, y):
    """colwise_add() of a matrix and a vector of as many rows; None for other arguments."""
    cdef ComputationGraph g = _current()
    cdef NodeId a, b
    if not _is_here(g, x, &a) or not _is_here(g, y, &b):
        return None
    if g.c.dim(a).nd > 2 or g.c.dim(b).nd != 1 or g.c.dim(a).d[0] != g.c.dim(b).d[0]:
        return None
    return _op2(OP_add, x, y)


def _dims_of(x, d, str what):
    """A list of dims of x; negative ones count from the last."""
    nd, d = x.ndim, _listed(d)
    dims = [_as_int(i, what) for i in ([d] if isinstance(d, (int, float, np.number)) else d)]
    return [i + nd if -nd <= i < 0 else i for i in dims]


cdef Expression _summed(OpId op, object x, object y):
    """The sum of what an elementwise op makes of two expressions of one shape; None for other arguments."""
    return _op1(OP_sum_elems, _op2(op, x, y)) if _alike(x, y) else None

def _sum_of_squares(x, y):
    """squared_distance() of arguments as _summed() takes them."""
    return _summed(OP_squared_difference, x, y)

def _sum_of_differences(x, y):
    """l1_distance() likewise."""
    return _summed(OP_abs_difference, x, y)

def _sum_of_log_losses(x, y):
    """binary_log_loss() likewise."""
    return _summed(OP_binary_log_loss_terms, x, y)


def _begins_like(x, b, uint32_t nd):
    """Has b the first nd dims of x? Trailing dims of 1 may be missing. False for anything but two expressions."""
    cdef ComputationGraph g = _current()
    cdef NodeId i, k
    if not _is_here(g, x, &i) or not _is_here(g, b, &k):
        return False
    cdef Dim d = g.c.dim(i)
    while d.nd > nd:
        d.nd -= 1
        d.d[d.nd] = 0
    return d.like(g.c.dim(k))


def _normed(w, scale):
    """weight_norm() of two expressions, of which the second is one number; else None."""
    cdef ComputationGraph g = _current()
    cdef NodeId i
    if not isinstance(w, Expression) or not _is_here(g, scale, &i):
        return None
    if g.c.dim(i).batch_size() != 1:
        return None
    return _op2(OP_cmult, w, _op2(OP_cdiv, scale, _op1(OP_l2_norm, w)))


def _folded_rows(x, nrows):
    """fold_rows() of an expression whose rows can be folded so; else None."""
    cdef ComputationGraph g = _current()
    cdef NodeId i
    cdef Dim d
    if type(nrows) is not int or not _is_here(g, x, &i):
        return None
    d = g.c.dim(i)
    if not 0 < nrows <= d.d[0] or d.d[0] % <uint32_t> nrows or d.nd == 7:
        return None
    cdef list shape = [nrows, d.d[0] // <uint32_t> nrows]
    shape += [d.d[k] for k in range(1, d.nd)] if d.nd > 1 else [1]
    return _sum_dims(reshape(x, shape, d.bd), (0,), False)


def _ngrams(x, v):
    """kmh_ngram() of a matrix with so many columns; else None."""
    cdef ComputationGraph g = _current()
    cdef NodeId i
    if type(v) is not int or not _is_here(g, x, &i) or g.c.dim(i).nd != 2 or not 0 < v <= g.c.dim(i).d[1]:
        return None
    cdef uint32_t j, n = v, places = g.c.dim(i).d[1] - n + 1
    return esum([_pick_range(x, j, places, 1) for j in range(n)])


# ---- parts ---------------------------------------------------------------------------------------------------

cdef struct Steps:
    int64_t begin, step, count

cdef Expression _sliced(ComputationGraph g, NodeId x, const Steps* steps, int n):
    """The node of slices, which are in range, along the first n dims; one more is the mini-batch."""
    cdef int k
    cdef Word w
    g.next_turn()
    g.args.clear()
    g.keys.clear()
    g.members.clear()
    g.args.push_back(x)
    w.i = n
    g.members.push_back(w)
    g.keys.push_back(w)
    for k in range(n):
        w.i = <int32_t> steps[k].step
        g.keys.push_back(w)
    w.i = n
    g.keys.push_back(w)
    for k in range(n):
        w.i = <int32_t> steps[k].count
        g.keys.push_back(w)
    for k in range(n):
        w.i = <int32_t> steps[k].begin
        g.members.push_back(w)
    return _op(g, OP__slice)


cdef int _few_ints(object given, int64_t* to) except -2:
    """Numbers of a list or tuple of at most 8 ints that are not negative, and how many. -1: it is something else."""
    cdef int n = 0
    if type(given) is not list and type(given) is not tuple or len(given) > 8:
        return -1
    for one in given:
        if type(one) is not int or not 0 <= one <= 0x7fffffff:
            return -1
        to[n] = one
        n += 1
    return n


def _strided(x, strides, range_from, range_to):
    """strided_select() of an expression with ints that are in range; else None."""
    cdef ComputationGraph g = _current()
    cdef NodeId i
    cdef int64_t step[8]
    cdef int64_t begin[8]
    cdef int64_t end[8]
    cdef Steps steps[8]
    cdef uint32_t k, size
    cdef int n, n_steps = _few_ints(strides, step), n_begin = _few_ints(range_from, begin)
    cdef int n_end = _few_ints(range_to, end)
    if n_steps < 0 or n_begin < 0 or n_end < 0 or not _is_here(g, x, &i):
        return None
    n = max(n_steps, n_begin, n_end)
    if n > <int> g.c.dim(i).nd + 1:
        return None
    for k in range(<uint32_t> n):
        size = g.c.dim(i).d[k] if k < g.c.dim(i).nd else g.c.dim(i).bd
        steps[k].begin = begin[k] if <int> k < n_begin else 0
        steps[k].step = step[k] if <int> k < n_steps else 1
        if <int> k >= n_end:
            end[k] = size
        if steps[k].step == 0 or steps[k].begin >= end[k] or end[k] > size:
            return None
        steps[k].count = (end[k] - steps[k].begin + steps[k].step - 1) // steps[k].step
    return _sliced(g, i, steps, n)


cdef inline bint _is_bound(object v):
    return v is None or type(v) is int

cdef bint _reads_position(object index, uint32_t size, Steps* to) except -1:
    """What an int or a slice chooses of a dim; False: it is nothing of both, or out of range."""
    cdef Py_ssize_t start, stop, step
    cdef int overflow = 0
    if type(index) is int:
        to.begin = PyLong_AsLongLongAndOverflow(index, &overflow)
        if to.begin < 0:
            to.begin += size
        to.step = to.count = 1
        return not overflow and 0 <= to.begin < size
    if type(index) is not slice or not (_is_bound((<slice> index).start) and _is_bound((<slice> index).stop)):
        return False
    if not _is_bound((<slice> index).step) or (<slice> index).step == 0:
        return False
    PySlice_Unpack(index, &start, &stop, &step)
    to.count = PySlice_AdjustIndices(size, &start, &stop, step)
    to.begin, to.step = start, step
    return to.count > 0 and -0x7fffffff <= step <= 0x7fffffff


cdef Expression _plain_part(Expression e, object index):
    """What a slice, or a tuple of ints and slices, chooses; None: the index is another one, or wrong."""
    cdef NodeId i = e.use()
    cdef ComputationGraph g = e.home()
    cdef Dim d = g.c.dim(i)
    cdef Steps steps[8]
    cdef tuple positions = index if type(index) is tuple else (index,)
    cdef Py_ssize_t k, n = len(positions), cuts = 0, last = 0
    cdef list kept = []
    cdef Expression part
    if n == 0 or n > d.nd:
        return None
    if n == 2 and type(positions[1]) is int and type(positions[0]) is slice and positions[0] == slice(None):
        return _pick(e, positions[1], 1)
    for k in range(n):
        if not _reads_position(positions[k], d.d[k], &steps[k]):
            return None
        if steps[k].count != d.d[k] or steps[k].step != 1:
            last = k
            cuts += 1
        if type(positions[k]) is slice:
            kept.append(steps[k].count)
    if not kept and n == 2 and d.nd == 2:   # a column is not copied
        return _pick(_pick(e, positions[1], 1), positions[0], 0)
    if cuts == 0:
        part = e
    elif cuts == 1 and steps[last].step == 1:
        part = _pick_range(e, steps[last].begin, steps[last].count, last)
    else:
        g = _current()
        i = _arg_of(OP__slice, g, e)   # an error if it is another graph's
        part = _sliced(g, i, steps, <int> last + 1)
    if len(kept) == n:
        return part
    kept += [d.d[k] for k in range(n, d.nd)]
    return reshape(part, kept or (1,), d.bd)
