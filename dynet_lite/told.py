"""Errors of the package's own functions and classes end at the line that called them, and name what was called.

    globals().update(tell(ops, trainers))  # of every module whose names users call

A parameter's annotation says what it needs: where an argument is nothing of the kind, the message says so. Arguments are looked at
only when something has failed. Parts of models, which know more about what they are given, have dynet_lite/needs.py.
Who may import: dynet_lite/__init__.py and those of folders.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from dynet_lite import _core
from dynet_lite.needs import CALLED, GENERAL, PLAIN, is_users, put, shown

__all__ = ["tell"]

BRACKETS = re.compile(r"\[([^\]]+)\] (.*)", re.DOTALL)


def tell(*modules: ModuleType) -> dict[str, Any]:
    """Makes the public functions and classes of these modules tell what is wrong, in place. The functions by name."""
    made: dict[str, Any] = {}
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if isinstance(value, FunctionType):
                made[name] = told(value)
                setattr(module, name, made[name])
            elif isinstance(value, type) and not issubclass(value, BaseException):
                _tell_class(value)
    return made


def told(function: Any, name: str = "") -> Any:
    """The function, whose errors are told. name: what users call it, if not by its own."""
    return _core.told(function, partial(_explained, name))


def _tell_class(cls: type) -> None:
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in CALLED:
            continue
        if isinstance(value, FunctionType):
            put(cls, name, told(value))
        elif isinstance(value, (classmethod, staticmethod)):
            setattr(cls, name, type(value)(told(value.__func__)))
        elif isinstance(value, property):
            read, write, delete = (f and told(f) for f in (value.fget, value.fset, value.fdel))
            setattr(cls, name, property(read, write, delete, value.__doc__))


# ---- what an error says --------------------------------------------------------------------------------------------


def _explained(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    if type(error) not in PLAIN or len(error.args) != 1 or not isinstance(error.args[0], str) or is_users(error):
        return error
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:  # the call itself is wrong, and Python says so
        return error
    who, owner = (name, name) if name else _names(function, args)
    found = BRACKETS.fullmatch(error.args[0])
    if found and (who in found[1] or owner in found[1]):
        return error
    for key, value in given.items() if not found or found[1] in GENERAL else ():
        wrong = _wrong(inspect.signature(function).parameters[key], value, function.__globals__)
        if wrong:
            return TypeError(f"[{who}] {wrong}")
    if not found:  # Python's words, about something inside
        what = ", ".join(f"{key}={shown(value)}" for key, value in given.items() if key not in ("self", "cls"))
        return TypeError(f"[{who}] {error.args[0]}; called with {what}")
    inner = "" if found[1] in GENERAL or found[1][0].islower() else f": {found[1]}"
    error.args = (f"[{who}{inner}] {found[2]}",)
    return error


def _names(function: Any, args: tuple[Any, ...]) -> tuple[str, str]:
    """What the user called, and whose it is: the class of a method."""
    if "." not in function.__qualname__ or not args:
        return function.__name__, function.__name__
    owner = args[0].__name__ if isinstance(args[0], type) else type(args[0]).__name__
    return (owner if function.__name__ in CALLED else function.__name__), owner


# ---- annotations ---------------------------------------------------------------------------------------------------


def _is_of(cls: type, value: Any) -> bool:
    return isinstance(value, cls)


def _is_whole(value: Any) -> bool:
    return hasattr(type(value), "__index__") or (isinstance(value, float) and value.is_integer())


def _is_number(value: Any) -> bool:
    if isinstance(value, (str, bytes, _core.Expression)):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_truth(value: Any) -> bool:
    try:
        operator.truth(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, _core.Expression)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, _core.Expression))


def _are_whole(value: Any) -> bool:
    return _is_list(value) and all(_is_whole(one) for one in value)


WHOLE = "a list of whole numbers"
KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (_is_whole, "a whole number"),
    "float": (_is_number, "a number"),
    "bool": (_is_truth, "True or False"),
    "str": (lambda value: isinstance(value, str), "text"),
    "bytes": (lambda value: isinstance(value, bytes), ""),
    "os.PathLike[str]": (lambda value: hasattr(value, "__fspath__"), "a path"),
    "None": (lambda value: value is None, "None"),
    "Shape": (_are_whole, "a shape"),
    **{f"{kind}[int]": (_are_whole, WHOLE) for kind in ("Iterable", "Sequence", "list")},
    **{f"{kind}[Any]": (_is_list, "a list") for kind in ("Iterable", "Sequence", "list")},
    "Callable[..., Any]": (callable, "a function"),
    "ParameterCollection": (lambda value: hasattr(value, "add_parameters"), "a ParameterCollection"),
}


def _wrong(parameter: inspect.Parameter, value: Any, names: dict[str, Any]) -> str | None:
    """What is wrong with an argument: it is of none of the kinds of its annotation."""
    if not isinstance(parameter.annotation, str) or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return None
    nouns = []
    for is_one, noun in _kinds(parameter.annotation, names):
        if is_one(value):
            return None
        nouns.append(noun)
    wanted = " or ".join(noun for noun in nouns if noun)
    if wanted.endswith(WHOLE) and isinstance(value, (list, tuple)):
        value = next((one for one in value if not _is_whole(one)), value)
    return f"{parameter.name} must be {wanted}; got {shown(value)}" if wanted else None


def _kinds(annotation: str, names: dict[str, Any]) -> Iterator[tuple[Callable[[Any], bool], str]]:
    for part in annotation.removeprefix("dy.").split(" | "):
        known = KINDS.get(part)
        if known:
            yield known
            continue
        cls = names.get(part)
        if not isinstance(cls, type) or not cls.__module__.startswith("dynet_lite."):  # nothing is known about it
            yield (lambda value: True), ""
        else:
            article = "an" if cls.__name__[0] in "AEIOU" else "a"
            yield partial(_is_of, cls), f"{article} {cls.__name__}"
