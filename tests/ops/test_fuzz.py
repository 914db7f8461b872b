"""Wrong calls of every op: always a Python exception or a value, never a crash, and the graph works afterwards.

500 calls per op with arguments from a pool of things that do not belong there. Seeded; a call that crashes the process shows
up in the faulthandler's trace with the test's name, and SEED and the number of the call say which one it was.
"""

from __future__ import annotations

import faulthandler
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, ops, ops_loss, ops_random, ops_segment

SEED = 20
CALLS = 500
SMALL = 100_000  # numbers in a value that is still computed

faulthandler.enable()
INPUTS = """inputTensor inputVector vecInput scalarInput constant zeros ones one_hot sparse_inputTensor inputTensorTranspose
lookup lookup_batch""".split()
MODULES = (ops, ops_loss, ops_random, ops_segment)
NAMES = sorted({*_core.OP_NAMES, *_core.INTERNAL_OP_NAMES, *INPUTS, *(n for m in MODULES for n in m.__all__)})


class BadIndex:
    def __index__(self) -> int:
        raise ZeroDivisionError("bad index")

    def __float__(self) -> float:
        raise ZeroDivisionError("bad float")


class BadLength(list):
    def __len__(self) -> int:
        return 10**9


def failing() -> Any:
    yield 1
    raise KeyError("in the middle")


def building() -> Any:
    """Makes nodes while its items are being read."""
    yield 0
    dy.dropout(dy.concatenate([dy.inputVector([1.0, 2.0]), dy.inputVector([3.0])]), 0.5)
    yield 1


class Pool:
    """Things to call an op with. Expressions are made anew when the graph is."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.stale = dy.inputVector([1.0, 2.0])
        _core.cg().renew()
        self.other = _core.ComputationGraph()
        with self.other:
            self.foreign = dy.inputVector([1.0, 2.0])
        self.weight = _core.Parameters.make((3, 3), "/w")
        self.table = _core.LookupParameters.make((4, 3), "/t")
        self.renew()

    def renew(self) -> None:
        _core.cg().renew()
        rng = self.rng
        shapes: list[tuple[tuple[int, ...], int]] = [
            ((1,), 1), ((2,), 1), ((3,), 1), ((3,), 2), ((3, 3), 1), ((2, 3), 1), ((3, 2), 2), ((2, 3, 2), 1),
            ((1, 3), 1), ((1,), 3), ((2, 2, 2, 2, 2, 2, 2), 1), ((4, 4, 2, 3), 1), ((12,), 1), ((4, 4, 1), 1),
        ]  # fmt: skip
        self.expressions = [
            dy.inputTensor(rng.standard_normal((*s, b)), batched=True)
            if b > 1
            else dy.inputTensor(rng.standard_normal(s))
            for s, b in shapes
        ]
        self.expressions += [
            dy.inputVector([float("nan"), 1.0, float("inf")]),
            self.weight,
            self.table,
            self.table[1],
            self.expressions[2] + 1.0,
            dy.inputVector([0.0, 0.0, 0.0]),
        ]
        inputs = self.expressions
        nan, inf = float("nan"), float("inf")
        self.things: list[Any] = [
            None, True, 0, 1, 2, 3, -1, -5, 2**31, -(2**31) - 1, 2**63, 2**64, 10**30, 0.0, 0.5, 1.5, -0.5, nan, inf, -inf,
            1e300, 1 + 2j, "", "x", "abc", b"12", [], (), {}, set(), [0], [1, 2], (0, 1), [0, 0, 0], [3], [-1], [2**40], [nan],
            [None], [1, None], ["a"], [[]], [[0, 1], [2]], range(3), range(0), [1] * 9, (2,) * 8, (3, 0), (2**31, 2),
            (2**30, 2**30), np.zeros(0), np.zeros((3, 0)), np.ones(3), np.ones((3, 3)), np.ones((2, 3), dtype=complex),
            np.array("x"), np.array(["a", "b", "c"]), np.array([None, 1]), np.float32(2), np.int64(1), np.uint64(2**63),
            np.arange(3), np.array(1.5), np.ones((1,) * 9), np.array(True), object(), dy.tanh, BadIndex(), BadLength([1, 2]),
            int, Ellipsis, slice(0, 2), self.stale, self.foreign, [self.stale], [self.foreign, inputs[2]],
            [inputs[2], self.stale], [inputs[2], None], [inputs[2], 3, "x"], inputs[:3], [inputs[2]] * 3, [inputs[4], inputs[2]],
            [inputs[2], inputs[4], inputs[2]], [inputs[2], self.weight, inputs[2]], tuple(inputs[:2]), [inputs[3]] * 2,
            [inputs[2], inputs[3]], {"a": inputs[2]}, [[inputs[2]]],
        ]  # fmt: skip
        self.makers: list[Callable[[], Any]] = [failing, building, lambda: iter([1, 2]), lambda: iter([inputs[2]])]

    def draw(self) -> Any:
        kind = self.rng.random()
        if kind < 0.45:
            return self.expressions[self.rng.integers(len(self.expressions))]
        if kind < 0.95:
            return self.things[self.rng.integers(len(self.things))]
        return self.makers[self.rng.integers(len(self.makers))]()


def arity(function: Any) -> tuple[int, int]:
    """Fewest and most arguments of a call."""
    parameters = inspect.signature(function).parameters.values()
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
    most = sum(3 if p.kind is p.VAR_POSITIONAL else 1 for p in parameters)
    return least, most


def functions(name: str) -> list[Callable[..., Any]]:
    """The compiled function of an op and, where there is another, the public one."""
    places = [_core, *MODULES]
    found = [getattr(m, n) for m in places for n in (name, "_" + name) if hasattr(m, n)]
    return [f for i, f in enumerate(found) if f not in found[:i]]


def use(e: Any, rng: np.random.Generator) -> None:
    """Compute what came out, and sometimes its gradient."""
    es = e if isinstance(e, (list, tuple)) else [e]
    for one in es:
        if not isinstance(one, _core.Expression):
            continue
        shape, batch = one.dim()
        size = int(np.prod(shape, dtype=float)) * batch
        if size > SMALL:
            raise OverflowError("too large to compute here")
        value = one.npvalue()
        assert value.size == size
        repr(one)
        if size == 1 and rng.random() < 0.5:
            one.backward(full=bool(rng.random() < 0.5))


def still_works() -> None:
    x = dy.inputVector([1.0, 2.0, 3.0])
    loss = dy.pickneglogsoftmax(dy.tanh(x), 1)
    assert np.isfinite(loss.value())
    loss.backward(full=True)
    assert np.all(np.isfinite(x.gradient()))


def test_subscripts_and_operators() -> None:
    """The same for x[...] and for operators, which are no functions."""
    rng = np.random.default_rng(SEED)
    pool = Pool(rng)
    operators = [
        lambda a, b: a[b], lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a @ b, lambda a, b: a / b,
        lambda a, b: a**b, lambda a, b: a < b, lambda a, b: a[b:], lambda a, b: a[:, b], lambda a, b: a[b, ..., None],
        lambda a, b: list(a), lambda a, b: a[::b], lambda a, b: a == b, lambda a, b: len(a), lambda a, b: float(a),
    ]  # fmt: skip
    for k in range(16 * CALLS):
        if k % 50 == 0:
            still_works()
            pool.renew()
        a, b = pool.draw(), pool.draw()
        if rng.random() < 0.3:
            a, b = b, a
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                use(operators[k % len(operators)](a, b), rng)
        except dy.errors.InternalError:
            raise
        except Exception:
            pass


@pytest.mark.parametrize("name", NAMES)
def test_wrong_calls(name: str) -> None:
    rng = np.random.default_rng([SEED, len(name), *name.encode()])
    pool = Pool(rng)
    outcome = {"values": 0, "errors": 0}
    for k in range(CALLS):
        if k % 50 == 0:
            still_works()
            pool.renew()
        choices = functions(name)
        function = choices[k % len(choices)]
        least, most = arity(function)
        args = [
            pool.draw()
            for _ in range(rng.integers(max(0, least - (rng.random() < 0.05)), most + 1 + (rng.random() < 0.05)))
        ]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                use(function(*args), rng)
            outcome["values"] += 1
        except dy.errors.InternalError:
            raise
        except OverflowError as e:
            outcome["errors"] += 1
            if "too large to compute here" in str(e):
                pool.renew()
        except Exception as e:
            outcome["errors"] += 1
            assert str(e), f"call {k}: {type(e).__name__} without a message for {args}"
    still_works()
    assert outcome["errors"] > 0
