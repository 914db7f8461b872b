"""THE table of ops: what a row is, and all rows of the modules samples_*.py beside this file.

A row says how an op is called, with which arguments, and what NumPy says it should give. From the rows come the tests of
test_table.py: values, gradients, batching, repeated arguments, bad shapes, wrong attributes. An op without a row is a
failing test. To cover an op, add a Row to a samples_*.py module's list ROWS.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


# ---- samplers: numbers of a shape, off the kinks ----------------------------------------------------------------


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(0.3, 2.0, shape)


def above_one(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(1.2, 3.0, shape)


def unit(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(-0.85, 0.85, shape)


def probability(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(0.1, 0.9, shape)


def nonzero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Normal numbers, at least 0.1 away from 0."""
    x = rng.standard_normal(shape)
    return x + 0.1 * np.where(x < 0, -1, 1)


def between_integers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Neither near whole numbers nor near halves."""
    return rng.integers(-3, 3, shape) + rng.choice([0.25, 0.75], shape) + rng.uniform(-0.15, 0.15, shape)


def spread(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Numbers of which no two are closer than 0.1, in random order."""
    n = int(np.prod(shape))
    x = rng.permutation(n) * 0.3 + rng.uniform(-0.1, 0.1, n)
    return (x - x.mean()).reshape(shape)


# ---- rows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arg:
    """An argument: its shape, its batch size (1: none), how its numbers are drawn."""

    shape: tuple[int, ...]
    batch: int = 1
    draw: Draw = normal

    def sample(self, rng: np.random.Generator) -> Array:
        """float64 numbers that are exact in float32; the batch is always the last axis."""
        x = self.draw(rng, (*self.shape, self.batch))
        return np.asarray(x, dtype=np.float32).astype(np.float64)


def A(*shape: int, batch: int = 1, draw: Draw = normal) -> Arg:
    return Arg(shape, batch, draw)


@dataclass
class Row:
    """One way to call an op.

    op         its name, as in dynet_lite._core.OP_NAMES (or an internal name)
    call       expressions, attributes -> expression: ``lambda x, d: dy.softmax(x, d)``
    args       the arguments
    ref        the same in NumPy, float64. Gets arrays of one batch element and gives its value (a number counts as shape
               (1,)); with ``whole=True`` all arrays have the batch as last axis, and so has the result
    attrs      keyword arguments of both: a dict, or a function of a random generator (drawn anew for each copy)
    surrogate  for ops whose gradient is not the derivative of the value: a function with the gradient wanted
    oracle     for random ops: (value, *arrays, **attrs) -> the function of the arrays that this draw was; replaces ref
    after      applied to the result before the gradient is taken (``dy.exp`` where the value has -inf), with its NumPy form
    bad        lists of shapes that must be a ValueError which names the op; a shape may end in "x2" for a batch of 2
    wrong      (call of no argument, exception): wrong attributes
    batches    False: members of these calls need not run together
    """

    op: str
    call: Callable[..., Any]
    args: Sequence[Arg]
    ref: Callable[..., Any] | None = None
    attrs: dict[str, Any] | Callable[[np.random.Generator], dict[str, Any]] = field(default_factory=dict)
    whole: bool = False
    tol: float = 2e-6
    gtol: float = 2e-5
    surrogate: Callable[..., Any] | None = None
    oracle: Callable[..., Callable[..., Any]] | None = None
    after: tuple[Callable[[Any], Any], Callable[[Array], Array]] | None = None
    bad: Sequence[Sequence[Any]] = ()
    wrong: Sequence[tuple[Callable[[], Any], type[Exception]]] = ()
    batches: bool = True
    note: str = ""

    def draw_attrs(self, rng: np.random.Generator) -> dict[str, Any]:
        return self.attrs(rng) if callable(self.attrs) else dict(self.attrs)

    def repeatable(self) -> bool:
        """Can one expression stand for all arguments?"""
        return len(self.args) > 1 and all(a == self.args[0] for a in self.args)

    @property
    def label(self) -> str:
        text = ",".join("x".join(map(str, a.shape)) + (f"b{a.batch}" if a.batch > 1 else "") for a in self.args)
        return f"{self.op}({text})" + (f"-{self.note}" if self.note else "")


def rows() -> list[Row]:
    """The rows of all modules samples_*.py, in order of file name."""
    found: list[Row] = []
    for path in sorted(Path(__file__).parent.glob("samples_*.py")):
        found += importlib.import_module(path.stem).ROWS
    return found


# ---- running a row in NumPy -----------------------------------------------------------------------------------------


def evaluate(function: Callable[..., Any], arrays: Sequence[Array], whole: bool, attrs: dict[str, Any]) -> Array:
    """A reference over arrays whose last axis is the batch; so is that of the result."""
    if whole:
        return np.asarray(function(*arrays, **attrs), dtype=np.float64)
    n = max((a.shape[-1] for a in arrays), default=1)
    each = [function(*(a[..., e if a.shape[-1] > 1 else 0] for a in arrays), **attrs) for e in range(n)]
    return np.stack([np.atleast_1d(np.asarray(y, dtype=np.float64)) for y in each], axis=-1)
