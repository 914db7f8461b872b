# Updater: the engine's side of a trainer. Schedules, clipping and the user's classes are Python (dynet_lite/trainers.py).

cdef extern from "exec/update.h" namespace "dnl":
    cdef cppclass UpdateStep:
        float c[6]
        float gscale
        double decay
        cbool sparse
    cdef cppclass CUpdater "dnl::Updater":
        CUpdater(const string&) except +raise_python_error
        void add_parameter(const shared_ptr[Parameter]&) except +raise_python_error
        void add_table(const shared_ptr[LookupTable]&) except +raise_python_error
        double gradient_norm() nogil
        void step(const UpdateStep&) except +raise_python_error nogil
        void clear_gradients() nogil
        void restart() except +raise_python_error
        int states()
        Vec[float]& parameter_state(size_t) except +raise_python_error
        Vec[float]& table_state(size_t) except +raise_python_error


@cython.final
cdef class Updater:
    """One optimizer rule and its state for a list of parameters and tables.

    Rules: sgd, momentum, adagrad, adadelta, rmsprop, adam, amsgrad, eg. For trainers; nobody else needs it.
    """
    cdef CUpdater* u
    cdef bint busy
    cdef readonly list parameters
    cdef readonly list tables

    def __cinit__(self, str rule not None):
        self.parameters = []
        self.tables = []
        self.u = new CUpdater(rule.encode())

    def __dealloc__(self):
        del self.u

    def add(self, member):
        """Take a Parameters or a LookupParameters into the updates."""
        if isinstance(member, Parameters):
            self.u.add_parameter((<Parameters> member).p)
            self.parameters.append(member)
        elif isinstance(member, LookupParameters):
            self.u.add_table((<LookupParameters> member).t)
            self.tables.append(member)
        else:
            raise TypeError(f"[trainer] a parameter is needed; got {type(member).__name__}")

    cdef int _enter(self) except -1:
        if self.busy:
            raise RuntimeError("[trainer] this trainer is updating in another thread")
        self.busy = True
        return 0

    def gradient_norm(self):
        """Global L2 norm of the accumulated gradients; NaN or infinite when one of them is."""
        cdef double norm
        self._enter()
        with nogil:
            norm = self.u.gradient_norm()
        self.busy = False
        return norm

    def step(self, tuple c not None, double gscale, double decay, bint sparse):
        """One update; c: at most 6 coefficients of the rule (kernels/updates.h). Gradients used are cleared."""
        cdef UpdateStep s
        cdef Py_ssize_t i
        for i in range(6):
            s.c[i] = c[i] if i < len(c) else 0.0
        s.gscale = gscale
        s.decay = decay
        s.sparse = sparse
        self._enter()
        try:
            with nogil:
                self.u.step(s)
        finally:
            self.busy = False

    def clear_gradients(self):
        """Forget all accumulated gradients."""
        self.u.clear_gradients()

    def restart(self):
        """Zero the state."""
        self.u.restart()

    def _state(self, Py_ssize_t i, bint table):
        cdef Vec[float]* v
        if not 0 <= i < len(self.tables if table else self.parameters):
            raise IndexError(f"[trainer] member {i}")
        v = &self.u.table_state(i) if table else &self.u.parameter_state(i)
        return np.zeros((self.u.states(), 0), dtype=np.float32) if v.empty() else \
            np.asarray(_floats(v.data(), v.size())).reshape(self.u.states(), -1)

    def get_state(self, Py_ssize_t i, bint table):
        """A copy of the state of member i, float32 (states of the rule, size of the member)."""
        return np.array(self._state(i, table))

    def set_state(self, Py_ssize_t i, bint table, values):
        """Overwrite the state of member i; the shape must be equal."""
        to = self._state(i, table)
        a = np.asarray(values, dtype=np.float32)
        if a.shape != to.shape:
            raise ValueError(f"[trainer] state of shape {to.shape} is needed; got {a.shape}")
        to[...] = a
