"""Random programs for the property tests: what hypothesis draws, and how it becomes a graph.

A program is plain data: templates (lists of steps) and examples (which template, which inputs). All values are vectors
{n} X b; a step names an op and picks its arguments among the values so far. Everything is bounded (tanh, softmax, ...),
so that results of different orders of summation can be compared closely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import dynet_lite as dy

SIZES = (2, 3, 5)
BATCH = 2


def size(x: Any) -> int:
    """Of a vector; shape is a method of parameters, as in DyNet."""
    return x.dim()[0][0]


@dataclass(frozen=True)
class Step:
    op: str
    picks: tuple[int, ...]  # any numbers: they choose among the values that fit
    number: int


@dataclass
class Model:
    """Weights, made when a program first asks for them, and a small LSTM."""

    pc: Any = field(default_factory=dy.ParameterCollection)
    made: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def weight(self, *shape: int, which: int = 0) -> Any:
        key = (*shape, which)
        if key not in self.made:
            rng = np.random.default_rng([*key])
            self.made[key] = self.pc.parameters_from_numpy(rng.uniform(-1, 1, shape))
        return self.made[key]

    def table(self, n: int) -> Any:
        key = ("table", n)
        if key not in self.made:
            self.made[key] = self.pc.lookup_parameters_from_numpy(np.random.default_rng(n).uniform(-1, 1, (7, n)))
        return self.made[key]

    def lstm(self, n: int) -> Any:
        key = ("lstm", n)
        if key not in self.made:
            self.made[key] = dy.VanillaLSTMBuilder(1, n, n, self.pc)
        return self.made[key]

    def gradients(self) -> list[np.ndarray]:
        found = [p.grad_as_array() for p in self.pc.parameters_list() + self.pc.lookup_parameters_list()]
        for p in self.pc.parameters_list() + self.pc.lookup_parameters_list():
            p.zero_gradient()
        return found


class Builder:
    """Builds the graph of one example."""

    def __init__(self, model: Model, seed: int) -> None:
        self.model, self.rng = model, np.random.default_rng(seed)
        self.values: list[Any] = []
        self.peeked: list[float] = []

    # ---- choosing arguments -------------------------------------------------------------------------------------
    def pick(self, k: int, fits: Callable[[Any], bool] = lambda e: True) -> Any:
        """A value that fits, or a new input when there is none."""
        found = [e for e in self.values if fits(e)]
        return found[k % len(found)] if found else self.input(3, 1)

    def like(self, k: int, x: Any) -> Any:
        """A value of the size of x whose batch goes with it; perhaps x itself."""
        return self.pick(
            k,
            lambda e: e.dim()[0] == x.dim()[0] and (e.batch_size == x.batch_size or 1 in (e.batch_size, x.batch_size)),
        )

    def input(self, n: int, batch: int) -> Any:
        a = self.rng.uniform(-1, 1, (n, batch))
        return dy.inputTensor(a, batched=True) if batch > 1 else dy.inputVector(a[:, 0])

    # ---- steps --------------------------------------------------------------------------------------------------
    def run(self, step: Step) -> None:
        x = self.pick(step.picks[0])
        y = self.like(step.picks[1], x)
        new = STEPS[step.op](self, x, y, step)
        if new is not None:
            self.values.append(new)

    def loss(self) -> Any:
        """A number from the last values: every kind of size and batch has its own way."""
        terms = []
        for e in self.values[-3:]:
            n, b = size(e), e.batch_size
            terms.append(dy.sum_batches(dy.pickneglogsoftmax(e, [k % n for k in range(b)] if b > 1 else n // 2)))
        return dy.esum(terms)


def _products(b: Builder, x: Any, y: Any, s: Step) -> Any:
    n, m = size(x), SIZES[s.number % 3]
    return dy.affine_transform([b.model.weight(m, which=1), b.model.weight(m, n), x, b.model.weight(m, n, which=1), y])


def _peek(b: Builder, x: Any, y: Any, s: Step) -> None:
    b.peeked.append(float(np.sum(x.npvalue())))


def _lookup_batch(b: Builder, x: Any, y: Any, s: Step) -> Any:
    return dy.lookup_batch(b.model.table(SIZES[s.number % 3]), [s.number % 7, s.picks[0] % 7][:BATCH])


def _slice(b: Builder, x: Any, y: Any, s: Step) -> Any:
    return dy.pick_range(x, size(x) - 2, size(x))


def _join_batch(b: Builder, x: Any, y: Any, s: Step) -> Any:
    return dy.concatenate_to_batch([x, y]) if x.batch_size == y.batch_size == 1 else None


def _outer(b: Builder, x: Any, y: Any, s: Step) -> Any:
    """A product with a matrix that is computed: (x y^T) x."""
    row = dy.reshape(y, (1, size(y))) if y.batch_size == 1 else dy.reshape(y, (1, size(y)), y.batch_size)
    return dy.tanh((x * row) * y)


def _lstm(b: Builder, x: Any, y: Any, s: Step) -> Any:
    if x.batch_size != y.batch_size:
        return None
    return b.model.lstm(size(x)).initial_state().transduce([x, y, x][: 1 + s.number % 3])[-1]


def _weight_of_weights(b: Builder, x: Any, y: Any, s: Step) -> Any:
    n = size(x)
    return dy.tanh(dy.tanh(b.model.weight(n, n)) * x)


STEPS: dict[str, Callable[[Builder, Any, Any, Step], Any]] = {
    "input": lambda b, x, y, s: b.input(SIZES[s.number % 3], 1),
    "batch": lambda b, x, y, s: b.input(SIZES[s.number % 3], BATCH),
    "lookup": lambda b, x, y, s: b.model.table(SIZES[s.number % 3])[s.number % 7],
    "lookup_batch": _lookup_batch,
    "bias": lambda b, x, y, s: b.model.weight(SIZES[s.number % 3], which=1),
    "tanh": lambda b, x, y, s: dy.tanh(x),
    "logistic": lambda b, x, y, s: dy.logistic(x),
    "silu": lambda b, x, y, s: dy.silu(x, 1.0 + s.number % 3),
    "softmax": lambda b, x, y, s: dy.softmax(x),
    "rectify": lambda b, x, y, s: dy.rectify(x + 0.37),
    "scale": lambda b, x, y, s: x * 0.5,
    "negate": lambda b, x, y, s: -x,
    "nobackprop": lambda b, x, y, s: dy.nobackprop(x),
    "dropout": lambda b, x, y, s: dy.dropout(x, 0.3),
    "noise": lambda b, x, y, s: dy.noise(x, 0.1 + 0.1 * (s.number % 2)),
    "add": lambda b, x, y, s: dy.tanh(x + y),
    "cmult": lambda b, x, y, s: dy.cmult(x, dy.tanh(y)),
    "average": lambda b, x, y, s: dy.average([x, y, x]),
    "esum": lambda b, x, y, s: dy.tanh(dy.esum([x, y])),
    "matmul": lambda b, x, y, s: dy.tanh(b.model.weight(SIZES[s.number % 3], size(x)) * x),
    "affine": _products,
    "weights": _weight_of_weights,
    "outer": _outer,
    "concatenate": lambda b, x, y, s: dy.tanh(
        b.model.weight(3, 2 * size(x)) * dy.concatenate([x, y]) if y.batch_size == x.batch_size else x
    ),
    "slice": _slice,
    "reshape": lambda b, x, y, s: dy.reshape(dy.reshape(x, (size(x), 1)), (size(x),)),
    "join_batch": _join_batch,
    "sum_batches": lambda b, x, y, s: dy.tanh(dy.sum_batches(x)),
    "layer_norm": lambda b, x, y, s: (
        dy.layer_norm(
            x + b.model.weight(size(x), which=2), b.model.weight(size(x), which=3), b.model.weight(size(x), which=1)
        )
        * 0.2
    ),
    "lstm": _lstm,
    "peek": _peek,
}


@dataclass(frozen=True)
class Program:
    templates: tuple[tuple[Step, ...], ...]
    examples: tuple[tuple[int, int], ...]  # template, seed of the inputs

    def build(self, model: Model) -> tuple[Any, list[Any], list[float]]:
        """The sum of the losses, the last value of each example, and what was looked at in between."""
        losses, last, peeked = [], [], []
        for which, seed in self.examples:
            b = Builder(model, seed)
            b.values.append(b.input(3, 1))
            for step in self.templates[which % len(self.templates)]:
                b.run(step)
            losses.append(b.loss())
            last.append(b.values[-1])
            peeked += b.peeked
        return dy.esum(losses), last, peeked

    def with_other_data(self, n: int) -> Program:
        """The same nodes: other inputs, other rows of the tables."""

        def moved(step: Step) -> Step:  # which table it is, is what is left when divided by 3
            return Step(step.op, step.picks, step.number + 3 * n) if step.op == "lookup" else step

        templates = tuple(tuple(moved(step) for step in steps) for steps in self.templates)
        return Program(templates, tuple((which, seed + 10 * n) for which, seed in self.examples))


steps = st.builds(
    Step,
    op=st.sampled_from(sorted(STEPS)),
    picks=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    number=st.integers(0, 20),
)
programs = st.builds(
    Program,
    templates=st.lists(st.lists(steps, min_size=3, max_size=24).map(tuple), min_size=1, max_size=3).map(tuple),
    examples=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=8).map(tuple),
)
