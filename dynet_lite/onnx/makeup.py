"""What states are made up of: an expression, or tuples, lists, dicts and dy.state of some, and the sequences that come of them.

Who may import: this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dynet_lite import _core
from dynet_lite._core import Expression, State

from .sizes import cut, with_dims
from .symbolic import Get, Number, Sequence, node_of, trace
from .writer import Unsupported, Writer


def parts(x: Any) -> list[Any] | None:
    """What x is made up of; None of an expression, a sequence or numbers that choose rows."""
    if isinstance(x, States):
        return parts(x.made_up)
    if isinstance(x, (Expression, Number)) or hasattr(x, "symbol"):
        return None
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, State):
        return [getattr(x, name) for name in dir(x)]
    if isinstance(x, (tuple, list)):
        return list(x)
    raise TypeError(
        f"[onnx] an expression, or a tuple, list, dict or dy.state of some, is needed; got {type(x).__name__}"
    )


def flat(x: Any) -> list[Any]:
    """All leaves, in order."""
    own = parts(x)
    return [x] if own is None else [leaf for part in own for leaf in flat(part)]


def like(x: Any, leaves: Iterator[Any]) -> Any:
    """Made up as x, of other leaves."""
    own = parts(x)
    if own is None:
        return next(leaves)
    if isinstance(x, States):
        return like(x.made_up, leaves)
    new = [like(part, leaves) for part in own]
    if isinstance(x, dict):
        return dict(zip(x, new, strict=True))
    if isinstance(x, State):
        made = dict(zip(dir(x), new, strict=True))
        return _core.state_of({name: made[name] for name in _core.state_names(x)})
    return type(x)(*new) if hasattr(x, "_fields") else type(x)(new)


def alike(x: Any, y: Any) -> bool:
    """Are two values made up in the same way?"""
    if isinstance(x, Expression) or isinstance(y, Expression):
        return isinstance(x, Expression) and isinstance(y, Expression)
    if type(x) is not type(y) or names(x) != names(y):
        return False
    a, b = parts(x), parts(y)
    return a is not None and b is not None and len(a) == len(b) and all(map(alike, a, b))


def names(x: Any) -> list[str] | None:
    """Those of the parts of a dict, or of a dy.state, whose names may come in any order."""
    if isinstance(x, State):
        return dir(x)
    return list(x) if isinstance(x, dict) else None


def same_dims(what: str, before: Any, after: Any) -> list[Expression]:
    """The parts of a state with the dims that it had before. ValueError unless it stays as large as it was."""
    for x, y in zip(flat(before), flat(after), strict=True):
        if (cut(x.shape), x.batch_size) != (cut(y.shape), 1):
            raise ValueError(f"[onnx] {what}: a state has the dims {x.shape} and then {y.shape}, without a mini-batch")
    return [with_dims(y, tuple(x.shape)) for x, y in zip(flat(before), flat(after), strict=True)]


class States:
    """States, one per step, of a length that is not known: what dy.map, dy.scan and dy.recurse give in place of a list.

    [0] and [-1] are the first and the last, [::-1] goes backwards, `map` does something to each; `.h` is the sequence of all h.
    """

    def __init__(self, made_up: Any) -> None:
        self.made_up = made_up  # as a state is, of sequences

    @property
    def steps(self) -> Any:
        """A state whose parts have the steps for a mini-batch."""
        return like(self.made_up, (leaf.steps for leaf in flat(self.made_up)))

    @property
    def lengths(self) -> set[tuple[str, bool]]:
        """The lengths of all sequences, and whether they go backwards."""
        return {length for leaf in flat(self.made_up) for length in leaf.lengths}

    def map(self, f: Callable[..., Any], *others: Any) -> Any:
        """f of each state; of more sequences of the same length f(x, y, ...)."""
        return mapped(f, (self, *others))

    def __getitem__(self, index: Any) -> Any:
        found = like(self.made_up, (leaf[index] for leaf in flat(self.made_up)))
        return States(found) if isinstance(index, slice) else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "made_up":
            raise AttributeError(name)
        part = self.made_up[name] if isinstance(self.made_up, dict) else getattr(self.made_up, name)
        return part if parts(part) is None else States(part)

    def __iter__(self) -> Iterator[Any]:
        raise Unsupported("[onnx] states of unknown length cannot be iterated over: use map(f), .h, [0] or [-1]")

    def __len__(self) -> int:
        raise Unsupported("[onnx] how many states there are is not known before the file runs")


def sequences(made_up: Any) -> Any:
    """A sequence as it is; of anything else made up of sequences States."""
    return made_up if isinstance(made_up, Sequence) else States(made_up)


def mapped(f: Callable[..., Any], lists: tuple[Any, ...]) -> Any:
    """f of each step of all of them, which are of one length: a sequence, or States."""
    for one in lists:
        if not hasattr(one, "lengths"):
            raise TypeError(f"[onnx] map: sequences are needed; got {type(one).__name__}")
    lengths = {length for one in lists for length in one.lengths}
    if len(lengths) > 1:
        given = " and ".join(symbol + ", backwards" * back for symbol, back in sorted(lengths))
        raise ValueError(f"[onnx] map: the sequences have the lengths {given}")
    ((symbol, backwards),) = lengths
    steps = [like(one.steps, (stand_in(e, symbol) for e in flat(one.steps))) for one in lists]
    own = [e.e if isinstance(e, Number) else e for e in flat(steps)]
    leaf, given = own[0], f(*steps)
    for e in flat(given):
        if not isinstance(e, Expression):
            raise TypeError(f"[onnx] map: the function gives an expression for each step; got {type(e).__name__}")
    trace().maps.append(([node_of(e) for e in own], [node_of(e) for e in flat(given)], symbol))
    return sequences(like(given, (Sequence(repeated(e, leaf, symbol), symbol, backwards) for e in flat(given))))


def stand_in(step: Any, symbol: str) -> Any:
    """What a function gets in the place of each step: a node of its own, so that it is seen what comes of it."""
    if isinstance(step, Number):
        return Number(stand_in(step.e, symbol), step.absent)
    return trace().place(step.shape, step.batch_size, symbol, (step,), lambda w, get: get(step).name)


def repeated(e: Expression, step: Expression, symbol: str) -> Expression:
    """The same for each step, where it does not depend on any."""
    if e.batch_size == step.batch_size:
        return e
    if e.batch_size != 1:
        raise Unsupported(f"[onnx] map: the function gives a mini-batch of {e.batch_size} for each step")

    def write(w: Writer, get: Get) -> str:
        return w.repeated(get(e).name, e.shape, get(step).name)

    return trace().place(e.shape, step.batch_size, symbol, (e, step), write)
