"""Losses of dynet_lite.nn against their formulas, one by one and in a mini-batch."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import smoothed_loss


def reference(scores: np.ndarray, label: int, smoothing: float) -> float:
    target = np.full(scores.size, smoothing / scores.size)
    target[label] += 1 - smoothing
    return float(-(target * (scores - np.log(np.exp(scores).sum()))).sum())


@pytest.mark.parametrize("smoothing", [0, 0.1, 0.9])
def test_smoothed_loss(smoothing: float) -> None:
    scores = np.random.RandomState(2).randn(6, 3)
    labels = [5, 0, 2]
    expected = [reference(scores[:, k], labels[k], smoothing) for k in range(3)]
    dy.renew_cg()
    single = [smoothed_loss(dy.inputTensor(scores[:, k]), labels[k], smoothing).value() for k in range(3)]
    np.testing.assert_allclose(single, expected, rtol=1e-5)
    batched = smoothed_loss(dy.inputTensor(scores, batched=True), labels, smoothing)
    np.testing.assert_allclose(batched.npvalue().ravel(), expected, rtol=1e-5)


def test_smoothed_loss_gradient() -> None:
    """softmax(s) minus the smoothed target."""
    m = dy.ParameterCollection()
    s = m.add_parameters(4, init=np.array([1.0, -2, 0.5, 0]))
    dy.renew_cg()
    smoothed_loss(dy.parameter(s), 1, 0.2).backward()
    e = np.exp([1.0, -2, 0.5, 0])
    np.testing.assert_allclose(s.grad_as_array(), e / e.sum() - [0.05, 0.85, 0.05, 0.05], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("smoothing", [-0.1, 1, float("nan")])
def test_smoothing_out_of_range(smoothing: float) -> None:
    with pytest.raises(ValueError, match=r"\[smoothed_loss\] a smoothing >= 0 and < 1 is needed"):
        smoothed_loss(dy.inputVector([1, 2]), 0, smoothing)
