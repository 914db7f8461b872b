# Errors of parts of models end at the line that called the part, in its words (dynet_lite/needs.py). No frame of this
# module is in a trace (user_line.h).
import functools

cdef extern from "user_line.h":
    pass

cdef extern from "bindings/told.h" namespace "dnl":
    object make_told(object function, object failed)


def told(function, explain):
    """function, whose errors are what explain(function, args, kwargs, error) gives; their trace ends at the caller."""
    def failed(error, args, kwargs):
        raise _at_user(explain(function, args, kwargs, error))
    return functools.wraps(function)(make_told(function, failed))


cdef object _at_user(error):
    """The error without the innermost frames of its trace that are the package's own."""
    last, trace = None, error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_globals.get("__name__", "").startswith("dynet_lite"):
            last = trace
        trace = trace.tb_next
    if last is None:
        error.__traceback__ = None
    else:
        last.tb_next = None
    return error
