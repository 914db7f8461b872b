# Settings that the engine reads when a graph is made or renewed. dynet_lite/config.py fills them in.

cdef class Settings:
    """What new and renewed graphs take over."""
    cdef public bint autobatch
    cdef public str strategy
    cdef public str backend
    cdef public bint verify
    cdef public bint profile
    cdef public int threads
    cdef public uint64_t least_work   # see ExecOptions; 0 in tests: threads whenever there are parts
    cdef public object start   # called once, before the first graph: reads variables and flags

    def __cinit__(self):
        self.autobatch = True
        self.strategy = "greedy"
        self.backend = "cpu"
        self.threads = 1
        self.least_work = 200000
        self.start = None

settings = Settings()
cdef Settings _settings = settings
cdef uint64_t _seed_state = 0x5DEECE66DuLL

def set_seed(seed):
    """Seed the one generator from which graphs, initializers and random ops draw."""
    global _seed_state
    _seed_state = (int(seed) * 0x9E3779B97F4A7C15 + 0x1234567) & 0xFFFFFFFFFFFFFFFF

cdef uint64_t _next_seed():
    global _seed_state
    return splitmix64(_seed_state)

def next_seed():
    """The next 64 random bits of the generator."""
    return _next_seed()

def get_seed_state():
    return _seed_state

def set_seed_state(state):
    global _seed_state
    _seed_state = state

def check_setting(str what, str name):
    """ValueError unless the engine knows this strategy or backend."""
    if what == "strategy":
        strategy_by_name(name.encode())
    else:
        backend_by_name(name.encode())

def heap_calls():
    """Heap calls made by the engine's own containers since the process began."""
    return heap_call_counter_load()

cdef uint64_t heap_call_counter_load():
    return heap_calls_()

def describe():
    """What this build runs on: instruction set and BLAS."""
    return {"isa": kernels().isa.decode(), "blas": blas_description().decode(), "ops": op_count()}
