"""What follows from the table of ops: values, gradients, repeated arguments, bad shapes, wrong attributes, completeness.

Batching is in test_batching_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import (
    as_input,
    close,
    gradient_of,
    graph,
    loss_of,
    ops_used,
    reference,
    sample,
    value_of,
    wanted_gradients,
)
from samples import Row, evaluate, rows

import dynet_lite as dy
from dynet_lite import _core

ROWS = rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{r.label}" for i, r in enumerate(ROWS)])


@every_row
def test_value_and_shape(row: Row) -> None:
    for seed in range(2):
        arrays, attrs = sample(row, seed)
        with graph():
            y = row.call(*map(as_input, arrays), **attrs)
            value = value_of(y)
            shape, batch = y.dim()
            assert value.shape == (*shape, batch)
        wanted = evaluate(reference(row, value, arrays, attrs), arrays, row.whole, attrs)
        close(value, wanted, row.tol, row.label)


@every_row
def test_gradient(row: Row) -> None:
    if not row.args:
        pytest.skip("no arguments")
    arrays, attrs = sample(row, 3)
    with graph():
        xs = [as_input(a) for a in arrays]
        y = row.call(*xs, **attrs)
        loss = loss_of(row, y)
        loss.backward(full=True)
        grads, value = [gradient_of(x) for x in xs], value_of(y)
    wanted = wanted_gradients(row, reference(row, value, arrays, attrs), arrays, attrs)
    for j, (given, want) in enumerate(zip(grads, wanted, strict=True)):
        close(given, want, row.gtol, f"{row.label}: gradient of argument {j}")


@every_row
def test_gradients_add_up(row: Row) -> None:
    """An argument used twice, with something else in between: both gradients arrive (assign first, then add)."""
    if not row.args or row.oracle is not None:
        pytest.skip("nothing to compare")
    arrays, attrs = sample(row, 4)
    with graph():
        xs = [as_input(a) for a in arrays]
        loss_of(row, row.call(*xs, **attrs)).backward(full=True)
        once = [gradient_of(x) for x in xs]
    with graph():
        xs = [as_input(a) for a in arrays]
        kept = [x + 0.0 for x in xs]
        first = loss_of(row, row.call(*kept, **attrs))
        second = loss_of(row, row.call(*kept, **attrs)) * 0.5
        (first + second).backward(full=True)
        for j, (x, one) in enumerate(zip(xs, once, strict=True)):
            close(gradient_of(x), 1.5 * one, 1e-5, f"{row.label}: argument {j}")


repeatable = [r for r in ROWS if r.repeatable()]


@pytest.mark.parametrize("row", repeatable, ids=[f"{i}-{r.label}" for i, r in enumerate(repeatable)])
def test_repeated_argument(row: Row) -> None:
    arrays, attrs = sample(row, 5)
    arrays = [arrays[0]] * len(arrays)
    with graph():
        x = as_input(arrays[0])
        y = row.call(*[x] * len(arrays), **attrs)
        loss = loss_of(row, y)
        loss.backward(full=True)
        given, value = gradient_of(x), value_of(y)
    ref = reference(row, value, arrays, attrs)
    close(value, evaluate(ref, arrays, row.whole, attrs), row.tol, row.label)
    close(given, wanted_gradients(row, ref, arrays, attrs, together=True)[0], row.gtol, row.label)


# ---- wrong use --------------------------------------------------------------------------------------------------------


def shaped(shape: Any) -> Any:
    """An expression from a shape of the table: (3, 4), or "3x2" for {3} with a batch of 2."""
    if isinstance(shape, str):
        dims, batch = shape.rsplit("x", 1)
        return dy.inputTensor(np.ones((*map(int, dims.split(",")), int(batch))), batched=True)
    return dy.inputTensor(np.ones(shape))


BAD = [(r, shapes) for r in ROWS for shapes in r.bad]


@pytest.mark.parametrize("row, shapes", BAD, ids=[f"{i}-{r.op}-{s}" for i, (r, s) in enumerate(BAD)])
def test_bad_shapes(row: Row, shapes: Any) -> None:
    _, attrs = sample(row, 6)
    before = len(_core.cg())
    args = [shaped(s) for s in shapes]
    with pytest.raises(ValueError, match=r"^\[[^]]+\] .*\{.*\}"):
        row.call(*args, **attrs)
    assert len(_core.cg()) <= before + len(args)  # the node was not added
    good, attrs = sample(row, 6)  # and the graph still works
    assert np.isfinite(scalar_value(row, good, attrs))


def scalar_value(row: Row, arrays: Any, attrs: Any) -> float:
    return loss_of(row, row.call(*map(as_input, arrays), **attrs)).scalar_value()


WRONG = [(r, k) for r in ROWS for k in range(len(r.wrong))]


@pytest.mark.parametrize("row, k", WRONG, ids=[f"{i}-{r.op}-{k}" for i, (r, k) in enumerate(WRONG)])
def test_wrong_attributes(row: Row, k: int) -> None:
    call, error = row.wrong[k]
    with pytest.raises(error):
        call()
    arrays, attrs = sample(row, 6)
    assert np.isfinite(scalar_value(row, arrays, attrs))


@every_row
def test_stale_and_foreign_arguments(row: Row) -> None:
    if not row.args:
        pytest.skip("no arguments")
    arrays, attrs = sample(row, 7)
    stale = [as_input(a) for a in arrays]
    _core.cg().renew()
    with pytest.raises(dy.errors.StaleExpressionError):
        row.call(*stale, **attrs)
    foreign = [as_input(a) for a in arrays]
    with _core.ComputationGraph(), pytest.raises(dy.errors.StaleExpressionError):
        row.call(*foreign, **attrs)


# ---- completeness ----------------------------------------------------------------------------------------------------


def test_every_op_has_a_row() -> None:
    missing = sorted(set(_core.OP_NAMES) - {r.op for r in ROWS})
    assert not missing, f"ops without a row in tests/ops/samples_*.py: {', '.join(missing)}"


def test_every_internal_op_is_reached() -> None:
    reached: set[str] = set()
    for row in ROWS:
        arrays, attrs = sample(row, 0)
        with graph() as g:
            row.call(*map(as_input, arrays), **attrs)
            used = ops_used(g)
        reached |= used
        assert row.op in used, f"{row.label}: the row does not make a node of its op, but {sorted(used)}"
    missing = sorted(set(_core.INTERNAL_OP_NAMES) - reached)
    assert not missing, f"internal ops that no row reaches: {', '.join(missing)}"
