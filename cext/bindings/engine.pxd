# What the bindings use of the engine. Declarations only.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef extern from "errors.h" namespace "dnl":
    void raise_python_error()
    void set_error_hook(object hook)

cdef extern from "base/vec.h" namespace "dnl":
    void trim_heap(cbool) nogil
    cdef cppclass Vec[T]:
        T* data() nogil
        size_t size() nogil
        cbool empty() nogil
        T& operator[](size_t) nogil
        void clear() nogil
        void push_back(const T&) nogil
        void resize(size_t) nogil
        T* extend(size_t) nogil
        void release() nogil
    uint64_t heap_calls_ "dnl::heap_call_counter().load" () nogil

cdef extern from "base/mix.h" namespace "dnl":
    uint64_t mix(uint64_t, uint64_t) nogil
    uint64_t mix_all(uint64_t, const uint32_t*, size_t) nogil

cdef extern from "base/rng.h" namespace "dnl":
    uint64_t splitmix64(uint64_t&) nogil

cdef extern from "base/sfc64.h" namespace "dnl":
    void sfc64_begin(uint64_t seed, uint64_t* state) nogil

cdef extern from "base/dim.h" namespace "dnl":
    cdef cppclass Dim:
        uint32_t d[7]
        uint32_t bd
        uint32_t nd
        Dim() nogil
        size_t size() nogil const
        size_t batch_size() nogil const
        cbool like(const Dim&) nogil const
        string text() const

cdef extern from "op/op.h" namespace "dnl":
    ctypedef uint16_t OpId
    ctypedef union Word:
        int32_t i
        uint32_t u
        float f
    cdef cppclass AttrSpec:
        string name
        cbool member
    cdef cppclass OpDef:
        const char* signature
        const char* doc
        const char* family
        string function_name()
        string name
        vector[AttrSpec] attrs
        cbool no_grad
    OpId op_by_name(const string&) except +raise_python_error
    const OpDef& op_def(OpId)
    int op_count()

cdef extern from "op/called.h" namespace "dnl":
    string called(const OpDef&)

cdef extern from "op/backend.h" namespace "dnl":
    cdef cppclass BackendCounts:
        uint64_t calls, row_calls, updates, uploads, uploaded, downloads, downloaded, launches, waits, products, on_host
    cdef cppclass Backend:
        BackendCounts counts()
        const char* name()
        cbool computes()
        cbool on_host(OpId)
    Backend* backend_by_name(const string&) except +raise_python_error
    Backend& host_backend()

cdef extern from "op/devices.h" namespace "dnl":
    cdef cppclass DeviceInfo:
        int number
        string model
        uint64_t memory
        int major "major"
        int minor "minor"
        string problem
    cdef cppclass Devices:
        string problem() except +raise_python_error
        vector[DeviceInfo] list() except +raise_python_error
        void choose(int, const string&, const string&) except +raise_python_error
        int in_use()
        double busy(cbool)
        cbool brings_code()
    Devices* devices_of(const string&)

cdef extern from "graph/store.h" namespace "dnl":
    cdef cppclass Store:
        size_t size() nogil
        cbool empty() nogil
        const float* host() except +raise_python_error
        float* host_to_write() except +raise_python_error
        float* overwrite(Backend&) except +raise_python_error
        const void* outer()

cdef extern from "graph/versions.h" namespace "dnl":
    ctypedef const void* Owner
    Owner this_thread() nogil

cdef extern from "graph/params.h" namespace "dnl":
    cdef cppclass GradientMutex:
        cbool try_lock()
        void unlock()
    void copy_numbers(GradientMutex&, Store&, float*) except +raise_python_error nogil
    void keep_weights_ "dnl::keep_weights"(cbool)
    cbool keeps_weights "dnl::keep_weights_flag().load" () nogil
    cdef cppclass Parameter:
        GradientMutex in_use
        Dim dim
        Store value
        Store grad
        cbool updated
        cbool touched
        void grad_changed()
        void overwrite(const float*, cbool) except +raise_python_error nogil
        void overwrite_grad(const float*) except +raise_python_error nogil
        void scale_grad(float) except +raise_python_error nogil
        Parameter(const Dim&) except +raise_python_error
        size_t size()
        void clear_grad()
    cdef cppclass LookupTable:
        GradientMutex in_use
        Dim row_dim
        uint32_t rows
        size_t row_size
        Store value
        cbool updated
        Vec[int32_t] slot_of_row
        Vec[uint32_t] touched
        Store grad
        LookupTable(const Dim&, uint32_t) except +raise_python_error
        size_t size()
        uint32_t slot(uint32_t)
        float* gradients(Backend&) except +raise_python_error
        float* gradients(Backend&, cbool) except +raise_python_error
        void clear_grad()
        cbool read_in_place
        cbool shared
        void overwrite(uint32_t, uint32_t, const float*) except +raise_python_error nogil
        void copy_rows(const uint32_t*, size_t, float*) except +raise_python_error nogil
        void copy_kept(float*, Vec[double]&) except +raise_python_error nogil
        void overwrite_kept(const float*, const double*) except +raise_python_error nogil
        void copy_grad(Vec[uint32_t]&, Vec[float]&) except +raise_python_error nogil
        void copy_grad_rows(const uint32_t*, size_t, float*) except +raise_python_error nogil
        void overwrite_grad(const uint32_t*, size_t, const float*) except +raise_python_error nogil
        void scale_grad(float) except +raise_python_error nogil

cdef extern from "graph/graph.h" namespace "dnl":
    ctypedef uint32_t NodeId
    cdef enum NodeFlag:
        kLeaf
        kAlias
        kInner
        kOverwritten
        kFused
        kMerged
        kDead
        kOutput
        kNeedsGrad
        kWeight
        kRowToCome
    cdef enum class Leaf(uint8_t):
        NoLeaf "dnl::Leaf::None"
        Input
        Param
        Table
        Lookup
    cdef cppclass Node:
        uint32_t sig
        NodeId producer
        NodeId root
        uint32_t depth
        uint32_t dim
        uint16_t flags
    cdef cppclass Signature:
        OpId op
        Leaf leaf
        uint32_t nargs
        uint32_t items, call_nargs
        uint8_t visible
    cdef cppclass GraphMark "dnl::Graph::Mark":
        uint32_t nodes
    cdef cppclass CGraph "dnl::Graph":
        CGraph(Backend&) except +raise_python_error
        NodeId add(OpId, const NodeId*, int, const Word*, int, const Word*, int) except +raise_python_error
        NodeId add_unary(OpId, NodeId) except +raise_python_error
        NodeId add_input(const Dim&) except +raise_python_error
        NodeId add_constant(const Dim&, float) except +raise_python_error
        NodeId add_parameter(const shared_ptr[Parameter]&) except +raise_python_error
        NodeId add_table(const shared_ptr[LookupTable]&, cbool) except +raise_python_error
        NodeId find_parameter(const Parameter&)
        cbool is_behind()
        cbool is_behind(NodeId)
        NodeId find_table(const LookupTable&, cbool)
        NodeId add_lookup(NodeId, const uint32_t*, uint32_t, cbool, cbool) except +raise_python_error
        NodeId add_rows(NodeId, const uint32_t*, uint32_t, cbool) except +raise_python_error
        cbool renew() except +raise_python_error
        void checkpoint() except +raise_python_error
        void revert() except +raise_python_error
        GraphMark end()
        void return_to(const GraphMark&) except +raise_python_error
        cbool held_since(NodeId)
        uint32_t size()
        const Node& node(NodeId)
        const Signature& signature(NodeId)
        const Dim& dim(NodeId)
        const NodeId* operands(NodeId)
        uint32_t nargs(NodeId)
        const Word* member(NodeId)
        float* input_data(NodeId)
        uint32_t stamp(NodeId)
        void mark(NodeId, uint16_t)
        cbool is_row(NodeId)
        void unmark_inner(NodeId)
        void keep(NodeId)
        cbool valid(NodeId, uint32_t)
        cbool is_op(NodeId)
        uint32_t generation()
        uint64_t seed_state
        void draw_seed(Word*)
        string describe(NodeId)
        void set_lookup_ids(NodeId, const uint32_t*, uint32_t) except +raise_python_error
        void set_member_word(NodeId, uint32_t, Word) except +raise_python_error

    cdef cppclass Handle:
        void take(CGraph&, NodeId, uint32_t)

cdef extern from "graph/body.h" namespace "dnl":
    cdef cppclass Body:
        void outside(NodeId)
        void lookup(NodeId, cbool, cbool)
        void fill(NodeId, uint32_t, uint32_t)
        void finish(const CGraph&, uint32_t) except +raise_python_error
        void enter(const CGraph&, const NodeId*) except +raise_python_error
        void add_to(CGraph&, uint32_t, const NodeId*, const int32_t*, uint32_t, const uint32_t*, uint32_t,
                    NodeId*) except +raise_python_error
        cbool copies_rows()
        uint32_t steps()
        cbool same(const Body&)
        cbool same_but_filled(const Body&)

cdef extern from "graph/feed.h" namespace "dnl":
    cdef cppclass Feed:
        void note(CGraph&, NodeId, uint32_t, uint32_t, cbool) except +raise_python_error
        void rewritten(CGraph&)
        void give(CGraph&, const int32_t*) except +raise_python_error

cdef extern from "schedule/plan.h" namespace "dnl":
    cdef enum class Strategy(uint8_t):
        pass
    Strategy strategy_by_name(const string&) except +raise_python_error
    const char* strategy_name(Strategy)
    cdef cppclass Group:
        uint32_t type
        uint32_t begin
        uint32_t count
    cdef cppclass PlanType:
        uint32_t sig
        uint32_t count
    cdef cppclass Plan:
        Vec[NodeId] exec_ "exec"
        Vec[NodeId] order
        Vec[Group] groups
        Vec[PlanType] types
        uint32_t lower_bound
        uint64_t floats

cdef extern from "exec/executor.h" namespace "dnl":
    cdef cppclass Run:
        Plan plan
        NodeId first, last
        uint32_t lane
        uint8_t stage
    cdef cppclass Stats:
        uint64_t nodes, dead, merged, batches, lower_bound, floats_gathered, floats_scattered, rows_repeated
        uint64_t transposed, plans, plans_again, plan_steps, back_plans, back_plans_again
        double plan_time, forward_time, backward_time
    cdef cppclass OpProfile:
        uint64_t calls, members
        double forward, backward
    cdef cppclass RewriteLogEntry "dnl::RewriteLog::Entry":
        string name, text
    cdef cppclass ExecOptions:
        Strategy strategy
        cbool check_validity, touches_looked_up
    cdef enum class GradientRead(uint8_t):
        Given
        NoPass "dnl::GradientRead::None"
        Gone
        Summed
    cdef cppclass Memory:
        Memory(Backend*) except +raise_python_error
    cdef cppclass GradientWatch:
        pass
    cdef cppclass Executor:
        Executor(CGraph&, Backend*, Memory&) except +raise_python_error
        void forward(cbool) except +raise_python_error nogil
        void forward_at_once() except +raise_python_error nogil
        void invalidate()
        void fetch()
        void forget_plans() except +raise_python_error
        void backward(NodeId, cbool) except +raise_python_error nogil
        void backward(NodeId, cbool, cbool) except +raise_python_error nogil
        cbool done(NodeId)
        cbool begun(NodeId)
        void read_value(NodeId, float*) except +raise_python_error nogil
        GradientRead read_gradient(NodeId, float*) except +raise_python_error
        string dump_plans() except +raise_python_error
        string dump_backward(uint32_t) except +raise_python_error
        void log_rewrites(cbool)
        const vector[RewriteLogEntry]& rewrite_log()
        uint32_t passes()
        const Run* run(size_t)
        ExecOptions options
        void watch_gradients(GradientWatch*)
        Stats stats()
        vector[OpProfile] profile()
        size_t value_bytes()
        size_t grad_bytes()

cdef extern from "rewrite/pipeline.h" namespace "dnl":
    void rewrite_ahead(CGraph&, uint32_t, cbool) except +raise_python_error

cdef extern from "rewrite/passes.h" namespace "dnl":
    uint32_t passes_ahead(uint32_t)
    cdef cppclass CPass "dnl::PassInfo":
        const char* name
        const char* does
        const char* place
    ctypedef enum PassId "dnl::PassId":
        pass
    const CPass& pass_of "dnl::pass_info"(PassId)
    PassId pass_by_name(const string&) except +raise_python_error
    int kPasses

cdef extern from "kernels/kernels.h" namespace "dnl":
    cdef cppclass Kernels:
        const char* isa
        void (*random_uniform)(ptrdiff_t, uint64_t, float, float, float*) nogil
        void (*random_normal)(ptrdiff_t, uint64_t, float, float, float*) nogil
    const Kernels& kernels()

cdef extern from "kernels/draw.h" namespace "dnl":
    size_t draw_index(const float*, size_t, uint64_t) nogil

cdef extern from "kernels/gemm.h" namespace "dnl":
    const char* blas_description()

cdef extern from "exec/update.h" namespace "dnl":
    cdef cppclass UpdateStep:
        Backend* backend
        float c[6]
        double decay
        cbool sparse
        int threads
        Owner owner
        cbool alone
    cdef cppclass UpdateOutcome:
        double norm
        cbool clipped
    cdef cppclass CUpdater "dnl::Updater":
        CUpdater(const string&) except +raise_python_error
        void add_parameter(const shared_ptr[Parameter]&) except +raise_python_error
        void add_table(const shared_ptr[LookupTable]&) except +raise_python_error
        UpdateOutcome update(const UpdateStep&, double) except +raise_python_error nogil
        UpdateOutcome late() except +raise_python_error nogil
        cbool is_late()
        void clear_gradients() nogil
        void restart() except +raise_python_error
        int states()
        Store& parameter_state(size_t) except +raise_python_error
        Store& table_state(size_t) except +raise_python_error

cdef extern from "exec/trace.h" namespace "dnl":
    cbool tracing() nogil
