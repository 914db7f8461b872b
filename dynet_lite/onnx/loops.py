"""Functions of one's own over sequences of a length that is not known before the file runs: `scan` becomes ONNX's Scan.

The function is called once, with stand-ins for a state and a step; what it builds from them is the body. recursion.py uses the
same parts. Who may import: this package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dynet_lite._core import Expression

from .makeup import alike, flat, like, same_dims
from .symbolic import Chosen, Get, Number, Sequence, trace
from .writer import Unsupported, Value, Writer


def scan(f: Callable[[Any, Any], Any], init: Any, xs: Any, reverse: bool = False) -> tuple[Any, Any]:
    """A recurrent layer: f(state, x) for each step x in turn, starting from `init`. Returns (outputs, last state).

    f: returns the next state, which is then the output, too; or a pair of next state and output
    init: an expression, or a tuple, list, dict or dy.state of them; all states are arranged like it
    xs: a Sequence, an input of Ids with a length, or a tuple of these with one length
    reverse: begin at the end; each output still belongs to its step

    ValueError if f returns something else, or a state of other dims.
    """
    outputs, last, _ = scanned(f, init, xs, reverse)
    return outputs, last


def scanned(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any,
    reverse: bool,
    begin: Callable[[Any], Any] | None = None,
    lengths: Any = None,
) -> tuple[Any, Any, bool]:
    """What `scan` gives, and whether f gives an output besides the state.

    begin: does what f does, for the first step, where there is no state yet; then `init` says what states are made up of.
    """
    if lengths is not None:
        raise Unsupported("[onnx] scan: `lengths` has no form in a file")
    steps = steps_of("scan", xs)
    (state, states), (x, row) = stand_ins(init), stand_ins(xs)
    given = f(state, x)
    pair = isinstance(given, tuple) and len(given) == 2 and not alike(given, init) and alike(given[0], init)
    after, out = given if pair else (given, given)
    if not alike(after, init):
        raise ValueError(
            "[onnx] scan: the function gives the next state, made up like the first one, or a pair of that and an output"
        )
    states_after = same_dims("scan", init, after)
    if any(e.batch_size != 1 for e in flat(out)):
        raise ValueError("[onnx] scan: the function gives an output with a mini-batch")
    bodies = [Body([*states, *row], [*states_after, *flat(out)])]
    if begin is not None:
        x, row = stand_ins(xs)
        given = begin(x)
        after, first_out = given if pair else (given, given)
        bodies.append(Body(row, [*same_dims("scan", init, after), *same_dims("scan", out, first_out)]))
    whole = Several(
        [*flat(init), *(s.e for s in steps), *(e for body in bodies for e in body.outer)],
        lambda w, get: _scan(w, get, flat(init), steps, bodies, reverse),
    )
    first = steps[0]
    last = like(init, (whole.place(e.shape, 1, "", i) for i, e in enumerate(flat(init))))
    made = (
        Sequence(whole.place(e.shape, first.e.batch_size, first.symbol, len(states) + i), first.symbol, first.backwards)
        for i, e in enumerate(flat(out))
    )
    return like(out, made), last, pair


def _scan(w: Writer, get: Get, init: list[Any], steps: list[Steps], bodies: list[Body], reverse: bool) -> list[str]:
    """The Scan: its last states and its outputs. bodies: one for each step, and perhaps another one for the first step."""
    body, *first = bodies
    start, rows = [get(e).name for e in init], [(get(s.e).name, s.numbers) for s in steps]
    results, backwards = [e.shape for e in body.results], reverse != steps[0].backwards
    if not first:
        return w.scan(start, rows, lambda names: body.write(w, names), results, backwards)

    def step(names: list[str]) -> list[str]:
        begun, *rest = names  # 0 at the first step, then 1
        found = w.cases(
            w.op("Cast", begun, to=7),
            {0: lambda: first[0].write(w, rest[len(start) :])},
            lambda: body.write(w, rest),
            len(results),
        )
        return [w.op("Identity", w.number(1)), *found]

    return w.scan([w.number(0), *start], rows, step, [(), *results], backwards)[1:]


class Body:
    """What was built from stand-ins: written again inside a Scan or a Loop."""

    def __init__(self, stand_ins: list[Expression], results: list[Expression]) -> None:
        self.stand_ins, self.results = stand_ins, results
        self.outer: list[int] = trace().outside(stand_ins, results)

    def write(self, w: Writer, names: list[str]) -> list[str]:
        """The nodes of the body with these in the place of the stand-ins; the names of the results."""
        given = [(e, Value(name, e.shape)) for e, name in zip(self.stand_ins, names, strict=True)]
        return [w.op("Identity", value.name) for value in w.inside(given, self.results)]


class Several:
    """Expressions that one piece of the file computes together, when the first of them is needed."""

    def __init__(self, needs: list[Expression | int], write: Callable[[Writer, Get], list[str]]) -> None:
        self.needs, self.write, self.names = tuple(needs), write, list[str]()

    def place(self, dims: tuple[int, ...], batch: int, symbol: str, k: int) -> Expression:
        def name(w: Writer, get: Get) -> str:
            self.names = self.names or self.write(w, get)
            return self.names[k]

        return trace().place(dims, batch, symbol, self.needs, name)


class Steps(NamedTuple):
    """The steps of a sequence, or numbers for them: an expression that stands for all."""

    e: Expression
    symbol: str
    backwards: bool
    numbers: bool


def steps_of(what: str, xs: Any) -> list[Steps]:
    """Those in xs, which are of one length."""
    given = flat(xs)
    if not given or not all(hasattr(s, "lengths") for s in given):
        raise TypeError(f"[onnx] {what}: a sequence, or a tuple of sequences, is needed")
    if len({length for s in given for length in s.lengths}) > 1:
        raise ValueError(f"[onnx] {what}: the sequences have the lengths {', '.join(s.symbol for s in given)}")
    return [
        Steps(s.steps.e, s.symbol, False, True) if isinstance(s, Chosen) else Steps(s.e, s.symbol, s.backwards, False)
        for s in given
    ]


def stand_ins(x: Any) -> tuple[Any, list[Expression]]:
    """What a function gets for one step of sequences, or for a state; and the expressions in it, in order."""

    def written(w: Writer, get: Get) -> str:
        raise RuntimeError("[onnx] a state or a step is used outside of the function that got it")

    def place(dims: tuple[int, ...]) -> Expression:
        return trace().place(dims, 1, "", (), written)

    found: list[Any] = []
    for leaf in flat(x):
        if isinstance(leaf, Chosen):
            found.append(Number(place((1,)), leaf.spec.absent))
        else:
            found.append(place(leaf.e.shape if isinstance(leaf, Sequence) else leaf.shape))
    return like(x, iter(found)), [one.e if isinstance(one, Number) else one for one in found]
