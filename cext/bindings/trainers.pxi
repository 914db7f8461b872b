# Updater: the engine's side of a trainer. Its settings and counters are trainer_fields.pxi; the classes of rules and of
# users are Python (dynet_lite/trainers.py).

cdef int _set_coefficients(UpdateStep& s, tuple c) except -1:
    cdef Py_ssize_t i
    for i in range(6):
        s.c[i] = c[i] if i < len(c) else 0.0
    return 0


def last_update():
    """The number of the last update of any trainer in this process."""
    return _n_updates

def weights_changed():
    """Count an update that was put off: what was computed from weights is that of the old ones."""
    global _n_updates
    _n_updates += 1


@cython.final
cdef class Updater:
    """One optimizer rule and its state for a list of parameters and tables.

    Rules: sgd, momentum, adagrad, adadelta, rmsprop, adam, amsgrad, eg. For trainers; nobody else needs it.
    """
    cdef CUpdater* u
    cdef bint busy
    cdef readonly Py_ssize_t taken   # members of the list that take() gets
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

    def take(self, list members not None):
        """Take what was added to the end of this list into the updates. Each is taken once, whatever other threads do
        meanwhile."""
        while self.taken < len(members):
            member = members[self.taken]
            self._not_updating()
            if job_needs(self.u):
                settle()   # other threads may run
            if self.taken < len(members) and members[self.taken] is member:
                self.taken += 1
                self.add(member)

    cdef int _not_updating(self) except -1:
        """What an update works on is not changed under it."""
        if self.busy:
            raise RuntimeError("[update] this trainer is updating in another thread")
        return 0

    def add(self, member):
        """Take a Parameters or a LookupParameters into the updates."""
        self._not_updating()
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
        self._not_updating()
        self.busy = True
        return 0

    cdef bint _may_wait(self):
        """Is the last backward pass put off, so that the update may be, too?"""
        if job_state() != JobState.Remembered or job_has_update() or current_graph() == NULL:
            return False
        return job_needs(_current().x)

    def update(self, TrainerFields trainer not None, tuple c not None, double clip, double decay, bint sparse,
               str late not None):
        """An update that others have put off. c: coefficients of the rule; the rest is that of run()."""
        cdef UpdateStep s
        _set_coefficients(s, c)
        s.decay, s.sparse = decay, sparse
        self.run(trainer, s, clip, late)

    cdef int run(self, TrainerFields trainer, UpdateStep& s, double clip, str late) except -1:
        """One update; its gradients are cleared.

        s: its coefficients, decay and sparse; clip: greatest norm of the gradients, 0 or less for none. It may be put
        off with the backward pass, and run with that. Once it has run, trainer.update_done() is called, if it was put
        off, clipped or failed. late: why so late, of one that was put off by others.
        """
        global _job_trainer, _n_updates, _n_updating
        cdef UpdateOutcome outcome
        cdef bint failed = True, entered = False
        s.backend = _backend()
        s.threads = _settings.threads
        s.owner = this_thread()
        if late is None:   # else weights_changed() has counted it
            _n_updates += 1
            if self._may_wait() and trainer.can_wait():
                remember_update(deref(self.u), s, clip)
                _job_trainer = weakref.ref(trainer)
                return 0
        try:
            settle()   # may raise what the update before could not
            _see_end()
            _let_fork()
            self._enter()
            entered = True
            _n_updating += 1
            if _holds_gil():
                s.alone = _is_alone()
                outcome = self.u.update(s, clip)
            else:
                with nogil:
                    outcome = self.u.update(s, clip)
            failed = False
        finally:
            if entered:
                _n_updating -= 1
                self.busy = False
            if failed or outcome.clipped or not isfinite(outcome.norm):
                trainer.update_done(outcome.norm, outcome.clipped, failed, late)
        return 0

    cdef int begin(self, TrainerFields trainer, list members) except -1:
        """Before an update: take() what was added to these members, and finish()."""
        if self.taken != len(members):
            self.take(members)
        if self.u.is_late():
            self.finish(trainer)
        return 0

    def finish(self, TrainerFields trainer not None):
        """What became of the last update, where the backend did not wait to see it: trainer.update_done() is called."""
        cdef UpdateOutcome outcome
        if not self.u.is_late() or job_needs(self.u):
            return
        self._enter()
        try:
            outcome = self.u.late()
        finally:
            self.busy = False
        if outcome.clipped or not isfinite(outcome.norm):
            trainer.update_done(outcome.norm, outcome.clipped, False, "backend")

    def clear_gradients(self):
        """Forget all accumulated gradients."""
        settle()
        self._not_updating()
        self.u.clear_gradients()

    def restart(self):
        """Zero the state."""
        settle()
        self._not_updating()
        self.u.restart()

    cdef Store* _state(self, Py_ssize_t i, bint table) except NULL:
        if not 0 <= i < len(self.tables if table else self.parameters):
            raise IndexError(f"[trainer] member {i}")
        settle()
        self._not_updating()
        return &self.u.table_state(i) if table else &self.u.parameter_state(i)

    def get_state(self, Py_ssize_t i, bint table):
        """A copy of the state of member i, float32 (states of the rule, size of the member)."""
        cdef Store* v = self._state(i, table)
        if v.empty():
            return np.zeros((self.u.states(), 0), dtype=np.float32)
        return _copied(deref(v)).reshape(self.u.states(), -1)

    def set_state(self, Py_ssize_t i, bint table, values):
        """Overwrite the state of member i; the shape must be equal."""
        a = np.ascontiguousarray(values, dtype=np.float32)   # first: other threads may run
        cdef Store* v = self._state(i, table)
        shape = (self.u.states(), 0 if v.empty() else v.size() // self.u.states())
        if a.shape != shape:
            raise ValueError(f"[trainer] state of shape {shape} is needed; got {a.shape}")
        cdef float[::1] flat = a.reshape(-1)
        if not v.empty():
            memcpy(v.host_to_write(), &flat[0], v.size() * sizeof(float))
