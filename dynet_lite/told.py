"""Errors of the package's own functions and classes end at the line that called them, and name what was called.

    globals().update(tell(ops, trainers))  # of every module whose names users call

A parameter's annotation says what it needs: where an argument is nothing of the kind, the message says so. Arguments are looked at
only when something has failed. Parts of models, which know more about what they are given, have dynet_lite/needs.py.
Who may import: dynet_lite/__init__.py and those of folders.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from dynet_lite import _core
from dynet_lite.needs import CALLED, HOT, tell_methods

__all__ = ["tell"]


def tell(*modules: ModuleType) -> dict[str, Any]:
    """Makes the public functions and classes of these modules tell what is wrong, in place. The functions by name."""
    made: dict[str, Any] = {}
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if getattr(value, "__module__", None) != module.__name__ or name in HOT:
                continue
            if isinstance(value, FunctionType):
                made[name] = told(value)
                setattr(module, name, made[name])
            elif isinstance(value, type) and not issubclass(value, BaseException):
                _tell_class(value)
    return made


def told(function: Any, name: str = "") -> Any:
    """The function, whose errors are told. name: what users call it, if not by its own."""
    if isinstance(function, _core.told_type):  # they are already: the package is loaded again
        return function
    return _core.told(function, partial(_explained, name))


def _tell_class(cls: type) -> None:
    tell_methods(cls, told)
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in CALLED:
            continue
        if isinstance(value, staticmethod):
            setattr(cls, name, staticmethod(told(value.__func__)))
        elif isinstance(value, property):
            read, write, delete = (f and told(f) for f in (value.fget, value.fset, value.fdel))
            setattr(cls, name, property(read, write, delete, value.__doc__))


def _explained(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    from dynet_lite.told_words import explained  # only now: a program that makes no mistake does not need it

    return explained(name, function, args, kwargs, error)
