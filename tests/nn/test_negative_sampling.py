"""The loss of skip-gram against its formula, the words that are drawn, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import NegativeSampling

COUNTS = [10.0, 0.0, 1.0, 5.0, 100.0]


def test_loss_and_gradients() -> None:
    m = dy.ParameterCollection()
    sampling = NegativeSampling(m, 3, COUNTS)
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((5, 3)), rng.standard_normal(3)
    sampling.table.init_from_array(u)
    x = m.add_parameters(3, init=v)
    near, far = [3, 0], [4, 3, 2]  # 3 is not counted against itself, but against 0

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    expected, dx, du = 0.0, np.zeros(3), np.zeros((5, 3))
    for word in near:
        for other, sign in [(word, 1), *((k, -1) for k in far if k != word)]:
            p = sigmoid(sign * u[other] @ v)
            expected -= np.log(p)
            dx -= (1 - p) * sign * u[other]
            du[other] -= (1 - p) * sign * v
    dy.renew_cg()
    loss = sampling.loss(x, near, far)
    assert loss.value() == pytest.approx(expected, rel=1e-5)
    loss.backward()
    np.testing.assert_allclose(x.grad_as_array(), dx, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(sampling.table.grad_as_array(), du, rtol=1e-4, atol=1e-6)


def test_draws() -> None:
    sampling = NegativeSampling(dy.ParameterCollection(), 2, COUNTS, seed=3)
    wanted = np.array(COUNTS) ** 0.75
    np.testing.assert_allclose(sampling.probabilities, wanted / wanted.sum(), atol=1e-12)
    found = np.bincount(sampling.draw(20000), minlength=5) / 20000
    assert found[1] == 0 and np.abs(found - sampling.probabilities).max() < 0.015
    again = [NegativeSampling(dy.ParameterCollection(), 2, COUNTS, seed=3).draw(9) for _ in range(2)]
    assert again[0] == again[1] != NegativeSampling(dy.ParameterCollection(), 2, COUNTS, seed=4).draw(9)
    assert NegativeSampling(dy.ParameterCollection(), 2, [0, 2, 0], power=0).draw(5) == [1] * 5


def test_rare_words_more_often() -> None:
    sampling = NegativeSampling(dy.ParameterCollection(), 2, [1, 0, 4], power=-1)
    np.testing.assert_allclose(sampling.probabilities, [0.8, 0, 0.2], atol=1e-12)
    assert set(sampling.draw(100)) == {0, 2}
    with pytest.raises(ValueError, match="power=nan"):
        NegativeSampling(dy.ParameterCollection(), 2, [1, 0, 4], power=float("nan"))


def test_pairs_of_all_sizes_are_one_batch() -> None:
    m = dy.ParameterCollection()
    sampling, table = NegativeSampling(m, 4, COUNTS), m.add_lookup_parameters((5, 4))
    dy.renew_cg()
    dy.esum([sampling.loss(table[0], [1, 2, 3]), sampling.loss(table[1], 4), sampling.loss(table[2], [0, 0])]).value()
    products = [kind for kind in dy.explain_batches().kinds if "dot_product" in kind.op]
    assert [len(kind.batches) for kind in products] == [1] and products[0].nodes == 6


def test_it_learns_who_occurs_with_whom() -> None:
    """Words 0-4 occur with one another, and so do 5-9."""
    dy.reset_random_seed(5)
    m = dy.ParameterCollection()
    table, sampling = m.add_lookup_parameters((10, 8), init="normal", std=0.3), NegativeSampling(m, 8, [1] * 10, seed=2)
    trainer, rng = dy.AdamTrainer(m, 0.02), np.random.default_rng(1)
    for _ in range(150):
        dy.renew_cg()
        losses = []
        for word in range(10):
            others = [k for k in range(word // 5 * 5, word // 5 * 5 + 5) if k != word]
            losses.append(sampling.loss(table[word], rng.choice(others, 2).tolist()))
        dy.esum(losses).backward()
        trainer.update()
    scores = table.as_array() @ sampling.table.as_array().T
    same = np.equal.outer(np.arange(10) // 5, np.arange(10) // 5) & ~np.eye(10, dtype=bool)
    assert scores[same].min() > scores[~same & ~np.eye(10, dtype=bool)].max()


def test_wrong_use() -> None:
    m = dy.ParameterCollection()
    for counts in ([], [0, 0], [-1, 2], [np.nan, 1], [[1, 2]]):
        with pytest.raises(ValueError, match="counts"):
            NegativeSampling(m, 2, counts)
    with pytest.raises(ValueError, match="sample"):
        NegativeSampling(m, 2, [1, 2], samples=0)
    sampling = NegativeSampling(m, 2, [1, 2])
    dy.renew_cg()
    with pytest.raises(ValueError, match="at least one word"):
        sampling.loss(dy.ones(2), [])
    with pytest.raises(IndexError):
        sampling.loss(dy.ones(2), 2)
    for batch in (2, 6):  # the second: as many as there are scores of a word
        with pytest.raises(ValueError, match="one vector"):
            sampling.loss(dy.zeros(2, batch_size=batch), 1)
