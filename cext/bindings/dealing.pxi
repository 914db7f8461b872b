# Who gets which examples of a mini-batch.
cdef extern from "bindings/deal.h" namespace "dnl":
    void deal(const Vec[double]&, const Vec[double]&, Vec[uint32_t]&)


def _deal(list costs not None, list speeds not None):
    """The part of each example, a list; see distributed.deal(). There are as many parts as speeds."""
    cdef Vec[double] c, s
    cdef Vec[uint32_t] parts
    cdef double x
    cdef size_t i
    for x in costs:
        if not isfinite(x) or x < 0:
            raise ValueError(f"[deal] a cost must be a number >= 0; got {x}")
        c.push_back(x)
    for x in speeds:
        if not isfinite(x) or x <= 0:
            raise ValueError(f"[deal] {len(speeds)} speeds > 0 are needed; got {speeds}")
        s.push_back(x)
    if s.empty():
        raise ValueError("[deal] at least one part is needed; got 0")
    deal(c, s, parts)
    return [parts[i] for i in range(parts.size())]
