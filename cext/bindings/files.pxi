# Reading of numbers from text; the format of files is Python (dynet_lite/io.py).

cdef extern from "base/decimal.h" namespace "dnl":
    cbool read_decimals_ "dnl::read_decimals" (const char*, size_t, float*) nogil
    size_t DECIMAL_WIDTH "dnl::kDecimalWidth"


def read_decimals(const unsigned char[::1] text not None, size_t start, size_t n):
    """n numbers "+d.dddddddde+dd " that stand one behind the other in text from start: float32 array.

    None when they are written in another way (or there are fewer).
    """
    if start > <size_t> text.shape[0] or n > (<size_t> text.shape[0] - start) // DECIMAL_WIDTH:
        return None
    out = np.empty(n, dtype=np.float32)
    if n == 0:
        return out
    cdef float[::1] view = out
    cdef cbool ok
    with nogil:
        ok = read_decimals_(<const char*> &text[start], n, &view[0])
    return out if ok else None
