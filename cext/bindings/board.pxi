# Memory in which the ranks of a machine lay down numbers for one another: the lists, the files, and what is read from them.
cdef extern from "bindings/shared_list.h" namespace "dnl":
    cdef struct Slot "dnl::SharedList::Slot":
        int64_t half, at, size

    cdef cppclass SharedList:
        @staticmethod
        SharedList* at(void*)
        int64_t sign()
        void set_sign(int64_t)
        int64_t laid()
        int64_t taken()
        int64_t said()
        const Slot& slot(int64_t)
        void lay(int64_t, const Slot&)
        void take(int64_t)
        const double* head(int64_t)
        void say(int64_t, const double*)

    enum:
        HEAD_NUMBERS "dnl::SharedList::kHead"
    size_t MOST_LAID "(dnl::SharedList::kSlots / 2)"   # in one half: others may not have taken what lies in the other
    size_t LIST_BYTES "sizeof(dnl::SharedList)"


_HEAD = HEAD_NUMBERS   # for Python


@cython.final
cdef class _SharedFile:
    """A file that lies in memory. It may grow in another process."""
    cdef readonly int number
    cdef object map   # the memory; numbers that were read() hold an older one
    cdef uint8_t* data
    cdef size_t size

    def __cinit__(self, int number):
        self.number = number

    cdef int reserve(self, size_t size) except -1:
        # The file has so many bytes at least.
        if size > self.size:
            os.ftruncate(self.number, max(size, 2 * self.size, 1 << 16))
        return 0

    cdef uint8_t* at(self, size_t begin, size_t end) except? NULL:
        cdef uint8_t[::1] view
        if end > self.size:
            self.map = mmap.mmap(self.number, os.fstat(self.number).st_size)
            view = self.map
            self.data, self.size = &view[0], view.shape[0]
            if end > self.size:
                raise RuntimeError(f"[distributed] {end} bytes are said to lie in a file of {self.size}")
        return self.data + begin

    cdef SharedList* list(self) except NULL:
        return SharedList.at(self.at(0, LIST_BYTES))


ctypedef SharedList* ListOfRank


cdef class _Board:
    """What this rank lays down for the others of its machine, and what they have laid down.

    Each rank has three files without a name: a SharedList, and two that take turns. A rank writes over one of these two only
    when all others have taken what lay there. What is laid down has a number: the same for what the ranks add up.
    """
    cdef readonly int rank
    cdef readonly size_t lying   # bytes of sums
    cdef list own, files         # _SharedFile of this rank; of each rank three of them
    cdef Vec[ListOfRank] lists
    cdef SharedList* mine
    cdef int half
    cdef size_t filled           # bytes of this half
    cdef int64_t last[2]         # the number of what was laid into each half last
    cdef dict not_taken          # by this rank: number -> bytes of a sum

    def __cinit__(self, int rank):
        self.rank = rank
        self.own = [_SharedFile(os.memfd_create("dynet_lite")) for _ in range(3)]
        (<_SharedFile> self.own[0]).reserve(LIST_BYTES)
        self.mine = (<_SharedFile> self.own[0]).list()
        self.mine.set_sign(int.from_bytes(os.urandom(7), "little"))
        self.files, self.not_taken = [], {}

    @property
    def address(self):
        """For open() of the others: the process, its files, and a number that only this list has."""
        return os.getpid(), [(<_SharedFile> file).number for file in self.own], self.mine.sign()

    def open(self, addresses):
        """Open what the others have; False where that cannot be."""
        cdef SharedList* one
        try:
            for rank, (process, files, sign) in enumerate(addresses):
                paths = [f"/proc/{process}/fd/{f}" for f in files]
                memory = self.own
                if rank != self.rank:
                    memory = [_SharedFile(os.open(path, os.O_RDWR | os.O_CLOEXEC)) for path in paths]
                self.files.append(memory)
                one = (<_SharedFile> memory[0]).list()
                self.lists.push_back(one)
                if one.sign() != sign:
                    return False
        except (IndexError, OSError, RuntimeError, ValueError):
            return False
        return True

    # ---- heads of conversations ---------------------------------------------------------------------------------------

    def say(self, int64_t serial, tuple head not None):
        """Lay down the head of this rank's conversation with this number; what it lacks is 0."""
        cdef double[HEAD_NUMBERS] numbers
        cdef size_t i, n = len(head)
        if n > HEAD_NUMBERS:
            raise ValueError(f"[distributed] a head has {HEAD_NUMBERS} numbers; got {n}")
        for i in range(HEAD_NUMBERS):
            numbers[i] = head[i] if i < n else 0.0
        self.mine.say(serial, numbers)

    def all_said(self, int64_t serial):
        """Whether all ranks have begun this conversation."""
        cdef size_t r
        for r in range(self.lists.size()):
            if self.lists[r].said() < serial:
                return False
        return True

    def alike(self, int64_t serial, size_t n):
        """Whether the first n numbers of all heads are the same, after all_said()."""
        cdef size_t r
        for r in range(1, self.lists.size()):
            if memcmp(self.lists[0].head(serial), self.lists[r].head(serial), n * sizeof(double)):
                return False
        return True

    def heads(self, int64_t serial):
        """The heads of all ranks, (ranks, numbers), after all_said()."""
        out = np.empty((self.lists.size(), HEAD_NUMBERS))
        cdef double[:, ::1] to = out
        cdef size_t r
        for r in range(self.lists.size()):
            memcpy(&to[r, 0], self.lists[r].head(serial), HEAD_NUMBERS * sizeof(double))
        return out

    # ---- to lay down --------------------------------------------------------------------------------------------------

    def has_room(self):
        """Whether the others have taken what lies where this rank would write."""
        cdef size_t r
        if self.not_taken:
            return True
        for r in range(self.lists.size()):
            if self.lists[r].taken() < self.last[1 - self.half]:
                return False
        return True

    cdef uint8_t* room(self, size_t size) except? NULL:
        # For the next thing. There must be room.
        if not self.not_taken:
            self.half, self.filled = 1 - self.half, 0
        elif <size_t> len(self.not_taken) >= MOST_LAID:
            raise RuntimeError(f"[distributed] {MOST_LAID} messages at once are too many; larger buckets make fewer")
        cdef _SharedFile file = self.own[1 + self.half]
        file.reserve(self.filled + size)
        return file.at(self.filled, self.filled + size)

    cdef int64_t laid(self, size_t size, bint of_sum) except -1:
        # From here on others may read what was written to room().
        cdef int64_t number = self.mine.laid() + 1
        cdef Slot slot
        slot.half, slot.at, slot.size = self.half, self.filled, size
        self.mine.lay(number, slot)
        self.filled += (size + 63) // 64 * 64
        self.last[self.half] = number
        self.not_taken[number] = size if of_sum else 0
        self.lying += size if of_sum else 0
        return number

    def lay(self, const uint8_t[::1] numbers not None, bint of_sum=False):
        """Lay down these bytes; their number."""
        cdef size_t size = numbers.shape[0]
        cdef uint8_t* to = self.room(size)
        if size:
            memcpy(to, &numbers[0], size)
        return self.laid(size, of_sum)

    def lay_grads(self, list parameters not None, list flagged not None):
        """Lay down what _gather_grads() writes; its number."""
        settle()
        cdef size_t size = (_total_size(parameters) + <size_t> len(flagged)) * sizeof(float)
        _write_grads(parameters, flagged, <float*> self.room(size))
        return self.laid(size, True)

    def lay_rows(self, list tables not None):
        """Lay down what _pack_rows() writes; its number."""
        cdef size_t size = _rows_size(tables)
        _write_rows(tables, self.room(size))
        return self.laid(size, False)

    # ---- to read ------------------------------------------------------------------------------------------------------

    def complete(self, int64_t number):
        """Whether all ranks have laid down what has this number."""
        cdef size_t r
        for r in range(self.lists.size()):
            if self.lists[r].laid() < number:
                return False
        return True

    cdef const uint8_t* part(self, size_t rank, int64_t number, size_t* size) except? NULL:
        # What this rank has laid down under the number: good until taken().
        cdef const Slot* slot = &self.lists[rank].slot(number)
        size[0] = slot.size
        return (<_SharedFile> self.files[rank][1 + slot.half]).at(slot.at, slot.at + slot.size)

    def read(self, int64_t number):
        """What all ranks have laid down under this number, arrays of uint8: good until taken()."""
        cdef size_t r, size
        cdef const Slot* slot
        out = []
        for r in range(self.lists.size()):
            self.part(r, number, &size)
            slot = &self.lists[r].slot(number)
            memory = (<_SharedFile> self.files[r][1 + slot.half]).map
            out.append(np.frombuffer(memory, np.uint8, size, slot.at) if size else np.empty(0, np.uint8))
        return out

    def sum_grads(self, int64_t number, list parameters not None, const float[::1] touched not None):
        """_sum_grads() of what all ranks have laid down under this number."""
        cdef Vec[Numbers] parts
        cdef size_t r, size
        for r in range(self.lists.size()):
            parts.push_back(<const float*> self.part(r, number, &size))
            _check_sums(parameters, size // sizeof(float), touched)
        _sum_parts(parameters, parts, touched)

    def flags(self, int64_t number, size_t n):
        """The sums of the last n numbers that were laid down: how many ranks have a gradient of each `flagged`."""
        out = np.zeros(n, np.float32)
        cdef float[::1] to = out
        cdef const float* numbers
        cdef size_t r, size, i
        for r in range(self.lists.size()):
            numbers = <const float*> self.part(r, number, &size)
            if size < n * sizeof(float):
                raise ValueError(f"[distributed] {n} numbers are needed; a rank has laid down {size} bytes")
            numbers += size // sizeof(float) - n
            for i in range(n):
                to[i] += numbers[i]
        return out

    def set_rows(self, int64_t number, list tables not None):
        """_set_rows() of what all ranks have laid down under this number."""
        cdef Vec[Bytes] parts
        cdef Vec[size_t] sizes
        cdef size_t r, size
        for r in range(self.lists.size()):
            parts.push_back(self.part(r, number, &size))
            sizes.push_back(size)
        _rows_of_parts(tables, parts, sizes)

    def taken(self, int64_t number):
        """This rank needs it no longer."""
        self.lying -= self.not_taken.pop(number)
        self.mine.take(min(self.not_taken) - 1 if self.not_taken else self.mine.laid())
