"""What an error of a wrapped function says (told.py): what was called, and which argument is nothing of the kind that is needed.

An annotation says what a parameter needs. Who may import: dynet_lite/told.py.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from dynet_lite import _core
from dynet_lite.errors import InputTypeError
from dynet_lite.needs import BRACKETS, CALLED, GENERAL, PLAIN, is_users, shown

__all__ = ["explained"]

OF_PROCESS = ("config",)  # variables and flags, which the first call of anything reads


def explained(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    """The error to raise instead, or the error itself with other words. name: what users call the function, if not by its own."""
    if type(error) not in PLAIN or len(error.args) != 1 or not isinstance(error.args[0], str) or is_users(error):
        return error
    try:
        signature = inspect.signature(function)
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # the call itself is wrong, and Python says so
        return error
    who, owner = (name, name) if name else _names(function, args)
    found = BRACKETS.fullmatch(error.args[0])
    if found and {who, owner, *OF_PROCESS} & {*re.split(r"[: ]+", found[1])}:
        return error
    for key, value in given.items() if not found or found[1] in GENERAL else ():
        wrong = _wrong(signature.parameters[key], value, function.__globals__)
        if wrong:
            # Who catches the ValueError still does.
            kind = InputTypeError if isinstance(error, ValueError) else TypeError
            return kind(f"[{who}] {wrong}")
    if not found:  # Python's words, about something inside
        what = ", ".join(f"{key}={shown(value)}" for key, value in given.items() if key not in ("self", "cls"))
        error.args = (f"[{who}] {error.args[0]}" + (f"; called with {what}" if what else ""),)
        return TypeError(*error.args) if isinstance(error, AttributeError) else error
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
    """Has it items? An array without dims has an __iter__, which raises."""
    items = isinstance(value, Iterable) and not isinstance(value, (str, bytes, _core.Expression))
    return items and getattr(value, "ndim", 1) != 0


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
