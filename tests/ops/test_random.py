"""Random ops: distributions, seeds, identity at 0, what changes from evaluation to evaluation and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import STRATEGIES, graph

import dynet_lite as dy
from dynet_lite import _core

N = 100_000


def moments(x: np.ndarray) -> tuple[float, float, float]:
    z = (x - x.mean()) / x.std()
    return float(x.mean()), float(x.std()), float((z**3).mean())


def test_normal() -> None:
    mean, std, skew = moments(dy.random_normal((N,), mean=2.0, stddev=3.0).npvalue())
    assert abs(mean - 2) < 0.05 and abs(std - 3) < 0.05 and abs(skew) < 0.05


def test_uniform() -> None:
    x = dy.random_uniform((N,), -1.0, 3.0).npvalue()
    assert x.min() >= -1 and x.max() < 3
    counts = np.histogram(x, 20, (-1, 3))[0]
    assert np.all(np.abs(counts - N / 20) < 6 * np.sqrt(N / 20))


def test_bernoulli() -> None:
    x = dy.random_bernoulli((N,), 0.3, 2.5).npvalue()
    assert set(np.unique(x)) == {0.0, 2.5}
    assert abs((x > 0).mean() - 0.3) < 0.01
    assert not np.any(dy.random_bernoulli((50,), 0.0).npvalue())
    assert np.all(dy.random_bernoulli((50,), 1.0).npvalue() == 1)


def test_gumbel() -> None:
    mean, std, skew = moments(dy.random_gumbel((N,)).npvalue())
    assert abs(mean - 0.57722) < 0.03 and abs(std - np.pi / np.sqrt(6)) < 0.03 and abs(skew - 1.1395) < 0.2
    mean, std, _ = moments(dy.random_gumbel((N,), mu=1.0, beta=2.0).npvalue())
    assert abs(mean - 1 - 2 * 0.57722) < 0.05 and abs(std - 2 * np.pi / np.sqrt(6)) < 0.05


def test_neighbours_and_nodes_are_independent() -> None:
    x, y = dy.random_normal((N,)), dy.random_normal((N,))
    a, b = x.npvalue(), y.npvalue()
    for u, v in ((a, b), (a[1:], a[:-1]), (a[2:], a[:-2]), (a[N // 2 :], a[: N // 2])):
        assert abs(np.corrcoef(u, v)[0, 1]) < 0.02


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean(p: float) -> None:
    y = dy.dropout(dy.ones((N,)), p).npvalue()
    values = np.unique(y)
    assert values[0] == 0 and len(values) == 2 and np.isclose(values[1], 1 / (1 - p), rtol=1e-5)
    assert abs((y == 0).mean() - p) < 0.01


def test_dropout_grains() -> None:
    x = dy.ones((4, 5), batch_size=200)
    rows = dy.dropout_dim(x, 1, 0.5).npvalue()  # a row is dropped as a whole
    assert np.all(rows == rows[:, :1]) and 0 < (rows == 0).mean() < 1
    cols = dy.dropout_dim(x, 0, 0.5).npvalue()
    assert np.all(cols == cols[:1]) and not np.all(cols == cols[:, :1])
    items = dy.dropout_batch(x, 0.5).npvalue()
    assert np.all(items == items[0, 0]) and 50 < (items[0, 0] == 0).sum() < 150
    whole = [dy.block_dropout(x, 0.5).npvalue() for _ in range(50)]
    assert all(np.all(w == w.flat[0]) for w in whole)
    assert 5 < sum(w.flat[0] == 0 for w in whole) < 45


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dy.dropout(x, 0),
        lambda x: dy.dropout_batch(x, 0.0),
        lambda x: dy.dropout_dim(x, 0, 0),
        lambda x: dy.block_dropout(x, 0),
        lambda x: dy.noise(x, 0),
    ],
)
def test_nothing_to_drop_makes_no_node(call: Any) -> None:
    x = dy.inputVector([1.0, 2.0])
    before = len(_core.cg())
    assert call(x) is x
    assert len(_core.cg()) == before
    p = _core.Parameters.make((2,), "/p")
    assert call(p) is p
    assert np.array_equal(call(np.array([1.0, 2.0])).npvalue(), [1, 2])


def test_the_seed_decides() -> None:
    def draw(seed: int, strategy: str) -> list[np.ndarray]:
        with graph(strategy, seed):
            x = dy.ones((7,))
            es = [
                dy.dropout(x, 0.5),
                dy.random_normal((3,)),
                dy.dropout(x, 0.5),
                dy.noise(x, 1.0),
                dy.random_normal((3,)),
            ]
            return [e.npvalue() for e in es]

    first = draw(3, "none")
    for strategy in STRATEGIES:
        assert all(np.array_equal(a, b) for a, b in zip(first, draw(3, strategy), strict=True))
    assert not np.array_equal(first[1], first[4])
    assert not np.array_equal(first[1], draw(4, "none")[1])


def test_a_new_sample_at_each_evaluation() -> None:
    x = dy.random_normal((5,))
    y = x * 2.0
    first = x.npvalue()
    assert np.array_equal(first, x.npvalue())
    assert np.allclose(y.npvalue(), 2 * first)
    again = x.npvalue(recalculate=True)
    assert not np.array_equal(first, again)
    assert np.allclose(y.npvalue(), 2 * again)


def test_backward_uses_the_mask_of_forward() -> None:
    p = _core.Parameters.make((50,), "/p")
    p.set_value(np.ones(50))
    y = dy.dropout(p, 0.5)
    value = y.npvalue()
    (dy.inputTensor(np.ones((1, 50))) * y).backward()
    assert np.array_equal(p.grad_as_array(), value)


def test_dropout_of_a_weight_is_not_a_weight() -> None:
    """Two drops of one weight matrix are different values."""
    w = _core.Parameters.make((6, 6), "/w")
    w.set_value(np.ones((6, 6)))
    x = dy.ones((6,))
    a, b = dy.dropout(w, 0.5) * x, dy.dropout(w, 0.5) * x
    assert not np.array_equal(a.npvalue(), b.npvalue())
