# Updater: the engine's side of a trainer. Schedules, clipping and the user's classes are Python (dynet_lite/trainers.py).

cdef UpdateStep _update_step(tuple c, double gscale, double decay, bint sparse) except *:
    cdef UpdateStep s
    cdef Py_ssize_t i
    for i in range(6):
        s.c[i] = c[i] if i < len(c) else 0.0
    s.gscale = gscale
    s.decay = decay
    s.sparse = sparse
    s.threads = _settings.threads
    return s


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
        if job_needs(self.u):
            _finish()
        del self.u

    def add(self, member):
        """Take a Parameters or a LookupParameters into the updates."""
        if job_needs(self.u):
            settle()
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
        settle()
        self._enter()
        with nogil:
            norm = self.u.gradient_norm()
        self.busy = False
        return norm

    def step(self, tuple c not None, double gscale, double decay, bint sparse):
        """One update; c: at most 6 coefficients of the rule (kernels/updates.h). Gradients used are cleared."""
        cdef UpdateStep s = _update_step(c, gscale, decay, sparse)
        settle()
        self._enter()
        try:
            with nogil:
                self.u.step(s)
        finally:
            self.busy = False

    def may_wait(self):
        """Is the last backward pass put off, so that the update may be, too?"""
        if job_state() != JobState.Remembered or job_has_update() or current_graph() == NULL:
            return False
        return job_needs(_current().x)

    def step_later(self, trainer, tuple c not None, double clip, double decay, bint sparse):
        """The update becomes a part of the step that is put off; c, decay, sparse: as for step().

        clip: greatest norm of the gradients, none if not positive. Once it has run,
        trainer._update_done(norm, clipped, failed) is called.
        """
        global _job_trainer
        cdef UpdateStep s = _update_step(c, 1.0, decay, sparse)
        cdef UpdateOutcome outcome
        if self.may_wait():
            remember_update(deref(self.u), s, clip)
            _job_trainer = weakref.ref(trainer)
            return
        settle()   # somebody had a look at gradients in the meantime
        self._enter()
        try:
            with nogil:
                outcome = self.u.update(s, clip)
        finally:
            self.busy = False
        trainer._update_done(outcome.norm, outcome.clipped, False)

    def clear_gradients(self):
        """Forget all accumulated gradients."""
        settle()
        self.u.clear_gradients()

    def restart(self):
        """Zero the state."""
        settle()
        self.u.restart()

    def _state(self, Py_ssize_t i, bint table):
        cdef Vec[float]* v
        if not 0 <= i < len(self.tables if table else self.parameters):
            raise IndexError(f"[trainer] member {i}")
        settle()
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
