"""Transformer layers: normalisation by column, gradients, causality, alike in batches and alone."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import LayerNorm, Transformer, TransformerLayer, positions


@pytest.fixture
def model() -> dy.ParameterCollection:
    dy.reset_random_seed(5)
    return dy.ParameterCollection()


def test_each_column_is_normalised(model):
    norm = LayerNorm(6, model)
    norm.gain.set_value(np.arange(1.0, 7.0))
    norm.bias.set_value(np.full(6, 0.5))
    x = np.random.default_rng(0).standard_normal((6, 4))
    expected = (x - x.mean(axis=0)) / x.std(axis=0) * np.arange(1.0, 7.0)[:, None] + 0.5
    dy.renew_cg()
    np.testing.assert_allclose(norm(dy.inputTensor(x)).npvalue(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm(dy.inputTensor(x[:, 0])).npvalue(), expected[:, 0], rtol=1e-4, atol=1e-5)


def test_positions_are_sines_of_different_lengths():
    dy.renew_cg()
    table = positions(6, 9).npvalue()
    assert table.shape == (6, 9)
    np.testing.assert_allclose(table[0], np.sin(np.arange(9)), atol=1e-6)
    np.testing.assert_allclose(table[1], np.cos(np.arange(9)), atol=1e-6)
    np.testing.assert_allclose(table[4], np.sin(np.arange(9) / 10000 ** (4 / 6)), atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal, model):
    transformer = Transformer(2, 4, 2, 6, model)
    x = model.add_parameters((4, 5), init="normal")
    weight = np.random.default_rng(0).standard_normal((4, 5))
    loss = lambda: dy.dot_product(transformer(x, causal=causal), dy.inputTensor(weight))  # noqa: E731
    dy.gradcheck(loss, *model.parameters_list(), directions=2, rtol=5e-3, atol=5e-4)


def test_causal_means_that_the_future_is_not_seen(model):
    transformer = Transformer(3, 6, 2, 12, model)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((6, 8))
    for n in range(1, 8):
        other = x.copy()
        other[:, n:] = rng.standard_normal((6, 8 - n))
        dy.renew_cg()
        a, b, short = (transformer(dy.inputTensor(v), causal=True).npvalue() for v in (x, other, x[:, :n]))
        np.testing.assert_array_equal(a[:, :n], b[:, :n])
        np.testing.assert_allclose(short.reshape(6, n), a[:, :n], rtol=1e-4, atol=1e-5)
        assert not np.allclose(a[:, n:], b[:, n:])


@pytest.mark.parametrize("causal", [False, True])
def test_one_position(causal, model):
    """A sequence of one position, made as a matrix or as a vector: affine_transform() gives a vector where there is one column."""
    transformer = Transformer(2, 4, 2, 8, model)
    W, b = model.add_parameters((4, 4)), model.add_parameters(4)
    x = np.random.default_rng(1).standard_normal((4, 3))
    dy.renew_cg()
    expected = transformer(dy.inputTensor(x[:, :1]), causal=causal).npvalue()
    found = transformer(dy.inputTensor(x[:, 0]), causal=causal)
    assert found.dim() == ((4, 1), 1)
    np.testing.assert_array_equal(found.npvalue(), expected)
    mapped = dy.affine_transform([b, W, dy.inputTensor(x[:, :1])])
    assert mapped.dim() == ((4,), 1)
    assert transformer(mapped, causal=causal).dim() == ((4, 1), 1)


def test_causal_with_a_mask(model):
    """A column sees what both let it see."""
    transformer, rng = Transformer(2, 4, 2, 8, model), np.random.default_rng(4)
    mask = np.zeros((6, 6))
    mask[2, [0, 1, 3, 4, 5]] = -np.inf
    x = rng.standard_normal((4, 6))
    for changed, same in ((5, [0, 1, 2, 3, 4]), (2, [0, 1, 3, 4, 5])):
        other = x.copy()
        other[:, changed] += 1
        dy.renew_cg()
        a, b = (transformer(v, dy.inputTensor(mask), causal=True).npvalue() for v in (x, other))
        np.testing.assert_array_equal(a[:, same], b[:, same])
    both = dy.inputTensor(np.minimum(mask, np.where(np.tri(6, k=-1), -np.inf, 0)))
    np.testing.assert_array_equal(b, transformer(other, both).npvalue())


@pytest.mark.parametrize("strategy", ["greedy", "agenda", "depth"])
def test_together_and_alone(strategy, model):
    transformer = Transformer(2, 6, 3, 8, model)
    inputs = [np.random.default_rng(i).standard_normal((6, n)) for i, n in enumerate([4, 1, 7, 4, 4])]
    alone = []
    for x in inputs:
        dy.renew_cg(autobatching=False)
        alone.append(transformer(dy.inputTensor(x), causal=True).npvalue())
    with dy.configure(strategy=strategy):
        dy.renew_cg(autobatching=True)
        together = [transformer(dy.inputTensor(x), causal=True) for x in inputs]
        dy.forward(together)
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_allclose(a, b.npvalue(), rtol=1e-4, atol=1e-5)


def test_arrays(model):
    """In place of expressions, as operators take them."""
    transformer, x = Transformer(1, 4, 2, 8, model), np.random.default_rng(3).standard_normal((4, 3))
    dy.renew_cg()
    for causal in (False, True):
        expected = transformer(dy.inputTensor(x), causal=causal).npvalue()
        np.testing.assert_array_equal(transformer(x, causal=causal).npvalue(), expected)


def test_dropout_and_masks(model):
    layer = TransformerLayer(4, 2, 6, model)
    x = np.random.default_rng(2).standard_normal((4, 3))
    hide_first = np.zeros((3, 3))
    hide_first[0, :] = -np.inf
    dy.renew_cg()
    mask = dy.inputTensor(hide_first)
    other = x.copy()
    other[:, 0] += 1
    a, b = (layer(dy.inputTensor(v), mask).npvalue() for v in (x, other))
    np.testing.assert_array_equal(a[:, 1:], b[:, 1:])
    assert not np.allclose(a[:, 1:], layer(dy.inputTensor(x), mask, dropout=0.5).npvalue()[:, 1:])
    with pytest.raises(ValueError, match="layers must be 1 or more"):
        Transformer(0, 4, 2, 6, model)
