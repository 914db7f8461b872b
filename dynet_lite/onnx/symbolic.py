"""What a traced function gets: named inputs, and sequences whose length is not known before the file runs.

A sequence stands in the traced graph as one expression whose mini-batch is the steps; so what is done to each step is
ordinary nodes. What looks along the sequence (recurrent builders, sums, windows) is a node of its own that knows how to
write itself. Who may import: this package; builders see a sequence by its methods `transduced` and `joined`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Sequence_
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import _core
from dynet_lite._core import Expression, LookupParameters

from .recurrent import Layers, has_op
from .sizes import Size, cut, longer, number, with_dims
from .writer import Dims, Shown, Unsupported, Value, Writer

Get = Callable[[Expression], Value]
Write = Callable[[Writer, Get], str]


@dataclass(frozen=True)
class Input:
    """An input of numbers.

    shape: in dynet_lite's order
    length: for a sequence, the name of its length
    batch: the size of a mini-batch, or its name
    """

    shape: tuple[int, ...]
    length: str = ""
    batch: int | str = 1

    def __post_init__(self) -> None:
        sizes = self.shape if isinstance(self.shape, (tuple, list)) else (self.shape,)
        if not sizes or not all(hasattr(n, "__index__") for n in sizes):
            raise TypeError(f"[onnx] Input: a shape such as (4,) is needed; got {self.shape!r}")
        object.__setattr__(self, "shape", tuple(map(index, sizes)))
        if hasattr(self.batch, "__index__"):
            object.__setattr__(self, "batch", index(self.batch))
        elif not isinstance(self.batch, str) or not self.batch:
            raise TypeError(f"[onnx] Input: batch is a size or the name of one; got {self.batch!r}")


@dataclass(frozen=True)
class Ids:
    """An input of whole numbers that choose rows of tables.

    Ids() is one number, Ids("n") a sequence of n. Ids("n", "letters") is n sequences, padded to the longest, [n,
    letters]. The file then has one more input, NAME_length, with the length of each (at least 1).

    absent: also allow -1, which stands for zeros
    """

    length: str = ""
    inner: str = ""
    absent: bool = False

    def __post_init__(self) -> None:
        if self.absent and (self.inner or not self.length):
            raise ValueError("[onnx] Ids: absent=True goes with a sequence of numbers")


@dataclass(frozen=True)
class Children:
    """An input with the children of the n nodes of a tree, [n, most]: numbers of earlier nodes, -1 for none.

    most: the largest number of children, or a name if it is not known
    counts: for dy.recurse, the numbers of children that a node may have; by default all up to `most`
    """

    length: str
    most: int | str = "children"
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if hasattr(self.most, "__index__"):
            object.__setattr__(self, "most", index(self.most))
        most = self.most if isinstance(self.most, int) else 0
        if self.counts and (0 not in self.counts or not all(0 <= k <= most for k in self.counts)):
            raise ValueError(f"[onnx] Children: counts must be 0 and other numbers up to {most}; got {self.counts}")


Spec = Input | Ids | Children


def node_of(e: Expression | int) -> int:
    """The number of a node."""
    i: int = e if isinstance(e, int) else _core.expression_node(e)[1]
    return i


class Trace:
    """What is known while a function runs: how special nodes write themselves, and how long the named lengths pretend to be."""

    def __init__(self) -> None:
        self.special: dict[int, tuple[tuple[Expression | int, ...], Write, str, Shown | None]] = {}
        self.kept: list[Expression] = []
        self.sizes: dict[str, int] = {}
        self.symbols: dict[int, str] = {}  # of all sizes that stand for a name
        # Of each map: what stands for the steps, what was made of them, the name of their length.
        self.maps: list[tuple[list[int], list[int], str]] = []

    def size(self, symbol: str) -> int:
        """A size for a named length; no two are equal, and none is near another."""
        return self.sizes.setdefault(symbol, 61 + 64 * len(self.sizes))

    def uses(self, program: Any, i: int) -> list[int]:
        """The nodes that a node is computed from."""
        if i in self.special:
            return [node_of(e) for e in self.special[i][0]]
        return [*program[i][4], *([program[i][5]] if program[i][0] == "output" else [])]

    def outside(self, given: list[Expression], results: list[Expression]) -> list[int]:
        """The nodes that the results are computed from and that do not depend on `given`, at the border."""
        inside, todo = set(map(node_of, given)), list(map(node_of, results))
        program = _core.graph_program(_core.cg())
        first = min(inside)
        for i in range(first, len(program)):  # nodes name earlier ones
            if any(j in inside for j in self.uses(program, i)):
                inside.add(i)
        border: dict[int, None] = {}
        seen: set[int] = set()
        while todo:
            i = todo.pop()
            if i in seen:
                continue
            seen.add(i)
            if i in inside:
                todo += self.uses(program, i)
            else:
                border[i] = None
        return list(border)

    def place(
        self, dims: Dims, batch: int | Size, symbol: str, needs: tuple[Expression | int, ...], write: Write,
        shown: Shown | None = None,
    ) -> Expression:  # fmt: skip
        """An expression that the file computes as `write` says. shown: its dims in the file, where it cannot be computed with."""
        for one in needs:
            node_of(one)  # parameters enter the graph when they are used: they stand before what needs them
        e = dy.zeros(dims, batch_size=number(batch))
        if symbol and batch != 1:
            self.symbols.setdefault(number(batch), symbol)
        self.enter(e, needs, write, symbol, shown)
        return e

    def enter(
        self, e: Expression, needs: tuple[Expression | int, ...], write: Write, symbol: str, shown: Shown | None = None
    ) -> None:
        """Notes how an expression is written."""
        self.special[node_of(e)] = needs, write, symbol, shown
        self.kept.append(e)


class _Here(threading.local):
    """What each thread traces: several may export at the same time."""

    trace: Trace | None = None


_here = _Here()


@contextmanager
def tracing() -> Iterator[Trace]:
    """A new trace, which is that of this thread meanwhile."""
    before, _here.trace = _here.trace, Trace()
    try:
        yield _here.trace
    finally:
        _here.trace = before


def trace() -> Trace:
    if _here.trace is None:
        raise RuntimeError("[onnx] this works only inside a function that onnx.export traces")
    return _here.trace


class Sequence:
    """Vectors, one per step, whose number is not known before the file runs. They take the place of a list of
    expressions.

    `builder.initial_state().transduce(xs)` and `BiRNNBuilder.transduce(xs)` take one and return one. xs[0] and xs[-1]
    are the first and the last step, xs[::-1] goes backwards. `map` applies a function to each step; `sum`, `average`
    and `max` combine all steps. You cannot iterate over it or take its len().
    """

    def __init__(self, e: Expression, symbol: str, backwards: bool = False) -> None:
        self.e, self.symbol, self.backwards = e, symbol, backwards

    @property
    def steps(self) -> Expression:
        """One expression, whose mini-batch is the steps."""
        return self.e

    @property
    def lengths(self) -> set[tuple[str, bool]]:
        """The name of the length, and whether the sequence goes backwards. Sequences that go together agree in both."""
        return {(self.symbol, self.backwards)}

    def map(self, f: Callable[..., Any], *others: Any) -> Any:
        """f applied to each step; with more sequences of the same length, f(x, y, ...) of their steps."""
        from .makeup import mapped

        return mapped(f, (self, *others))

    def sum(self) -> Expression:
        """The sum of all steps."""
        return _core.sum_batches(self.e)

    def average(self) -> Expression:
        """The mean of all steps."""
        return _core.mean_batches(self.e)

    def max(self) -> Expression:
        """For each number, its largest value in any step."""
        e = self.e
        return self._place(1, "", lambda w, get: w.op("ReduceMax", get(e).name, w.ints(0), keepdims=0))

    def softmax(self) -> Sequence:
        """The softmax over the steps, for each number: weights that sum to 1."""
        e = self.e
        made = self._place(e.batch_size, self.symbol, lambda w, get: w.op("Softmax", get(e).name, axis=0))
        return Sequence(made, self.symbol, self.backwards)

    def windows(self, width: int, padding: int = 0) -> list[Sequence]:
        """All runs of `width` steps, as `width` sequences: the first steps of the runs, the second ones, and so on.

        padding: how many steps of zeros to add before and after
        """
        if self.backwards or width < 1 or padding < 0:
            raise ValueError(
                "[onnx] windows: needs a width of 1 or more, padding of 0 or more and a sequence that goes forwards"
            )
        more = 2 * padding - width + 1
        symbol = longer(self.symbol, more)
        batch = number(self.e.batch_size) + more
        if batch < 2:
            raise Unsupported(f"[onnx] windows: a width of {width} is too large for a file")
        rank, e = len(self.e.shape), self.e

        def write(k: int) -> Write:
            def padded(w: Writer, get: Get) -> str:
                name = get(e).name
                if padding:
                    name = w.op("Pad", name, w.ints(padding, *[0] * rank, padding, *[0] * rank), w.number(0))
                return w.op("Slice", name, w.ints(k), w.ints(k - width + 1 or 2**31), w.ints(0))

            return padded

        return [Sequence(trace().place(e.shape, batch, symbol, (e,), write(k)), symbol) for k in range(width)]

    def begun(self, first: Expression) -> Sequence:
        """The sequence with one more step before the first."""
        return self._longer(first, front=not self.backwards)

    def ended(self, last: Expression) -> Sequence:
        """The sequence with one more step after the last. The sequence itself may be empty when the file runs."""
        return self._longer(last, front=self.backwards)

    def _longer(self, step: Expression, front: bool) -> Sequence:
        e = self.e
        if cut(step.shape) != cut(e.shape):
            what = "ended" if front == self.backwards else "begun"
            raise ValueError(f"[onnx] {what}: a step {tuple(step.shape)} does not fit a sequence of {e.shape}")
        step = with_dims(step, e.shape)

        def write(w: Writer, get: Get) -> str:
            parts = [w.op("Unsqueeze", get(step).name, w.ints(0)), get(e).name]
            return w.op("Concat", *(parts if front else parts[::-1]), axis=0)

        symbol = longer(self.symbol, 1)
        return Sequence(
            trace().place(e.shape, number(e.batch_size) + 1, symbol, (step, e), write), symbol, self.backwards
        )

    def products(self, others: Sequence) -> Pairs:
        """The product of each step {m,k} or {k} with each step {k} of another sequence."""
        if self.backwards or others.backwards:
            raise ValueError("[onnx] products: needs sequences that go forwards")
        x, y = self.e, with_dims(others.e, cut(others.e.shape))
        if y.shape != x.shape[-1:]:
            x = with_dims(x, cut(x.shape))
        if y.shape != x.shape[-1:]:
            raise ValueError(f"[onnx] products: steps {self.e.shape} and {others.e.shape} do not fit")
        blocks = x.shape[:-1]

        def write(w: Writer, get: Get) -> str:
            return w.op("Einsum", get(x).name, get(y).name, equation="akm,bk->abm" if blocks else "ak,bk->ab")

        return Pairs(trace().place((1,), 1, self.symbol, (x, y), write, (*blocks, others.symbol)), self, others, blocks)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and (index.start, index.stop, index.step) == (None, None, -1):
            return Sequence(self.e, self.symbol, not self.backwards)
        if index not in (0, -1):
            raise Unsupported(f"[onnx] a sequence of unknown length has [0], [-1] and [::-1]; got {index!r}")
        at = index if not self.backwards else -1 - index
        e = self.e
        return self._place(
            1, "", lambda w, get: w.op("Squeeze", w.op("Gather", get(e).name, w.ints(at), axis=0), w.ints(0))
        )

    def _place(self, batch: int, symbol: str, write: Write) -> Expression:
        return trace().place(self.e.shape, batch, symbol, (self.e,), write)

    def __iter__(self) -> Iterator[Any]:
        raise Unsupported(
            "[onnx] a sequence of unknown length cannot be iterated over: use map(f), transduce, sum, average or max"
        )

    def __len__(self) -> int:
        raise Unsupported(f"[onnx] the length {self.symbol} of a sequence is not known before the file runs")

    def _each(self, other: Any) -> Any:
        raise Unsupported(
            "[onnx] a sequence is not computed with as a whole, but step by step: xs.map(lambda x: W * x)"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __truediv__ = _each

    # ---- for builders ------------------------------------------------------------------------------------------------

    def reverse(self) -> None:
        """Reverses the sequence in place, like a list."""
        self.backwards = not self.backwards

    def transduced(self, builder: Any, h: tuple[Expression, ...], s: tuple[Expression, ...], after: Any) -> Sequence:
        """The outputs of a recurrent builder over the steps, starting from the state (h, s)."""
        if after is not None:
            raise Unsupported("[onnx] transduce: `after` and `lengths` have no form in a file")
        if any(one.batch_size != 1 for one in s):
            raise Unsupported("[onnx] transduce: a state with a mini-batch has no form over a sequence")
        if not has_op(builder):
            return self._scanned(builder, s)
        layers, x, backwards = Layers(builder, self.e.shape), with_dims(self.e, cut(self.e.shape)), self.backwards
        s = tuple(with_dims(one, cut(one.shape)) for one in s)

        def write(w: Writer, get: Get) -> str:
            start = [get(one).name for one in s]
            name = w.op("Unsqueeze", get(x).name, w.ints(1))  # [steps, 1, numbers]
            name, _ = layers.write(w, name, backwards, start if h else [])
            return w.op("Squeeze", name, w.ints(1))

        e = trace().place((builder.hidden_dim,), x.batch_size, self.symbol, (x, *s), write)
        return Sequence(e, self.symbol, self.backwards)

    def _scanned(self, builder: Any, s: tuple[Expression, ...]) -> Sequence:
        """The same with a Scan, step by step, where ONNX has no op for all of them."""
        from .loops import scanned

        def step(before: list[Expression], x: Expression) -> Any:
            after = builder.initial_state(before or None).add_input(x)
            return list(after.s()), after.output()

        count = builder.layers * (2 if builder.has_cell else 1)
        init = list(s) or [dy.zeros(builder.hidden_dim) for _ in range(count)]
        outputs, *_ = scanned(step, init, self, False, None if s else lambda x: step([], x))
        return outputs  # type: ignore[no-any-return]

    def joined(self, other: Sequence) -> Sequence:
        """Each step, with the same step of another sequence below it."""
        return self.map(lambda x, y: dy.concatenate([x, y]), other)  # type: ignore[no-any-return]


class Pairs:
    """Numbers {m}, or one, for each pair of steps of two sequences, [steps, other steps, m]: an output, nothing more."""

    def __init__(self, e: Expression, first: Sequence, second: Sequence, blocks: tuple[int, ...]) -> None:
        self.e, self.first, self.second, self.blocks = e, first, second, blocks

    def plus(self, xs: Sequence) -> Pairs:
        """With {m} added that depends on the step of the first sequence only."""
        if (xs.symbol, xs.e.shape) != (self.first.symbol, self.blocks):
            raise ValueError(f"[onnx] plus: needs a sequence of {self.blocks} as long as {self.first.symbol}")
        e, x = self.e, xs.e

        def write(w: Writer, get: Get) -> str:
            return w.op("Add", get(e).name, w.op("Unsqueeze", get(x).name, w.ints(1)))

        made = trace().place((1,), 1, xs.symbol, (e, x), write, (*self.blocks, self.second.symbol))
        return Pairs(made, self.first, self.second, self.blocks)


class Ragged:
    """Sequences of sequences: what a recurrent builder says at the end of each inner one, transduce(xs)[-1], is a Sequence."""

    def __init__(
        self, name: str, symbol: str, table: LookupParameters | None = None, layers: Any = None, backwards: bool = False
    ) -> None:
        self.name, self.symbol, self.table, self.layers, self.backwards = name, symbol, table, layers, backwards

    def transduced(self, builder: Any, h: tuple[Expression, ...], s: tuple[Expression, ...], after: Any) -> Ragged:
        if h or after is not None or self.layers is not None or self.table is None:
            raise Unsupported("[onnx] sequences of sequences go through one builder, from its zero state")
        return Ragged(self.name, self.symbol, self.table, Layers(builder, self.table.shape()[1:]), self.backwards)

    def __getitem__(self, index: Any) -> Any:
        if (
            isinstance(index, slice)
            and (index.start, index.stop, index.step) == (None, None, -1)
            and self.layers is None
        ):
            return Ragged(self.name, self.symbol, self.table, None, not self.backwards)
        layers, table, name, backwards = self.layers, self.table, self.name, self.backwards
        if index != -1 or layers is None:
            raise Unsupported("[onnx] of sequences of sequences only transduce(xs)[-1] and xs[::-1] can be taken")
        assert table is not None

        def write(w: Writer, get: Get) -> str:
            vectors = w.op("Gather", table_name(w, table), name, axis=0)  # [n, letters, numbers]
            lengths = w.op("Cast", f"{name}_length", to=6)
            steps = w.op("Transpose", vectors, perm=[1, 0, 2])
            _, last = layers.write(w, steps, backwards, [], lengths)
            return w.op("Squeeze", last, w.ints(0))

        here = trace()
        e = here.place((layers.builder.hidden_dim,), here.size(self.symbol), self.symbol, (), write)
        return Sequence(e, self.symbol)

    def strongest(self, filters: Sequence_[Any], bias: Any) -> Sequence:
        """The largest answer of each filter to a run of each inner sequence: max over i of sum over k of F_k x_{i+k} + b.

        filters: an odd number of {numbers, m} parameters, one per place in a run; runs stand around each step, with zeros
        beyond the ends. bias {numbers}.
        """
        table, name, window = self.table, self.name, len(filters)
        if self.layers is not None or table is None or self.backwards or window % 2 == 0:
            raise Unsupported(
                "[onnx] strongest: needs an odd number of filters and sequences of sequences as they were looked up"
            )

        def write(w: Writer, get: Get) -> str:
            vectors = w.op("Gather", table_name(w, table), name, axis=0)  # [n, letters, m]
            count = w.op("Squeeze", w.op("Shape", name, start=1, end=2))
            places = w.op("Range", w.constant(np.array(0)), count, w.constant(np.array(1)))
            inside = w.op("Less", places, w.op("Unsqueeze", f"{name}_length", w.ints(1)))  # [n, letters]
            zero, least = w.number(0), w.number(-3e38)
            kept = w.op("Where", w.op("Unsqueeze", inside, w.ints(2)), vectors, zero)
            runs = weight(w, filters[0], lambda: np.stack([f.as_array() for f in filters], axis=2), ".runs")
            answers = w.op("Conv", w.op("Transpose", kept, perm=[0, 2, 1]), runs,  # runs: [numbers, m, window]
                           weight(w, bias, bias.as_array), pads=[window // 2] * 2)  # fmt: skip
            answers = w.op("Where", w.op("Unsqueeze", inside, w.ints(1)), answers, least)
            return w.op("ReduceMax", answers, w.ints(2), keepdims=0)

        here = trace()
        e = here.place(bias.shape(), here.size(self.symbol), self.symbol, (), write)
        return Sequence(e, self.symbol)

    def __iter__(self) -> Iterator[Any]:
        raise Unsupported("[onnx] a sequence of unknown length cannot be iterated over")


@dataclass(frozen=True)
class Chosen:
    """Ids, or Children, as a traced function sees them."""

    name: str
    spec: Any

    def row_of(self, table: LookupParameters) -> Any:
        """table[ids]."""
        return lookup(table, self)

    def __iter__(self) -> Iterator[Any]:
        if not self.symbol:
            raise Unsupported(
                f"[onnx] {self.name} is a number that is not known before the file runs: use table[{self.name}]"
            )
        raise Unsupported(
            f"[onnx] {self.name}: how many numbers there are is not known before the file runs: use table[{self.name}], "
            "dy.map or dy.scan"
        )

    def __len__(self) -> int:
        return len(list(self))  # raises

    def __getitem__(self, index: Any) -> Any:
        raise Unsupported(f"[onnx] {self.name}[{index!r}]: take the vectors first: table[{self.name}][{index!r}]")

    @property
    def symbol(self) -> str:
        """The length."""
        return str(self.spec.length)

    @property
    def lengths(self) -> set[tuple[str, bool]]:
        """As of a Sequence. TypeError where these are no numbers for steps."""
        if not isinstance(self.spec, Ids) or self.spec.inner or not self.spec.length:
            raise TypeError(f"[onnx] map: sequences are needed; {self.name} is declared as {self.spec}")
        return {(self.spec.length, False)}

    @property
    def steps(self) -> Number:
        """The numbers as those of a step, whose mini-batch is the steps."""
        here, name = trace(), self.name
        e = here.place((1,), here.size(self.spec.length), self.spec.length, (), lambda w, get: name)
        return Number(e, self.spec.absent)

    def map(self, f: Callable[..., Any], *others: Any) -> Any:
        """f of each number, which f can look up: table[number]."""
        from .makeup import mapped

        return mapped(f, (self, *others))


class Number:
    """A whole number of a step, which a function can look up: table[number]. e: stands for it in the traced graph."""

    def __init__(self, e: Expression, absent: bool) -> None:
        self.e, self.absent = e, absent

    def row_of(self, table: LookupParameters) -> Expression:
        """table[number]; zeros for -1 where that may be."""
        e, dims, absent, symbol = self.e, table.shape()[1:], self.absent, trace().special[node_of(self.e)][2]

        def write(w: Writer, get: Get) -> str:
            return rows(w, table, get(e).name, absent, len(dims), e.batch_size != 1)

        return trace().place(dims, e.batch_size, symbol, (e,), write)


def weight(w: Writer, owner: Any, numbers: Callable[[], np.ndarray[Any, Any]], suffix: str = "") -> str:
    """The initializer of a weight, written once. numbers: gives them, when it is written."""
    known = w.__dict__.setdefault("weights", {})
    key = id(owner), suffix
    if key not in known:
        known[key] = owner, w.initializer(owner.name().lstrip("/") + suffix, numbers().astype(np.float32))
    name: str = known[key][1]
    return name


def table_name(w: Writer, table: LookupParameters) -> str:
    """The initializer of a table, [rows, ...]."""
    last = len(table.shape()) - 1
    return weight(w, table, lambda: table.as_array().transpose(0, *range(last, 0, -1)))


def lookup(table: LookupParameters, ids: Any) -> Any:
    """The rows of a table that an input of Ids chooses: an expression, a Sequence, or a sequence of sequences."""
    if not isinstance(ids, Chosen) or not isinstance(ids.spec, Ids):
        raise TypeError(f"[onnx] lookup: an input declared as onnx.Ids is needed; got {type(ids).__name__}")
    spec = ids.spec
    if spec.inner:
        return Ragged(ids.name, spec.length, table)
    if spec.length:
        return Sequence(ids.steps.row_of(table), spec.length)
    return trace().place(table.shape()[1:], 1, "", (), lambda w, get: rows(w, table, ids.name))


def rows(
    w: Writer, table: LookupParameters, ids: str, absent: bool = False, rank: int = 1, several: bool = False
) -> str:
    """Rows {rank dims} of a table. absent: -1 chooses zeros; several: there is an axis for them."""
    if not absent:
        return w.op("Gather", table_name(w, table), ids, axis=0)
    zero = w.constant(np.array(0, dtype=np.int64))
    found = w.op("Gather", table_name(w, table), w.op("Max", ids, zero), axis=0)
    there = w.op("GreaterOrEqual", ids, zero)
    return w.op(
        "Where", w.op("Unsqueeze", there, w.ints(*range(1, rank + 1))) if several else there, found, w.number(0)
    )


def handle(name: str, spec: Spec) -> Any:
    """What the traced function gets for an input."""
    here = trace()
    if not isinstance(spec, Input):
        return Chosen(name, spec)
    symbol = spec.length or (spec.batch if isinstance(spec.batch, str) else "")
    if spec.length and spec.batch != 1:
        raise ValueError(f"[onnx] input {name}: a sequence has no mini-batch beside its steps")
    batch = here.size(symbol) if symbol else spec.batch
    assert isinstance(batch, int)
    e = here.place(tuple(spec.shape), batch, symbol, (), lambda w, get: name)
    return Sequence(e, symbol) if spec.length else e


def declared(name: str, spec: Spec) -> list[tuple[str, bool, list[int | str]]]:
    """The inputs of the file for a spec: name, whether they are whole numbers, shape."""
    if isinstance(spec, Children):
        return [(name, True, [spec.length, spec.most])]
    if isinstance(spec, Ids):
        shape: list[int | str] = [s for s in (spec.length, spec.inner) if s]
        return [(name, True, shape), *([(f"{name}_length", True, shape[:1])] if spec.inner else [])]
    first: list[int | str] = [spec.length] if spec.length else [spec.batch] if spec.batch != 1 else []
    return [(name, False, [*first, *reversed(spec.shape)])]
