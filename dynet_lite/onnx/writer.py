"""Writes ONNX nodes: values with our dims, constants that are stored once, and the helpers that all lowerings use.

The layout rule: an ONNX tensor is the same memory. Ours is column-major with the mini-batch last, ONNX is row-major; so the
axes stand in reverse order and the mini-batch, if there is one, comes first. {3,4} X 8 is [8, 4, 3], a vector {5} is [5],
and our dim d is ONNX's axis -(d + 1). Who may import: this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Dims = tuple[int, ...]
Shown = tuple[int | str, ...]
Array = np.ndarray[Any, Any]


LARGEST = 2**31 - 2**24  # bytes of weights in a file, of which all together have less than 2**31


class Unsupported(NotImplementedError):
    """Something that has no form in ONNX."""


@dataclass(frozen=True)
class Value:
    """A tensor of the file. dims: of one batch element, in our order; symbol: the name of a batch of unknown size."""

    name: str
    dims: Dims
    batch: int = 1
    symbol: str = ""
    shown: Shown | None = None  # of pairs of steps, which are outputs and nothing else: their dims

    @property
    def batched(self) -> bool:
        """Has the ONNX tensor a leading axis for the mini-batch?"""
        return self.batch != 1

    @property
    def shape(self) -> list[int | str]:
        """The shape of the ONNX tensor."""
        if self.shown is not None:
            return [self.symbol, *reversed(self.shown)]
        first: list[int | str] = [self.symbol or self.batch] if self.batched else []
        return [*first, *reversed(self.dims)]


@dataclass(frozen=True)
class Made:
    """What a lowering has to know of the node that it lowers."""

    op: str
    dims: Dims
    batch: int
    attributes: dict[str, Any]

    @property
    def batched(self) -> bool:
        return self.batch != 1

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]


class Writer:
    """Collects nodes and initializers. ``reserved``: names of inputs and outputs, which nothing else may have."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        from onnx import helper, numpy_helper  # the real package: this one is dynet_lite.onnx

        self._helper: Any = helper
        self._numpy: Any = numpy_helper
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._bytes = 0  # of the initializers
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._taken: dict[str, int] = dict.fromkeys(reserved, 1)
        # What expressions are computed from, written again with other values for some of it: set by export.py.
        self.inside: Callable[[Sequence[tuple[Any, Value]], Sequence[Any]], list[Value]]

    def fresh(self, stem: str) -> str:
        """A name that is not taken."""
        n = self._taken.get(stem, 0)
        self._taken[stem] = n + 1
        return self.fresh(f"{stem}_{n}") if n else stem

    # ---- nodes and constants -----------------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One node with one output; its name."""
        return self.op_n(1, kind, *inputs, **attributes)[0]

    def op_n(self, outputs: int, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        """One node with several outputs."""
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        self.nodes.append(self._helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names

    def initializer(self, name: str, array: Array) -> str:
        """A weight under its own name. Unsupported when all of them are too large for a file."""
        self._bytes += array.nbytes
        if self._bytes > LARGEST:
            raise Unsupported("[onnx] the weights take more than 2 GB, which is the most that an ONNX file holds")
        name = self.fresh(name)
        self.initializers.append(self._numpy.from_array(np.array(array, order="C"), name))
        return name

    def constant(self, array: Array) -> str:
        """A constant; equal ones are stored once."""
        array = np.asarray(array)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.initializer("constant", array)
        return self._constants[key]

    def number(self, x: float) -> str:
        return self.constant(np.array(x, dtype=np.float32))

    def scalar(self, number: int) -> str:
        return self.constant(np.array(number, dtype=np.int64))

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, dtype=np.int64))

    def loop(
        self, count: str, states: Sequence[str], step: Callable[[str, list[str]], Sequence[str]], double: bool = False
    ) -> list[str]:
        """states, after `step` was done to them `count` times: what it makes of the number of the turn, from 0, and of them.

        Inside a turn whatever was written before the loop is there, too. double: the states are of this type.
        """
        turn, going, *before = [self.fresh(name) for name in ("turn", "going", *["before"] * len(states))]

        def body() -> list[str]:
            return [self.op("Identity", going), *step(turn, before)]

        kinds = self._helper.TensorProto
        kind = kinds.DOUBLE if double else kinds.FLOAT
        given = [(turn, kinds.INT64), (going, kinds.BOOL), *((name, kind) for name in before)]
        results = [kinds.BOOL, *[kind] * len(states)]
        return self.op_n(len(states), "Loop", count, "", *states, body=self._body(given, body, results))

    def scan(
        self,
        states: Sequence[str],
        rows: Sequence[tuple[str, bool]],
        step: Callable[[list[str]], list[str]],
        results: Sequence[Dims],
        backwards: bool,
    ) -> list[str]:
        """`step` for each of the rows, from states and a row to states and outputs: the last states, and the outputs of all.

        rows: the names, and whether they are whole numbers. results: the dims of the states and the outputs of a step.
        """
        outputs = len(results) - len(states)
        before = [self.fresh(name) for name in (*["before"] * len(states), *["row"] * len(rows))]
        kinds = self._helper.TensorProto
        given = [kinds.FLOAT] * len(states) + [kinds.INT64 if whole else kinds.FLOAT for _, whole in rows]
        body = self._body(list(zip(before, given, strict=True)), lambda: step(before), dims=results)
        return self.op_n(
            len(results), "Scan", *states, *(name for name, _ in rows), body=body, num_scan_inputs=len(rows),
            scan_input_directions=[int(backwards)] * len(rows), scan_output_directions=[int(backwards)] * outputs,
        )  # fmt: skip

    def cases(
        self,
        which: str,
        options: Mapping[int, Callable[[], list[str]]],
        otherwise: Callable[[], list[str]],
        outputs: int,
    ) -> list[str]:
        """What is written for the number `which`, where there is something; so many outputs."""
        (number, first), *rest = options.items()
        then = self._body([], first)
        other = self._body([], (lambda: self.cases(which, dict(rest), otherwise, outputs)) if rest else otherwise)
        equal = self.op("Equal", which, self.scalar(number))
        return self.op_n(outputs, "If", equal, then_branch=then, else_branch=other)

    def _body(
        self,
        given: Sequence[tuple[str, int]],
        write: Callable[[], list[str]],
        kinds: Sequence[int] = (),
        dims: Sequence[Dims] = (),
    ) -> Any:
        """A graph of its own, with the nodes that `write` makes. kinds: of its first results; the others are floats. dims:
        of the results, where they are known."""
        outer, self.nodes = self.nodes, []
        try:
            results, inside = write(), self.nodes
        finally:
            self.nodes = outer
        every = [*kinds, *[self._helper.TensorProto.FLOAT] * (len(results) - len(kinds))]
        scalars = self._helper.TensorProto.INT64, self._helper.TensorProto.BOOL
        shapes: list[Dims | None] = list(dims) or [None] * len(results)

        def info(name: str, kind: int, shape: Dims | None = None) -> Any:
            known = [] if kind in scalars else None if shape is None else [*reversed(shape)]
            return self._helper.make_tensor_value_info(name, kind, known)

        return self._helper.make_graph(
            inside,
            self.fresh("body"),
            [info(name, kind) for name, kind in given],
            [info(*result) for result in zip(results, every, shapes, strict=True)],
        )

    def length(self, name: str) -> str:
        """How long the first axis is, a number."""
        return self.op("Squeeze", self.op("Shape", name, start=0, end=1))

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def reshaped(self, name: str, batched: bool, dims: Dims) -> str:
        """The same numbers with other dims per batch element."""
        return self.op("Reshape", name, self.ints(*([0] if batched else []), *reversed(dims)))

    def lift(self, x: Value, rank: int, force: bool = False) -> str:
        """x with at least `rank` dims; without force only where ONNX's broadcasting would read the axes otherwise."""
        extra = rank - len(x.dims)
        if extra <= 0 or not (x.batched or force):
            return x.name
        first = int(x.batched)
        return self.op("Unsqueeze", x.name, self.ints(*range(first, first + extra)))

    def cut(self, x: Value, rank: int) -> Value:
        """x with at most `rank` dims, where those behind them are ones."""
        dims = x.dims[:rank]
        if not all(n == 1 for n in x.dims[rank:]) or dims == x.dims:
            return x
        return Value(self.reshaped(x.name, x.batched, dims), dims, x.batch, x.symbol)

    def alike(self, xs: Sequence[Value], rank: int) -> list[str]:
        """The xs with `rank` dims and, when one has a mini-batch, all with it."""
        names = [self.lift(self.cut(x, rank), rank, force=True) for x in xs]
        leader = next((name for name, x in zip(names, xs, strict=True) if x.batched), None)
        if leader is None:
            return names
        size = self.op("Shape", leader, start=0, end=1)
        shape = self.op("Concat", size, self.ints(*[1] * rank), axis=0)
        return [
            name if x.batched else self.op("Expand", self.op("Unsqueeze", name, self.ints(0)), shape)
            for name, x in zip(names, xs, strict=True)
        ]

    def repeated(self, name: str, dims: Dims, like: str) -> str:
        """A value with these dims, as often as there are batch elements in another one."""
        size = self.op("Shape", like, start=0, end=1)
        return self.op("Expand", name, self.op("Concat", size, self.ints(*reversed(dims)), axis=0))

    def slice(self, name: str, axis: int, start: int, end: int, step: int = 1) -> str:
        return self.op("Slice", name, self.ints(start), self.ints(end), self.ints(axis), self.ints(step))

    def einsum(self, terms: str, *xs: Value) -> str:
        """terms: as of numpy.einsum over our dims, "ijl,l->ij"; the mini-batch is added."""
        inputs, output = terms.split("->")
        parts = inputs.split(",")
        given = ["b" * x.batched + part[::-1] for x, part in zip(xs, parts, strict=True)]
        names = [self.lift(self.cut(x, len(part)), len(part), force=True) for x, part in zip(xs, parts, strict=True)]
        out = "b" * any(x.batched for x in xs) + output[::-1]
        return self.op("Einsum", *names, equation=f"{','.join(given)}->{out}")
