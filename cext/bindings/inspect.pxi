# Looking at a graph and its plans, and tracing what runs: plain data for dynet_lite/structure.py and profiling.py.
# Nothing here changes a graph or runs anything.
import weakref

cdef extern from "op/op.h" namespace "dnl":
    cdef enum class AttrKind(uint8_t):
        Int
        Float
        Ints
        Floats
        Seed
    cdef cppclass AttrOf "dnl::AttrSpec":
        string name
        AttrKind kind
        cbool member

cdef extern from "graph/graph.h" namespace "dnl":
    cdef cppclass Looked "dnl::Graph":   # what only this file reads
        cbool arg_shared(uint32_t, uint32_t)
        NodeId shared_arg(uint32_t, uint32_t)
        uint32_t arg_dim(uint32_t, NodeId, uint32_t)
        const Dim& dim_by_id(uint32_t)
        const Word* key(uint32_t)
        const uint32_t* lookup_ids(NodeId)
        NodeId fused_into(NodeId)
        string op_text(NodeId, cbool)
        Parameter* parameter(NodeId)
        LookupTable* table(uint32_t)
    cdef cppclass LookedSignature "dnl::Signature":
        uint32_t table
        uint32_t family

cdef extern from "exec/trace.h" namespace "dnl":
    cdef cppclass TraceEvent:
        pass
    double c_trace_clock "dnl::trace_clock" () nogil
    void c_trace_begin "dnl::trace_begin" () except +raise_python_error
    void c_trace_end "dnl::trace_end" () except +raise_python_error
    size_t c_trace_size "dnl::trace_size" ()
    uint64_t c_trace_dropped "dnl::trace_dropped" ()
    size_t c_trace_read "dnl::trace_read" (size_t, size_t, TraceEvent*)

# Address of a weight or table -> its Python object, which knows its name.
_named = weakref.WeakValueDictionary()


cdef _attributes(OpId op, const Word* words, bint member):
    """{name: value} of the key or the member attributes; seeds are left out."""
    cdef const vector[AttrOf]* specs = <const vector[AttrOf]*> &op_def(op).attrs
    cdef size_t i
    cdef uint32_t k, n
    out = {}
    for i in range(specs.size()):
        if deref(specs)[i].member != member:
            continue
        kind = deref(specs)[i].kind
        name = deref(specs)[i].name.decode()
        if kind == AttrKind.Int:
            out[name] = words[0].i
            words += 1
        elif kind == AttrKind.Float:
            out[name] = words[0].f
            words += 1
        elif kind == AttrKind.Seed:
            words += 2
        else:
            n = words[0].u
            out[name] = [words[1 + k].i if kind == AttrKind.Ints else words[1 + k].f for k in range(n)]
            words += 1 + n
    return out

cdef dict _for_people(dict attributes):
    """Key or member attributes; those of a fused node without its program, which the name of the op tells."""
    if "constants" in attributes:
        return {f"c{k}": c for k, c in enumerate(attributes["constants"])}
    if attributes.pop("program", None) is None:
        return attributes
    parts = attributes.pop("parts")
    inputs = [f"{parts[k]}[{parts[k + 1]}:{parts[k + 1] + parts[0]}]" for k in range(1, len(parts), 2)]
    return {"inputs": " ".join(inputs)} if inputs else {}

cdef str _name_of(size_t address):
    found = _named.get(address)
    return found.name() if found is not None else ""

def graph_nodes(ComputationGraph g not None):
    """Of each node: (sort, op, name, dim, arguments, producer, signature, depth, member attributes, op in few letters).

    sort: op, fused, merged, dead, alias, output, input, parameter, table, lookup. op: "" for leaves; that of its producer
    for an output; of a node made of several the formula, "cmult(logistic(x0), tanh(x1))", or "affine_transform x 4".
    name: of the parameter or table. arguments: node numbers; none for leaves and outputs; of a fused node those that
    it was made with. producer: op node or leaf whose running gives the value; of a fused node the one that it runs
    inside, of a merged one the one that computes the same. Attributes of a lookup: {"row": first row}; of a formula
    its constants, {"c0": 1.0}.
    """
    cdef CGraph* c = g.c
    cdef Looked* looked = <Looked*> c
    cdef NodeId i, producer
    cdef uint32_t j
    cdef const Node* n
    cdef const Signature* s
    cdef dict texts = {}   # by signature
    out = []
    for i in range(c.size()):
        n = &c.node(i)
        s = &c.signature(i)
        op, short, name, arguments, attributes, producer = "", "", "", [], {}, n.producer
        if s.leaf == Leaf.Input:
            sort = "input"
        elif s.leaf == Leaf.Param:
            sort, name = "parameter", _name_of(<size_t> looked.parameter(i))
        elif s.leaf == Leaf.Table or s.leaf == Leaf.Lookup:
            sort = "table" if s.leaf == Leaf.Table else "lookup"
            name = _name_of(<size_t> looked.table((<const LookedSignature*> s).table))
            if sort == "lookup":
                attributes = {"row": looked.lookup_ids(i)[0]}
        else:
            sort = ("output" if n.flags & kOutput else "merged" if n.flags & kMerged else "alias" if n.flags & kAlias
                    else "dead" if n.flags & kDead else "op")
            if n.flags & kFused:
                sort, producer = "fused", looked.fused_into(i)
            if n.sig not in texts:
                texts[n.sig] = looked.op_text(i, True).decode(), looked.op_text(i, False).decode()
            op, short = texts[n.sig]
            if sort != "output":
                arguments = [c.operands(i)[j] for j in range(s.nargs)]
                attributes = _for_people(_attributes(s.op, c.member(i), True))
        out.append((sort, op, name, _dim_tuple(c.dim(i)), arguments, producer, _family(g, i), n.depth, attributes,
                    short))
    return out

def graph_program(ComputationGraph g not None):
    """The nodes as they were made, before anything has run: (sort, op, owner, dim, arguments, producer, attributes, data).

    sort: op, output, input, parameter, table, lookup. op: its name in the table of ops. owner: the Parameters or
    LookupParameters of a leaf. attributes: those of the key and of the member. data: of an input its numbers as they lie
    in memory; of a lookup its row numbers. An error when the graph has been rewritten.
    """
    cdef CGraph* c = g.c
    cdef Looked* looked = <Looked*> c
    cdef NodeId i
    cdef uint32_t j
    cdef size_t k
    cdef const Node* n
    cdef const Signature* s
    cdef const uint32_t* rows
    cdef float[::1] view
    out = []
    for i in range(c.size()):
        n = &c.node(i)
        s = &c.signature(i)
        op, owner, arguments, attributes, data = "", None, [], {}, None
        if n.flags & (kFused | kMerged | kDead):
            raise ValueError("[graph] the graph has run: its nodes are no longer those that were made")
        if s.leaf == Leaf.Input:
            sort = "input"
            data = np.empty(c.dim(i).size(), dtype=np.float32)
            view = data
            memcpy(&view[0], c.input_data(i), c.dim(i).size() * sizeof(float))
        elif s.leaf == Leaf.Param:
            sort, owner = "parameter", _named.get(<size_t> looked.parameter(i))
        elif s.leaf == Leaf.Table or s.leaf == Leaf.Lookup:
            sort = "table" if s.leaf == Leaf.Table else "lookup"
            owner = _named.get(<size_t> looked.table((<const LookedSignature*> s).table))
            if sort == "lookup":
                rows = looked.lookup_ids(i)
                data = [rows[k] for k in range(c.dim(i).bd)]
        elif n.flags & kOutput:
            sort = "output"
        else:
            sort, op = "op", op_def(s.op).name.decode()
            arguments = [c.operands(i)[j] for j in range(s.nargs)]
            attributes = {**_attributes(s.op, looked.key(n.sig), False), **_attributes(s.op, c.member(i), True)}
        out.append((sort, op, owner, _dim_tuple(c.dim(i)), arguments, n.producer, attributes, data))
    return out

def graph_ops(ComputationGraph g not None):
    """Names of the ops in a graph as the table of ops has them, without formulas."""
    cdef NodeId i
    cdef set found = set()
    for i in range(g.c.size()):
        if not g.c.node(i).flags & kLeaf:
            found.add(g.c.signature(i).op)
    return {op_def(op).name.decode() for op in found}

def ops_on_host(ComputationGraph g not None):
    """Names of the ops that run on the host in such a graph, because its backend has no code for them."""
    cdef Backend* backend = backend_by_name(g.backend.encode())
    return {op_def(i).name.decode() for i in range(op_count()) if backend.on_host(i)}

def graph_signature(ComputationGraph g not None, NodeId example):
    """What is equal for all nodes that may run together with this op node: (op, arguments, key attributes, name of the op).

    The op is a formula where several nodes were made into one; its name is that in the table of ops.

    arguments: per argument ("shared", node number) or ("stacked", dim). A formula over parts of its arguments has the
    attribute inputs, "0[0:12] 0[12:24] 1[0:12]": which argument x0 is, and from where to where, and x1, ...
    """
    if example >= g.c.size() or not g.c.is_op(example):
        raise IndexError(f"[graph] node {example} is not an op of this graph")
    cdef Looked* looked = <Looked*> g.c
    cdef uint32_t sig = g.c.node(example).sig, j
    cdef Dim dim
    arguments = []
    for j in range(g.c.signature(example).call_nargs):
        if looked.arg_shared(sig, j):
            arguments.append(("shared", looked.shared_arg(sig, j)))
        else:
            dim = looked.dim_by_id(looked.arg_dim(sig, example, j))
            dim.bd *= g.c.signature(example).items  # of a list that is read where its elements lie
            arguments.append(("stacked", _dim_tuple(dim)))
    attributes = _for_people(_attributes(g.c.signature(example).op, looked.key(sig), False))
    return looked.op_text(example, True).decode(), arguments, attributes, op_def(g.c.signature(example).op).name.decode()

def graph_plans(ComputationGraph g not None):
    """The plans that have run since the renewal, in order: (first node, stage, lane, lower bound, floats, batches).

    Plans made by one evaluation have the same first node. stage: 0 all there is, or the head; 1 a lane; 2 the tail. batches:
    lists of node numbers, in order of execution.
    """
    out = []
    cdef size_t k = 0
    cdef uint32_t b, m
    cdef const Run* run
    cdef const Plan* plan
    while g.x.run(k) != NULL:
        run = g.x.run(k)
        plan = &run.plan
        batches = []
        for b in range(plan.groups.size()):
            batches.append([plan.order[plan.groups[b].begin + m] for m in range(plan.groups[b].count)])
        out.append((run.first, run.stage, run.lane, plan.lower_bound, plan.floats, batches))
        k += 1
    return out

cdef uint32_t _family(ComputationGraph g, NodeId i):
    """The same for nodes that may run together."""
    return (<const LookedSignature*> &g.c.signature(i)).family

def graph_chain(ComputationGraph g not None, size_t plan, NodeId example):
    """The most nodes on one path of a plan that have the signature of `example`: no schedule has fewer batches of it."""
    cdef const Run* run = g.x.run(plan)
    if run == NULL or example >= g.c.size():
        raise IndexError(f"[graph] there is no plan {plan} with node {example}")
    cdef uint32_t family = _family(g, example), j, best = 0, d
    cdef vector[uint32_t] longest
    cdef NodeId i
    cdef size_t k
    longest.resize(g.c.size())
    for k in range(run.plan.exec_.size()):
        i = run.plan.exec_[k]
        d = 0
        for j in range(g.c.signature(i).nargs):
            d = max(d, longest[g.c.node(g.c.operands(i)[j]).producer])
        longest[i] = d + (_family(g, i) == family)
        best = max(best, longest[i])
    return best

def all_op_names():
    """Names of the ops by their number."""
    return [op_def(i).name.decode() for i in range(op_count())]

def op_labels():
    """What a table for people calls the nodes of an op, by the names of all_op_names()."""
    return {op_def(i).name.decode(): op_def(i).family.decode() if op_def(i).family else op_def(i).function_name().decode()
            for i in range(op_count())}

def trace_clock():
    """Seconds of the clock that events are timed by."""
    return c_trace_clock()

def trace_begin():
    """From now on events are kept; see dynet_lite/profiling.py. Calls are counted."""
    settle()
    c_trace_begin()

def trace_end():
    """Undoes one trace_begin(); with the last one the events are forgotten."""
    c_trace_end()

def trace_read(size_t start=0):
    """(events from number `start` on as bytes, 48 each; how many were dropped because the log was full)."""
    cdef size_t n = c_trace_size()
    n = n - start if n > start else 0
    data = np.empty((n, 48), dtype=np.uint8)
    cdef unsigned char[:, ::1] view = data
    if n:
        n = c_trace_read(start, n, <TraceEvent*> &view[0, 0])
    return data[:n], c_trace_dropped()

def trace_size():
    """How many events there are."""
    return c_trace_size()

def graph_strategy(ComputationGraph g not None):
    """The strategy that the graph's plans are made by; none: automatic batching is off."""
    return strategy_name(g.x.options.strategy).decode()

def expression_node(Expression e not None):
    """(graph, node number) of an expression; a parameter's in the current graph."""
    i = e.use()
    return e.home(), i
