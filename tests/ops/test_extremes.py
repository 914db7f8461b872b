"""Infinite, huge and masked entries in softmax and its relatives: no NaN where there is an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import scalar

import dynet_lite as dy

INF = float("inf")
MASKS = [-INF, -1e9, -1e30, -3e38]


def gradient(x: Any, loss: Any) -> np.ndarray:
    loss.backward(full=True)
    return x.gradient()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shape, d", [((4,), 0), ((3, 4), 0), ((3, 4), 1)])
def test_masked_softmax(mask: float, shape: tuple[int, ...], d: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape)
    hidden = np.zeros(shape, dtype=bool)
    np.moveaxis(hidden, d, 0)[1] = True
    a[hidden] = mask
    x = dy.inputTensor(a)
    y = dy.softmax(x, d=d)
    value, grad = y.npvalue(), gradient(x, scalar(y))
    assert np.all(value[hidden] == 0) and np.allclose(value.sum(axis=d), 1)
    assert np.all(np.isfinite(grad)) and np.all(grad[hidden] == 0)
    x = dy.inputTensor(a)
    y = dy.exp(dy.log_softmax(x, d=d))
    assert np.allclose(y.npvalue(), value, atol=1e-6)
    grad = gradient(x, scalar(y))
    assert np.all(np.isfinite(grad)) and np.all(grad[hidden] == 0)


@pytest.mark.parametrize("mask", MASKS)
def test_masked_loss(mask: float) -> None:
    a = np.array([0.5, mask, 1.5, mask])
    x = dy.inputVector(a)
    loss = dy.pickneglogsoftmax(x, 2)
    e = np.exp([0.5, 1.5])
    assert np.isclose(loss.value(), -np.log(e[1] / e.sum()), rtol=1e-5)
    grad = gradient(x, loss)
    assert np.allclose(grad, [e[0] / e.sum(), 0, e[1] / e.sum() - 1, 0], atol=1e-6)
    x = dy.inputVector(a)
    assert np.all(np.isfinite(gradient(x, dy.sparsemax_loss(x, 2))))
    x = dy.inputVector(a)
    y = dy.sparsemax(x)
    assert np.allclose(y.npvalue(), [0, 0, 1, 0])
    assert np.all(np.isfinite(gradient(x, scalar(y))))


@pytest.mark.parametrize("mask", MASKS)
def test_masked_restriction(mask: float) -> None:
    x = dy.inputVector([0.5, mask, 1.5, 2.0])
    y = dy.log_softmax(x, restrict=[0, 1, 2])
    value = y.npvalue()
    e = np.exp([0.5, 1.5])
    assert np.allclose(value[[0, 2]], np.log(e / e.sum()), atol=1e-6)
    assert value[1] < -1e8 and value[3] == -INF
    grad = gradient(x, scalar(dy.exp(y)))
    assert np.all(np.isfinite(grad)) and grad[1] == 0 and grad[3] == 0


def test_nothing_but_masks() -> None:
    x = dy.inputVector([-INF, -INF])
    y = dy.softmax(x)
    assert np.array_equal(y.npvalue(), [0, 0])
    assert np.all(np.isfinite(gradient(x, scalar(y))))
    assert not np.any(np.isnan(dy.log_softmax(x).npvalue()))
    assert np.array_equal(dy.sparsemax(x).npvalue(), [0, 0])
    even = dy.inputVector([-1e9, -1e9])
    assert np.allclose(dy.softmax(even).npvalue(), 0.5)
    assert np.allclose(dy.sparsemax(even).npvalue(), 0.5)


def test_huge_scores() -> None:
    x = dy.inputVector([1e38, -1e38, 0.0])
    assert np.array_equal(dy.softmax(x).npvalue(), [1, 0, 0])
    assert dy.pickneglogsoftmax(x, 0).value() == 0
    assert np.array_equal(dy.sparsemax(x).npvalue(), [1, 0, 0])


def test_nan_is_passed_on_not_hidden() -> None:
    x = dy.inputVector([1.0, float("nan"), 0.0])
    for y in (dy.softmax(x), dy.log_softmax(x), dy.sparsemax(x), dy.hinge(x, 0), dy.pickneglogsoftmax(x, 0)):
        assert np.any(np.isnan(y.npvalue()))
    assert np.any(np.isnan(dy.constrained_softmax(x, dy.ones((3,))).npvalue()))
    assert np.any(np.isnan(dy.constrained_softmax(dy.ones((3,)), x).npvalue()))


def test_constrained_softmax_at_its_limits() -> None:
    x = dy.inputVector([0.0, 1.0, 2.0])
    for u in ([1.0, 1.0, 1.0], [INF, INF, INF]):
        assert np.allclose(dy.constrained_softmax(x, dy.inputVector(u)).npvalue(), dy.softmax(x).npvalue())
    exact = dy.inputVector([0.25, 0.25, 0.5])
    assert np.allclose(dy.constrained_softmax(x, exact).npvalue(), [0.25, 0.25, 0.5])
    small = dy.inputVector([0.1, 0.1, 0.1])
    y = dy.constrained_softmax(x, small)
    assert np.allclose(y.npvalue(), 0.1)
    assert np.all(np.isfinite(gradient(small, scalar(y))))
    masked = dy.inputVector([-INF, 1.0, 2.0])
    assert np.allclose(dy.constrained_softmax(masked, dy.inputVector([0.5, 0.5, 0.6])).npvalue(), [0, 0.4, 0.6])


@pytest.mark.parametrize("mask", MASKS)
def test_constrained_softmax_with_nothing_left_but_masks(mask: float) -> None:
    x, u = dy.inputVector([0.0, mask, 1.0]), dy.inputVector([0.3, 0.9, 0.2])
    y = dy.constrained_softmax(x, u)
    assert np.allclose(y.npvalue(), [0.3, 0, 0.2])
    assert not np.any(gradient(x, dy.dot_product(y, dy.inputVector([1.0, 2.0, 3.0]))))
    assert np.allclose(u.gradient(), [1, 0, 3])


def test_layer_norm_of_equal_numbers() -> None:
    x, g, b = dy.inputVector([5.0] * 7), dy.ones((7,)), dy.inputVector(np.arange(7.0))
    y = dy.layer_norm(x, g, b)
    assert np.array_equal(y.npvalue(), np.arange(7.0))
    assert not np.any(gradient(x, scalar(y)))
    assert np.all(np.isfinite(dy.layer_norm(dy.inputVector([3.0]), dy.ones((1,)), dy.ones((1,))).npvalue()))


def test_layer_norm_far_from_zero() -> None:
    a = 1000 + np.random.default_rng(0).standard_normal(64)
    a = a.astype(np.float32).astype(np.float64)
    y = dy.layer_norm(dy.inputVector(a), dy.ones((64,)), dy.zeros((64,))).npvalue()
    assert np.allclose(y, (a - a.mean()) / a.std(), atol=2e-3)


@pytest.mark.parametrize("base", [0.0, -1.0, -2.5])
def test_power_of_a_number_that_is_not_positive(base: float) -> None:
    """The exponent has no gradient there, as in pow()."""
    x = dy.inputVector([1.0, 2.0, 3.0, 0.0] * 5)
    y = base**x
    assert np.allclose(y.npvalue(), base ** x.npvalue())
    assert not np.any(gradient(x, scalar(y)))
    one = dy.inputVector([base])
    power = dy.pow(one, x)
    assert not np.any(gradient(x, scalar(power)))


def test_nothing_flows_into_an_infinite_power() -> None:
    x, y = dy.inputVector([1e30, 2.0]), dy.inputVector([2.0, 3.0])
    loss = dy.pow(x, y)[1]
    loss.backward(full=True)
    assert np.allclose(y.gradient(), [0, 8 * np.log(2)]) and np.allclose(x.gradient(), [0, 12])
