# Errors end at the line that called the package, in the words of what was called (dynet_lite/told.py, needs.py). No frame
# of this module is in a trace (user_line.h).
import functools
import os as _os
import sys as _sys

cdef extern from "user_line.h" namespace "dnl":
    cbool is_bug(object)

cdef extern from "bindings/told.h" namespace "dnl":
    object make_told(object function, object failed)


def told(function, explain):
    """function, whose errors are what explain(function, args, kwargs, error) gives; their trace ends at the caller."""
    def failed(error, args, kwargs):
        raise _at_user(explain(function, args, kwargs, error))
    return functools.wraps(function)(make_told(function, failed))

told_type = type(make_told(None, None))


def last_of_user(error):
    """The innermost entry of an error's trace that is not the package's own nor of a library that it called; else None.

    What a function of the user's calls by itself is the user's.
    """
    last, trace, ours = None, error.__traceback__, False
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__") or ""
        if name == "dynet_lite" or name.startswith("dynet_lite."):
            ours = True
        elif not ours or not _of_library(name, trace.tb_frame.f_code.co_filename):
            last, ours = trace, False
        trace = trace.tb_next
    return last


cdef int _level_of_user() except -1:
    """The stacklevel of a warning about the user's line. Compiled functions have no level of their own."""
    cdef int level = 1
    frame = _sys._getframe()
    while frame is not None and (frame.f_globals.get("__name__") or "").partition(".")[0] == "dynet_lite":
        frame, level = frame.f_back, level + 1
    return level


cdef bint _of_library(str name, str path) except -1:
    """Python's own modules, and those that the package stands on. A user's module may be called like one of Python's."""
    if name.partition(".")[0] in ("numpy", "safetensors") or path.startswith("<frozen "):
        return True
    return path.startswith(_standard) and not path.startswith(_installed)

cdef str _standard = _os.path.dirname(_os.__file__) + _os.sep
cdef tuple _installed = (_standard + "site-packages", _standard + "dist-packages")


cdef object _at_user(error):
    """The error, whose trace ends with the user's innermost line. That of a bug of ours stays as it is."""
    if is_bug(type(error)):
        return error
    last = last_of_user(error)
    if last is None:
        error.__traceback__ = None
    else:
        last.tb_next = None
    return error
