"""Cells: functions over expressions that are recorded once, and structure that is given in one call.

The compiled side records and repeats (cext/bindings/templates.pxi, recording.pxi, bulk.pxi). Here is what users call, what a
cell is taken to read besides its arguments, and the loops in Python for where nodes are made one by one.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynet_lite import _core, errors

__all__ = ["Index", "cell", "map", "recurse", "scan", "state"]

_MOST_ITEMS = 32  # of a list or dict that a cell may read
_DEEPEST = 3  # attributes of attributes of objects
Seen = dict[int, set[str]]  # what has been looked at, by id, for which names
_HEAP_TYPE = 1 << 9  # of a class that was made by Python code


class Index(int):
    """Declares that an integer argument of a cell only chooses a row, a label or a position: ``def tag(h, label: dy.Index)``.

    Computing with it is then an error. Without the declaration, a cell that computes with an integer is recorded once for
    each of its values.
    """


def state(**parts: Any) -> Any:
    """Named expressions, which a cell passes on from step to step: ``s = dy.state(h=h, c=c)`` has ``s.h`` and ``s.c``.

    It cannot be changed; iterating over it gives the values. ValueError without any.
    """
    if not parts:
        raise ValueError("[state] needs at least one name: state(h=h)")
    return _core.state_of(parts)


def cell(function: Callable[..., Any]) -> Any:
    """Decorator: a function over expressions that is recorded once and then repeated without Python.

        @dy.cell
        def compose(left, right):
            z = dy.tanh(W * dy.concatenate([left.h, right.h]) + b)
            return dy.state(h=z, c=dy.cmult(z, left.c) + right.c)

    A call adds the nodes that the function would add: values, gradients, random numbers and batches are the same.

    Arguments are expressions, integers (rows, labels, positions), and tuples, lists and ``dy.state`` of these. So are
    results. Parameters and tables may be arguments or come from outside. The function may branch on other arguments, such
    as ``None``, strings and floats.

    The function runs when it meets a new signature: other dims, mini-batch sizes or structure of the arguments, another value
    that it branches on, or a changed variable or attribute that it names. It then runs twice. Anything it does besides
    making nodes (printing, appending to lists) happens only then. ``dy.configure(cells="inline")`` runs it at each call;
    ``cells="check"`` compares.

    Raises CellError, at the line, if the function asks for a value or uses an expression that is not an argument. Errors of
    the function appear when it is recorded, an IndexError for an integer out of range when it is called.
    """
    if _core.is_cell(function):
        raise TypeError(f"[cell] {function.__name__} is a cell already")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise TypeError(f"[cell] a Python function is needed; got {type(function).__name__}") from None
    indices: set[int | str] = set()
    for k, p in enumerate(parameters):
        if _declares_index(p.annotation):
            indices |= {k, p.name}
    return _core.Cell(function, [p.name for p in parameters], indices, _read_by)


def _declares_index(annotation: Any) -> bool:
    return annotation is Index or (isinstance(annotation, str) and re.search(r"\bIndex\b", annotation) is not None)


# ---- structure in one call -------------------------------------------------------------------------------------------


def _list(xs: Any, what: str) -> list[Any]:
    if isinstance(xs, _core.Expression) and not isinstance(xs, _core.LookupParameters):
        raise TypeError(f"[{what}] takes a list; got one expression")
    return xs if type(xs) is list else list(xs)


def _of_a_file(xs: Any) -> bool:
    """Is it a sequence of a length that is not known before a file runs: dynet_lite/onnx?"""
    return type(xs) is not list and (hasattr(xs, "row_of") or hasattr(xs, "lengths"))


def _needs_cell(what: str, c: Any) -> None:
    if not _core.is_cell(c):
        name = getattr(c, "__name__", type(c).__name__)
        raise TypeError(f"[{what}] a cell is needed: write @dy.cell above {name}")


def map(cell: Any, *lists: Any) -> Any:
    """[cell(x, y, ...) for x, y, ... in zip(*lists)], with the loop in C.

    The lists hold expressions, integers, states, or tuples of them. ValueError unless they have the same length. If the first
    argument is not a cell, this is Python's ``map``.
    """
    if not _core.is_cell(cell):
        return builtins.map(cell, *lists)
    found = _core.map_cell(cell, lists)
    if found is not None:
        return found
    if not lists:
        raise TypeError("[map] needs a list besides the cell")
    if any(builtins.map(_of_a_file, lists)):
        from dynet_lite.onnx.makeup import mapped

        return mapped(cell, lists)
    rows = [_list(xs, "map") for xs in lists]
    if any(len(xs) != len(rows[0]) for xs in rows):
        raise ValueError(f"[map] the lists must be of one length; got {', '.join(str(len(xs)) for xs in rows)}")
    found = _core.map_cell(cell, tuple(rows))
    return [cell(*row) for row in zip(*rows, strict=True)] if found is None else found


def scan(cell: Any, init: Any, xs: Iterable[Any], reverse: bool = False) -> tuple[list[Any], Any]:
    """A recurrent layer: ``cell(state, x)`` for each x in turn, starting from `init`. Returns (outputs, last state).

    The cell returns the next state, with the structure of `init` (an expression, a tuple, ``dy.state(h=..., c=...)``), and
    states are the outputs; or it returns a pair (next state, output). ``reverse=True`` starts at the end; outputs[i] still
    belongs to xs[i]. Empty xs give ([], init). Raises CellError if the cell returns anything else.
    """
    _needs_cell("scan", cell)
    if _of_a_file(xs) or (type(xs) is tuple and xs and all(builtins.map(_of_a_file, xs))):
        from dynet_lite.onnx.loops import scan as scan_of_a_file
        from dynet_lite.onnx.makeup import sequences

        found, last = scan_of_a_file(cell, init, xs, bool(reverse))
        return sequences(found), last
    xs = _list(xs, "scan")
    if not _core.cells_by_hand():
        return _core.scan_cell(cell, init, xs, bool(reverse))
    outputs: list[Any] = [None] * len(xs)
    now = init
    for i in reversed(range(len(xs))) if reverse else range(len(xs)):
        given = cell(now, xs[i])
        if _like(given, init):
            now = outputs[i] = given
        elif isinstance(given, tuple) and len(given) == 2 and _like(given[0], init):
            now, outputs[i] = given
        else:
            raise errors.CellError(
                f"[cell {cell.__name__}] is a step of scan(): it gives the next state, which is made up like the one before, or "
                "a pair of that and an output"
            )
    return outputs, now


def _like(x: Any, y: Any) -> bool:
    """Are two values made up in the same way?"""
    if isinstance(x, _core.Expression):
        return isinstance(y, _core.Expression)
    if isinstance(x, _core.State):
        return isinstance(y, _core.State) and dir(x) == dir(y) and all(builtins.map(_like, x, y))
    if isinstance(x, (list, tuple)):
        return type(x) is type(y) and len(x) == len(y) and all(builtins.map(_like, x, y))
    return bool(x is y or (isinstance(x, (int, float, str)) and x == y))


def recurse(cell: Any, inputs: Iterable[Any], children: Iterable[Sequence[int | None]]) -> list[Any]:
    """Results for all nodes of trees or DAGs: ``cell(inputs[i], *results of children[i])`` for each i, in this order.

    children[i] lists the numbers of the nodes that node i reads, in the order in which the cell gets them. They must be
    earlier nodes; ``None`` is passed on as it is. Several nodes may read the same one. inputs[i] may be None. The cell's
    signature says how many children there may be: ``def compose(x, left=None, right=None)`` or ``def gather(x, *below)``.
    Leaves may have another kind of result. To run all trees of a mini-batch in one call, number their nodes consecutively.

    ValueError unless both lists have the same length and all children are earlier nodes.
    """
    _needs_cell("recurse", cell)
    if _of_a_file(children):
        from dynet_lite.onnx.makeup import sequences
        from dynet_lite.onnx.recursion import recursed

        return sequences(recursed(cell, inputs, children))  # type: ignore[no-any-return]
    inputs, below = _list(inputs, "recurse"), _list(children, "recurse")
    if len(below) != len(inputs):
        raise ValueError(f"[recurse] {len(inputs)} inputs and {len(below)} lists of children: one for each is needed")
    if not _core.cells_by_hand():
        return _core.recurse_cell(cell, inputs, below)
    out: list[Any] = []
    for i, x in enumerate(inputs):
        out.append(cell(x, *[None if child is None else out[child] for child in _core.earlier(below[i], i)]))
    return out


# ---- what a cell reads besides its arguments ---------------------------------------------------------------------------


def _read_by(function: Any) -> list[tuple[Any, Any, Any]]:
    """(where, key, value) of the variables and attributes that a function names: when one changes, it is recorded anew.

    Globals and variables of enclosing functions, those of functions that it names in turn, attributes of these objects, of their
    classes, of modules and of the object that it is a method of, items of small lists and dicts. ``where`` is a dict or
    list, what is read like one, or the variable itself (key None).
    """
    read: list[tuple[Any, Any, Any]] = []
    seen: Seen = {}
    if _core.is_method(function):
        _see_object(function.ref(), _names(function.function), read, seen, 0)
        function = function.function
    _see_callable(function, set(), read, seen, 0)
    return [*{(id(where), key): (where, key, value) for where, key, value in read}.values()]


def _is_new(value: Any, names: set[str], seen: Seen) -> bool:
    """Has it not been looked at for all of these names?"""
    before = seen.get(id(value))
    if before is not None and names <= before:
        return False
    seen[id(value)] = names if before is None else names | before
    return True


def _is_ours(name: Any) -> bool:
    """Is it of this package, by the name of its module?"""
    return str(name or "").split(".")[0] == __name__.split(".")[0]


def _names(function: Any) -> set[str]:
    """All names in the code of a function, those of functions and comprehensions inside it too."""
    todo, names = [function.__code__] if hasattr(function, "__code__") else [], set()
    while todo:
        code = todo.pop()
        names |= {*code.co_names}
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return names


def _see_callable(function: Any, names: set[str], read: list[Any], seen: Seen, depth: int) -> None:
    """What is called: a function, a method with its object, a partial, or an object that can be called."""
    if isinstance(function, (types.FunctionType, _core.told_type)):
        _see_function(function, read, seen)
    elif _core.is_cell(function):
        function = getattr(function, "cell", function).function
        _see_callable(function.function if _core.is_method(function) else function, names, read, seen, depth)
    elif isinstance(function, types.MethodType):
        _see_object(function.__self__, names | _names(function.__func__), read, seen, depth)
        _see_function(function.__func__, read, seen)
    elif isinstance(function, functools.partial):
        _see_callable(function.func, names, read, seen, depth)
        names = names | _names(function.func)
        for given in (function.args, function.keywords):
            _see_object(given, names, read, seen, depth)
    else:
        _see_object(function, names, read, seen, depth)


def _see_function(function: Any, read: list[Any], seen: Seen) -> None:
    if not isinstance(function, types.FunctionType) or _is_ours(function.__module__):
        return
    names = _names(function)
    if not _is_new(function, names, seen):
        return
    for name in sorted(names & set(function.__globals__)):
        _see(function.__globals__, name, function.__globals__[name], names, read, seen, 0)
    for variable in function.__closure__ or ():
        try:
            value = variable.cell_contents
        except ValueError:
            continue
        _see(variable, None, value, names, read, seen, 0)
    for defaults in (function.__defaults__, function.__kwdefaults__):
        _see_object(defaults, names, read, seen, 0)


def _see(where: Any, key: Any, value: Any, names: set[str], read: list[Any], seen: Seen, depth: int) -> None:
    if isinstance(value, types.ModuleType):
        _see_module(value, names, read, seen, depth)
        return
    read.append((where, key, value))
    _see_callable(value, names, read, seen, depth + 1)


def _see_module(module: Any, names: set[str], read: list[Any], seen: Seen, depth: int) -> None:
    """Its variables. Into what they are goes nobody where the module is not the user's."""
    inside = vars(module)
    if _is_ours(module.__name__) or inside.get("Expression") is _core.Expression or not _is_new(module, names, seen):
        return
    top = module.__name__.split(".")[0]
    users = top not in sys.stdlib_module_names and "-packages" not in str(inside.get("__file__"))
    for name in sorted(names & set(inside)):
        if users:
            _see(inside, name, inside[name], names, read, seen, depth)
        elif not isinstance(inside[name], types.ModuleType):
            read.append((inside, name, inside[name]))


def _see_object(value: Any, names: set[str], read: list[Any], seen: Seen, depth: int) -> None:
    """Items, or attributes that the function names."""
    if depth > _DEEPEST or isinstance(value, _core.Expression) or not _is_new(value, names, seen):
        return
    if type(value) in (list, tuple, dict):
        if len(value) <= _MOST_ITEMS:
            for key, one in value.items() if type(value) is dict else enumerate(value):
                _see(value, key, one, names, read, seen, depth)
        if type(value) is list:
            read.append((value, len(value), _core.MISSING))
        return
    if isinstance(value, type):
        for name in sorted(names):
            _see_in_class(value, value, name, names, read, seen, depth)
        return
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is not dict:
        attributes = None
        if not type(value).__flags__ & _HEAP_TYPE:
            return
    for name in sorted(names | {"__call__"}):
        if attributes is not None and name in attributes:
            _see(attributes, name, attributes[name], names, read, seen, depth)
        elif (
            _see_in_class(type(value), value, name, names, read, seen, depth)
            and name in names
            and attributes is not None
        ):
            read.append((attributes, name, _core.MISSING))


def _see_in_class(kind: type, value: Any, name: str, names: set[str], read: list[Any], seen: Seen, depth: int) -> bool:
    """An attribute that a class gives to the object, or to itself. False: there is none."""
    owner = next((c for c in kind.__mro__ if name in vars(c)), None)
    if owner is None:
        return False
    if not owner.__flags__ & _HEAP_TYPE or _is_ours(owner.__module__):  # it does not change
        return True
    inside = vars(owner)
    found = inside[name]
    if isinstance(found, types.MemberDescriptorType):
        if value is not kind:
            slots = _Slots(value)
            _see(slots, name, slots.get(name), names, read, seen, depth)
        return True
    function = found
    if isinstance(found, property):
        function = found.fget
    elif isinstance(found, (staticmethod, classmethod)):
        function = found.__func__
    elif isinstance(found, (functools.cached_property, functools.partialmethod)):
        function = found.func
    elif _core.is_cell(found):
        function = found.function
    if not isinstance(function, types.FunctionType):
        _see(inside, name, found, names, read, seen, depth)
        return True
    read.append((inside, name, found))
    if not _is_ours(function.__module__):
        more = _names(function) - names  # one of its own that is called
        _see_function(function, read, seen)
        if more and depth < _DEEPEST:
            _see_object(value, more, read, seen, depth + 1)
    return True


class _Slots:
    """Attributes of an object that keeps them in slots, by name. Does not keep the object in memory if that can be."""

    def __init__(self, value: Any) -> None:
        try:
            self._ref: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self._ref(), name)
        except AttributeError:
            raise KeyError(name) from None

    def get(self, name: str) -> Any:
        """MISSING where there is none."""
        try:
            return self[name]
        except KeyError:
            return _core.MISSING
