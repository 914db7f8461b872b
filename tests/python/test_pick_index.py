"""set_index(): another place in the same node of pick(), with what is built on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

A = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", ["input", "op", "weight", "batch"])
def test_set_index_of_pick(kind: str, dim: int) -> None:
    m = dy.ParameterCollection()
    a = np.stack([A, 2 * A], -1) if kind == "batch" else A
    x: Any = m.add_parameters((3, 4), init=A) if kind == "weight" else dy.inputTensor(a, batched=kind == "batch")
    if kind == "op":
        x = x * 1.0
    e = dy.pick(x, 1, dim)
    f = dy.reshape(e, (1, e.dim()[0][0]), e.dim()[1])
    g = dy.pick(f, 1, 1)
    other = dy.pick(x, 2, dim)
    total = dy.sum_batches(dy.sum_elems(dy.square(g) + dy.sum_elems(e)))

    def check(k: int, j: int) -> None:
        wanted = a.take(k, dim)
        np.testing.assert_allclose(e.npvalue(), wanted)
        np.testing.assert_allclose(f.npvalue().ravel(), wanted.ravel())
        np.testing.assert_allclose(g.npvalue().ravel(), wanted[j].ravel())
        np.testing.assert_allclose(other.npvalue(), a.take(2, dim))
        assert total.value() == pytest.approx((wanted[j] ** 2).sum() + wanted.sum())
        m.reset_gradient()
        total.backward(full=True)
        place = np.moveaxis(np.zeros_like(a), dim, 0)
        place[k] += 1
        place[k][j] += 2 * wanted[j]
        np.testing.assert_allclose(x.gradient(), np.moveaxis(place, 0, dim))

    check(1, 1)
    for which, index, k, j in ((e, 0, 0, 1), (e, -1, -1, 1), (g, 2, -1, 2), (e, 1, 1, 2)):
        which.set_index(index)
        check(k, j)
    with pytest.raises(IndexError):
        e.set_index(9)
    check(1, 2)
    for wrong in (total, x):
        with pytest.raises(TypeError):
            wrong.set_index(0)


def test_set_index_of_pick_batch() -> None:
    e = dy.pick_batch(dy.inputTensor(A), [0, 2, 1])
    t = dy.tanh(e)
    t.value()
    e.set_index([1, 1, -1])
    np.testing.assert_allclose(e.npvalue(), A[[1, 1, 2]].T)
    np.testing.assert_allclose(t.npvalue(), np.tanh(A[[1, 1, 2]].T), rtol=1e-6)
    with pytest.raises(IndexError):
        e.set_index([0, 5, 0])
    with pytest.raises(ValueError):
        e.set_index([0, 1])
    np.testing.assert_allclose(e.npvalue(), A[[1, 1, 2]].T)
    v = dy.inputVector([1, 2, 3])[1]
    v.set_index(2)
    assert v.value() == 3
