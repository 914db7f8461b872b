# Gradients as flat arrays: what dynet_lite/distributed sends to other processes and gets back, some while backward runs.
from cpython.ref cimport PyObject

cdef extern from "bindings/watch.h" namespace "dnl":
    cdef cppclass PythonWatch(GradientWatch):
        PyObject* self
        void (*call)(PyObject*, Parameter* const*, size_t) noexcept


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
    try:
        g.run_backward(i, False)
    finally:
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


def _gather_grads(list parameters not None, float[::1] out, float[::1] touched):
    """Copy the gradients of parameters one behind the other to `out`; 1 in `touched` for each that has one, else 0.

    Frozen ones count: they are zeros. ValueError unless the sizes fit.
    """
    cdef Parameters p
    cdef size_t at = 0, n
    cdef Py_ssize_t i = 0
    settle()
    for p in parameters:
        n = deref(p.p).size()
        if at + n > <size_t> out.shape[0] or i >= touched.shape[0]:
            raise ValueError(f"[gather_grads] {out.shape[0]} numbers are too few for {len(parameters)} parameters")
        if n:
            memcpy(&out[at], deref(p.p).grad.host(), n * sizeof(float))
        touched[i] = 1 if deref(p.p).touched else 0
        at += n
        i += 1


def _scatter_grads(list parameters not None, const float[::1] values, const float[::1] touched):
    """The reverse: overwrite the gradients; a parameter with 0 in `touched` has none."""
    cdef Parameters p
    cdef size_t at = 0, n
    cdef Py_ssize_t i = 0
    settle()
    for p in parameters:
        n = deref(p.p).size()
        if at + n > <size_t> values.shape[0] or i >= touched.shape[0]:
            raise ValueError(f"[scatter_grads] {values.shape[0]} numbers are too few for {len(parameters)} parameters")
        if touched[i] == 0:
            deref(p.p).clear_grad()
        else:
            if n:
                memcpy(deref(p.p).grad.host_to_write(), &values[at], n * sizeof(float))
            deref(p.p).touched = True
            deref(p.p).grad_changed()
        at += n
        i += 1


def _touched_rows(LookupParameters table not None):
    """Copies of the numbers of the rows with a gradient, uint32 (n,), and of their gradients, float32 (n, row size)."""
    settle()
    cdef Py_ssize_t n = deref(table.t).touched.size(), width = deref(table.t).row_size
    ids = np.empty(n, dtype=np.uint32)
    values = np.empty((n, width), dtype=np.float32)
    cdef uint32_t[::1] to_ids = ids
    cdef float[:, ::1] to = values
    if n:
        memcpy(&to_ids[0], deref(table.t).touched.data(), n * sizeof(uint32_t))
        if width:
            memcpy(&to[0, 0], deref(table.t).gradients(host_backend()), n * width * sizeof(float))
    return ids, values


def _set_touched_rows(LookupParameters table not None, const uint32_t[::1] ids, const float[:, ::1] values):
    """Overwrite the gradient: the sum of `values` by row number, added in this order; other rows have none.

    A row may occur several times. ValueError for rows that are not there, or another row size; then nothing has changed.
    """
    cdef Py_ssize_t i, k, width = deref(table.t).row_size
    cdef float* to
    if values.shape[0] != ids.shape[0] or values.shape[1] != width:
        raise ValueError(f"[set_touched_rows] ({ids.shape[0]}, {width}) numbers are needed; "
                         f"got ({values.shape[0]}, {values.shape[1]})")
    for i in range(ids.shape[0]):
        if ids[i] >= deref(table.t).rows:
            raise ValueError(f"[set_touched_rows] row {ids[i]} of a table with {deref(table.t).rows} rows")
    settle()
    deref(table.t).clear_grad()
    for i in range(ids.shape[0]):
        deref(table.t).slot(ids[i])
    for i in range(ids.shape[0]):
        to = deref(table.t).gradients(host_backend()) + deref(table.t).slot(ids[i]) * width
        for k in range(width):
            to[k] += values[i, k]
