"""gradient() of weights and of looked-up rows is that of the last backward(); what passes add up is grad_as_array()."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

SETTINGS = [
    {"autobatch": a, "fuse": f, "threads": t, "keep_weights": k}
    for a, f, t, k in itertools.product((True, False), (True, False), (1, 2, 3), (False, True))
    if k == (t == 1 and f)
]


@pytest.fixture(params=SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def setting(request: pytest.FixtureRequest) -> Iterator[dict]:
    work = _core.settings.least_work
    _core.settings.least_work = 0
    dy.configure(**request.param)
    dy.renew_cg()
    yield request.param
    dy.configure(autobatch=True, fuse=True, threads=1, keep_weights=False)
    _core.settings.least_work = work
    dy.renew_cg()


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape)


def near(a: object, b: object) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-6)


def model() -> tuple[dy.ParameterCollection, dy.Parameters, dy.LookupParameters]:
    m = dy.ParameterCollection()
    return m, m.add_parameters(16, init=1.0), m.add_lookup_parameters((300, 16), init=1.0)


def test_a_row_and_a_batch_of_rows(setting):
    _, _, U = model()
    e = U[0]
    loss = dy.sum_elems(e) + dy.sum_batches(dy.sum_elems(U.batch(range(1, 200))))
    loss.backward()
    near(e.gradient(), ones(16))
    near(U.row_grad_as_array(0), ones(16))
    assert (U.grad_as_array()[:200] == 1).all()


def test_a_row_and_the_whole_table(setting):
    _, _, U = model()
    e = U[0]
    loss = dy.sum_elems(e * 2) + dy.sum_elems(U)
    loss.backward()
    near(e.gradient(), 2 * ones(16))
    near(U.gradient(), ones(16, 300))
    near(U.row_grad_as_array(0), 3 * ones(16))


def test_two_look_ups_of_a_row_are_two_expressions(setting):
    _, _, U = model()
    e, f = U[7], U[7]
    one = U.batch([7])
    loss = dy.sum_elems(dy.tanh(e) * 2) + dy.sum_elems(dy.tanh(f) * 3) + dy.sum_elems(one)
    loss.backward()
    slope = 1 - np.tanh(1.0) ** 2
    near(e.gradient(), 2 * slope * ones(16))
    near(f.gradient(), 3 * slope * ones(16))
    near(one.gradient(), ones(16))
    near(U.row_grad_as_array(7), (5 * slope + 1) * ones(16))


def test_the_last_of_several_passes(setting):
    m, W, U = model()
    e = U[3]
    loss, k = dy.sum_elems(dy.cmult(W, e)) * 2, dy.sum_elems(W + e)
    loss.backward()
    near(W.gradient(), 2 * ones(16))
    loss.backward()
    near(W.gradient(), 2 * ones(16))
    near(e.gradient(), 2 * ones(16))
    k.backward()
    near(W.gradient(), ones(16))
    near(e.gradient(), ones(16))
    near(W.grad_as_array(), 5 * ones(16))
    near(U.row_grad_as_array(3), 5 * ones(16))


def test_read_late(setting):
    """After what changes the accumulators, and another graph's pass."""
    m, W, U = model()
    trainer = dy.SimpleSGDTrainer(m, 0.1)
    e = U[3]
    dy.sum_elems(e * 2 + W).backward()
    trainer.update()
    near(e.gradient(), 2 * ones(16))
    U.zero_gradient()
    with dy.graph():
        (dy.sum_elems(U[299]) * 9 + dy.sum_elems(U[3])).backward()
        near(U[299].npvalue(), ones(16))
    near(e.gradient(), 2 * ones(16))
    if setting["keep_weights"]:
        near(W.gradient(), ones(16))
    else:
        with pytest.raises(RuntimeError, match="the weight's gradients were changed since"):
            W.gradient()
    near(W.grad_as_array(), 0 * ones(16))


@pytest.mark.parametrize("change", ["zero_gradient", "scale_gradient", "set_grad", "update", "other"])
def test_a_changed_accumulator_is_not_taken_for_a_gradient(change):
    m, W, _ = model()
    dy.renew_cg()
    dy.sum_elems(W * 2).backward()
    if change == "other":
        with dy.graph():
            dy.sum_elems(W).backward()
        dy.sum_elems(W).backward()  # in memory of its own now
        near(W.gradient(), ones(16))
        return
    {"zero_gradient": W.zero_gradient, "scale_gradient": lambda: W.scale_gradient(3), "set_grad": lambda: W.set_grad(ones(16)),
     "update": dy.SimpleSGDTrainer(m).update}[change]()  # fmt: skip
    with pytest.raises(RuntimeError, match="gone"):
        W.gradient()


def test_parts_of_weights_and_rows(setting):
    """Aliases of leaves: nobody refers to the row itself."""
    _, W, U = model()
    r, w = dy.reshape(U[5], (4, 4)), dy.reshape(W, (4, 4))
    grown = [U.batch(range(k, k + 40)) for k in range(10, 250, 40)]
    loss = dy.sum_elems(r * w) + dy.esum([dy.sum_batches(dy.sum_elems(g)) for g in grown])
    loss.backward()
    loss.backward()
    near(r.gradient(), 4 * ones(4, 4))
    near(w.gradient(), 4 * ones(4, 4))
    near(W.gradient(), 4 * ones(16))
    near(W.grad_as_array(), 8 * ones(16))


def test_parts_that_nothing_flows_into(setting):
    _, W, U = model()
    e = U[5]
    parts = [dy.reshape(x, (4, 4)) for x in (W, e)]
    dy.sum_elems(dy.cmult(W, e)).backward()
    for x in parts:
        near(x.gradient(), 0 * ones(4, 4))
    near(W.gradient(), ones(16))


def test_parts_behind_what_stops_gradients(setting):
    """Of a row that the pass does not reach: that of another graph, at its place, has its own gradient."""
    E = dy.ParameterCollection().lookup_parameters_from_numpy(ones(6, 4))
    F = dy.ParameterCollection().lookup_parameters_from_numpy(ones(6, 4))
    for _ in range(3):
        dy.renew_cg()
        dy.sum_elems(dy.reshape(dy.nobackprop(F[1]), (2, 2))).backward(full=True)
        dy.renew_cg()
        dy.sum_elems(E[2] * 3).backward()
        wanted = np.zeros((6, 4))
        wanted[2] = 3
        near(E.grad_as_array(), wanted)
        E.zero_gradient()
        assert len(F._row_grads()[0]) == 0  # it counts as not touched


def test_a_row_that_nothing_referred_to(setting):
    _, _, U = model()
    loss = dy.sum_elems(dy.esum([U[k] for k in range(5)]))
    number = next(n for n, what, *_ in dy.cg().nodes() if "lookup" in what and "{16}" in what)
    gc.collect()
    loss.backward()
    e = dy.cg().expression(number)
    if setting["keep_weights"]:
        near(e.gradient(), ones(16))  # rows are copied then, and always have a gradient of their own
    else:
        with pytest.raises(RuntimeError, match="row_grad_as_array"):
            e.gradient()
    near(U.row_grad_as_array(0), ones(16))


def test_outside_a_graph():
    _, W, U = model()
    dy.renew_cg()
    for p in (W, U):
        with pytest.raises(RuntimeError, match="is not in the current graph"):
            p.gradient()
    x = dy.sum_elems(W)
    with pytest.raises(RuntimeError, match="call backward"):
        W.gradient()
    assert len(dy.cg()) == 2
    x.backward()
    y = dy.sum_elems(dy.inputVector([1.0] * 16))
    y.backward()
    near(W.gradient(), 0 * ones(16))
    dy.renew_cg()
    with pytest.raises(RuntimeError, match="is not in the current graph"):
        W.gradient()


def test_many_sentences_in_lanes(setting):
    """Rows that several lanes read, of which some are held."""
    rng = np.random.default_rng(5)
    m, W, U = model()
    M = m.add_parameters((16, 16), init=0.1)
    sentences = [rng.integers(0, 30, size=9).tolist() for _ in range(12)]
    none, some, every = [], [], []
    results = []
    for held, step in ((none, 100), (some, 3), (every, 1)):
        dy.renew_cg()
        loss_of_all(sentences, M, W, U, held, step).backward()
        results.append([p.grad_as_array() for p in (M, W, U)])
        held[:] = [e.gradient() for e in held]
        for p in (M, W, U):
            p.zero_gradient()
    for a, b, c in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(some, every[::3], rtol=1e-4, atol=1e-6)
    sums = np.zeros((300, 16))
    np.add.at(sums, list(itertools.chain(*sentences)), every)
    np.testing.assert_allclose(results[0][2], sums, rtol=1e-4, atol=1e-6)


def loss_of_all(sentences, M, W, U, held, step):
    """Every step-th word is referred to."""
    losses = []
    for words in sentences:
        es = [U[w] for w in words]
        held.extend(es[::step] if step < 100 else [])
        h = dy.tanh(M * es[0])
        for e in es[1:]:
            h = dy.tanh(M * h + dy.cmult(W, e))
        losses.append(dy.sum_elems(h))
    return dy.esum(losses)
