# Numbers from and to text; the format of files is Python (dynet_lite/io.py).

cdef extern from "base/decimal.h" namespace "dnl":
    cbool read_decimals_ "dnl::read_decimals" (const char*, size_t, float*) nogil
    void write_decimals_ "dnl::write_decimals" (const float*, size_t, char*) nogil
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


def write_decimals(const float[::1] values not None):
    """The reverse of read_decimals(): a bytearray, 16 for each number; all of them must be finite."""
    cdef size_t n = values.shape[0]
    cdef bytearray text = bytearray(n * DECIMAL_WIDTH)
    cdef char* to = text
    if n:
        with nogil:
            write_decimals_(&values[0], n, to)
    return text
