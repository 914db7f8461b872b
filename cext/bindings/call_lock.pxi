# CallLock: who calls a compiled function waits for the call of another thread. Who is it for: compiled.pxi.
#
# Most calls meet nobody, and are so short that a lock of Python's would be felt. The GIL guards the fields; only who has to
# wait uses such a lock, and then its owner lets go of it, too.
from cpython.pythread cimport PyThread_get_thread_ident


@cython.final
cdef class CallLock:
    """Of one thread, which may take it again. Each acquire() has a release() of the same thread."""
    cdef long owner       # if depth > 0
    cdef int depth        # how often the owner has taken it
    cdef int waiting      # threads in wait(), which come before those that arrive now
    cdef object gate      # what these wait for
    cdef bint at_gate     # the owner holds it

    def __cinit__(self):
        self.gate = threading.Lock()

    cdef int acquire(self) except -1:
        cdef long me = PyThread_get_thread_ident()
        if self.depth and self.owner == me:
            self.depth += 1
            return 0
        if self.depth or self.waiting:
            self.wait()
        self.owner, self.depth = me, 1
        return 0

    cdef int wait(self) except -1:
        """As long as it is another thread's. A signal may end it."""
        if self.depth and not self.at_gate:
            self.gate.acquire()   # for the owner; at once, since nobody holds it
            self.at_gate = True
        self.waiting += 1
        try:
            self.gate.acquire()
        finally:
            self.waiting -= 1
        self.at_gate = True
        return 0

    cdef int release(self) except -1:
        self.depth -= 1
        if not self.depth and self.at_gate:
            self.at_gate = False
            self.gate.release()
        return 0
