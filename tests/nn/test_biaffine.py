"""Biaffine scores against NumPy, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import Biaffine


@pytest.fixture
def vectors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(4, 5)), rng.normal(size=(3, 6))


def filled(labels: int) -> tuple[Biaffine, dy.ParameterCollection]:
    model = dy.ParameterCollection()
    layer = Biaffine(model, 4, 3, labels)
    rng = np.random.default_rng(labels)
    for p in model.parameters_list():
        p.set_value(rng.normal(size=p.shape()))
    return layer, model


def test_all_pairs(vectors):
    heads, dependents = vectors
    layer, model = filled(1)
    dy.renew_cg()
    scores = layer.all_pairs(dy.inputTensor(heads), dy.inputTensor(dependents)).npvalue()
    want = heads.T @ layer.U.as_array() @ dependents + (heads.T @ layer.u.as_array())[:, None]
    np.testing.assert_allclose(scores, want, rtol=1e-4, atol=1e-5)
    assert len(model.parameters_list()) == 2


@pytest.mark.parametrize("labels", [1, 7])
def test_pairs(vectors, labels):
    heads, dependents = vectors[0], vectors[1][:, :5]
    layer, _ = filled(labels)
    dy.renew_cg()
    scores = layer.pairs(dy.inputTensor(heads), dy.inputTensor(dependents))
    assert scores.dim() == ((labels,), 5)
    U, u = layer.U.as_array(), layer.u.as_array()
    want = np.empty((labels, 5))
    for label in range(labels):
        U_l, u_l = U[label::labels], u[label::labels]
        for k in range(5):
            want[label, k] = heads[:, k] @ U_l @ dependents[:, k] + u_l @ heads[:, k]
    if labels > 1:
        want += layer.W.as_array() @ dependents + layer.b.as_array()[:, None]
    np.testing.assert_allclose(scores.npvalue().reshape(labels, 5), want, rtol=1e-4, atol=1e-5)


def test_gradients(vectors):
    heads, dependents = vectors
    labels, model = filled(3)
    arcs = Biaffine(model, 4, 3)

    def loss(h: dy.Expression, d: dy.Expression) -> dy.Expression:
        one = dy.sum_elems(dy.tanh(arcs.all_pairs(h, d)))
        return one + dy.sum_batches(dy.pickneglogsoftmax(labels.pairs(h, d[:, :5]), [0, 1, 2, 1, 0]))

    dy.gradcheck(lambda *params: loss(*params[-2:]), *model.parameters_list(), heads, dependents)


def test_all_pairs_is_for_one_label(vectors):
    layer, _ = filled(2)
    with pytest.raises(ValueError, match="needs one label"):
        layer.all_pairs(dy.inputTensor(vectors[0]), dy.inputTensor(vectors[1]))
