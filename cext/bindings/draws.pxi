# Indices drawn by probabilities that a graph has computed.

def draw_indices(Expression probabilities not None):
    """An index for each batch element of a softmax {n} X b, drawn by it. ValueError where all are 0 or one is NaN."""
    cdef NodeId i = probabilities.use()
    cdef ComputationGraph g = probabilities.home()
    g.run_to(i)
    i = probabilities.use()   # other threads were let in
    cdef Dim d = g.c.dim(i)
    cdef size_t n = d.size() // d.bd
    cdef size_t b, k
    cdef vector[float] numbers
    numbers.resize(d.size())
    g.x.read_value(i, numbers.data())
    cdef list drawn = []
    for b in range(d.bd):
        k = draw_index(numbers.data() + b * n, n, _next_seed())
        if k == n:
            raise ValueError("[sample] there is no distribution: its scores are NaN or infinite")
        drawn.append(k)
    return drawn
