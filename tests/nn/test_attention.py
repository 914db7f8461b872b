"""Attention: its gradients, that weights are weights, that a mask hides, and that the heads are what the formula says."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import DotAttention, MLPAttention, MultiHeadAttention, causal_mask


@pytest.fixture
def model() -> dy.ParameterCollection:
    dy.reset_random_seed(3)
    return dy.ParameterCollection()


def attentions(model):
    return {
        "mlp": MLPAttention(3, 4, 5, model),
        "dot": DotAttention(3, 4, model),
        "plain": DotAttention(4, 4, projected=False),
    }


@pytest.mark.parametrize("kind", ["mlp", "dot", "plain"])
@pytest.mark.parametrize("n", [1, 6])
def test_context_is_a_weighted_mean_of_the_columns(kind, n, model):
    attention = attentions(model)[kind]
    rng = np.random.default_rng(0)
    columns, query = rng.standard_normal((4, n)), rng.standard_normal(4 if kind == "plain" else 3)
    dy.renew_cg()
    memory = attention.remember([dy.inputTensor(column) for column in columns.T])
    q = dy.inputTensor(query)
    weights, context = attention.weights(q, memory).npvalue(), attention(q, memory).npvalue()
    assert len(memory) == n and weights.shape == (n,)
    assert (weights > 0).all() and weights.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(context, columns @ weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["mlp", "dot", "plain"])
def test_gradients(kind, model):
    attention = attentions(model)[kind]
    q = model.add_parameters(4 if kind == "plain" else 3, init="normal")
    m = model.add_parameters((4, 6), init="normal")

    def loss():
        return dy.dot_product(attention(q, attention.remember(m)), dy.inputTensor([1.0, -2.0, 3.0, 0.5]))

    weights = [p for p in (getattr(attention, name, None) for name in "WUv") if p is not None]
    dy.gradcheck(loss, *weights, q, m)


@pytest.mark.parametrize("kind", ["mlp", "dot", "plain"])
def test_minibatches_of_queries_and_memories(kind, model):
    attention = attentions(model)[kind]
    rng = np.random.default_rng(3)
    columns, queries = rng.standard_normal((4, 6, 2)), rng.standard_normal((4 if kind == "plain" else 3, 2))
    dy.renew_cg()

    def context(q, m):
        return attention(q, attention.remember(m)).npvalue()

    one, many = dy.inputTensor, lambda x: dy.inputTensor(x, batched=True)
    expected = np.stack([context(one(queries[:, i]), one(columns[:, :, 0])) for i in range(2)], axis=1)
    np.testing.assert_allclose(context(many(queries), one(columns[:, :, 0])), expected, rtol=1e-5, atol=1e-6)
    expected = np.stack([context(one(queries[:, 0]), one(columns[:, :, i])) for i in range(2)], axis=1)
    np.testing.assert_allclose(context(one(queries[:, 0]), many(columns)), expected, rtol=1e-5, atol=1e-6)


def test_formulas_of_the_scores(model):
    mlp, dot, plain = attentions(model).values()
    rng = np.random.default_rng(2)
    columns, q3, q4 = rng.standard_normal((4, 6)), rng.standard_normal(3), rng.standard_normal(4)
    dy.renew_cg()

    def softmax(x):
        e = np.exp(x - x.max())
        return e / e.sum()

    def weights(attention, query):
        return attention.weights(dy.inputTensor(query), attention.remember(dy.inputTensor(columns))).npvalue()

    W, U, v = (p.as_array() for p in (mlp.W, mlp.U, mlp.v))
    expected = softmax((v @ np.tanh(W @ columns + (U @ q3)[:, None])).ravel())
    np.testing.assert_allclose(weights(mlp, q3), expected, rtol=1e-5)
    np.testing.assert_allclose(weights(dot, q3), softmax(q3 @ dot.W.as_array() @ columns), rtol=1e-5)
    np.testing.assert_allclose(weights(plain, q4), softmax(q4 @ columns / 2), rtol=1e-5)


def test_wrong_uses_are_clear(model):
    with pytest.raises(ValueError, match="empty"):
        MLPAttention(3, 4, 5, model).remember([])
    with pytest.raises(ValueError, match="model"):
        DotAttention(3, 4)
    with pytest.raises(ValueError, match="equal"):
        DotAttention(3, 4, projected=False)
    with pytest.raises(ValueError, match="multiple"):
        MultiHeadAttention(6, 4, model)


def test_heads_are_what_the_formula_says(model):
    attention = MultiHeadAttention(6, 3, model)
    rng = np.random.default_rng(4)
    x, memory = rng.standard_normal((6, 5)), rng.standard_normal((6, 4))
    dy.renew_cg()
    out = attention(dy.inputTensor(x), dy.inputTensor(memory)).npvalue()

    Wq, Wk, Wv, Wo = (p.as_array() for p in (attention.Wq, attention.Wk, attention.Wv, attention.Wo))
    mixed = []
    for head in range(3):
        rows = slice(2 * head, 2 * head + 2)
        scores = (Wk @ memory)[rows].T @ (Wq @ x)[rows] / np.sqrt(2)
        weights = np.exp(scores) / np.exp(scores).sum(axis=0)
        mixed.append((Wv @ memory)[rows] @ weights)
    np.testing.assert_allclose(out, Wo @ np.concatenate(mixed), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_heads(masked, model):
    attention = MultiHeadAttention(4, 2, model)
    x = model.add_parameters((4, 5), init="normal")
    weight = np.random.default_rng(0).standard_normal((4, 5))

    def loss():
        y = attention(x, mask=causal_mask(5) if masked else None)
        return dy.sum_elems(dy.cmult(y, dy.inputTensor(weight)))

    dy.gradcheck(loss, *model.parameters_list())


def test_one_position(model):
    attention = MultiHeadAttention(4, 2, model)
    dy.renew_cg()
    x = dy.concatenate_cols([dy.inputTensor([1.0, 2.0, 3.0, 4.0])])
    expected = attention.Wo.as_array() @ attention.Wv.as_array() @ [1.0, 2.0, 3.0, 4.0]
    mixed = attention(x, mask=causal_mask(1))
    assert mixed.dim() == ((4, 1), 1)
    np.testing.assert_allclose(mixed.npvalue().ravel(), expected, rtol=1e-5)
    np.testing.assert_allclose(attention(dy.inputTensor([1.0, 2.0, 3.0, 4.0])).npvalue().ravel(), expected, rtol=1e-5)


def test_what_comes_later_is_not_seen(model):
    attention = MultiHeadAttention(6, 2, model)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, 7))
    other = x.copy()
    other[:, 4:] = rng.standard_normal((6, 3))
    dy.renew_cg()
    a, b = (attention(dy.inputTensor(v), mask=causal_mask(7)).npvalue() for v in (x, other))
    np.testing.assert_array_equal(a[:, :4], b[:, :4])
    assert not np.allclose(a[:, 4:], b[:, 4:])
    weights = attention.weights(dy.inputTensor(x), dy.inputTensor(x), causal_mask(7)).npvalue()
    assert (weights[np.tril_indices(7, -1)] == 0).all()


@pytest.mark.parametrize("kind", ["mlp", "dot", "plain"])
def test_logits(kind, model):
    """The formulas, and the weights are their softmax."""
    attention = attentions(model)[kind]
    rng = np.random.default_rng(4)
    columns, query = rng.standard_normal((4, 5)), rng.standard_normal(4 if kind == "plain" else 3)
    dy.renew_cg()
    memory, q = attention.remember(dy.inputTensor(columns)), dy.inputTensor(query)
    logits = attention.logits(q, memory).npvalue()
    if kind == "mlp":
        W, U, v = (p.as_array() for p in (attention.W, attention.U, attention.v))
        expected = v @ np.tanh(W @ columns + (U @ query)[:, None])
    else:
        expected = query @ (columns / 2 if kind == "plain" else attention.W.as_array() @ columns)
    np.testing.assert_allclose(logits, expected.ravel(), rtol=1e-5, atol=1e-6)
    e = np.exp(logits)
    np.testing.assert_allclose(attention.weights(q, memory).npvalue(), e / e.sum(), rtol=1e-5)


def test_memory_without_rows(model):
    """It can be made, as layers of other sizes can that are never used."""
    assert len(model.parameters_list()) == 0
    DotAttention(3, 0, model)
    assert [p.shape() for p in model.parameters_list()] == [(3, 0)]


def test_logits_of_heads(model):
    """{memory, queries} X heads, the mask added; the weights are their softmax."""
    attention = MultiHeadAttention(4, 2, model)
    dy.renew_cg()
    x = dy.inputTensor(np.random.default_rng(5).standard_normal((4, 3)))
    logits, masked = attention.logits(x, x).npvalue(), attention.logits(x, x, causal_mask(3)).npvalue()
    Wq, Wk = attention.Wq.as_array(), attention.Wk.as_array()
    for head in range(2):
        rows = slice(2 * head, 2 * head + 2)
        expected = (Wk @ x.npvalue())[rows].T @ (Wq @ x.npvalue())[rows] / np.sqrt(2)
        np.testing.assert_allclose(logits[:, :, head], expected, rtol=1e-4, atol=1e-6)
    assert np.isinf(masked[1:, 0]).all() and (masked[0] == logits[0]).all()
    e = np.exp(logits)
    np.testing.assert_allclose(attention.weights(x, x).npvalue(), e / e.sum(0, keepdims=True), rtol=1e-5)
