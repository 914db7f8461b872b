"""Functions of one's own over sequences and trees that are not known before the file runs: `scan` becomes ONNX's Scan, `recurse`
a Loop over tables of states.

The function is called once, with stand-ins for a state and a step; what it builds from them is the body. Who may import: this
package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dynet_lite._core import Expression

from .symbolic import Children, Chosen, Get, Sequence, trace
from .writer import Unsupported, Value, Writer


def scan(f: Callable[[Any, Any], Any], init: Any, xs: Any, reverse: bool = False) -> tuple[Any, Any]:
    """A recurrent layer: f(state, x) for each step x in turn, from the state `init`. (outputs, last state).

    f gives the next state, made up as `init` is (an expression, or a tuple, list or dict of them), and each state is an
    output; or a pair of that and an output. xs: a Sequence, or a tuple of some of one length. reverse: begins at the
    end; outputs belong to their steps all the same. Raises ValueError where f gives something else, or a state of other
    dims.
    """
    steps = _steps("scan", xs)
    state, x = _stand_ins(init), _stand_ins(xs)
    given = f(state, x)
    pair = isinstance(given, tuple) and len(given) == 2 and not _alike(given, init) and _alike(given[0], init)
    after, out = given if pair else (given, given)
    if not _alike(after, init):
        raise ValueError(
            "[onnx] scan: the function gives the next state, made up like the first one, or a pair of that and an output"
        )
    _same_dims("scan", init, after)
    body = _Body([*_flat(state), *_flat(x)], [*_flat(after), *_flat(out)])
    states = len(_flat(init))

    def write(w: Writer, get: Get) -> list[str]:
        def inside(names: list[str]) -> list[str]:
            return body.write(w, names)

        start, rows = [get(e).name for e in _flat(init)], [get(s.e).name for s in steps]
        return w.scan(start, rows, inside, len(body.results) - states, backwards=reverse != steps[0].backwards)

    whole, size = _Several([*_flat(init), *(s.e for s in steps), *body.outer], write), steps[0].e.batch_size
    last = _like(init, (whole.place(e.shape, 1, "", i) for i, e in enumerate(_flat(init))))
    made = (
        Sequence(whole.place(e.shape, size, steps[0].symbol, states + i), steps[0].symbol, steps[0].backwards)
        for i, e in enumerate(_flat(out))
    )
    return _like(out, made), last


def recurse(f: Callable[..., Any], xs: Any, children: Any, absent: Any) -> Any:
    """States of the nodes of trees or DAGs: f(x, *states of the children) for each node, in order; a Sequence, or made up of some
    as the states are.

    xs: the inputs of the nodes, a Sequence or a tuple of some. children: an input declared as onnx.Children with a
    number; f gets as many states, `absent` for a child that is not there. Raises ValueError where f gives no state made
    up like `absent`.
    """
    if not isinstance(children, Chosen) or not isinstance(children.spec, Children):
        raise TypeError(f"[onnx] recurse: an input declared as onnx.Children is needed; got {type(children).__name__}")
    steps, spec = _steps("recurse", xs), children.spec
    if steps[0].symbol != spec.length or steps[0].backwards:
        raise ValueError(f"[onnx] recurse: the inputs have the length {steps[0].symbol}, the children {spec.length}")
    if not isinstance(spec.most, int):
        raise Unsupported(f"[onnx] recurse: needs a number of children, such as onnx.Children({spec.length!r}, 2)")
    most = spec.most
    x, below = _stand_ins(xs), [_stand_ins(absent) for _ in range(most)]
    after = f(x, *below)
    if not _alike(after, absent):
        raise ValueError("[onnx] recurse: the function gives a state that is made up like `absent`")
    _same_dims("recurse", absent, after)
    body = _Body([*_flat(x), *(e for state in below for e in _flat(state))], _flat(after))

    def write(w: Writer, get: Get) -> list[str]:
        inputs, nobody = (
            [get(s.e).name for s in steps],
            [w.op("Unsqueeze", get(e).name, w.ints(0)) for e in _flat(absent)],
        )
        rows, count = w.op("Add", children.name, w.ints(1)), w.op("Shape", inputs[0], start=0, end=1)

        def table(first: str, rank: int) -> str:  # a row for nobody, which repeats until nodes take their rows
            size = w.op("Concat", w.op("Add", count, w.ints(1)), w.ints(*[1] * rank), axis=0)
            return w.op("Expand", first, size)

        def turn(i: str, tables: list[str]) -> list[str]:
            mine = w.op("Gather", rows, i, axis=0)
            own = [w.op("Gather", name, i, axis=0) for name in inputs]
            theirs = [w.op("Gather", t, mine, axis=0) for t in tables]
            states = [w.op("Squeeze", w.slice(t, 0, j, j + 1), w.ints(0)) for j in range(most) for t in theirs]
            at = w.op("Reshape", w.op("Add", i, w.ints(1)), w.ints(1, 1))
            new = body.write(w, [*own, *states])
            return [w.op("ScatterND", t, at, w.op("Unsqueeze", v, w.ints(0))) for t, v in zip(tables, new, strict=True)]

        empty = [table(name, len(e.shape)) for name, e in zip(nobody, _flat(absent), strict=True)]
        found = w.loop(w.op("Squeeze", count), empty, turn)
        return [w.op("Slice", t, w.ints(1), w.ints(2**31), w.ints(0)) for t in found]

    whole = _Several([*_flat(absent), *(s.e for s in steps), *body.outer], write)
    size, symbol = steps[0].e.batch_size, steps[0].symbol
    made = (Sequence(whole.place(e.shape, size, symbol, i), symbol) for i, e in enumerate(_flat(after)))
    return _like(after, made)


class _Body:
    """What was built from stand-ins: written again inside a Scan or a Loop."""

    def __init__(self, stand_ins: list[Expression], results: list[Expression]) -> None:
        self.stand_ins, self.results = stand_ins, results
        self.outer: list[int] = trace().outside(stand_ins, results)

    def write(self, w: Writer, names: list[str]) -> list[str]:
        """The nodes of the body with these in the place of the stand-ins; the names of the results."""
        given = [(e, Value(name, e.shape)) for e, name in zip(self.stand_ins, names, strict=True)]
        return [w.op("Identity", value.name) for value in w.inside(given, self.results)]


class _Several:
    """Expressions that one piece of the file computes together, when the first of them is needed."""

    def __init__(self, needs: list[Expression | int], write: Callable[[Writer, Get], list[str]]) -> None:
        self.needs, self.write, self.names = tuple(needs), write, list[str]()

    def place(self, dims: tuple[int, ...], batch: int, symbol: str, k: int) -> Expression:
        def name(w: Writer, get: Get) -> str:
            self.names = self.names or self.write(w, get)
            return self.names[k]

        return trace().place(dims, batch, symbol, self.needs, name)


# ---- what states are made up of ----------------------------------------------------------------------------------------


def _parts(x: Any) -> list[Any] | None:
    """What x is made up of; None of an expression or a sequence."""
    if isinstance(x, (Expression, Sequence)):
        return None
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, (tuple, list)):
        return list(x)
    raise TypeError(f"[onnx] an expression, or a tuple, list or dict of some, is needed; got {type(x).__name__}")


def _flat(x: Any) -> list[Any]:
    parts = _parts(x)
    return [x] if parts is None else [leaf for part in parts for leaf in _flat(part)]


def _like(x: Any, leaves: Iterator[Any]) -> Any:
    """Made up as x, of other leaves."""
    parts = _parts(x)
    if parts is None:
        return next(leaves)
    new = [_like(part, leaves) for part in parts]
    if isinstance(x, dict):
        return dict(zip(x, new, strict=True))
    return type(x)(*new) if hasattr(x, "_fields") else type(x)(new)


def _alike(x: Any, y: Any) -> bool:
    if isinstance(x, Expression) or isinstance(y, Expression):
        return isinstance(x, Expression) and isinstance(y, Expression)
    if type(x) is not type(y) or isinstance(x, dict) and list(x) != list(y):
        return False
    a, b = _parts(x), _parts(y)
    return a is not None and b is not None and len(a) == len(b) and all(map(_alike, a, b))


def _same_dims(what: str, before: Any, after: Any) -> None:
    for x, y in zip(_flat(before), _flat(after), strict=True):
        if (x.shape, x.batch_size) != (y.shape, 1):
            raise ValueError(f"[onnx] {what}: a state has the dims {x.shape} and then {y.shape}, without a mini-batch")


def _steps(what: str, xs: Any) -> list[Sequence]:
    steps = _flat(xs)
    if not steps or not all(isinstance(s, Sequence) for s in steps):
        raise TypeError(f"[onnx] {what}: a sequence, or a tuple of sequences, is needed")
    if len({(s.symbol, s.backwards) for s in steps}) > 1:
        raise ValueError(f"[onnx] {what}: the sequences have the lengths {', '.join(s.symbol for s in steps)}")
    return steps


def _stand_ins(x: Any) -> Any:
    def written(w: Writer, get: Get) -> str:
        raise RuntimeError("[onnx] a state or a step is used outside of the function that got it")

    return _like(
        x,
        (
            trace().place(leaf.e.shape if isinstance(leaf, Sequence) else leaf.shape, 1, "", (), written)
            for leaf in _flat(x)
        ),
    )
