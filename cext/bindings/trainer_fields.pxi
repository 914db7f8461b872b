# TrainerFields: what all trainers have in common besides their rule, as fields: at a small model, finding attributes of
# Python's would take longer than the update. Who is it for: dynet_lite/trainers.py, whose classes derive from it.

cdef extern from *:
    PyObject* _PyType_Lookup(PyTypeObject*, object)

# What takes part in an update and may be set on an object, too.
cdef frozenset _HOOKS = frozenset(("coefficients", "decay"))


@cython.auto_pickle(False)   # Trainer says what is copied
cdef class TrainerFields:
    """Settings, counters and update() of a trainer. The names are those of its state_dict()."""
    _numbers = ("_learning_rate", "_clip", "_sparse", "updates", "_recent_updates", "_recent_clips",
                "_averaging")

    cdef object of_model                 # what is trained,
    cdef object root                     # the collection that has its weight decay,
    cdef list members                    # and its weights and tables; both None until they are looked for
    cdef public double _learning_rate
    cdef public double _clip             # 0 or less: none
    cdef public bint _sparse
    cdef public long long updates        # since the start or restart()
    cdef public long long _recent_updates, _recent_clips   # since status()
    cdef public int _averaging           # see averages.py,
    cdef public dict _set_aside          # for this, too
    cdef public Updater _updater
    cdef bint hooked                     # one of _HOOKS was set on the object

    def __setattr__(self, str name, value):
        if name in _HOOKS:
            self.hooked = True
        PyObject_GenericSetAttr(self, name, value)

    @property
    def model(self):
        """The collection that is trained."""
        return self.of_model

    @model.setter
    def model(self, collection):
        self.of_model, self.root, self.members = collection, None, None

    def coefficients(self):
        """c[] of the rule (cext/kernels/updates.h) for update number self.updates, the first being 1."""
        return (self._learning_rate,)

    def decay(self):
        """The share of the weights that this update takes off."""
        return self.own_decay()

    cdef double own_decay(self) except? -1:
        if self.root is None:
            self.root = self.of_model._root()
        return self.root._weight_decay

    cdef bint is_hooked(self, PyObject* own, str name):
        """Is the method another than ours?"""
        return self.hooked or _PyType_Lookup(Py_TYPE(self), name) != own

    def update(self, s=1.0):
        """Change the parameters by their gradients and clear these.

        With clipping on, RuntimeError if a gradient has NaN or infinity. Then no weight changes, and the gradients are
        cleared, so that the next update works. A backend with memory of its own says so one update later. s: DyNet 1's
        factor of the gradients, which has to be 1.
        """
        cdef UpdateStep step
        if s != 1:
            raise ValueError(f"[update] gradients are not scaled here since DyNet 2; write (loss * {s}).backward()")
        self.begin_update(step)
        self._updater.run(self, step, self._clip, None)
        if self._averaging:
            self._average()

    cdef int begin_update(self, UpdateStep& s) except -1:
        """Counts the update, and finds its coefficients and decay."""
        if self._updater is None:
            raise AttributeError(f"[{type(self).__name__}] __init__() of the trainer that it derives from was not "
                                 "called")
        if self._set_aside is not None:
            self.swap_params_to_weights()
        if self.members is None:
            self.members = self.of_model._all
        if self.updates == 0 or self._updater.taken != len(self.members):
            self._see_new(self._updater.taken if self.updates else 0)
        self._updater.begin(self, self.members)
        s.decay = self.decay() if self.is_hooked(_decay, "decay") else self.own_decay()
        s.sparse = self._sparse
        self.updates += 1
        self._recent_updates += 1
        if not self.is_hooked(_coefficients, "coefficients"):
            s.c = [self._learning_rate, 0, 0, 0, 0, 0]
            return 0
        try:
            _set_coefficients(s, self.coefficients())
        except BaseException:
            self.update_done(0.0, False, True, None)   # there will be none
            raise
        return 0

    def _see_new(self, Py_ssize_t first):
        """Before the update of parameters that are new, from this one of the collection on."""

    def _begin_update(self):
        """Counts an update that Updater.update() is to make later; its coefficients, clip threshold, decay, sparse?"""
        cdef UpdateStep s
        self.begin_update(s)
        return tuple(s.c), self._clip, s.decay, bool(s.sparse)

    def _not_updated(self):
        """There will be none after all."""
        self.update_done(0.0, False, True, None)

    cdef bint can_wait(self):
        """May an update be put off? A subclass with an update() of its own may ask what the update did."""
        return _PyType_Lookup(Py_TYPE(self), "update") == _update and not self._averaging

    def _can_wait(self):
        """The same, for others."""
        return self.can_wait()

    cdef int update_done(self, double norm, bint clipped, bint failed, str late) except -1:
        """What became of an update that was put off, was clipped or failed.

        norm: of the gradients, 0 without clipping; late: why this is told after the call, "overlap" of steps or the
        "backend".
        """
        self._recent_clips += clipped
        if not failed and isfinite(norm):
            return 0
        self.updates -= 1
        self._recent_updates -= 1
        if failed:
            return 0
        where = "; in the update of the mini-batch before" if late else ""
        where += " (with configure(overlap=False) it is raised there)" if late == "overlap" else ""
        raise RuntimeError(f"[{type(self).__name__}] Magnitude of gradient is bad: {norm}{where}")


cdef PyObject* _coefficients = <PyObject*> TrainerFields.__dict__["coefficients"]
cdef PyObject* _decay = <PyObject*> TrainerFields.__dict__["decay"]
cdef PyObject* _update = <PyObject*> TrainerFields.__dict__["update"]
