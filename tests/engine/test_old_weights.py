"""backward() through nodes that ran before an update: gradients at the weights that they read, under every setting."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import run_code

import dynet_lite as dy
from dynet_lite import _core

SETTINGS = [
    {"autobatch": a, "fuse": f, "threads": t, "overlap": o}
    for a, f, t, o in itertools.product((True, False), (True, False), (1, 2, 3), (True, False))
    if o or (t == 2 and f)
]
D = 12
STATM = Path("/proc/self/statm")


@pytest.fixture(params=SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def setting(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    work = _core.settings.least_work
    _core.settings.least_work = 0
    dy.configure(**request.param)
    dy.renew_cg()
    yield request.param
    dy.configure(autobatch=True, fuse=True, threads=1, overlap=True)
    _core.settings.least_work = work
    dy.renew_cg()


def near(a: object, b: object) -> None:
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def same_everywhere(program: Callable[[], list[np.ndarray]]) -> None:
    """Equal, to rounding, to one thread without batching and fusing."""
    here = program()
    with dy.configure(autobatch=False, fuse=False, threads=1):
        dy.renew_cg()
        plain = program()
    dy.renew_cg()
    assert len(here) == len(plain)
    for a, b in zip(here, plain, strict=True):
        near(a, b)


def test_rows(setting):
    """d/dt sum (t1 + t2)^2 at ones is 4; the update in between is not seen."""
    m = dy.ParameterCollection()
    T = m.add_lookup_parameters((5, D), init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.5)
    trainer.set_clip_threshold(0)
    h = dy.square(T[1] + T[2])
    loss = dy.sum_elems(h)
    assert loss.value() == 4 * D
    dy.sum_elems(T[1] * 1.0).backward()
    trainer.update()
    near(T.row_as_array(1), np.full(D, 0.5))
    loss.backward()
    near(T.row_grad_as_array(1), np.full(D, 4.0))
    near(T.row_grad_as_array(2), np.full(D, 4.0))
    near(T.row_as_array(1), np.full(D, 0.5))
    again = dy.sum_elems(dy.square(T[1] + T[2]))  # new nodes see the new rows
    near(again.value(), D * 1.5**2)
    T.zero_gradient()
    (again + loss).backward()
    near(T.row_grad_as_array(1), np.full(D, 4.0 + 3.0))


TRAINERS = [dy.SimpleSGDTrainer, dy.MomentumSGDTrainer, dy.AdamTrainer]


@pytest.mark.parametrize("kind", TRAINERS)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_actor_and_critic(setting, kind, sparse, decay):
    """Two losses on one graph, each with an update; then the first once more, and what has grown since."""

    def program():
        rng = np.random.default_rng(1)
        m = dy.ParameterCollection()
        m.set_weight_decay(decay)
        E = m.add_lookup_parameters((20, D), init=dy.NumpyInitializer(rng.normal(size=(20, D))))
        W, V = (m.add_parameters((D, D), init=dy.NumpyInitializer(rng.normal(size=(D, D)) / 3)) for _ in range(2))
        b = m.add_parameters(D, init=0.1)
        trainer = kind(m, 0.1)
        trainer.set_sparse_updates(sparse)
        seen = []

        def grads():
            seen.extend(p.grad_as_array() for p in (E, W, V, b))

        dy.renew_cg()
        hidden = []
        for words in ([1, 2, 3], [4, 2, 5, 6], [1, 7]):
            h = dy.tanh(dy.affine_transform([b, W, E[words[0]]]))
            for w in words[1:]:
                h = dy.cmult(dy.logistic(W * E[w] + V * h + b), dy.tanh(V * E[w] + W * h))
            hidden.append(h)
        actor = dy.esum([dy.pickneglogsoftmax(W * h, 3) for h in hidden])
        critic = dy.esum([dy.squared_norm(V * h + dy.tanh(b)) for h in hidden])
        seen.append(actor.value() + critic.value())
        actor.backward()
        grads()
        trainer.update()
        critic.backward()
        grads()
        trainer.update()
        more = dy.esum([dy.sum_elems(dy.tanh(W * h + E[9])) for h in hidden]) + dy.squared_norm(E[2])
        seen.append(more.value())
        more.backward()
        grads()
        trainer.update()
        (actor + more * 2).backward()
        grads()
        seen.extend(p.as_array() for p in (E, W, V, b))
        trainer.update()
        dy.renew_cg()
        last = dy.squared_norm(W * E[1])
        last.backward()
        grads()
        trainer.update()
        seen.extend(p.as_array() for p in (E, W, V, b))
        return seen

    same_everywhere(program)


def numeric(f: Callable[[np.ndarray], float], x: np.ndarray) -> np.ndarray:
    g = np.zeros_like(x)
    for i in range(x.size):
        d = np.zeros_like(x)
        d.flat[i] = 1e-4
        g.flat[i] = (f(x + d) - f(x - d)) / 2e-4
    return g


def test_against_differences(setting):
    rng = np.random.default_rng(2)
    w0, x = rng.normal(size=(D, D)) / 3, rng.normal(size=D)
    m = dy.ParameterCollection()
    W = m.add_parameters((D, D), init=dy.NumpyInitializer(w0))
    trainer = dy.SimpleSGDTrainer(m, 0.3)
    v = dy.inputVector(x)
    r = dy.reshape(W, (D * D,))
    loss = dy.sum_elems(dy.tanh(W * dy.tanh(W * v))) + dy.squared_norm(r) * 0.01
    other = dy.squared_norm(W * v)
    loss.value()
    other.backward()
    trainer.update()
    loss.backward()

    def f(w):
        return np.tanh(w @ np.tanh(w @ x)).sum() + 0.01 * (w**2).sum()

    np.testing.assert_allclose(W.grad_as_array(), numeric(f, np.float32(w0).astype(float)), rtol=1e-3, atol=1e-4)


CHANGES: dict[str, Callable[..., None]] = {
    "set_value": lambda W, E: (W.set_value(W.as_array() * 2), E.init_row(1, E.row_as_array(1) * 2)),
    "scale": lambda W, E: (W.scale(2), E.scale(2)),
    "clip_inplace": lambda W, E: (W.clip_inplace(-0.1, 0.1), E.zero()),
    "init_from_array": lambda W, E: (W.zero(), E.init_from_array(E.as_array() + 1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_numbers_changed_by_hand(setting, change):
    """The graph that the weight entered last runs again; another graph of the thread keeps what it read."""
    m = dy.ParameterCollection()
    W, E = m.add_parameters(D, init=0.5), m.add_lookup_parameters((3, D), init=0.25)
    loss = dy.sum_elems(dy.square(dy.cmult(W, E[1])))
    loss.value()
    with dy.graph():
        dy.sum_elems(W + E[1]).value()
        CHANGES[change](W, E)
    loss.backward()
    near(W.grad_as_array(), np.full(D, 2 * 0.5 * 0.25**2))
    near(E.row_grad_as_array(1), np.full(D, 2 * 0.25 * 0.5**2))
    for p in (W, E):
        p.zero_gradient()
    dy.renew_cg()
    loss = dy.sum_elems(dy.square(dy.cmult(W, E[1])))
    loss.value()
    CHANGES[change](W, E)
    w, e = W.as_array(), E.row_as_array(1)
    loss.backward()
    near(W.grad_as_array(), 2 * w * e**2)
    near(loss.value(), (w**2 * e**2).sum())


def test_populate_between(tmp_path, setting):
    m = dy.ParameterCollection()
    W = m.add_parameters(D, init=0.5)
    m.save(str(tmp_path / "m"))
    W.set_value(np.full(D, 2.0))
    dy.renew_cg()
    loss = dy.sum_elems(dy.square(W))
    loss.value()
    with dy.graph():
        dy.sum_elems(W).value()
        m.populate(str(tmp_path / "m"))
    loss.backward()
    near(W.grad_as_array(), np.full(D, 4.0))
    near(W.as_array(), np.full(D, 0.5))


def test_weight_decay_that_rows_owe(setting):
    """A row that an update does not touch pays when it is looked up again; its old node keeps what it read."""

    def program():
        m = dy.ParameterCollection()
        m.set_weight_decay(0.25)
        E = m.add_lookup_parameters((5, D), init=1.0)
        trainer = dy.SimpleSGDTrainer(m, 0.5)
        dy.renew_cg()
        loss = dy.sum_elems(dy.square(E[1]))
        loss.value()
        dy.sum_elems(E[3]).backward()
        trainer.update()
        later = dy.sum_elems(dy.square(E[1]))
        value = later.value()
        loss.backward()
        first = E.row_grad_as_array(1)
        later.backward()
        return [np.float64(value), first, E.row_grad_as_array(1), E.as_array()]

    got = program()
    near(got[0], D * 0.75**2)
    near(got[1], np.full(D, 2.0))
    near(got[2], np.full(D, 3.5))
    same_everywhere(program)


def test_whole_tables(setting):
    m = dy.ParameterCollection()
    E = m.add_lookup_parameters((4, D), init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.5)
    trainer.set_clip_threshold(0)
    loss = (
        dy.sum_elems(dy.square(E))
        + dy.sum_elems(dy.square(E[2]))
        + dy.sum_batches(dy.sum_elems(dy.square(E.batch([2, 3]))))
    )
    loss.value()
    dy.sum_elems(E[2]).backward()
    trainer.update()
    loss.backward()
    near(E.grad_as_array(), np.array([2.0, 2, 6, 4])[:, None] * np.ones((4, D)))


def test_graphs_within_graphs(setting):
    m = dy.ParameterCollection()
    W = m.add_parameters(D, init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.5)
    trainer.set_clip_threshold(0)
    outer = dy.sum_elems(dy.square(W))
    outer.value()
    for k in range(3):
        with dy.graph():
            dy.sum_elems(W).backward()
            trainer.update()
        near(W.as_array(), np.full(D, 0.5 - 0.5 * k))
    outer.backward()
    near(W.grad_as_array(), np.full(D, 2.0))


def test_checkpoints(setting):
    m = dy.ParameterCollection()
    W = m.add_parameters(D, init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.5)
    trainer.set_clip_threshold(0)
    base = dy.square(W)
    dy.sum_elems(base).value()
    for _ in range(3):
        dy.cg().checkpoint()
        dy.sum_elems(dy.cmult(base, W)).backward()
        trainer.update()
        dy.cg().revert()
    dy.sum_elems(base).backward()
    near(W.grad_as_array(), np.full(D, 2.0))


def test_a_graph_that_is_never_renewed(setting):
    """The last updates can be gone back to, and small weights' for long; then it is an error, and the weights are as they were."""
    m = dy.ParameterCollection()
    W = m.add_parameters((600, 600), init=1.0)
    b = m.add_parameters(D, init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.0)
    first = dy.sum_elems(W)
    first.value()
    for _ in range(8):
        (dy.sum_elems(W) + dy.sum_elems(b)).backward()
        trainer.update()
    first.backward()
    trainer.update()
    for _ in range(3):
        dy.sum_elems(W).backward()
        trainer.update()
    with pytest.raises(RuntimeError, match="so many updates ago"):
        first.backward()
        W.grad_as_array()
    small_again = dy.sum_elems(dy.square(b))
    small_again.backward()
    near(b.grad_as_array(), np.full(D, 2.0))
    near(W.as_array(), np.ones((600, 600)))
    dy.renew_cg()
    dy.sum_elems(W).backward()
    near(W.grad_as_array(), np.ones((600, 600)))


def test_no_gradient_after_a_pass_that_is_refused(setting):
    """Those of the pass before are gone: they are not taken for zeros."""
    m = dy.ParameterCollection()
    W = m.add_parameters((600, 600), init=1.0)
    trainer = dy.SimpleSGDTrainer(m, 0.0)
    first = dy.sum_elems(W)
    first.value()
    for _ in range(10):
        last = dy.square(dy.sum_elems(W))
        last.backward()
        trainer.update()
    y = dy.tanh(dy.sum_elems(W))
    loss = y * 3
    loss.backward()
    near(y.gradient(), 3.0)
    with pytest.raises(RuntimeError, match="so many updates ago"):
        first.backward()
        W.grad_as_array()
    for e in (y, W):
        with pytest.raises(RuntimeError, match=r"\[gradient\] call backward"):
            e.gradient()
    loss.backward()
    near(y.gradient(), 3.0)


def test_memory_is_one_copy_and_none_without_need():
    """A loop that renews its graph makes no heap calls; after many steps nothing has piled up."""
    m = dy.ParameterCollection()
    W, E = m.add_parameters((64, 64)), m.add_lookup_parameters((50, 64))
    trainer = dy.AdamTrainer(m)

    def step(k: int) -> None:
        dy.renew_cg()
        dy.squared_norm(W * (E[k % 50] + E[7])).backward()
        trainer.update()

    for k in range(160):  # one step in 50 looks up a row twice: it has a plan of its own, which is kept
        step(k)
    before = dy.heap_calls()
    for k in range(40):
        step(k)
    assert dy.heap_calls() == before


def test_updates_of_other_threads_do_not_count():
    """Threads train one model: none keeps numbers for another, and all end with finite weights."""
    m = dy.ParameterCollection()
    W = m.add_parameters((D, D), init=0.1)
    errors: list[BaseException] = []

    def train(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            trainer = dy.SimpleSGDTrainer(m, 0.01)
            for _ in range(30):
                dy.renew_cg()
                x = dy.inputVector(rng.normal(size=D))
                one, two = dy.squared_norm(W * x), dy.squared_norm(dy.tanh(W * x))
                (one + two).value()
                one.backward()
                trainer.update()
                two.backward()
                trainer.update()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=train, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert np.isfinite(W.as_array()).all()


def test_what_another_thread_sets_during_a_backward_pass_stays():
    """The pass has the weights of then in the place of those of now: who sets others waits for it."""
    n = 512
    m = dy.ParameterCollection()
    W, T = m.add_parameters((n, n)), m.add_lookup_parameters((4, n))
    trainer = dy.SimpleSGDTrainer(m, 1e-3)
    for k in range(4):
        dy.renew_cg()
        h = T[3]
        for _ in range(300):
            h = dy.tanh(W * h)
        loss = dy.sum_elems(h)
        loss.value()
        loss.backward()
        trainer.update()
        numbers, rows = np.full((n, n), 0.5 + k), np.full((4, n), 0.25 + k)
        with dy.graph():  # W has entered another graph last, which is gone
            dy.sum_elems(W * T[3]).dim()

        def change(k: int = k, numbers: Any = numbers, rows: Any = rows) -> None:
            time.sleep(0.003)
            W.set_value(numbers)
            T.init_from_array(rows) if k % 2 else T.init_row(3, rows[3])

        thread = threading.Thread(target=change)
        thread.start()
        loss.backward()
        thread.join()
        assert (W.as_array() == numbers).all()
        assert (T.row_as_array(3) == rows[3]).all()


def test_rows_that_another_thread_reads_during_a_backward_pass_are_those_of_now():
    n = 512
    m = dy.ParameterCollection()
    W, T = m.add_parameters((n, n)), m.add_lookup_parameters((4, n))
    trainer = dy.SimpleSGDTrainer(m, 0.1)
    dy.renew_cg()
    h = T[3]
    for _ in range(300):
        h = dy.tanh(W * h)
    loss = dy.sum_elems(h + T[3])
    loss.value()
    loss.backward()
    trainer.update()
    now, done, seen = T.row_as_array(3), threading.Event(), list[Any]()

    def read() -> None:
        while not done.is_set():
            seen.append(T.row_as_array(3))
            seen.append(T.rows_as_array([1, 3, 3])[2])

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(3):  # with the weights of before the update
        loss.backward()
    done.set()
    thread.join()
    assert seen and all((row == now).all() for row in seen)


@pytest.fixture
def keeps_weights() -> Iterator[None]:
    with dy.configure(keep_weights=True):
        yield


@pytest.mark.parametrize("other", ["begins", "ends"])
@pytest.mark.usefixtures("keeps_weights")
def test_graphs_of_other_threads_come_and_go_during_an_update(other):
    """Which buffer an update writes to is decided once, whoever begins or ceases to hold the weight meanwhile."""
    n = 2000
    m = dy.ParameterCollection()
    W = m.add_parameters((n, n))
    W.set_value(np.ones((n, n)))
    trainer = dy.AdamTrainer(m, 0.1)
    ready = threading.Event()

    def hold() -> None:
        with dy.graph():
            if other == "begins":
                ready.set()
                time.sleep(0.005)
            W[0].value()
            ready.set()
            time.sleep(0.005)

    for step in range(1, 7):
        dy.renew_cg()
        W.set_grad(np.ones((n, n)))
        ready.clear()
        thread = threading.Thread(target=hold)
        thread.start()
        ready.wait()
        trainer.update()
        thread.join()
        assert abs(W.as_array() - (1 - 0.1 * step)).max() < 1e-3


@pytest.mark.parametrize("change", CHANGES)
def test_numbers_changed_by_hand_where_graphs_keep_their_weights(setting, keeps_weights, change):
    """As in DyNet: what has run stays, and so does the weight in this graph; the next graph has the new numbers."""
    m = dy.ParameterCollection()
    W, E = m.add_parameters(D, init=0.5), m.add_lookup_parameters((3, D), init=0.25)
    dy.renew_cg()
    loss = dy.sum_elems(dy.square(dy.cmult(W, E[1])))
    loss.value()
    CHANGES[change](W, E)
    w, e = W.as_array(), E.row_as_array(1)
    loss.backward()
    near(W.grad_as_array(), np.full(D, 2 * 0.5 * 0.25**2))
    near(E.row_grad_as_array(1), np.full(D, 2 * 0.25 * 0.5**2))
    near(loss.value(), D * 0.5**2 * 0.25**2)
    near(dy.sum_elems(W * 2).value(), D * 0.5 * 2)
    CHANGES[change](W, E)
    near(dy.sum_elems(W * 3).value(), D * 0.5 * 3)
    dy.renew_cg()
    near(dy.sum_elems(W).value(), W.as_array().sum())
    assert change == "clip_inplace" or not np.array_equal(w, W.as_array()) or not np.array_equal(e, E.row_as_array(1))


def test_each_graph_keeps_the_weights_that_it_began_with(setting, keeps_weights):
    m = dy.ParameterCollection()
    W = m.add_parameters(D, init=4.0)
    trainer = dy.SimpleSGDTrainer(m, 1.0)
    trainer.set_clip_threshold(0)
    graphs = []
    for began in (4.0, 3.0, 2.0, 1.0):
        with dy.graph() as g:
            loss = dy.sum_elems(W)
            loss.backward()
        graphs.append((g, loss, began))
        trainer.update()
    for g, loss, began in graphs:
        with g:
            near(loss.value(), D * began)
            near(dy.sum_elems(W * 2).value(), D * began * 2)
    near(W.as_array(), np.zeros(D))


def test_a_weight_that_another_graph_had_behind_a_revert(setting, keeps_weights):
    """All nodes of the graph read what it began with, however often they ask for the weight."""
    m = dy.ParameterCollection()
    W = m.add_parameters(D, init=4.0)
    trainer = dy.SimpleSGDTrainer(m, 1.0)
    trainer.set_clip_threshold(0)
    dy.renew_cg()
    near(dy.sum_elems(W).value(), D * 4.0)
    dy.cg_checkpoint()
    dy.cg_revert()
    with dy.graph():
        dy.sum_elems(W).backward()
        trainer.update()
    near([dy.sum_elems(W * k).value() for k in (2, 3, 5)], [D * 4.0 * k for k in (2, 3, 5)])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("runs_before", [False, True])
def test_compiled_steps_leave_another_graph_its_weights(keeps_weights, runs_before, compiled):
    m = dy.ParameterCollection()
    W = m.add_parameters(D, init=4.0)
    trainer = dy.SimpleSGDTrainer(m, 1.0)
    trainer.set_clip_threshold(0)
    step = dy.compile(lambda x: dy.dot_product(W, x), trainer=trainer)
    with dy.configure(compile=compiled):
        step(np.ones(D))
        dy.renew_cg()
        loss = dy.sum_elems(W)
        if runs_before:
            near(loss.value(), D * 3.0)
        step(np.ones(D))
        began = 3.0 if runs_before else 2.0
        near(loss.value(), D * began)
        for _ in range(3):
            step(np.ones(D))
            near(dy.sum_elems(W * 2).value(), D * began * 2)
    near(W.as_array(), np.full(D, -1.0))


def test_a_weight_that_has_not_run_yet_where_graphs_keep_their_weights(setting, keeps_weights):
    m = dy.ParameterCollection()
    W = m.add_parameters(D, init=0.5)
    dy.renew_cg()
    loss = dy.sum_elems(W * 2)
    W.scale(3)
    near(loss.value(), D * 1.5 * 2)


def bytes_of_heap() -> int:
    return int(STATM.read_text().split()[1]) * 4096


@pytest.mark.skipif(not STATM.exists(), reason="needs the memory figures of Linux")
@pytest.mark.skipif("DYNET_LITE_TEST_SANITIZE" in os.environ, reason="the sanitizer keeps what is given back")
@pytest.mark.parametrize("compiled", [True, False])
def test_training_beside_a_graph_that_is_kept_takes_no_memory(compiled):
    """Updates between which nothing ran that is still there have one old copy together."""
    m = dy.ParameterCollection()
    E, b = m.add_lookup_parameters((400, 100)), m.add_parameters(100)
    trainer = dy.SimpleSGDTrainer(m, 1e-3)

    def loss(rows: list[int]) -> dy.Expression:
        return dy.sum_elems(dy.esum([E[row] for row in rows]) + b)

    step = dy.compile(loss, trainer=trainer)

    def by_hand(rows: list[int]) -> None:
        with dy.graph():
            loss(rows).backward()
            trainer.update()

    dy.renew_cg()
    seen = dy.sum_elems(dy.square(E[0]) + b)
    before = seen.value(), E.as_array()[0].copy()
    used = 0
    for k in range(600):
        (step if compiled else by_hand)([(7 * k + i) % 400 for i in range(100)])
        if k == 200:
            used = bytes_of_heap()
    assert bytes_of_heap() - used < 4 << 20  # 400 times 40 kB would be 16 MB
    seen.backward()
    near(E.grad_as_array()[0], 2 * before[1])


@pytest.mark.parametrize("way", ["kept", "compiled", "same graph", "made before"])
def test_a_whole_table_has_the_decay_that_it_owes(way):
    m = dy.ParameterCollection()
    E = m.lookup_parameters_from_numpy(np.ones((3, 2)))
    m.set_weight_decay(0.1)
    trainer = dy.SimpleSGDTrainer(m, 0.1)

    def whole() -> dy.Expression:
        return dy.sum_elems(E.expr())

    dy.renew_cg()
    if way == "made before":
        total, row = whole(), dy.sum_elems(E[0])
        trainer.update()
        near([total.value(), row.value()], [5.4, 1.8])
        return
    step = dy.compile(whole) if way == "compiled" else None
    total = whole()
    values = []
    for _ in range(3):
        if way == "same graph":
            total = whole()
        values.append(float(step()) if step else total.value(recalculate=way == "kept"))
        trainer.update()
    near(values, [6, 5.4, 4.86])


@pytest.mark.parametrize("read", ["alone", "by a new node", "as a part by a new node"])
def test_leaves_of_before_an_update_have_its_decay(read):
    """A leaf is no node that keeps its numbers: it is the weight, before and after."""
    m = dy.ParameterCollection()
    E = m.lookup_parameters_from_numpy(np.ones((3, 2)))
    F = m.lookup_parameters_from_numpy(np.ones((3, 2)))
    m.set_weight_decay(0.1)
    trainer = dy.SimpleSGDTrainer(m, 0.1)
    dy.renew_cg()
    row, table = E[0], F.expr()
    for k in range(1, 4):
        dy.sum_elems(E[1]).backward()  # runs all that is there
        trainer.update()
        if read == "alone":
            got = row, table
        elif read == "by a new node":
            got = row + 0.0, table + 0.0
        else:
            got = dy.reshape(row, (1, 2)) + 0.0, table[0:1] + 0.0
        for one in got:
            near(one.npvalue(), np.full(one.dim()[0], 0.9**k))


UPDATE_WITHOUT_MEMORY = """
import resource
import numpy as np, dynet_lite as dy
m = dy.ParameterCollection()
n = 512
A, T, B = m.add_parameters((n, n)), m.add_lookup_parameters((64, n)), m.add_parameters((4096, 4096))
A.set_value(np.eye(n) / 2)
T.init_from_array(np.ones((64, n)))
trainer = dy.SimpleSGDTrainer(m, 0.1)
m.set_weight_decay_lambda(0.1)

def gradients():
    for p in (A, T, B):
        p.zero_gradient()
    loss.backward()
    return A.grad_as_array(), T.grad_as_array()

loss = dy.sum_elems(dy.tanh(A * (A * T[3]))) + dy.sum_elems(B) * 0
loss.value()
wanted = gradients()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 6_000_000, resource.RLIM_INFINITY))
try:
    trainer.update()  # what the graph has read of A is kept, and of B there is no room for it
except dy.errors.OutOfMemoryError:
    print("failed")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(all(np.allclose(a, b) for a, b in zip(gradients(), wanted)), (A.as_array() == np.eye(n) / 2).all())
trainer.update()
print(np.allclose(T.as_array()[5], 0.9))
print(all(np.allclose(a, b) for a, b in zip(gradients(), wanted)))
"""


@pytest.mark.skipif(not STATM.exists(), reason="needs the memory limits of Linux")
@pytest.mark.skipif("DYNET_LITE_TEST_SANITIZE" in os.environ, reason="the sanitizer takes all addresses")
def test_an_update_without_memory_changes_nothing(tmp_path: Path) -> None:
    """Neither weights, nor what they owe, nor what is kept of them for graphs that have read them."""
    done = run_code(UPDATE_WITHOUT_MEMORY, tmp_path)
    assert done.stdout.split() == ["failed", "True", "True", "True", "True"], done.stdout + done.stderr
