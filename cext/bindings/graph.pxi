# A graph, as Python sees it.

cdef extern from "tls.h" namespace "dnl":
    PyObject*& current_graph() nogil
    bint alive(PyObject*) nogil

cdef extern from "gil.h" namespace "dnl":
    bint is_only_thread()

cdef bint _keeps_gil = False  # several threads have begun with it: as in DyNet, they wait for what runs
cdef int _n_watched = 0       # backward passes that call a function of Python's meanwhile, from any thread


@cython.final
@cython.no_gc
cdef class GraphLink:
    """How what lives longer than a graph (a weight, a builder) knows it without keeping it in memory."""
    cdef PyObject* graph   # borrowed; the graph clears it when it goes

    cdef inline ComputationGraph get(self):
        """None when the graph is gone, or going: callbacks of its weak references come first."""
        return <ComputationGraph> self.graph if alive(self.graph) else None


cdef int GROWN_TOO_OFTEN = 10   # updates; a few losses on one graph, updated one after the other, are no mistake
cdef bint _warned_of_growth = False
cdef uint64_t _n_updates = 0    # in this process


# no_gc_clear: the link is needed until the end.
@cython.final
@cython.no_gc_clear
cdef class ComputationGraph:
    """A graph: expressions, and what is needed to compute them.

    Each thread has one current graph, to which new expressions are added. ``renew_cg()`` empties it. ``with
    dy.graph():`` makes another graph current for a block. Graphs of different threads are independent; programs that
    ``import dynet`` have one for all threads, as in DyNet.
    """
    cdef CGraph* c
    cdef Executor* x
    cdef CGraph* other_c       # the pair that takes turns with these when steps overlap, or NULL
    cdef Executor* other_x
    cdef _Memory memory        # of both pairs
    cdef bint overlap          # steps of this graph may overlap
    cdef Vec[NodeId] args      # of the node being built
    cdef Vec[Word] keys, members
    cdef Vec[NodeId] row       # working memory of cells.pxi
    cdef uint32_t turn         # which call is filling these three
    cdef bint immediate
    cdef bint busy             # running without the GIL
    cdef bint checked
    cdef bint counted          # among the graphs of the process
    cdef bint warned
    cdef uint64_t last_update  # how many updates there had been at the last backward pass,
    cdef uint32_t last_size    # how many nodes,
    cdef int grown             # and through how many updates the graph has grown since its renewal
    cdef int entered           # 'with' blocks of this graph that are open
    cdef uint64_t first_seed   # what seed_state began with, until the first renewal; 0 afterwards
    cdef uint64_t seeded_at    # the generator's state after that
    cdef readonly str backend
    cdef object strategy       # the name that x.options.strategy was found by
    cdef public object origins # node -> "file:line" while validity is checked
    cdef public bint for_file  # dynet_lite/onnx traces a function in it: cells are neither recorded nor compared
    cdef public object computed  # nodes, for such a file, whose numbers it is given or computes itself; or None
    cdef public object sized   # what programs then see of the size of a mini-batch, which may not be known; else None
    cdef uint32_t forget       # input data changed: everything runs again
    cdef GraphLink link
    cdef bint passing          # of one call: weights do not take it for the graph that they entered last
    cdef Trace trace           # a cell is traced in it, and nothing is run; else None
    cdef uint32_t given        # so many nodes, the first ones, are arrays that a compiled function was given,
    cdef str given_to          # and this is its name
    cdef object __weakref__

    def __cinit__(self, _Memory memory=None):
        global _n_graphs
        _n_graphs += 1
        self.counted = True
        start = _settings.start
        if start is not None:
            start()   # it takes itself away when it has succeeded
        self.backend = _settings.backend
        self.link = GraphLink()
        self.link.graph = <PyObject*> self
        cdef Backend* backend = backend_by_name(self.backend.encode())
        self.c = new CGraph(deref(backend))
        self.memory = memory if memory is not None and memory.backend == backend else _memory_of(backend)
        self.x = new Executor(deref(self.c), backend, deref(self.memory.m))
        self._take_settings(False, False, None)
        self.c.seed_state = self.first_seed = _next_seed()
        self.seeded_at = _seed_now()

    def __dealloc__(self):
        global _n_graphs
        _n_graphs -= self.counted   # not where it was given wrong arguments
        if self.link is not None:
            self.link.graph = NULL
        if current_graph() == <PyObject*> self:   # its thread ends, or the interpreter; others may ask for a graph yet
            _make_current(None)
        if job_needs(self.x) or job_needs(self.other_x):
            _finish()
        _forget_graph(self)
        del self.x
        del self.c
        del self.other_x
        del self.other_c
        trim_heap(True)

    cdef _take_settings(self, bint immediate, bint check, autobatching):
        cdef bint on = _settings.autobatch if autobatching is None else bool(autobatching)
        self.immediate = immediate
        self.checked = check
        self.origins = {} if check else None
        cdef object name = _settings.strategy if on else "none"
        if name is not self.strategy:
            self.x.options.strategy = strategy_by_name(name.encode())
            self.strategy = name
        _take_engine_settings(<EngineSettings*> &self.x.options, _settings)
        self.x.options.check_validity = check
        self.x.options.touches_looked_up = _settings.is_dynet
        self.overlap = (_settings.overlap and _settings.threads > 1 and on and not immediate and not check
                        and not _settings.profile)

    cpdef renew(self, immediate_compute=False, check_validity=False, autobatching=None):
        """Remove all nodes; see renew_cg()."""
        self._not_busy()
        if job_pending():
            self._begin_job()
            self._not_busy()   # other threads were let in
        elif self.other_c != NULL:
            self.other_c.renew()   # no step overlapped: its memory goes as that of a graph that is renewed
        self.turn += 1
        self.last_size = self.grown = self.given = 0
        if self.c.renew():
            self.args.release()
            self.keys.release()
            self.members.release()
            self.row.release()
        self._take_settings(immediate_compute, check_validity, autobatching)
        # A graph that is new keeps its seed if nothing was drawn since: whether this renewal made it must not matter.
        if self.first_seed == 0 or self.c.seed_state != self.first_seed or self.seeded_at != _seed_now():
            self.c.seed_state = _next_seed()
        self.first_seed = 0
        return self

    cdef int _begin_job(self) except -1:
        """Before a renewal: a backward pass of this graph that was put off goes on in the background, with its nodes."""
        global _n_begun
        if job_state() == JobState.Running:
            return 0
        if job_state() != JobState.Remembered or not job_needs(self.x) or self.entered or not self.overlap \
                or _forking:
            return settle()
        if self.other_c == NULL:
            self.other_c = new CGraph(deref(backend_by_name(self.backend.encode())))
        if self.other_x == NULL:   # apart: memory may end between the two
            self.other_x = new Executor(deref(self.other_c), backend_by_name(self.backend.encode()), deref(self.memory.m))
        if not start_job(_settings.threads):
            return settle()
        _n_begun += 1
        self.other_c.seed_state = self.c.seed_state
        self.c, self.other_c = self.other_c, self.c
        self.x, self.other_x = self.other_x, self.x
        self.strategy = None   # the other executor's is not known
        return 0

    cdef int forget_other(self) except -1:
        """The nodes of a job that is done, and what they hold, go."""
        self.other_c.renew()
        return 0

    cdef inline int _not_busy(self) except -1:
        if self.trace is not None or self.busy:
            self._tell_busy()
        return 0

    cdef int _tell_busy(self) except -1:
        if self.trace is not None:
            raise self.trace.no_value()
        while self.busy and _settings.is_dynet:
            _time.sleep(0)   # it ran when this thread came to it; see _keeps_gil
        if self.busy:
            raise RuntimeError("[graph] this graph is running in another thread; each thread needs its own "
                               "(with dy.graph():)")
        return 0

    cdef int _begin_run(self) except -1:
        """A pass begins, and the GIL goes next: an error if another thread has begun one while this one waited."""
        _begin_pass()
        if self.trace is not None or self.busy:
            try:
                self._tell_busy()
            except BaseException:
                _end_pass()
                raise
        self.busy = True
        return 0

    cdef void _end_run(self) noexcept:
        _end_pass()
        self.busy = False

    cdef inline uint32_t next_turn(self):
        self.turn += 1
        if self.trace is not None:
            self.trace.pending.clear()   # of a node that was not made
        return self.turn

    cdef int run(self, bint whole=True, bint at_once=False) except -1:
        """Run what is pending, without the GIL; unless whole, without what nobody can ask for (rewrite/rules/dead.cc).
        at_once: of a whole graph, where a node has just been made and all others have run, as a rule.
        """
        self._not_busy()
        if self.c.size() == 0 or self.x.done(self.c.size() - 1):
            return settle()
        if job_state() != JobState.Running:
            settle()   # else the executor plans first
        _see_end()
        self._begin_run()
        try:
            if at_once and _holds_gil():
                self.x.forward_at_once()
            elif _holds_gil():
                self.x.forward(whole)
            else:
                with nogil:
                    if at_once:
                        self.x.forward_at_once()
                    else:
                        self.x.forward(whole)
        except _errors.NotFiniteError as e:
            origin = (self.origins or {}).get(e.node)
            raise _errors.NotFiniteError(f"{e.args[0]}" + (f" (made at {origin})" if origin else ""), e.node) from None
        finally:
            self._end_run()
        return settle()

    cdef int run_to(self, NodeId node) except -1:
        """Run what is pending, unless the node has run: reading a value must not tear apart what comes next."""
        if not self.x.done(node):
            return self.run(False)
        if not settled() and self.c.node(self.c.node(node).root).flags & kLeaf:
            settle()   # it may be the value of a weight; others stay as they are
        return self._not_busy()

    cdef int run_backward(self, NodeId loss, bint full) except -1:
        global _n_backwards
        _n_backwards += 1
        self.run_to(loss)
        self._not_busy()
        if self.c.size() > self.last_size:
            self._see_growth()
        if self.overlap and not full and _n_graphs == 1 and not _ended and not tracing() and not keeps_weights() \
                and self.c.dim(loss).size() == 1:
            return _remember(self, loss)
        settle()
        self._begin_run()
        try:
            if _holds_gil():
                self.x.backward(loss, full, _is_alone())
            else:
                with nogil:
                    self.x.backward(loss, full)
        finally:
            self._end_run()
        return 0

    cdef int _see_growth(self) except -1:
        """At a backward pass: the user is told, once, that no step takes its nodes away."""
        global _warned_of_growth
        if self.last_size and self.last_update != _n_updates:
            self.grown += 1
        self.last_size, self.last_update = self.c.size(), _n_updates
        if self.grown == GROWN_TOO_OFTEN and not _warned_of_growth:
            _warned_of_growth = True
            import warnings
            warnings.warn(f"[graph] this graph has grown through {self.grown} updates and has {self.c.size()} nodes: it "
                          "keeps those of all steps, in memory, too; empty it before each step with dy.renew_cg()")
        return 0

    cdef int node_added(self, NodeId node) except -1:
        """Immediate mode and validity checks: run the node now, remember where it was made."""
        if self.origins is not None:
            self.origins[node] = _caller()
        if self.immediate:
            self.run(True, True)
        return 0

    def forget_plans(self):
        """Remove all nodes, and the plans that are kept for graphs with the same structure."""
        self.renew()
        settle()
        self.x.forget_plans()
        if self.other_x != NULL:
            self.other_x.forget_plans()

    @property
    def seed_state(self):
        """State of the generator that gives the graph's random nodes their seeds; saved in checkpoints."""
        return self.c.seed_state

    @seed_state.setter
    def seed_state(self, state):
        self.c.seed_state = state
        self.first_seed = 0

    def version(self):
        """A number that every renewal changes."""
        return self.c.generation()

    def checkpoint(self):
        """Mark this point, so that revert() can come back to it. Marks nest. What has not run yet runs first."""
        self.run()
        self._not_busy()
        self.c.checkpoint()

    def revert(self):
        """Remove all nodes that were added since the last mark. Their expressions become stale."""
        settle()
        self._not_busy()
        self.turn += 1
        self.last_size = self.grown = 0
        self.c.revert()

    cdef int outdate(self) except -1:
        """Everything runs again at the next value, with new random numbers."""
        settle()
        self._not_busy()
        self.x.invalidate()
        return 0

    cdef int outdate_reading(self, NodeId i) except -1:
        """Input i gets other numbers. Everything runs again if something may have run with the old ones; in DyNet also if
        weights have changed, which nodes made from now on read anew then.
        """
        settle()
        self._not_busy()
        if self.x.begun(i) or keeps_weights() and self.c.is_behind():
            self.x.invalidate()
        return 0

    def invalidate(self):
        """Let everything run again when the next value is asked for, with new random numbers."""
        self.outdate()

    def forward(self, index=None):
        """Run every node that has not run yet. index: a node number, as in DyNet; IndexError unless the graph has that
        node.
        """
        if index is not None:
            self.expression(index)
        self.run()

    def inc_forward(self, index=None):
        """The same as forward(), which never runs a node twice."""
        self.forward(index)

    def forward_scalar(self, index):
        """scalar_value() of the node with this number."""
        return self.expression(index).scalar_value()

    def forward_vec(self, index):
        """vec_value() of the node with this number."""
        return self.expression(index).vec_value()

    def inc_forward_scalar(self, index):
        """The same as forward_scalar()."""
        return self.forward_scalar(index)

    def inc_forward_vec(self, index):
        """The same as forward_vec()."""
        return self.forward_vec(index)

    def backward(self, index, full=False):
        """backward() of the node with this number."""
        self.expression(index).backward(full)

    def print_graphviz(self):
        """Write the current graph to stderr, in graphviz's language."""
        from dynet_lite import print_text_graphviz
        print_text_graphviz()

    def dump(self, filename="", show_values=True, show_gradients=True, nan_check_only=False):
        """Write every node of the current graph; see dump_cg()."""
        from dynet_lite import dump_cg
        dump_cg(filename, show_values, show_gradients, nan_check_only)

    def stats(self):
        """Counts since the last renewal; see dynet_lite.stats()."""
        settle()
        cdef Stats s = self.x.stats()
        return {"nodes": s.nodes, "nodes_dead": s.dead, "nodes_merged": s.merged, "batches": s.batches,
                "lower_bound": s.lower_bound,
                "plans": s.plans, "plans_again": s.plans_again, "plan_steps": s.plan_steps,
                "backward_plans": s.back_plans, "backward_plans_again": s.back_plans_again,
                "mean_batch_size": <double> s.nodes / s.batches if s.batches else 0.0,
                "floats_gathered": s.floats_gathered, "floats_scattered": s.floats_scattered,
                "rows_repeated": s.rows_repeated, "matrices_transposed": s.transposed,
                "plan_time": s.plan_time, "forward_time": s.forward_time, "backward_time": s.backward_time,
                "graph_nodes": self.c.size(), "value_bytes": self.x.value_bytes(),
                "gradient_bytes": self.x.grad_bytes()}

    def op_profile(self):
        """For each op that ran while profiling: calls, members, seconds forward and backward, since the graph was made.
        """
        settle()
        out = {}
        cdef int i
        cdef vector[OpProfile] profile = self.x.profile()
        for i in range(op_count()):
            if profile[i].calls:
                out[op_def(i).name.decode()] = {
                    "calls": profile[i].calls, "members": profile[i].members,
                    "forward": profile[i].forward, "backward": profile[i].backward}
        return out

    def rewrites(self):
        """Run what is pending, and return the graph as text before the rewrites and after each: [(name, text), ...]."""
        self.x.log_rewrites(True)
        try:
            self.run(False)
        finally:
            self.x.log_rewrites(False)
        cdef size_t k
        return [(self.x.rewrite_log()[k].name.decode(), self.x.rewrite_log()[k].text.decode())
                for k in range(self.x.rewrite_log().size())]

    def passes(self):
        """Names of the rewrites that this graph uses: all that are switched on and that its backend supports."""
        cdef uint32_t on = self.x.passes()
        return [name for p, (name, _, _) in enumerate(passes()) if on >> p & 1]

    def plan_text(self):
        """The batches that have run since the last renewal, one per line."""
        self.run()
        return self.x.dump_plans().decode()

    def backward_text(self, most=8):
        """How the last backward pass ran, a line per step, with at most this many rows of each list."""
        most = max(0, _int32(most, "[backward_text] most"))
        settle()
        return self.x.dump_backward(<uint32_t> most).decode()

    def nodes(self):
        """(number, op, dims, arguments) of every node, for pictures and tests.

        A node that runs inside another one is described as such, "tanh {50} inside 7", with its own arguments. The
        other one shows the whole formula.
        """
        out = []
        cdef NodeId i
        cdef uint32_t j
        for i in range(self.c.size()):
            out.append((i, self.c.describe(i).decode(), _dim_tuple(self.c.dim(i)),
                        [self.c.operands(i)[j] for j in range(self.c.signature(i).nargs)]))
        return out

    def expression(self, i):
        """The node with this number, as an expression.

        ValueError if its value is not kept. That is so for the inside of a cell, for elementwise ops and scores that
        run inside another node, and for nodes that nobody uses. IndexError unless the graph has that node.
        """
        e = self.kept_expression(i)
        if e is None:
            where = "nowhere" if self.c.node(<NodeId> i).flags & kDead else "inside another node only"
            raise ValueError(f"[graph] the value of node {i} was needed {where} and is gone; ask for the node before the "
                             "graph runs")
        return e

    def kept_expression(self, number):
        """The node with this number, as an expression; None if its value is not kept."""
        if type(number) is not int:
            number = _as_int(number, "[graph] the number of a node")
        if not 0 <= number < self.c.size():
            raise IndexError(f"[graph] node {number} of a graph of {self.c.size()} nodes")
        cdef NodeId i = number
        if self.c.node(i).flags & kMerged:
            i = self.c.node(i).root   # which computes the same
        if self.c.node(i).flags & (kOverwritten | kFused | kDead):
            return None
        self.c.unmark_inner(i)  # from now on it is kept
        return _expression(self, i)

    def inputMatrixLiteral(self, v, d, batch_size=1, device=""):
        """inputTensorTranspose(v, d, batch_size) in this graph. ValueError unless it is the current one."""
        self._need_current("inputMatrixLiteral")
        return inputTensorTranspose(v, d, batch_size, device)

    def inputSparseTensor(self, idxs, v, dim, batch_size=1, defval=0, device=""):
        """A tensor of shape dim in which place idxs[k] is v[k], and every other place defval.

        Places count through the flat, column-major numbers. ValueError unless this is the current graph, or if idxs and
        v have different lengths or a place is out of range. See sparse_inputTensor() for row and column numbers.
        """
        cdef Dim d
        self._need_current("inputSparseTensor")
        _dim_from(dim, batch_size, &d, "inputSparseTensor")
        places, values = _places(idxs, "inputSparseTensor").ravel(), _numbers(v, "inputSparseTensor").ravel()
        if places.size != values.size or (places.size and not 0 <= places.min() <= places.max() < <Py_ssize_t> d.size()):
            raise ValueError("[inputSparseTensor] as many numbers as places are needed, and places from 0 to "
                             f"{d.size() - 1}")
        flat = np.full(d.size(), _as_single(defval, "[inputSparseTensor] defval"), dtype=np.float32)
        flat[places] = values
        return _input(self, d, flat)

    def _need_current(self, str what):
        if _current() is not self:
            raise RuntimeError(f"[{what}] this graph is not the current one")

    def __len__(self):
        return self.c.size()

    def _repr_svg_(self):
        """What a notebook shows of a small graph: its picture. What is pending runs."""
        if not 0 < self.c.size() <= 300:
            return None
        from dynet_lite import viz
        return viz.svg(self)

    def __bool__(self):
        return True   # programs test what renew_cg() gives, as in DyNet

    def __reduce__(self):
        raise TypeError("[graph] a graph, and what is a part of one, cannot be pickled or copied; keep npvalue()s")

    def __enter__(self):
        _stack().append(self)
        _make_current(self)
        self.entered += 1
        return self

    def __exit__(self, *exc):
        cdef list stack = _stack()
        if not stack or stack[len(stack) - 1] is not self:
            raise RuntimeError("[graph] blocks of 'with graph' must end in reverse order")
        stack.pop()
        self.entered -= 1
        _make_current(stack[len(stack) - 1] if stack else None)
        return False


cdef dict _lines = {}   # (id of code, instruction) -> ("file:line", the code, which keeps its id)

cdef extern from "caller.h" namespace "dnl":
    cdef cppclass Places:
        object now()
        void note(object text)
    Places& places()

cdef str _caller():
    """file:line of the innermost frame outside the package."""
    cdef object text = places().now()
    if text is not None:
        return <str> text
    cdef object innermost = _sys._getframe(), frame = innermost
    while frame is not None and "dynet_lite" in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    if frame is None:
        return "?"
    code = frame.f_code
    cdef tuple place = (id(code), frame.f_lasti)
    known = _lines.get(place)
    if known is None:
        if len(_lines) == 10000:   # of a program that makes its own code
            _lines.clear()
        known = _lines[place] = (f"{code.co_filename}:{frame.f_lineno}", code)
    if frame is innermost:
        places().note(known[0])
    return known[0]
