# Settings that the engine reads when a graph is made or renewed. dynet_lite/config.py fills them in.

include "settings_table.pxi"   # generated from cext/exec/options.h: what there is

cdef uint64_t _settings_changed = 0   # how often one of them was set

cdef class Settings(SettingsTable):
    """What new and renewed graphs take over."""
    # Stands in for it: arrays of expressions hold objects instead of being refused, and rows that were looked up before a
    # loss are updated though it does not depend on them.
    cdef public bint is_dynet
    cdef public object start   # called before the first graph: reads variables and flags, then is None

    def __setattr__(self, str name, value):
        global _settings_changed
        _settings_changed += 1
        PyObject_GenericSetAttr(self, name, value)

settings = Settings()
cdef Settings _settings = settings
cdef object _backend_name = None   # that the next was found by
cdef Backend* _backend_found = NULL

cdef Backend* _backend() except NULL:
    """The backend of the settings."""
    global _backend_name, _backend_found
    if _settings.backend is not _backend_name:
        _backend_found = backend_by_name(_settings.backend.encode())
        _backend_name = _settings.backend
    return _backend_found

# The state of the generator that all threads share, unless one has its own: _own.state.
cdef uint64_t _seed_state = 0x5DEECE66DuLL
_own = threading.local()
cdef bint _some_own = False   # whether any thread has one: looking costs more than everything else here

cdef uint64_t _seed_now():
    own = getattr(_own, "state", None) if _some_own else None
    return _seed_state if own is None else own

cdef _set_seed_now(uint64_t state):
    global _seed_state
    if not _some_own or getattr(_own, "state", None) is None:
        _seed_state = state
    else:
        _own.state = state

def set_seed(seed, own=False):
    """Seed the generator from which graphs, initializers and random ops draw; own: this thread gets one of its own."""
    global _some_own
    state = (int(seed) * 0x9E3779B97F4A7C15 + 0x1234567) & 0xFFFFFFFFFFFFFFFF   # first: nothing has changed if it fails
    if own:
        _own.state = 0
        _some_own = True
    _set_seed_now(state)

cdef uint64_t _next_seed():
    cdef uint64_t state = _seed_now()
    cdef uint64_t seed = splitmix64(state)
    _set_seed_now(state)
    return seed

def next_seed():
    """The next 64 random bits of the generator."""
    return _next_seed()

def next_sfc64(uint64_t[::1] state not None):
    """Overwrite four words by the state of numpy.random.SFC64(next_seed())."""
    if state.shape[0] != 4:
        raise ValueError(f"[next_sfc64] four words are needed; got {state.shape[0]}")
    sfc64_begin(_next_seed(), &state[0])

def get_seed_state():
    """State of the generator that this thread draws from."""
    return _seed_now()

def set_seed_state(state):
    """Let that generator go on from here."""
    _set_seed_now(state)

def check_setting(str what, str name):
    """ValueError unless the engine knows this strategy or backend."""
    if what == "strategy":
        strategy_by_name(name.encode())
    else:
        backend_by_name(name.encode())

def passes():
    """The passes over the graph in their order: name, what it does, why it runs where it does."""
    return [(pass_of(<PassId> p).name.decode(), pass_of(<PassId> p).does.decode(), pass_of(<PassId> p).place.decode())
            for p in range(kPasses)]

def pass_bit(str name):
    """Its bit in settings.passes_off; ValueError when there is no such pass."""
    return 1 << <int> pass_by_name(name.encode())

def backend_counts():
    """What the backend has done since the process began that costs a device time; zeros where memory is the host's."""
    settle()
    cdef BackendCounts c = _backend().counts()
    return {"calls": c.calls, "row_calls": c.row_calls, "updates": c.updates,
            "uploads": c.uploads, "bytes_uploaded": c.uploaded,
            "downloads": c.downloads, "bytes_downloaded": c.downloaded,
            "launches": c.launches, "waits": c.waits, "cublas": c.products, "on_host": c.on_host}

cdef Devices* _devices_of(str backend) except NULL:
    cdef Devices* devices = devices_of(backend.encode())
    if devices is NULL:
        raise ValueError(f"[device] the backend {backend!r} has no devices")
    return devices

def devices_of_backend(str backend):
    """Why there are no devices ("" if there are), and what is known of each: number, model, bytes, capability, problem."""
    cdef Devices* devices = _devices_of(backend)
    cdef DeviceInfo d
    found = []
    for d in devices.list():
        found.append((d.number, d.model.decode(errors="replace"), d.memory, (d.major, d.minor), d.problem.decode()))
    return devices.problem().decode(), found

def choose_device(str backend, int number, bytes image, bytes products = b""):
    """The device that the backend opens when it is first used, its code, and where its library for products lies.

    RuntimeError if it runs on another.
    """
    _devices_of(backend).choose(number, image, products)

def device_in_use(str backend):
    """The number of the device that the backend runs on; -1 before it runs on one."""
    return _devices_of(backend).in_use()

def device_busy(str backend, bint watched):
    """Seconds that the device has been at work while it was watched, on what was waited for. Watched from now on?"""
    return _devices_of(backend).busy(watched)

def device_brings_code(str backend):
    """Whether device code comes with the driver: that of a stand-in does."""
    return _devices_of(backend).brings_code()

def heap_calls():
    """Heap calls made by the engine's own containers since the process began."""
    settle()
    return heap_call_counter_load()

cdef uint64_t heap_call_counter_load():
    return heap_calls_()

def describe():
    """What this build runs on: instruction set and BLAS."""
    return {"isa": kernels().isa.decode(), "blas": blas_description().decode(), "ops": op_count()}
