"""What parts of models need. What they are given in a wrong shape, number or kind is told in their own words.

    @part(query=rows("a query", "query_dim"))
    class MLPAttention: ...

Errors of the public methods of such a class name the class and what it needs, and their trace ends at the line that called it.
Arguments are looked at only when something has failed. Does not know the engine; who may import: the package.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, TypeVar

from dynet_lite import errors

__all__ = [
    "is_users",
    "many",
    "number",
    "of",
    "part",
    "renamed",
    "rows",
    "shown",
    "tell_methods",
    "vector",
    "whole",
    "wrong_vector",
]

T = TypeVar("T")
Told = tuple[type[Exception], str]
Need = Callable[[Any, Any], "Told | None"]  # (the part, what it was given) -> what is wrong with it
Size = str | Callable[[Any], int]  # an attribute of the part, or what gives it

PLAIN = (
    AttributeError, IndexError, TypeError, ValueError, errors.EmptyListError, errors.InputTypeError, errors.OutOfRangeError,
    errors.StaleExpressionError,
)  # fmt: skip
BRACKETS = re.compile(r"\[(.+?)\] (.*)", re.DOTALL)  # a message: what was called, and what is wrong
CALLED = ("__init__", "__call__", "__getitem__", "__enter__", "__new__")
# Not told: a wrapper's share of such a call, or of an update that makes it, can be measured.
HOT = ("log_softmax", "pick", "coefficients", "decay")
GENERAL = ("Expression", "Parameters", "attention", "builder", "trainer", "transformer")  # of nothing that was called
OLD = "an expression of an old graph: build it again after renew_cg()"


def number(value: Any, what: str = "the value") -> float:
    """float(value), except that text is no number: TypeError."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{what} must be a number; got {value!r}")
    try:
        return float(value)
    except OverflowError:  # an int of hundreds of digits
        raise ValueError(f"{what} must fit a float") from None


# ---- needs -------------------------------------------------------------------------------------------------------------


def rows(what: str, size: Size, listed: bool = False) -> Need:
    """An expression or array with so many rows; listed: or a list of them."""

    def wrong(part: Any, value: Any) -> Told | None:
        n = _size(part, size)
        if not listed and isinstance(value, (list, tuple)):
            return TypeError, f"{what} of {n} rows is needed; got a {type(value).__name__}"
        return _wrong_item(what, n, _items(value), "of {} rows")

    return wrong


def vector(what: str, size: Size) -> Need:
    """An expression or array of one dim."""

    def wrong(part: Any, value: Any) -> Told | None:
        return _wrong_item(what, _size(part, size), [value], "of shape {{{}}}", exact=True)

    return wrong


def many(what: str, size: Size) -> Need:
    """A list of expressions or arrays with so many rows."""

    def wrong(part: Any, value: Any) -> Told | None:
        n = _size(part, size)
        if isinstance(value, (list, tuple)):
            return _wrong_item(what, n, value, "of {} rows")
        if _is_plain(value) or _shape(value) is not None:
            return TypeError, f"a list is needed, {what} of {n} rows each; got {shown(value)}"
        return None

    return wrong


def of(what: str, *kinds: type) -> Need:
    """An object of one of these classes."""

    def wrong(part: Any, value: Any) -> Told | None:
        return None if isinstance(value, kinds) else (TypeError, f"{what} is needed; got {shown(value)}")

    return wrong


def whole(what: str) -> Need:
    """A whole number, or a list of them."""

    def wrong(part: Any, value: Any) -> Told | None:
        found = list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [value]
        bad = [v for v in found if not hasattr(type(v), "__index__")]
        return (TypeError, f"{what} must be whole numbers; got {shown(bad[0])}") if bad else None

    return wrong


def wrong_vector(what: str, size: int, given: Iterable[Any]) -> Told | None:
    """Which of the vectors {size} is none, and what is wrong with it."""
    return _wrong_item(what, size, list(given), "of shape {{{}}}", exact=True)


def _wrong_item(what: str, n: int | None, items: Iterable[Any], size: str, exact: bool = False) -> Told | None:
    if n is None:
        return None
    items = list(items)
    needed = f"{what} {size.format(n)} is needed"
    for i, item in enumerate(items):
        where = f" (number {i} of {len(items)})" if len(items) > 1 else ""
        try:
            shape = _shape(item)
        except errors.StaleExpressionError:
            return errors.StaleExpressionError, f"{what} is {OLD}{where}"
        if shape is None and _is_plain(item):
            return TypeError, f"{needed}; got {shown(item)}{where}"
        if shape is not None and (shape not in ((n,), (n, 1)) if exact else shape[:1] != (n,)):
            return ValueError, f"{needed}; got {_dims(shape)}{where}"
    return None


def _items(value: Any) -> list[Any]:
    """One by one, unless it is an array as a list."""
    return list(value) if isinstance(value, (list, tuple)) and _shape(value) is None else [value]


def _shape(item: Any) -> tuple[int, ...] | None:
    """Of an expression, an array or a list of numbers; None of anything else. StaleExpressionError."""
    if isinstance(item, type):
        return None
    if callable(getattr(item, "dim", None)):
        return tuple(item.dim()[0])
    if isinstance(item, (list, tuple)):
        numbers = item and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in item)
        return (len(item),) if numbers else None
    shape = getattr(item, "shape", None)
    return tuple(shape) if isinstance(shape, tuple) and str(getattr(item, "dtype", "")) != "object" else None


def _is_plain(item: Any) -> bool:
    """Of a kind that can never be an expression. Sequences of files (dynet_lite/onnx) stand in for expressions."""
    kind = type(item).__module__
    return kind in ("builtins", "numpy") or (kind.startswith("dynet_lite") and not kind.startswith("dynet_lite.onnx"))


def _size(part: Any, size: Size) -> int | None:
    try:
        return int(size(part) if callable(size) else getattr(part, size))
    except (AttributeError, IndexError, TypeError):  # it has not been made yet, or is somebody else's
        return None


def _dims(shape: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, shape))}}}"


def shown(value: Any) -> str:
    """Short: what a user would recognise."""
    try:
        shape = _shape(value)
    except errors.StaleExpressionError:
        return OLD
    if shape is not None:
        return _dims(shape)
    if value is None or isinstance(value, (str, int, float)):
        text = repr(value)
        return text if len(text) <= 40 else text[:36] + "...'"
    return f"{'an' if type(value).__name__[0] in 'AEIOUaeiou' else 'a'} {type(value).__name__}"


# ---- parts -------------------------------------------------------------------------------------------------------------


def part(**needs: Need) -> Callable[[type[T]], type[T]]:
    """For a class: its public methods tell what is wrong with arguments of these names, in every method that has them.

    A need called METHOD__NAME is that of one method. Subclasses have the needs, too.
    """
    from dynet_lite import _core

    def decorate(cls: type[T]) -> type[T]:
        cls.needs = {**getattr(cls, "needs", {}), **needs}  # type: ignore[attr-defined]
        tell_methods(cls, lambda method: _core.told(method, _explained))
        return cls

    return decorate


def tell_methods(cls: type, told: Callable[[Any], Any]) -> None:
    """Puts told(method) in the place of each method, and class method, that users call."""
    for name, value in list(vars(cls).items()):
        if (name.startswith("_") and name not in CALLED) or name in HOT:
            continue
        if isinstance(value, classmethod):
            setattr(cls, name, classmethod(told(value.__func__)))
        elif isinstance(value, FunctionType):
            made = told(value)
            if not made.__doc__:  # that of the base class: inspect looks for it with plain functions only
                made.__doc__ = next((vars(b)[name].__doc__ for b in cls.__mro__[1:] if name in vars(b)), None)
            setattr(cls, name, made)


def _explained(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    if type(error) not in PLAIN or is_users(error):
        return error
    cls: Any = args[0] if isinstance(args[0], type) else type(args[0])
    wrong = _wrong_argument(function, args, kwargs, getattr(cls, "needs", {}))
    who = getattr(cls, "_part_of", cls.__name__)  # the name that users know
    return wrong[0](f"[{who}] {wrong[1]}") if wrong else renamed(error, who)


def renamed(error: Exception, who: str) -> Exception:
    """The error, with the name of the part that was called before its message."""
    if type(error) not in PLAIN or len(error.args) != 1 or not isinstance(error.args[0], str) or who in error.args[0]:
        return error
    found = BRACKETS.fullmatch(error.args[0])
    if not found:
        error.args = (f"[{who}] {error.args[0]}",)
    else:
        error.args = (f"[{who}{'' if found[1] in GENERAL else ': ' + found[1]}] {found[2]}",)
    return error


def is_users(error: Exception) -> bool:
    """Was it raised by a function of the user's that the package called?"""
    from dynet_lite import _core

    last = _core.last_of_user(error)
    return last is not None and last.tb_next is None


def _wrong_argument(function: Any, args: Any, kwargs: Any, needs: dict[str, Need]) -> Told | None:
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # the call itself is wrong, and Python says so
        return None
    for name, value in list(given.items())[1:]:
        need = needs.get(f"{function.__name__}__{name}") or needs.get(name)
        if need:
            wrong = need(args[0], value)
        else:
            wrong = _by_declaration(signature.parameters[name], value) if function.__name__ == "__init__" else None
        if wrong:
            return wrong
    return None


def _by_declaration(parameter: inspect.Parameter, value: Any) -> Told | None:
    """Collections and sizes."""
    name = parameter.name
    if name in ("model", "pc") and not hasattr(value, "add_parameters"):
        return TypeError, f"{name} must be a ParameterCollection; got {shown(value)}"
    if parameter.annotation != "int":
        return None
    try:
        number = operator.index(value)
    except TypeError:
        if isinstance(value, float) and value.is_integer():
            return None
        return ValueError, f"{name} must be a whole number; got {shown(value)}"
    least = 1 if parameter.default is inspect.Parameter.empty else 0
    return (ValueError, f"{name} must be {least} or more; got {number}") if number < least else None
