# Gradients as flat arrays: what dynet_lite/distributed sends to other processes and gets back, some while backward runs.
from cpython.ref cimport PyObject

cdef extern from "bindings/watch.h" namespace "dnl":
    cdef cppclass PythonWatch(GradientWatch):
        PyObject* self
        void (*call)(PyObject*, Parameter* const*, size_t) noexcept


def _which_are_updated(list members not None):
    """A byte for each parameter and table: 1 unless it is frozen."""
    cdef Vec[uint8_t] out
    for p in members:
        if isinstance(p, Parameters):
            out.push_back(deref((<Parameters> p).p).updated)
        else:
            out.push_back(deref((<LookupParameters?> p).t).updated)
    return <bytes> (<char*> out.data())[:out.size()]


@cython.final
cdef class _Watch:
    """Calls a function with the parameters whose gradients are complete; keeps its first error."""
    cdef PythonWatch w
    cdef dict members   # address: Parameters
    cdef object function, error

    cdef void tell(self, Parameter* const* parameters, size_t n) noexcept:
        cdef size_t i
        if self.error is not None:
            return
        try:
            addresses = [<size_t> parameters[i] for i in range(n)]
            self.function([self.members[a] for a in addresses if a in self.members])
        except BaseException as error:
            self.error = error


cdef void _tell(PyObject* watch, Parameter* const* parameters, size_t n) noexcept with gil:
    (<_Watch> watch).tell(parameters, n)


def _backward_watched(Expression loss not None, list parameters not None, function):
    """loss.backward(); while that runs, function(list of those of `parameters` whose gradients are complete).

    It is also called with an empty list when a while has passed. It must not use graphs. Parameters that no node reads are
    not told. Raises what the function raised, when backward is done.
    """
    global _n_watched
    cdef ComputationGraph g = loss.home()
    cdef NodeId i = loss.use()
    cdef _Watch watch = _Watch()
    cdef Parameters p
    watch.members = {}
    for p in parameters:
        watch.members[<size_t> p.p.get()] = p
    watch.function = function
    watch.w.self = <PyObject*> watch
    watch.w.call = _tell
    settle()
    cdef bint overlap = g.overlap
    g.overlap = False   # it runs now
    g.x.watch_gradients(&watch.w)
    _n_watched += 1
    try:
        g.run_backward(i, False)
    finally:
        _n_watched -= 1
        g.x.watch_gradients(NULL)
        g.overlap = overlap
    if watch.error is not None:
        raise watch.error


def _backward_calls():
    """How many backward passes were asked for since the process began."""
    return _n_backwards


def _gradient_view(Parameters parameter not None):
    """The gradient where it lies, float32 (size,): good as long as the parameter, where graphs run on the host."""
    settle()
    return np.asarray(_floats(deref(parameter.p).grad.host_to_write(), deref(parameter.p).size()))


def _touched(Parameters parameter not None, touched=None):
    """Whether a parameter has a gradient; with `touched` says so."""
    if touched is not None:
        deref(parameter.p).touched = touched
    return deref(parameter.p).touched


def _is_outer(Parameters parameter not None):
    """Whether the gradient is an outer product that nobody has formed yet (base/outer_later.h)."""
    return deref(parameter.p).grad.outer() != NULL


ctypedef const float* Numbers
ctypedef const uint8_t* Bytes


cdef size_t _total_size(list parameters) except? 0:
    cdef Parameters p
    cdef size_t n = 0
    for p in parameters:
        n += deref(p.p).size()
    return n


def _gather_grads(list parameters not None, float[::1] out, list flagged not None):
    """Copy the gradients of parameters one behind the other to `out`; then, for each of `flagged`, 1 if it has one, else 0.

    Frozen ones count: they are zeros. ValueError unless the sizes fit.
    """
    cdef size_t n
    settle()
    n = _total_size(parameters) + <size_t> len(flagged)
    if n != <size_t> out.shape[0]:
        raise ValueError(f"[gather_grads] {n} numbers are needed; got {out.shape[0]}")
    if n:
        _write_grads(parameters, flagged, &out[0])


cdef void _write_grads(list parameters, list flagged, float* to):
    cdef Parameters p
    cdef size_t n
    for p in parameters:
        n = deref(p.p).size()
        if n:
            memcpy(to, deref(p.p).grad.host(), n * sizeof(float))
        to += n
    for p in flagged:
        to[0] = 1 if deref(p.p).touched else 0
        to += 1


cdef int _check_sums(list parameters, size_t size, const float[::1] touched) except -1:
    cdef size_t n = _total_size(parameters)
    if size < n or touched.shape[0] != len(parameters):
        raise ValueError(f"[scatter_grads] {len(parameters)} parameters have {n} numbers; got {size}, and "
                         f"{touched.shape[0]} that say which have gradients")
    return 0


cdef void _add_parts(float* to, Vec[Numbers]& parts, size_t at, size_t n) noexcept nogil:
    # to = the sum over the parts, added in their order. In blocks, which stay near.
    cdef size_t begin = 0, end, k, i
    cdef const float* a
    cdef const float* b
    while begin < n:
        end = min(n, begin + 4096)
        a = parts[0] + at
        b = parts[1] + at
        for i in range(begin, end):
            to[i] = a[i] + b[i]
        for k in range(2, parts.size()):
            b = parts[k] + at
            for i in range(begin, end):
                to[i] += b[i]
        begin = end


def _sum_grads(list parameters not None, list parts not None, const float[::1] touched):
    """Overwrite the gradients by sums of what _gather_grads() wrote: float32 arrays of two processes or more, in this order.

    A parameter with 0 in `touched` has none. ValueError unless the sizes fit; then nothing has changed.
    """
    cdef const float[::1] part
    cdef Vec[Numbers] pointers
    if len(parts) < 2:
        raise ValueError(f"[sum_grads] two parts at least; got {len(parts)}")
    for part in parts:
        _check_sums(parameters, part.shape[0], touched)
        pointers.push_back(&part[0] if part.shape[0] else NULL)
    _sum_parts(parameters, pointers, touched)


cdef void _sum_parts(list parameters, Vec[Numbers]& pointers, const float[::1] touched):
    # Of sizes that were checked.
    cdef Parameters p
    cdef size_t at = 0
    cdef Py_ssize_t i = 0
    settle()
    for p in parameters:
        if touched[i] == 0:
            deref(p.p).clear_grad()
        elif deref(p.p).size():
            _add_parts(deref(p.p).grad.overwrite(host_backend()), pointers, at, deref(p.p).size())
        _set_touched(p, touched[i])
        at += deref(p.p).size()
        i += 1


cdef void _set_touched(Parameters p, float touched) noexcept:
    # After its gradient was written.
    if touched != 0:
        deref(p.p).touched = True
        deref(p.p).grad_changed()


def _scatter_grads(list parameters not None, const float[::1] values, const float[::1] touched):
    """Overwrite the gradients by what lies one behind the other in `values`; a parameter with 0 in `touched` has none.

    ValueError unless the sizes fit; then nothing has changed.
    """
    cdef Parameters p
    cdef size_t at = 0, n
    cdef Py_ssize_t i = 0
    _check_sums(parameters, values.shape[0], touched)
    settle()
    for p in parameters:
        n = deref(p.p).size()
        if touched[i] == 0:
            deref(p.p).clear_grad()
        elif n:
            memcpy(deref(p.p).grad.overwrite(host_backend()), &values[at], n * sizeof(float))
        _set_touched(p, touched[i])
        at += n
        i += 1


_OTHER_ROWS = "[set_rows] rows of other tables, or cut off"


def _rows_size(list tables not None):
    """How many bytes _pack_rows() writes."""
    cdef LookupParameters table
    cdef size_t row, size = 0
    settle()
    for table in tables:
        row = sizeof(uint32_t) + deref(table.t).row_size * sizeof(float)
        size += sizeof(uint32_t) + deref(table.t).touched.size() * row
    return size


def _pack_rows(list tables not None, uint8_t[::1] out):
    """Write for each table how many rows have a gradient (uint32), their numbers (uint32) and their gradients (float32).

    ValueError unless `out` has _rows_size(tables) bytes.
    """
    cdef size_t size = _rows_size(tables)
    if <size_t> out.shape[0] != size:
        raise ValueError(f"[pack_rows] {size} bytes are needed; got {out.shape[0]}")
    if size:
        _write_rows(tables, &out[0])


cdef void _write_rows(list tables, uint8_t* to):
    cdef LookupParameters table
    cdef uint32_t n
    cdef size_t floats
    for table in tables:
        n = <uint32_t> deref(table.t).touched.size()
        floats = n * <size_t> deref(table.t).row_size
        memcpy(to, &n, sizeof(n))
        to += sizeof(n)
        if n:
            memcpy(to, deref(table.t).touched.data(), n * sizeof(uint32_t))
            to += n * sizeof(uint32_t)
        if floats:
            memcpy(to, deref(table.t).gradients(host_backend()), floats * sizeof(float))
            to += floats * sizeof(float)


cdef size_t _check_rows(LookupParameters table, const uint8_t* part, size_t size, size_t at) except 0:
    # What was packed of this table begins here; where it ends.
    cdef uint32_t n, i, row
    cdef size_t width = deref(table.t).row_size * sizeof(float)
    if at + sizeof(n) > size:
        raise ValueError(_OTHER_ROWS)
    memcpy(&n, part + at, sizeof(n))
    at += sizeof(n)
    if at + n * (sizeof(row) + width) > size:
        raise ValueError(_OTHER_ROWS)
    for i in range(n):
        memcpy(&row, part + at + i * sizeof(row), sizeof(row))
        if row >= deref(table.t).rows:
            raise ValueError(f"[set_rows] row {row} of a table with {deref(table.t).rows} rows")
    return at + n * (sizeof(row) + width)


cdef int _sum_rows(LookupParameters table, Vec[Bytes]& parts, Vec[size_t]& places) except -1:
    # The sums of what was packed of this table, which begins at these places of the parts; they become where it ends.
    cdef Vec[uint32_t] slots, counts
    cdef uint32_t n, i, row, fresh = 0
    cdef size_t p, k, at = 0, width = deref(table.t).row_size
    cdef float* to
    cdef float* gradients
    cdef const float* values
    for p in range(parts.size()):
        memcpy(&n, parts[p] + places[p], sizeof(n))
        counts.push_back(n)
        places[p] += sizeof(n)
        for i in range(n):
            memcpy(&row, parts[p] + places[p], sizeof(row))
            slots.push_back(deref(table.t).slot(row))
            places[p] += sizeof(row)
    gradients = deref(table.t).gradients(host_backend(), False)
    for p in range(parts.size()):
        for i in range(counts[p]):
            values = <const float*> (parts[p] + places[p])   # all sizes are multiples of 4
            to = gradients + slots[at] * width
            if slots[at] == fresh:   # slots are given out in turn: nothing is there yet
                memcpy(to, values, width * sizeof(float))
                fresh += 1
            else:
                for k in range(width):
                    to[k] += values[k]
            places[p] += width * sizeof(float)
            at += 1
    return 0


def _set_rows(list tables not None, list parts not None):
    """Overwrite the gradients of tables: the sums of what was packed of them, added in the order of `parts` (uint8 arrays).

    Rows that no part has have no gradient. ValueError for parts of other tables; then nothing has changed.
    """
    cdef const uint8_t[::1] part
    cdef Vec[Bytes] pointers
    cdef Vec[size_t] sizes
    for part in parts:
        pointers.push_back(&part[0] if part.shape[0] else NULL)
        sizes.push_back(part.shape[0])
    _rows_of_parts(tables, pointers, sizes)


cdef int _rows_of_parts(list tables, Vec[Bytes]& parts, Vec[size_t]& sizes) except -1:
    cdef LookupParameters table
    cdef size_t at, p
    cdef Vec[size_t] places
    for p in range(parts.size()):
        at = 0
        for table in tables:
            at = _check_rows(table, parts[p], sizes[p], at)
        if at != sizes[p]:
            raise ValueError(_OTHER_ROWS)
        places.push_back(0)
    settle()
    for table in tables:
        deref(table.t).clear_grad()
        _sum_rows(table, parts, places)
