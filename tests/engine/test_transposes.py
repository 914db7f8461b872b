"""Transposes of matrices that several calls of a backward pass share (ops/transposed.h), against gradients by hand.

Sizes are chosen by how far apart the columns of the copy lie: as long as they are, or a line of the cache farther.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fused_programs import Array, Model, each_strategy, engine, ops

import dynet_lite as dy
from dynet_lite import structure

SIZES = [20, 64, 128, 256]
LENGTHS = [31, 25, 18, 30] * 3  # of the chains: at least 64 members and many calls, also in each of three lanes


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
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_chains(threads: int, gated: bool, size: int, strategy: str) -> None:
    def chain(start: Array, length: int) -> Any:
        h = dy.inputTensor(start)
        for _ in range(length):
            a = dy.tanh(dy.affine_transform([b, W, h]))
            h = dy.cmult(a, dy.logistic(dy.affine_transform([c, U, h]))) if gated else a
        return dy.squared_norm(h)

    with engine(strategy=strategy, threads=threads):
        model = Model()
        W, b, U, c = (
            model.weight(name, *shape) for name, shape in zip("WbUc", [(size, size), (size,)] * 2, strict=True)
        )
        loss = dy.esum([chain(*how) for how in zip(starts(size), LENGTHS, strict=True)])
        loss.backward()
        assert gated == ("joined" in ops())
        # Joined maps together, all lanes together; nothing is shared where each node is a batch of its own.
        assert dy.stats()["matrices_transposed"] == (strategy != "none")
        weights = [W, b, U, c]
        wanted, gradients = by_hand([w.as_array() for w in weights], size, gated)
        assert loss.value() == pytest.approx(wanted, rel=1e-5)
        for w, gradient in zip(weights, gradients, strict=True):
            np.testing.assert_allclose(
                w.grad_as_array(), gradient, rtol=1e-3, atol=1e-5 * max(1.0, np.abs(gradient).max())
            )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "builder", ["LSTMBuilder", "VanillaLSTMBuilder", "GRUBuilder", "SimpleRNNBuilder", "CoupledLSTMBuilder"]
)
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


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_matrices_of_many_widths(threads: int) -> None:
    """One weight, products of as many signatures as there are widths: it is transposed once."""
    widths = [*range(32, 50)] * 2

    def inputs(width: int) -> Array:
        return np.random.default_rng(width).uniform(-1, 1, (24, width))

    with engine(threads=threads):
        model = Model()
        W, V = model.weight("W", 20, 24), model.weight("V", 24, 24)
        losses = [
            dy.squared_norm(dy.affine_transform([dy.zeros((20, width)), W, V * dy.inputTensor(inputs(width))]))
            for width in widths
        ]
        dy.esum(losses).backward()
        w, v = (p.as_array().astype(np.float64) for p in (W, V))
        dW, dV = (sum(parts) for parts in zip(*[
            (2 * (w @ v @ x) @ (v @ x).T, w.T @ (2 * (w @ v @ x)) @ x.T) for x in (inputs(width) for width in widths)
        ], strict=True))  # fmt: skip
        np.testing.assert_allclose(W.grad_as_array(), dW, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(V.grad_as_array(), dV, rtol=1e-4, atol=1e-3)
        assert dy.stats()["matrices_transposed"] == 1  # nothing flows through V to an input


@pytest.mark.parametrize("threads", [1, 2])
def test_what_begins_at_one_address(threads: int) -> None:
    """A matrix, its first columns, and the same memory in another shape are not one transpose."""
    n, half = 80, 32
    with engine(threads=threads):
        model = Model()
        W, b = model.weight("W", half, 2 * half), model.weight("b", half)
        turned = dy.reshape(W, (2 * half, half))
        left, right, whole, other = (model.pc.add_lookup_parameters((n, size)) for size in (half, half, 2 * half, half))
        losses = []
        for k in range(n):
            sums = [dy.affine_transform([b, W, dy.concatenate([left[k], right[k]])]), W * whole[k], turned * other[k]]
            losses += [dy.squared_norm(y) for y in sums]
        loss = dy.esum(losses)
        del losses, sums
        loss.backward()
        assert (
            sum(node.op.endswith("(concatenate)") for node in structure.read().nodes if node.sort == "op") == n
        )  # read in parts
        assert dy.stats()["matrices_transposed"] == 4
        w = W.as_array().astype(np.float64)
        t = w.reshape(2 * half, half, order="F")
        x, y, z, u = (table.as_array() for table in (left, right, whole, other))
        sums = 2 * (x @ w[:, :half].T + y @ w[:, half:].T + b.as_array())
        wanted = [sums @ w[:, :half], sums @ w[:, half:], 2 * z @ w.T @ w, 2 * u @ t.T @ t]
        for table, gradient in zip((left, right, whole, other), wanted, strict=True):
            np.testing.assert_allclose(table.grad_as_array(), gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "length", "times"), [(50, 8, 1), (50, 7, 0), (64, 8, 0), (64, 16, 1), (150, 8, 0), (150, 16, 1)]
)
def test_enough_members(size: int, length: int, times: int) -> None:
    """Short columns that fill no whole lines of the cache are worth transposing for fewer members."""
    with engine():
        model = Model()
        W, b = model.weight("W", size, size), model.weight("b", size)
        start = np.random.default_rng(size).uniform(-1, 1, size)
        h = dy.inputTensor(start)
        for _ in range(length):
            h = dy.tanh(dy.affine_transform([b, W, h]))
        dy.squared_norm(h).backward()
        assert dy.stats()["matrices_transposed"] == times
        w, hs = W.as_array().astype(np.float64), [start.astype(np.float32).astype(np.float64)]
        for _ in range(length):
            hs.append(np.tanh(w @ hs[-1] + b.as_array()))
        dh, wanted = 2 * hs[-1], np.zeros_like(w)
        for x, y in zip(hs[-2::-1], hs[:0:-1], strict=True):
            da = dh * (1 - y * y)
            wanted += np.outer(da, x)
            dh = w.T @ da
        np.testing.assert_allclose(W.grad_as_array(), wanted, rtol=1e-3, atol=1e-5 * max(1.0, np.abs(wanted).max()))
