# Runs of recurrent builders over inputs, and their states: what is made for every input of every sentence. Used by
# dynet_lite/builders, whose base.py tells how a builder makes its runs.


cdef class BuilderRun:
    """One run of a builder over inputs: base of builders.base.Sequence.

    ``stack``: for runs whose steps are cells and nothing else, the CellStack that makes them, from the first input on;
    else None. ``stamp``: of the graph when the run was started.
    """
    cdef public object builder
    cdef public bint update
    cdef public CellStack stack
    cdef readonly uint32_t stamp
    cdef object __weakref__

    def __init__(self, builder, bint update):
        self.builder = builder
        self.update = update
        self.stamp = _current().c.generation()


@cython.freelist(4096)
@cython.trashcan(True)  # states hang on one another in chains as long as the text
cdef class RNNState:
    """A state of a recurrent builder: made by ``initial_state()`` and by adding inputs to another state."""
    cdef BuilderRun _run
    cdef tuple _h   # by layer; None before any input
    cdef tuple _c   # cells by layer; None where there are none, or where they are the second outputs of the h's
    cdef RNNState _prev
    cdef object _output

    def __init__(self, builder, int state_idx=-1, prev_state=None, out=None):
        """RNNState(builder): what ``builder.initial_state()`` gives. Of the other arguments of DyNet only the defaults."""
        if state_idx != -1 or prev_state is not None or out is not None:
            raise ValueError("[RNNState] a state is made by its builder (initial_state) or by a state (add_input, set_s);"
                             " state_idx, prev_state and out cannot be given")
        if not hasattr(builder, "initial_state"):
            raise TypeError(f"[RNNState] a recurrent builder is needed; got {type(builder).__name__}")
        cdef RNNState start = builder.initial_state()
        self._run, self._h, self._c = start._run, start._h, start._c

    def add_input(self, x):
        """The state after one more input {input_dim}."""
        cdef CellStack stack = self._run.stack
        try:
            if stack is not None:
                return _state_after(self, stack.step(x, self._h, self._c), None)
            h, c = self._run.step(x, self._h, self._c)
        except ValueError as error:
            raise self._explained(error, [x]) from None
        return _state_after(self, h, c)

    def add_inputs(self, xs):
        """The states after each of several inputs."""
        cdef list out = []
        cdef RNNState state = self
        xs = xs if isinstance(xs, (list, tuple)) else list(xs)
        try:
            states = self._run.states(xs, self._h, self._c)
        except ValueError as error:
            raise self._explained(error, xs) from None
        for h, c in states:
            state = _state_after(state, h, c)
            out.append(state)
        return out

    def transduce(self, xs, after=None):
        """The outputs after each of several inputs; cheaper than add_inputs().

        after: for inputs that are no sequence but a tree, as those of a stack that grows and shrinks: ``after[i]`` is the
        number of the input that input i follows, an earlier one, or -1 for this state. None: each follows the one before it.
        """
        cdef CellStack stack = self._run.stack
        cdef list order = None
        if type(xs) is not list and hasattr(xs, "transduced"):  # of a length that is not known: dynet_lite/onnx
            return xs.transduced(self._run.builder, self.h(), self.s(), after)
        xs = xs if isinstance(xs, (list, tuple)) else list(xs)
        if after is not None:
            order = _followed(after, len(xs))
        try:
            if stack is not None:
                return stack.run(xs, self._h, self._c, False, order)
            return self._run.shown(self._run.outputs(xs, self._h, self._c, order))
        except ValueError as error:
            raise self._explained(error, xs) from None

    def _explained(self, error, xs):
        """The error in terms of the builder, when an input or the state has a wrong size; else as it is."""
        builder = self._run.builder
        for what, size, given in (("an input", builder.input_dim, xs), ("a state", builder.hidden_dim, self.s())):
            for i, x in enumerate(given):
                try:
                    shape = tuple(x.shape)
                except (AttributeError, ValueError):  # no expression, or a stale one
                    continue
                if shape not in ((size,), (size, 1)):
                    where = f" (number {i} of {len(given)})" if len(given) > 1 else ""
                    dims = ",".join([str(d) for d in shape])
                    return ValueError(f"[{builder.whoami()}] {what} of shape {{{size}}} is needed; got {{{dims}}}{where}")
        return error

    def output(self):
        """h of the last layer, {hidden_dim}; None before any input."""
        if self._output is None and self._h is not None:
            h = self._h[len(self._h) - 1]
            self._output = h if self._run.stack is not None else self._run.output(h)
        return self._output

    def h(self):
        """h of each layer; empty before any input."""
        return self._h if self._h is not None else ()

    def s(self):
        """The whole state: h of each layer; for LSTMs the cells of all layers and then their h's."""
        if self._h is None:
            return ()
        return self._cells() + self._h if self._run.builder.has_cell else self._h

    def _cells(self):
        if self._c is None and self._h is not None:
            self._c = tuple([_second(h) for h in self._h])
        return self._c if self._c is not None else ()

    def set_h(self, es):
        """A state with other h's, one per layer; cells are kept (zero before any input)."""
        builder = self._run.builder
        h = _state_tensors(es, "set_h", (builder.layers,))
        c = None
        if builder.has_cell:
            c = builder._zero_state() if self._h is None else self._cells()
        return _state_after(self, h, c)

    def set_s(self, es):
        """A state with other contents, in the order of s(); for LSTMs also cells alone, h's are then kept."""
        builder = self._run.builder
        n = builder.layers
        if not builder.has_cell:
            return self.set_h(es)
        new = _state_tensors(es, "set_s", (n, 2 * n))
        h = new[n:] or self._h or builder._zero_state()
        return _state_after(self, h, new[:n])

    def prev(self):
        """The state before the last input; None at the start."""
        return self._prev

    def b(self):
        """The builder."""
        return self._run.builder

    def __repr__(self):
        cdef RNNState state = self._prev
        steps = 0
        while state is not None:
            steps, state = steps + 1, state._prev
        return f"<state of a {self._run.builder.whoami()}, {steps} steps from its start>"


cdef inline RNNState _state_after(RNNState prev, tuple h, tuple c):
    cdef RNNState state = RNNState.__new__(RNNState)
    state._run, state._h, state._c, state._prev = prev._run, h, c, prev
    return state


def _first_state(BuilderRun run not None, es):
    """The state of a run before any input, with contents es as of set_s() unless that is None."""
    cdef RNNState state = RNNState.__new__(RNNState)
    state._run = run
    if es is not None:
        state = state.set_s(es)
        state._prev = None
    return state


cdef tuple _state_tensors(es, str name, tuple counts):
    """A tuple of expressions, as many as one of counts says; arrays become inputs."""
    if es is None or isinstance(es, Expression):
        raise TypeError(f"[{name}] takes a list of expressions; got {type(es).__name__}")
    out = tuple([e if isinstance(e, Expression) else inputTensor(np.asarray(e)) for e in es])
    if len(out) not in counts:
        wanted = " or ".join([str(n) for n in counts])
        raise ValueError(f"[{name}] {wanted} expressions are needed, got {len(out)}")
    return out
