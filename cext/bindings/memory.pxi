# Where graphs that take turns have their values and gradients.


@cython.final
@cython.no_gc
cdef class _Memory:
    """Shared by graphs of which one runs at a time; each keeps it."""
    cdef Memory* m
    cdef Backend* backend

    def __dealloc__(self):
        del self.m

cdef _Memory _memory_of(Backend* backend):
    cdef _Memory memory = _Memory.__new__(_Memory)
    memory.m = new Memory(backend)
    memory.backend = backend
    return memory
