"""Cells: functions over expressions that are recorded once, and structure that is given in one call.

The compiled side records and repeats (cext/bindings/templates.pxi, recording.pxi, bulk.pxi). Here is what users call, and the
loops in Python for where nodes are made one by one. What a cell is taken to read besides its arguments: reading.py.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynet_lite import _core
from dynet_lite.reading import read_by

__all__ = ["Index", "cell", "map", "recurse", "scan", "state"]


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

    Arguments are expressions, integers (rows, labels, positions), and tuples, lists, dicts, dataclasses and ``dy.state`` of
    these. So are results. Parameters and tables may be arguments or come from outside. The function may branch on other
    arguments, such as ``None``, strings, floats and objects.

    The function runs when it meets a new signature: other dims, mini-batch sizes or structure of the arguments, another value
    that it branches on, or a changed variable or attribute that it names, of an argument too. It then runs twice. Anything it
    does besides making nodes (printing, appending to lists) happens only then. ``dy.configure(cells="inline")`` runs it at each call;
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
        if declares_index(p.annotation):
            indices |= {k, p.name}
    return _core.Cell(function, [p.name for p in parameters], indices, read_by)


def declares_index(annotation: Any) -> bool:
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

    The lists hold what cells take: expressions, integers, states, tuples of them. ValueError unless they have the same length.
    The results of recurrent builders over many sentences (``lengths``) give such a list again.
    If a call fails, the nodes of those before are taken back. If the first argument is not a cell, this is Python's ``map``.
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


def scan(
    cell: Any, init: Any, xs: Iterable[Any], reverse: bool = False, *, lengths: Iterable[int] | None = None
) -> tuple[list[Any], Any]:
    """A recurrent layer: ``cell(state, x)`` for each x in turn, starting from `init`. Returns (outputs, last state).

    The cell returns the next state, with the structure of `init` (an expression, a tuple, a dict, ``dy.state(h=h, c=c)``), and
    states are the outputs; or it returns a pair (next state, output). ``reverse=True`` starts at the end; outputs[i] still
    belongs to xs[i]. Empty xs give ([], init). Raises CellError if the cell returns anything else.

    lengths: the xs are so many sentences, one behind the other. Each begins at `init`, and a list of their last states takes
    the place of the last state. ValueError unless the sum is the number of xs.
    """
    outputs, last, _ = scanned(cell, init, xs, reverse, lengths)
    if type(outputs) is not list:
        from dynet_lite.onnx.makeup import sequences

        outputs = sequences(outputs)
    return outputs, last


def scanned(cell: Any, init: Any, xs: Any, reverse: bool, lengths: Iterable[int] | None) -> tuple[list[Any], Any, bool]:
    """What ``scan`` gives, and whether the cell gives outputs besides the state."""
    _needs_cell("scan", cell)
    if _of_a_file(xs) or (type(xs) is tuple and xs and all(builtins.map(_of_a_file, xs))):
        from dynet_lite.onnx.loops import scanned as scanned_in_a_file

        return scanned_in_a_file(cell, init, xs, bool(reverse), lengths=lengths)
    xs = _list(xs, "scan")
    if not _core.cells_by_hand():
        return _core.scan_cell(cell, init, xs, bool(reverse), lengths)
    return _scanned_by_hand(cell, init, xs.copy(), reverse, lengths)


def _scanned_by_hand(
    cell: Any, init: Any, xs: list[Any], reverse: bool, lengths: Iterable[int] | None
) -> tuple[list[Any], Any, bool]:
    outputs: list[Any] = [None] * len(xs)
    ends = _core.sentence_ends(lengths, len(xs), "scan")
    last, paired = [], False
    for begin, end in zip([0, *ends], ends, strict=False):
        now = init
        for i in reversed(range(begin, end)) if reverse else range(begin, end):
            given = cell(now, xs[i])
            if made_alike(given, init):
                now = outputs[i] = given
            elif isinstance(given, tuple) and len(given) == 2 and made_alike(given[0], init):
                (now, outputs[i]), paired = given, True
            else:
                raise _core.not_a_step(cell)
        last.append(now)
    return outputs, last[0] if lengths is None else last, paired


def made_alike(x: Any, y: Any) -> bool:
    """Are two values made up in the same way?"""
    if isinstance(x, _core.Expression):
        return isinstance(y, _core.Expression)
    named = _core.named_parts(x)
    if named is not None:
        others = _core.named_parts(y) if type(x) is type(y) else {}
        return (
            others is not None and named.keys() == others.keys() and all(made_alike(named[n], others[n]) for n in named)
        )
    if isinstance(x, (list, tuple)):
        return x.__class__ is y.__class__ and len(x) == len(y) and all(builtins.map(made_alike, x, y))
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
