"""The names that a random program may use beside dy and np: numbers, calls of ops from the tables of samples, arguments that fit.

names(dy, numbers) makes them for one engine, dynet_lite or DyNet; `numbers` is the seed of all numbers, so that a program can be run
again with others. Nothing here imports an engine: the table of our own op rows is read when a program first calls one.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("ops", "compat") if str(TESTS / folder) not in sys.path]

import op_cases  # noqa: E402

Names = dict[str, Any]


@cache
def rows() -> dict[str, Any]:
    """Rows of the op table by label; labels that occur again get quotes."""
    import samples

    found: dict[str, Any] = {}
    for row in samples.rows():
        label = row.label
        while label in found:
            label += "'"
        found[label] = row
    return found


def _seed(text: str) -> int:
    return zlib.crc32(text.encode())


# ---- numbers that ops ask for, made of an expression --------------------------------------------------------------------

RANGES: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda dy, e: e,
    "": lambda dy, e: e,
    "positive": lambda dy, e: dy.logistic(e) * 1.5 + 0.4,
    "pos": lambda dy, e: dy.logistic(e) * 1.5 + 0.4,
    "above_one": lambda dy, e: dy.logistic(e) * 1.5 + 1.3,
    "big": lambda dy, e: dy.logistic(e) * 1.5 + 1.3,
    "unit": lambda dy, e: dy.tanh(e) * 0.8,
    "probability": lambda dy, e: dy.logistic(e) * 0.8 + 0.1,
    "prob": lambda dy, e: dy.logistic(e) * 0.8 + 0.1,
}
MOVED = ("spread", "far", "nonzero", "between_integers")  # an expression may move them a little


# Ops that divide by a deviation, forward or backward: labels of rows and cases begin so (see fuzz_program.py).
DIVIDES = ("layer_norm", "std_", "_std_dims")


def _fit(dy: Any, e: Any, shape: tuple[int, ...], batch: int) -> Any:
    """e with another shape and batch: cut off or repeated."""
    dims, b = e.dim()
    if b > 1 and batch != b:
        e = dy.pick_batch_elems(e, [k % b for k in range(batch)]) if batch > 1 else dy.pick_batch_elem(e, 0)
    elif b == 1 and batch > 1:
        e = dy.concatenate_to_batch([e] * batch)
    if tuple(dims) == shape:
        return e
    have, want = int(np.prod(dims)), int(np.prod(shape))
    flat = dy.reshape(e, (have,), batch)
    if have < want:
        flat = dy.concatenate([flat] * -(-want // have))
        have *= -(-want // have)
    if have > want:
        flat = dy.pick_range(flat, 0, want)
    return dy.reshape(flat, shape, batch)


class Calls:
    """op, case and the like, for one engine and one seed of numbers."""

    def __init__(self, dy: Any, numbers: int, moved: int = 0) -> None:
        self.dy, self.numbers, self.moved = dy, numbers, moved

    def A(self, seed: int, *shape: int) -> np.ndarray:
        """Numbers between -1 and 1."""
        return np.asarray(np.random.default_rng([self.numbers, seed]).uniform(-1, 1, shape), dtype=np.float32)

    def inp(self, seed: int, shape: tuple[int, ...], batch: int = 1) -> Any:
        """An input."""
        return self.dy.inputTensor(self.A(seed, *shape, *([batch] if batch > 1 else [])), batched=batch > 1)

    def score(self, e: Any, seed: int = 0) -> Any:
        """A number: the sum of all elements, each with a weight of its own."""
        dims, b = e.dim()
        return self.dy.sum_batches(self.dy.sum_elems(self.dy.cmult(e, self.inp(seed, tuple(dims), b))))

    def _argument(self, e: Any, drawn: np.ndarray, shape: tuple[int, ...], batch: int, kind: str) -> Any:
        """An argument of an op: made of e where that can be, else what was drawn for it."""
        if e is None or not (kind in RANGES or kind in MOVED):
            return self.dy.inputTensor(drawn, batched=batch > 1)
        e = _fit(self.dy, e, shape, batch)
        if kind in MOVED:
            return self.dy.tanh(e) * 0.04 + self.dy.inputTensor(drawn, batched=batch > 1)
        return RANGES[kind](self.dy, e)

    def _moved(self, name: str, args: list[Any]) -> list[Any]:
        """Arguments of an op of DIVIDES: with moved, each number of the first is the next or the one before that a float can be, at random."""
        if not self.moved or not name.startswith(DIVIDES):
            return args
        dims, batch = args[0].dim()
        signs = np.random.default_rng([self.moved, self.numbers]).choice([-1, 1], (*dims, batch))
        ulps = self.dy.inputTensor(1 + signs * 2.0**-23, batched=True)
        return [self.dy.cmult(args[0], ulps), *args[1:]]

    def op(self, label: str, seed: int, *es: Any) -> Any:
        """The call of a row of the op table; what is None in es is drawn."""
        row = rows()[label]
        rng = np.random.default_rng([seed, self.numbers])
        args = []
        for arg, e in zip(row.args, es, strict=True):
            drawn = arg.sample(rng)
            args.append(
                self._argument(e, drawn if arg.batch > 1 else drawn[..., 0], arg.shape, arg.batch, arg.draw.__name__)
            )
        return row.call(*self._moved(label, args), **row.draw_attrs(np.random.default_rng([seed, 1])))

    def wrong(self, label: str, number: int) -> None:
        """A call that the op table calls wrong; it raises."""
        call, error = rows()[label].wrong[number]
        try:
            call()
        except error:
            raise ValueError(label) from None

    def case(self, name: str, seed: int, *es: Any) -> Any:
        """The call of a case that DyNet has, too."""
        sizes, drawn = op_cases.arguments(name, seed)
        args = []
        for spec, (a, batched), e in zip(op_cases.CASES[name].args, drawn, es, strict=True):
            shape, batch = (a.shape[:-1], a.shape[-1]) if batched else (a.shape, 1)
            args.append(self._argument(e, a, tuple(shape), batch, spec.partition(":")[2]))
        return op_cases.CASES[name].call(self.dy, sizes, *self._moved(name, args))

    def builder(self, kind: str, model: Any, seed: int, *sizes: int) -> Any:
        """A builder, with numbers that do not depend on who drew them."""
        part = model.add_subcollection()
        made = getattr(self.dy, kind)(*sizes, part)
        for k, p in enumerate(part.parameters_list()):
            shape = p.shape() if callable(p.shape) else p.shape
            p.set_value(self.A(seed + k, *shape) * 0.7)
        return made


def names(dy: Any, numbers: int, moved: int = 0, **flags: Any) -> Names:
    """What a program sees. flags: of renew_cg()."""
    calls = Calls(dy, numbers, moved)
    found = {name: getattr(calls, name) for name in ("A", "inp", "score", "op", "wrong", "case", "builder")}
    return {**found, "dy": dy, "np": np, "FLAGS": flags}
