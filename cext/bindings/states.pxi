# Runs of recurrent builders over inputs, and their states: what is made for every input of every sentence. Used by
# dynet_lite/builders, whose base.py tells how a builder makes its runs.


@cython.final
cdef class BuilderOfGraph:
    """What a builder keeps of the current graph of one thread: its layers, and which run was started last."""
    cdef dict stacks   # update -> CellStack; those of an earlier graph, too, as they say what the layers are made of
    cdef object last   # weak: runs hold their builder, and memory goes without the collector
    cdef bint update
    cdef uint32_t stamp
    cdef public object shown   # what get_parameter_expressions() gave, with the version of the graph

    def __cinit__(self):
        self.stacks = {}

    def begin(self, BuilderRun run not None, vecs):
        """The state of a run before any input, with contents vecs as of set_s() unless that is None."""
        self.last, self.stamp, self.update, self.shown = PyWeakref_NewRef(run, None), run.stamp, run.update, None
        run.here = self
        cdef RNNState state = RNNState.__new__(RNNState)
        state._run = run
        if vecs is not None:
            state = state.set_s(vecs)
            state._prev = None
        return state

    def latest(self):
        """The run that was started last; None when it is gone."""
        return self.last() if self.last is not None else None

    def started(self):
        """The stamp of the graph in which that was started, and its update; None before any."""
        return (self.stamp, self.update) if self.last is not None else None

    cpdef CellStack stack(self, builder, bint update):
        """The layers in the current graph, without masks; one for all runs, until an update."""
        cdef CellStack stack = self.stacks.get(update)
        if stack is not None and stack.is_of_now():
            return stack
        cdef float forget_bias = builder._forget_bias()
        if stack is not None and stack.kind.key.f == forget_bias:
            stack = stack.again()
        else:
            stack = None
        if stack is None:
            stack = CellStack(builder.kind, builder._all_weights(update), forget_bias)
        self.stacks[update] = stack
        return stack


cdef class BuilderRun:
    """One run of a builder over inputs: base of builders.base.Sequence.

    ``stack``: for runs whose steps are cells and nothing else, the CellStack that makes them, from the first input on;
    else None. ``stamp``: of the graph when the run was started.
    """
    cdef BuilderOfGraph here
    cdef public object builder
    cdef public bint update
    cdef public CellStack stack
    cdef readonly uint32_t stamp
    cdef object __weakref__
    fused = False   # are its steps cells and nothing else?
    plain = False   # and does it stay without masks, whatever the builder's rates are?

    def __init__(self, builder, bint update):
        self.builder = builder
        self.update = update
        self.stamp = _current().c.generation()

    cdef CellStack begun(self, first):
        """The stack, for inputs of which this is the first; None where it takes more than cells."""
        cdef CellStack stack
        if self.stack is not None and not self.stack.is_alive() and self.goes_on():
            self.stack = None   # a revert took it, but not the start
        if self.stack is None and self.here is not None and self.fused:
            stack = self.unmasked()
            if not self.plain and self.builder._rates != _no_rates:
                stack = stack.masked(self.builder, _batch_of(first))
            self.stack = stack
        return self.stack

    def reverted(self, made):
        """Did a revert take what was made together at the first input, but not the start of the run?"""
        for e in made:
            if e is not None:
                return _is_reverted(e) and self.goes_on()
        return False

    def unmasked(self):
        """The layers without masks."""
        return self.here.stack(self.builder, self.update) if self.here is not None else None


cdef object _one_of(xs, bint last):
    """The first or the last of inputs."""
    cdef Py_ssize_t i = len(xs) - 1 if last else 0
    if type(xs) is ExpressionList and (<ExpressionList> xs).made is None:
        return (<ExpressionList> xs).at(i)
    return xs[i]

cdef tuple _no_rates = (0.0, 0.0)

cpdef object _batch_of(x):
    """Batch size of an input: an expression or an array."""
    return x.batch_size if isinstance(x, Expression) and not isinstance(x, Parameters) else 1


@cython.freelist(4096)
@cython.trashcan(True)  # states hang on one another in chains as long as the text
cdef class RNNState:
    """A state of a recurrent builder. ``builder.initial_state()`` makes the first, add_input() each further one."""
    cdef BuilderRun _run
    cdef tuple _h   # by layer; None before any input
    cdef tuple _c   # cells by layer; None where there are none, or where they are the second outputs of the h's
    cdef RNNState _prev
    cdef object _output

    def __init__(self, builder, state_idx=-1, prev_state=None, out=None):
        """RNNState(builder) is ``builder.initial_state()``. DyNet's other arguments take their defaults only."""
        if state_idx != -1 or prev_state is not None or out is not None:
            raise ValueError("[RNNState] a state is made by its builder (initial_state) or by a state (add_input, set_s);"
                             " state_idx, prev_state and out cannot be given")
        if not hasattr(builder, "initial_state"):
            raise TypeError(f"[RNNState] a recurrent builder is needed; got {type(builder).__name__}")
        first = builder.initial_state()
        if not isinstance(first, RNNState):
            raise TypeError(f"[RNNState] a recurrent builder is needed; got {type(builder).__name__}")
        cdef RNNState start = <RNNState> first
        self._run, self._h, self._c = start._run, start._h, start._c

    cdef inline BuilderRun run(self):
        if self._run is None:   # of a class of the user's, whose __init__ does not call ours
            raise TypeError("[RNNState] a state comes from a builder (initial_state) or a state (add_input)")
        return self._run

    def add_input(self, x):
        """The state after the input x {input_dim}. ValueError if x has another shape."""
        cdef CellStack stack
        try:
            stack = self.run().begun(x)
            if stack is not None:
                return _state_after(self, stack.step(x, self._h, self._c), None)
            h, c = self.run().step(x, self._h, self._c)
        except (ValueError, TypeError, AttributeError) as error:
            raise self._explained(error, [x]) from None
        return _state_after(self, h, c)

    def add_inputs(self, xs):
        """A list of the states after each of several inputs."""
        cdef list out = []
        cdef RNNState state = self
        xs = self._listed(xs)
        cdef CellStack stack
        try:
            stack = self.run().begun(xs[0]) if xs else None
            if stack is not None:
                states = [(h, None) for h in stack.run(xs, self._h, self._c, True)]
            else:
                states = self.run().states(xs, self._h, self._c)
        except (ValueError, TypeError, AttributeError) as error:
            raise self._explained(error, xs) from None
        for h, c in states:
            state = _state_after(state, h, c)
            out.append(state)
        return out

    def transduce(self, xs, after=None, *, lengths=None, reverse=False):
        """A list of the outputs {hidden_dim} after each of several inputs. Faster than add_inputs().

        reverse: the inputs are read from the last to the first; the outputs keep the order of the inputs.
        lengths: the inputs are so many sentences, one behind the other, and each of these begins at this state. The sum
        must be the number of inputs. With dropout all of them have the same masks. The outputs are used like a list, but
        their expressions are made when one is asked for; ``[x] + list(outputs)`` puts something before them.
        after: for inputs that form a tree, such as those of a stack that grows and shrinks. Input i follows input
        ``after[i]``, which must come earlier, or this state where ``after[i]`` is -1. It cannot be given with the other two.
        ValueError for inputs of another shape.
        """
        cdef CellStack stack
        cdef Vec[int32_t] order
        cdef bint backwards = _truth(reverse, "[transduce] reverse")
        if type(xs) is not list and hasattr(xs, "transduced"):  # of a length that is not known: dynet_lite/onnx
            out = (xs[::-1] if backwards else xs).transduced(
                self.run().builder, self.h(), self.s(), after if lengths is None else lengths)
            return out[::-1] if backwards else out
        xs = self._listed(xs)
        if (after is not None or lengths is not None) and type(xs) is list:
            xs = xs.copy()   # numbers may be of the user's kind, and change the inputs
        _follow(order, after, lengths, backwards, len(xs))
        try:
            stack = self.run().begun(_one_of(xs, backwards)) if len(xs) else None
            if stack is not None:
                return stack.outputs(xs, self._h, self._c, order, backwards, lengths is not None)
            return self._run_through(xs, order, backwards)
        except (ValueError, TypeError, AttributeError) as error:
            raise self._explained(error, xs) from None

    cdef object _run_through(self, xs, const Vec[int32_t]& order, bint reverse):
        """transduce() where steps are more than cells."""
        cdef Py_ssize_t i, n = len(xs)
        cdef list after = None if order.empty() else [order[i] for i in range(n)]
        if reverse and after is not None:   # else there are no inputs
            after = [-1 if k < 0 else n - 1 - k for k in reversed(after)]
        out = self.run().shown(self.run().outputs(xs[::-1] if reverse else xs, self._h, self._c, after))
        return out[::-1] if reverse else out

    def _listed(self, xs):
        """The inputs as a list or a tuple, none of the user's kinds, whose length may be another than what they give."""
        if type(xs) is list or type(xs) is tuple or type(xs) is ExpressionList:
            return xs
        try:
            return list(xs)
        except TypeError:
            raise TypeError(f"[{self.run().builder.whoami()}] a list of inputs is needed; got {_shown(xs)}") from None

    def _explained(self, error, xs):
        """The error in terms of the builder: which input, or part of the state, is wrong."""
        builder = self.run().builder
        for what, size, given in (("an input", builder.input_dim, xs), ("a state", builder.hidden_dim, self.h())):
            wrong = _needs.wrong_vector(what, size, given)
            if wrong is not None:
                return wrong[0](f"[{builder.whoami()}] {wrong[1]}")
        return _at_user(_needs.renamed(error, builder.whoami()))

    def output(self):
        """h of the last layer, {hidden_dim}; None before any input."""
        if self._h is not None and (self._output is None or _is_reverted(self._output)):
            h = self._h[len(self._h) - 1]
            self._output = h if self._run.stack is not None else self._run.output(h)
        return self._output

    def h(self):
        """The h's, {hidden_dim}, one per layer; empty before any input."""
        return self._h if self._h is not None else ()

    def s(self):
        """The whole state, {hidden_dim} each: the h of each layer; for LSTMs the cells of all layers, then their h's."""
        if self._h is None:
            return ()
        return self._cells() + self._h if self.run().builder.has_cell else self._h

    def _cells(self):
        if self._c is None and self._h is not None:
            self._c = tuple([_second(h) for h in self._h])
        return self._c if self._c is not None else ()

    def set_h(self, es):
        """A state with these h's, one per layer. Cells stay as they are (zero before any input). ValueError for another
        number or shape.
        """
        builder = self.run().builder
        h = _state_tensors(builder, es, "set_h", (builder.layers,))
        c = None
        if builder.has_cell:
            c = _zero_state(builder) if self._h is None else self._cells()
        return _state_after(self, h, c)

    def set_s(self, es):
        """A state with these contents, in the order of s(). For LSTMs, cells alone may be given; h's then stay as they
        are. ValueError for another number or shape.
        """
        builder = self.run().builder
        n = builder.layers
        if not builder.has_cell:
            return self.set_h(es)
        new = _state_tensors(builder, es, "set_s", (n, 2 * n))
        h = new[n:] or self._h or _zero_state(builder)
        return _state_after(self, h, new[:n])

    def prev(self):
        """The state before the last input; None if there was no input."""
        return self._prev

    def b(self):
        """The builder."""
        return self.run().builder

    def __reduce__(self):
        raise TypeError("[RNNState] a state is a part of a graph and cannot be pickled; pickle the npvalue() of its s()")

    def __repr__(self):
        cdef RNNState state = self._prev
        steps = 0
        while state is not None:
            steps, state = steps + 1, state._prev
        return f"<state of a {self.run().builder.whoami()}, {steps} steps from its start>"


cdef bint _is_reverted(object e):
    """Has a revert taken it? The state that it is made from may be older."""
    return isinstance(e, Expression) and (<Expression> e).graph is not None and not (<Expression> e).graph.c.valid(
        (<Expression> e).id, (<Expression> e).stamp)


cdef inline RNNState _state_after(RNNState prev, tuple h, tuple c):
    cdef RNNState state = RNNState.__new__(RNNState)
    state._run, state._h, state._c, state._prev = prev._run, h, c, prev
    return state


cpdef object _drop_mask(size, p, batch_size):
    """A dropout mask {size} X batch_size: 0 with probability p, else 1 / (1 - p). None when p is 0."""
    return random_bernoulli((size,), 1 - p, 1 / (1 - p), batch_size) if p else None

cpdef object _masked(x, mask):
    return x if mask is None else cmult(x, mask)

def _peephole_step(weights, masks, x, h, c):
    """(h, c) of a layer of a coupled LSTM after x, with masks on x, the previous h, and the cells that peepholes see.

    None for a mask that is not there, and for h and c at zero state.
    """
    xi, hi, ci, bi, xo, ho, co, bo, xc, hc, bc = weights
    mask_x, mask_h, mask_c = masks
    x = _masked(x, mask_x)
    cdef list of_i = [bi, xi, x], of_o = [bo, xo, x], of_c = [bc, xc, x]
    if h is not None:
        seen = _masked(h, mask_h)
        of_i += [hi, seen]
        of_o += [ho, seen]
        of_c += [hc, seen]
    if c is not None:
        of_i += [ci, _masked(c, mask_c)]
    keep = logistic(affine_transform(of_i))
    cell = cmult(keep, tanh(affine_transform(of_c)))
    if c is not None:
        cell = cmult(1.0 - keep, c) + cell
    of_o += [co, _masked(cell, mask_c)]
    return cmult(logistic(affine_transform(of_o)), tanh(cell)), cell


cdef tuple _zero_state(builder):
    cdef Dim d
    cdef ComputationGraph g = _current()
    _dim_from(builder.hidden_dim, 1, &d, "zeros")
    return tuple([_filled(g, d, 0.0) for _ in range(builder.layers)])

cdef bint _are_vectors(tuple es, uint32_t n):
    """Are all of them expressions {n} without a mini-batch? False, too, for what must be looked at more closely."""
    cdef Expression e
    for one in es:
        if not isinstance(one, Expression):
            return False
        e = <Expression> one
        if e.graph is None or not e.graph.c.valid(e.id, e.stamp):
            return False
        if e.graph.c.dim(e.id).nd != 1 or e.graph.c.dim(e.id).d[0] != n or e.graph.c.dim(e.id).bd != 1:
            return False
    return True

cdef tuple _state_tensors(builder, es, str name, tuple counts):
    """A tuple of expressions {hidden_dim}, as many as one of counts says; arrays become inputs."""
    cdef tuple given
    if isinstance(es, (list, tuple)):
        given = tuple(es)
        if len(given) in counts and _are_vectors(given, builder.hidden_dim):
            return given
    who = builder.whoami()
    if es is None or isinstance(es, (Expression, str)) or not hasattr(es, "__iter__"):
        raise TypeError(f"[{who}] {name}() takes a list of expressions of shape {{{builder.hidden_dim}}}; got {_shown(es)}")
    es = tuple(es)
    if len(es) not in counts:
        wanted = " or ".join([str(n) for n in counts])
        raise ValueError(f"[{who}] {name}() takes {wanted} expressions for {builder.layers} layers; got {len(es)}")
    wrong = _needs.wrong_vector("a state", builder.hidden_dim, es)
    if wrong is not None:
        raise wrong[0](f"[{who}] {name}(): {wrong[1]}")
    return tuple([e if isinstance(e, Expression) else inputTensor(np.asarray(e)) for e in es])
