"""Transposes of matrices that several calls of a backward pass share (ops/transposed.h), against gradients by hand.

Sizes are chosen by how far apart the columns of the copy lie: as long as they are, or a line of the cache farther.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fused_programs import Array, Model, each_strategy, engine, ops

import dynet_lite as dy

SIZES = [20, 64, 128, 256]
LENGTHS = [31, 25, 18, 30]  # of the chains: at least 64 members and many calls


def starts(size: int) -> Array:
    return np.random.default_rng(size).uniform(-1, 1, (len(LENGTHS), size))


def by_hand(weights: list[Array], size: int, gated: bool) -> tuple[float, list[Array]]:
    """Loss and gradients of weights in double precision, step by step."""
    loss, grads = 0.0, [np.zeros(w.shape) for w in weights]
    W, b, U, c = (np.asarray(w, np.float64) for w in weights)
    for start, length in zip(starts(size).astype(np.float32).astype(np.float64), LENGTHS, strict=True):
        hs, parts = [start], []
        for _ in range(length):
            a = np.tanh(W @ hs[-1] + b)
            z = 1 / (1 + np.exp(-(U @ hs[-1] + c))) if gated else np.ones(size)
            parts.append((a, z))
            hs.append(a * z)
        loss += hs[-1] @ hs[-1]
        dh = 2 * hs[-1]
        for h, (a, z) in zip(hs[-2::-1], parts[::-1], strict=True):
            da, dz = dh * z * (1 - a * a), dh * a * z * (1 - z)
            dh = W.T @ da
            grads[0] += np.outer(da, h)
            grads[1] += da
            if gated:
                dh += U.T @ dz
                grads[2] += np.outer(dz, h)
                grads[3] += dz
    return float(loss), grads


@each_strategy
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("gated", [False, True], ids=["one map", "joined maps"])
def test_chains(gated: bool, size: int, strategy: str) -> None:
    def chain(start: Array, length: int) -> Any:
        h = dy.inputTensor(start)
        for _ in range(length):
            a = dy.tanh(dy.affine_transform([b, W, h]))
            h = dy.cmult(a, dy.logistic(dy.affine_transform([c, U, h]))) if gated else a
        return dy.squared_norm(h)

    with engine(strategy=strategy):
        model = Model()
        W, b, U, c = (model.weight(name, *shape) for name, shape in zip("WbUc", [(size, size), (size,)] * 2, strict=True))
        loss = dy.esum([chain(*how) for how in zip(starts(size), LENGTHS, strict=True)])
        loss.backward()
        assert gated == ("joined" in ops())
        weights = [W, b, U, c]
        wanted, gradients = by_hand([w.as_array() for w in weights], size, gated)
        assert loss.value() == pytest.approx(wanted, rel=1e-5)
        for w, gradient in zip(weights, gradients, strict=True):
            np.testing.assert_allclose(w.grad_as_array(), gradient, rtol=1e-3, atol=1e-5 * max(1.0, np.abs(gradient).max()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("builder", ["LSTMBuilder", "VanillaLSTMBuilder", "GRUBuilder", "SimpleRNNBuilder", "CoupledLSTMBuilder"])
def test_cells(builder: str, size: int) -> None:
    """Sentences together share a transpose; one by one they are too few for that."""
    pc = dy.ParameterCollection()
    cell = getattr(dy, builder)(1, 8, size, pc)
    sentences = np.random.default_rng(5).uniform(-1, 1, (20, 12, 8))

    def gradients(minibatches: list[Array]) -> list[Array]:
        for minibatch in minibatches:
            dy.renew_cg()
            states = [h for xs in minibatch for h in cell.initial_state().transduce([dy.inputTensor(x) for x in xs])]
            dy.esum([dy.squared_norm(h) for h in states]).backward()
        found = [p.grad_as_array() for p in pc.parameters_list()]
        for p in pc.parameters_list():
            p.zero_gradient()
        return found

    with engine():
        together, in_turn = gradients([sentences]), gradients(list(sentences[:, None]))
        for one, other in zip(together, in_turn, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5 * max(1.0, np.abs(other).max()))
