"""Reductions, norms and matrix functions where numbers are infinite, equal, zero, or no numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

INF, NAN = float("inf"), float("nan")


def over_list(values: list[float], copies: int) -> tuple[float, list[float]]:
    """logsumexp of a list of vectors of equal numbers: its value and the gradients of the arguments."""
    xs = [dy.inputVector([v] * copies) for v in values]
    y = dy.pick(dy.logsumexp(xs), copies - 1)
    y.backward(full=True)
    return y.value(), [float(x.gradient()[copies - 1]) for x in xs]


def over_rows(values: list[float], columns: int) -> tuple[float, list[float]]:
    x = dy.inputTensor(np.tile(values, (columns, 1)))
    y = dy.pick(dy.logsumexp_dim(x, 1), columns - 1)
    y.backward(full=True)
    return y.value(), x.gradient()[columns - 1].tolist()


def over_column(values: list[float], _: int) -> tuple[float, list[float]]:
    x = dy.inputVector(values)
    y = dy.logsumexp_dim(x)
    y.backward(full=True)
    return y.value(), x.gradient().tolist()


@pytest.mark.parametrize("form", [over_list, over_rows, over_column])
@pytest.mark.parametrize("copies", [1, 2, 9])
def test_logsumexp_of_infinities(form: Callable[..., Any], copies: int) -> None:
    assert form([-INF, -INF, -INF], copies) == (-INF, [0.0, 0.0, 0.0])
    assert form([INF, 0.0, 1.0], copies) == (INF, [1.0, 0.0, 0.0])
    value, gradient = form([-INF, 2.0, -INF], copies)
    assert value == pytest.approx(2.0)
    assert gradient == pytest.approx([0.0, 1.0, 0.0])
    value, gradient = form([1000.0, 999.0, -1000.0], copies)
    assert value == pytest.approx(1000.3132616)
    assert gradient == pytest.approx([0.7310586, 0.2689414, 0.0], rel=1e-4)
    value, gradient = form([NAN, 0.0, 1.0], copies)
    assert np.isnan(value)


def gradient(f: Callable[[Any], Any], numbers: Any) -> list[float]:
    x = dy.inputTensor(np.asarray(numbers, dtype=float))
    f(x).backward(full=True)
    return x.gradient().ravel(order="F").tolist()


def test_ties_give_the_gradient_to_the_first() -> None:
    assert gradient(dy.max_dim, [1, 2, 2]) == [0, 1, 0]
    assert gradient(dy.min_dim, [2, 1, 1]) == [0, 1, 0]
    assert gradient(lambda x: dy.sum_elems(dy.kmax_pooling(x, 2, 0)), [3, 3, 3]) == [1, 1, 0]
    assert gradient(lambda x: dy.sum_elems(dy.kmax_pooling(x, 2, 0)), [-0.0, 0.0, 0.0]) == [1, 1, 0]
    assert gradient(lambda x: dy.sum_elems(dy.emax([x, x, dy.square(x)])), [1, 1]) == [1, 1]
    for op in (dy.bmax, dy.bmin):
        assert gradient(lambda x, f=op: dy.sum_elems(f(x, dy.ones(2))), [1, 1]) == [1, 1]
        assert gradient(lambda x, f=op: dy.sum_elems(f(dy.ones(2), x)), [1, 1]) == [0, 0]
    assert gradient(lambda x: dy.sum_elems(dy.maxpooling2d(x, (2, 2), (1, 1))), [[1, 1], [1, 1]]) == [1, 0, 0, 0]
    assert gradient(lambda x: dy.sum_elems(dy.maxpooling2d(x, (2, 2), (1, 1))), [[0, 1], [1, 1]]) == [0, 0, 1, 0]
    assert dy.argmax(dy.inputVector([1, 2, 2])).value() == [0, 1, 0]


def test_gradients_at_zero_are_zero() -> None:
    for f in (dy.l2_norm, dy.std_elems, dy.squared_norm, lambda x: dy.l1_distance(x, x)):
        assert gradient(f, [0, 0, 0]) == [0, 0, 0]
    x = dy.ones(3, batch_size=2)
    dy.sum_elems(dy.std_batches(x)).backward(full=True)
    assert not x.gradient().any()


def test_nan_is_not_hidden() -> None:
    x = dy.inputVector([2.0, NAN, 1.0])
    for y in (dy.max_dim(x), dy.min_dim(x), dy.sum_elems(x), dy.mean_elems(x), dy.std_elems(x), dy.l2_norm(x)):
        assert np.isnan(y.value())
    assert np.isnan(dy.kmax_pooling(x, 2, 0).value()).tolist() == [False, True]
    assert np.isnan(dy.emax([dy.ones(3), x]).value()).tolist() == [False, True, False]
    assert np.isnan(dy.maxpooling2d(dy.reshape(x, (3, 1)), (3, 1), (1, 1)).value())


def test_long_sums_are_exact_enough() -> None:
    x = dy.inputTensor(np.full(1_000_000, 0.1))
    assert dy.sum_elems(x).value() == pytest.approx(100_000, rel=1e-6)
    assert dy.std_elems(x).value() == pytest.approx(0, abs=1e-5)
    rows = dy.reshape(x, (4, 250_000))
    assert dy.sum_dim(rows, [1]).value() == pytest.approx([25_000] * 4, rel=1e-6)


def test_matrix_functions() -> None:
    swap = dy.inputTensor(np.array([[0.0, 2.0], [3.0, 0.0]]))
    assert np.allclose(dy.inverse(swap).npvalue(), [[0, 1 / 3], [0.5, 0]])
    assert dy.logdet(swap).value() == pytest.approx(np.log(6))  # of a negative determinant: of its size
    singular = dy.inputTensor(np.array([[1.0, 2.0], [2.0, 4.0]]))
    assert dy.logdet(singular).value() == -INF
    assert not np.isfinite(dy.inverse(singular).npvalue()).any()


def test_nobackprop_stops_every_way() -> None:
    """Also for what is made of it without a copy, and when gradients of everything are asked for."""
    x = dy.inputVector([1.0, 2.0, 3.0])
    t = dy.tanh(x)
    constant = dy.reshape(dy.nobackprop(t), (3, 1))[:, 0]
    dy.dot_product(constant, t).backward(full=True)
    assert np.allclose(t.gradient(), t.npvalue())


def test_constant_rows_have_no_deviation() -> None:
    x = dy.inputTensor(np.full((4, 1000), 0.1))
    assert dy.std_dim(x, [1]).value() == pytest.approx([0] * 4, abs=1e-7)


def test_one_op_at_different_places_is_one_batch() -> None:
    """Where to pick is no part of the signature."""
    x = [dy.tanh(dy.inputTensor(np.arange(12.0).reshape(3, 4) + k)) for k in range(4)]
    ys = [dy.pick(x[k], k % 3) for k in range(4)] + [dy.pick_range(x[k], k % 2, k % 2 + 2) for k in range(4)]
    ys += [dy.select_rows(x[k], [k % 3, 0]) for k in range(4)]
    dy.esum([dy.sum_elems(y) for y in ys]).forward()
    plan = _plan()
    for op in ("pick", "pick_range", "select_rows"):
        assert plan.count(f"\t{op} {{") == 1, plan


def _plan() -> str:
    return dy._core.cg().plan_text()


@pytest.mark.parametrize("kind", [int, np.int32, np.int64])
def test_a_dim_may_be_an_integer_of_numpy(kind: Any) -> None:
    a = np.arange(6.0).reshape(2, 3)
    for op, wanted in ((dy.sum_dim, a.sum(-1)), (dy.mean_dim, a.mean(-1)), (dy.std_dim, a.std(-1))):
        dy.renew_cg()
        np.testing.assert_allclose(op(dy.inputTensor(a), kind(-1)).npvalue(), wanted, rtol=1e-6)


def test_pick_takes_arrays_of_indices() -> None:
    a = np.arange(6.0).reshape(3, 2)
    dy.renew_cg()
    for indices in ([2, 0], np.array([2, 0])):
        assert dy.pick(dy.inputTensor(a, batched=True), indices).value() == [4.0, 1.0]
    assert (
        dy.pick(dy.inputTensor(a), np.array(2)).value() == dy.pick(dy.inputTensor(a), np.int64(2)).value() == [4.0, 5.0]
    )
