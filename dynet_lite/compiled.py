"""Compiled functions: functions over data whose graphs and plans are kept, one for each structure of the arguments.

The compiled side records and runs (cext/bindings/compiled.pxi). Here is what users call.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from dynet_lite import _core
from dynet_lite.cells import declares_index
from dynet_lite.reading import read_by

__all__ = ["compile"]


def compile(
    function: Any = None, *args: Any, trainer: Any = None, backward: bool = False, structures: int = 128, **kwargs: Any
) -> Any:
    """A function over data, recorded once per structure of its arguments and then run without Python, rewriting and planning.

        def loss(words, tags):
            states = rnn.initial_state().transduce([E[w] for w in words])
            return dy.esum([dy.pickneglogsoftmax(W * h, tag) for h, tag in zip(states, tags)])

        step = dy.compile(loss, trainer=trainer)
        for words, tags in sentences:
            total += step(words, tags)

    A call returns numbers where the function returns expressions: a float for one number, else an array of float32 with the
    shape of npvalue(). Tuples, lists, dicts, dataclasses and ``dy.state`` stay as they are.

    *Data* may differ from call to call: integers that choose a row, a label or a position, and arrays of floats, which the
    function gets as expressions (``inputTensor`` and ``inputVector`` accept these); alone or in tuples, lists, dicts,
    dataclasses and integer arrays. All else is *structure*: lengths, keys, the nesting of tuples (trees), shapes of arrays, and
    strings, floats, ``None`` and other objects, on which the function may branch. Integers that it computes with are
    structure, too.

    Each structure is recorded when it is first seen. At most ``structures`` are kept; then the one that has not been called
    for the longest time is dropped. ``dy.stats()`` counts.

    ``trainer``: each call is a training step: the value, the gradients of the first expression that the function returns,
    which must be one number, and ``trainer.update()``. ``backward=True``: values and gradients, which add up until you
    update.

    Values, gradients and random numbers are those of the function called in a graph of its own, up to the order of sums;
    dropout draws anew at each call. What is recorded is only used while settings, frozen weights, and variables and attributes
    that the function names, of arguments too, are what they were. ``dy.configure(compile=False)`` runs the function at each call.

    CompileError, at its line, if the function asks for a value or uses an expression from outside; IndexError for an integer
    out of range. Also a decorator, of functions and methods. Text and syntax trees go to Python's ``compile``.
    """
    if isinstance(function, (str, bytes, bytearray, memoryview, ast.AST)):
        return _by_python(sys._getframe(1), function, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"[compile] a function, trainer, backward and structures are taken; got {[*args, *kwargs]}")
    if function is None:
        return lambda f: compile(f, trainer=trainer, backward=backward, structures=structures)
    if isinstance(function, _core.Compiled):
        raise TypeError(f"[compile] {function.__name__} is compiled already")
    if trainer is not None and not callable(getattr(trainer, "update", None)):
        raise TypeError(f"[compile] trainer: a trainer is needed; got {type(trainer).__name__}")
    if int(structures) < 1:
        raise ValueError(f"[compile] structures: 1 or more; got {structures}")
    names, indices = _arguments(function)
    return _core.Compiled(function, names, indices, read_by, trainer, backward or trainer is not None, int(structures))


def _by_python(caller: FrameType, source: Any, filename: Any, mode: Any, flags: int = 0, dont_inherit: bool = False,
               *args: Any, **kwargs: Any) -> Any:  # fmt: skip
    """Python's compile(), called from there: its caller's imports from __future__ hold in the text, not those of this file."""
    if not dont_inherit:
        flags |= caller.f_code.co_flags & __future__.annotations.compiler_flag
    return builtins.compile(source, filename, mode, flags, True, *args, **kwargs)


def _arguments(function: Callable[..., Any]) -> tuple[list[str], set[int | str]]:
    """Names of the positional arguments, and those that are declared to be dy.Index."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise TypeError(f"[compile] a Python function is needed; got {type(function).__name__}") from None
    indices: set[int | str] = set()
    for k, p in enumerate(parameters):
        if declares_index(p.annotation):
            indices |= {k, p.name}
    return [p.name for p in parameters], indices
