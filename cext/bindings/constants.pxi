# Numbers that operators apply to expressions: x * c, x / c, c / x, c ** x.
#
# A number that a float32 does not hold with all its digits is split (base/factors.h): (x * 1e-30) / 1e-40 is x * 1e10.

from libc.math cimport log as _log

cdef extern from "base/factors.h" namespace "dnl":
    cdef cppclass Factors:
        int n
        float f[3]
    Factors factors_of(double)
    double inverse_of(double)

cdef Expression _scaled(object x, const Factors& c, int first):
    """x times the factors from number `first` on."""
    cdef int k
    for k in range(first, c.n):
        x = _op1f(OP_scale, x, c.f[k])
    return x

cdef inline Expression _times(object x, double c):
    return _scaled(x, factors_of(c), 0)

cdef inline Expression _divided(object x, object c):
    """x / c; by a zero of Python ZeroDivisionError, by one of NumPy infinity."""
    cdef double number = c
    return _op1f(OP_scale, x, 1.0 / c) if number == 0 else _scaled(x, factors_of(inverse_of(number)), 0)

cdef inline Expression _dividing(object x, double c):
    """c / x."""
    cdef Factors f = factors_of(c)
    return _scaled(_op1f(OP_const_div, x, f.f[0]), f, 1)

cdef inline Expression _as_base(object x, double c):
    """c ** x; of a positive number that must be split the exponential of x * log(c)."""
    if c > 0 and factors_of(c).n > 1:
        return _op1(OP_exp, _op1f(OP_scale, x, _log(c)))
    return _op1f(OP_const_pow, x, c)
