"""Gradients of what examples share, with threads: lanes run backward, and whoever is free forms the gradients of weights.

One thread is the reference; with more, sums are formed in another order, but always in the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core
from dynet_lite.profiling import SHARED_BATCH

N, SENTENCES = 12, 24


class Net:
    """Parameters of one program, made when first asked for, and a table."""

    def __init__(self) -> None:
        self.pc, self.made, self.rng = dy.ParameterCollection(), {}, np.random.RandomState(3)
        self.words = self.pc.add_lookup_parameters((60, N), init=self.rng.uniform(-1, 1, (60, N)))

    def weight(self, name: str, *shape: int) -> Any:
        if name not in self.made:
            self.made[name] = self.pc.parameters_from_numpy(self.rng.uniform(-0.5, 0.5, shape))
        return self.made[name]

    def gradients(self) -> list[np.ndarray]:
        return [p.grad_as_array().copy() for p in [*self.made.values(), self.words]]


def one_matrix(net: Net, k: int) -> Any:
    """All work is one product."""
    return dy.sum_elems(dy.tanh(net.weight("W", 40, N) * net.words[k]))


def gates(net: Net, k: int) -> Any:
    """Maps of the same inputs, which become one node with many shared arguments: each matrix is a chain of its own."""
    h = net.words[0]
    for t in range(3):
        x = net.words[1 + (k + t) % 9]
        maps = [dy.affine_transform([net.weight(f"b{g}", N), net.weight(f"W{g}", N, N), x, net.weight(f"U{g}", N, N), h])
                for g in range(3)]  # fmt: skip
        h = dy.cmult(dy.logistic(maps[0]), dy.tanh(maps[1])) + dy.logistic(maps[2])
        del maps
    return dy.squared_norm(h)


def tied(net: Net, k: int) -> Any:
    """One parameter in products of several signatures: what adds to it is one chain. The parameter stands twice in the graph."""
    w = net.weight("W", N, N)
    x = dy.tanh(w * net.words[k])
    return dy.sum_elems(dy.logistic(dy.affine_transform([net.weight("b", N), w, x]))) + dy.squared_norm(
        dy.parameter(w) * x
    )


def made_of_weights(net: Net, k: int) -> Any:
    """The matrix is computed, once for all; its gradient lies in the graph."""
    w = dy.tanh(net.weight("V", N, N)) * net.weight("W", N, N)
    return dy.sum_elems(dy.tanh(w * net.words[k] + dy.logistic(net.weight("b", N))))


def stacked_and_shared(net: Net, k: int) -> Any:
    """A vector that is added to each example and multiplied with a matrix of some."""
    v = net.weight("v", N)
    x = dy.cmult(net.words[k], v) if k % 2 else net.words[k] + v
    return dy.dot_product(dy.tanh(net.weight("W", N, N) * x), v)


def cells(net: Net, k: int) -> Any:
    """Recurrent cells, whose gates are kept for the gradients of weights, and a folded loss."""
    if "lstm" not in net.__dict__:
        net.lstm = dy.VanillaLSTMBuilder(1, N, N, net.pc)
    h = net.lstm.initial_state().transduce([net.words[(k + t) % 20] for t in range(2 + k % 4)])
    return dy.esum(
        [dy.pickneglogsoftmax(dy.affine_transform([net.weight("b", 30), net.weight("O", 30, N), e]), k % 30) for e in h]
    )


def aliases(net: Net, k: int) -> Any:
    """Parts and other shapes of rows that several lanes read, of a parameter, and of nodes that repeat."""
    row, v = net.words[k % 5], net.weight("v", N)
    h = dy.tanh(net.weight("W", N, N) * net.words[k % 5])
    again = dy.tanh(net.weight("W", N, N) * net.words[k % 5])
    square = dy.reshape(h, (3, N // 3)) + dy.reshape(again, (3, N // 3)) + dy.reshape(row, (3, N // 3))
    return (
        dy.squared_norm(square)
        + dy.dot_product(dy.pick_range(again, 2, 8), dy.pick_range(v, 0, 6))
        + dy.dot_product(h, v)
    )


def ran_before(net: Net, k: int) -> Any:
    """All examples read a vector that had its value before they were made, and a part of it."""
    if net.__dict__.get("version") != dy.cg_version():
        net.version, net.common = dy.cg_version(), dy.tanh(net.weight("W", N, N) * net.words[3])
        net.common.value()
    read = dy.tanh(dy.cmult(net.words[k], net.common))
    return dy.squared_norm(read) + dy.squared_norm(dy.pick_range(net.common, 1, 7) + dy.pick_range(read, 0, 6))


def little_beside_much(net: Net, k: int) -> Any:
    """A map that takes so little that lanes form its gradients themselves, of a weight whose other product is left to the end."""
    x, T = net.words[k % 9], net.weight("T", 2, N)
    tall = dy.tanh(net.weight("W", 200, N) * x)
    wide = T * dy.reshape(dy.pick_range(tall, 0, 14 * N), (N, 14))
    return (
        dy.squared_norm(tall) + dy.squared_norm(wide) + dy.squared_norm(dy.affine_transform([net.weight("b", 2), T, x]))
    )


PROGRAMS: list[Callable[[Net, int], Any]] = [
    one_matrix, gates, tied, made_of_weights, stacked_and_shared, cells, aliases, ran_before, little_beside_much,
]  # fmt: skip


def observe(program: Callable[[Net, int], Any], threads: int, twice: bool = False) -> list[np.ndarray]:
    _core.settings.threads, _core.settings.least_work = threads, 0
    _core.set_seed(1)
    net = Net()
    found = []
    for step in range(2):
        dy.renew_cg()
        loss = dy.esum([program(net, (k * 7 + step) % 50) for k in range(SENTENCES)])
        found.append(loss.npvalue())
        loss.backward()
        if twice:
            loss.backward()
        found += net.gradients()
        lanes = max(1, sum(stage == 1 for _, stage, *_ in _core.graph_plans(dy.cg())))
        assert lanes >= threads
    return found


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_are_those_of_one_thread_and_always_the_same(
    program: Callable[[Net, int], Any], threads: int
) -> None:
    expected, found = observe(program, 1), observe(program, threads)
    assert any(np.abs(x).max() > 0.1 for x in expected[1:])
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    for _ in range(4):
        assert all(np.array_equal(a, b) for a, b in zip(found, observe(program, threads), strict=True))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_two_passes_add_up(program: Callable[[Net, int], Any]) -> None:
    expected, found = observe(program, 1, twice=True), observe(program, 3, twice=True)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_little_work_is_not_left_to_the_end(threads: int) -> None:
    """With threads, and in lanes; one thread leaves nothing that can be formed with what flows back."""
    _core.settings.threads, _core.settings.least_work = threads, 0
    net = Net()
    dy.renew_cg()
    loss = dy.esum([little_beside_much(net, k) for k in range(SENTENCES)])
    with dy.profile() as p:
        loss.backward()
        net.gradients()
    late = p.events[p.events["phase"] == SHARED_BATCH]
    names = _core.all_op_names()
    assert {names[op] for op in late["op"]} == ({"matmul"} if threads > 1 else set())
    assert len(late) == (2 * threads if threads > 1 else 0)  # of each lane two matrices


@pytest.mark.parametrize("own", [24, 12, 3])
def test_rows(own: int) -> None:
    """A row that one lane reads is added to where it lies; of `own` rows several lanes read all, half or none. In the middle the
    table enters the graph once more. Rows are long, so that two lanes that add to one at a time would be noticed."""

    def run(threads: int) -> list[np.ndarray]:
        _core.settings.threads, _core.settings.least_work = threads, 0
        pc = dy.ParameterCollection()
        words = pc.add_lookup_parameters((24, 1 << 15), init=np.ones((24, 1 << 15)))
        dy.renew_cg()
        losses = []
        for k in range(24):
            if k == 12:
                with dy.graph():
                    words[1].value()
            losses.append(dy.esum([dy.squared_norm(words[k % own]) for _ in range(3)]))
        dy.esum(losses).backward()
        return words.grad_as_array()

    expected = run(1)
    for _ in range(10):
        np.testing.assert_array_equal(expected, run(3))


def test_a_row_as_bias_and_as_input() -> None:
    """What shared arguments get is formed while lanes run; one lane alone reads the same row itself."""
    long = 1 << 15

    def run(threads: int) -> list[np.ndarray]:
        _core.settings.threads, _core.settings.least_work = threads, 0
        pc = dy.ParameterCollection()
        words = pc.add_lookup_parameters((4, long), init=np.ones((4, long)))
        matrix = pc.parameters_from_numpy(np.ones((long, 1)))
        dy.renew_cg()
        bias = words[3]
        losses = [dy.sum_elems(dy.affine_transform([bias, matrix, dy.inputVector([k])])) for k in range(18)]
        losses += [dy.esum([dy.squared_norm(words[3]) for _ in range(8)]) for k in range(6)]
        dy.esum(losses).backward()
        return [words.grad_as_array(), matrix.grad_as_array()]

    expected = run(1)
    for _ in range(20):
        for a, b in zip(expected, run(3), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "trainer", ["SimpleSGDTrainer", "MomentumSGDTrainer", "AdamTrainer", "AdagradTrainer", "EGTrainer"]
)
@pytest.mark.parametrize("sparse", [False, True])
def test_updates_do_not_depend_on_threads(trainer: str, threads: int, sparse: bool) -> None:
    """The numbers of a step are dealt evenly, rows and parts of parameters; each is what one thread makes of it."""

    def run(n: int) -> list[np.ndarray]:
        _core.settings.threads = 1
        rng = np.random.RandomState(2)
        pc = dy.ParameterCollection()
        positive = lambda *shape: rng.uniform(0.1, 1, shape)  # noqa: E731
        params = [pc.parameters_from_numpy(positive(*s)) for s in ((300, 401), (3,), (77, 50), (5000,))]
        table = pc.add_lookup_parameters((500, 130), init=positive(500, 130))
        pc.set_weight_decay_lambda(0.01)
        t = getattr(dy, trainer)(pc)
        t.set_sparse_updates(sparse)
        for step in range(3):
            dy.renew_cg()
            rows = [table[int(i)] for i in rng.randint(0, 500, 200)]
            (dy.esum([dy.squared_norm(p) for p in params[step % 2 :]]) + dy.squared_norm(dy.esum(rows))).backward()
            _core.settings.threads = n
            t.update()
            _core.settings.threads = 1
        return [p.as_array().copy() for p in [*params, table]]

    assert all(np.array_equal(a, b) for a, b in zip(run(1), run(threads), strict=True))


# ---- weights that are computed, and argument of one op in two ways ------------------------------------------------------------

M = 6
Made = Callable[[str], Any]  # a matrix, or with "b" a vector, that is made of weights


def rows_of(net: Net) -> list[Any]:
    return [net.words[k % 7][:M] for k in range(150)]


TWICE: dict[str, Callable[[Made, Net], list[Any]]] = {
    "bias and vector": lambda w, net: [dy.affine_transform([w("b"), w("W"), x, w("V"), w("b")]) for x in rows_of(net)],
    "bias and vector, once": lambda w, net: [
        dy.affine_transform([w("b"), net.weight("W", M, M), net.words[1][:M], w("V"), w("b")])
    ],
    "bias and matrix on the right": lambda w, net: [dy.affine_transform([w("W"), w("V"), w("W")])],
    "left and then right": lambda w, net: [dy.affine_transform([w("b"), w("W"), w("V"), w("V"), w("W")])],
    "square": lambda w, net: [w("W") * w("W")],
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strategy", ["greedy", "none"])
@pytest.mark.parametrize("name", TWICE)
def test_what_is_shared_and_stacked_in_one_call(name: str, strategy: str, threads: int) -> None:
    """Against the same with a node of its own for each time that the weight is read."""
    found = []
    settings = _core.settings
    before = settings.strategy, settings.fuse
    for apart in (True, False):
        net = Net()
        settings.strategy, settings.fuse = strategy, False
        dy.configure(threads=threads)
        dy.renew_cg()
        made: dict[str, Any] = {}

        def weight(what: str, apart: bool = apart, net: Net = net, made: dict[str, Any] = made) -> Any:
            if apart or what not in made:
                made[what] = dy.tanh(net.weight(what, M) if what == "b" else net.weight(what, M, M))
            return made[what]

        try:
            dy.esum([dy.squared_norm(y) for y in TWICE[name](weight, net)]).backward()
            found.append(net.gradients())
        finally:
            settings.strategy, settings.fuse = before
            dy.configure(threads=1)
    for given, wanted in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_square_of_a_large_weight() -> None:
    """Its gradients are formed in pieces."""
    n = 1500
    P = dy.ParameterCollection().parameters_from_numpy(np.random.default_rng(1).normal(size=(n, n)) / n)
    dy.renew_cg()
    W = dy.tanh(P)
    dy.sum_elems(dy.square(W * W)).backward()
    w = np.tanh(P.as_array())
    dy_ = 2 * w @ w
    wanted = (dy_ @ w.T + w.T @ dy_) * (1 - w**2)
    np.testing.assert_allclose(P.grad_as_array(), wanted, atol=2e-5 * np.abs(wanted).max())


def test_a_lane_that_computes_what_its_calls_share() -> None:
    """The gradient of a matrix that is made of a word goes on to the word, so it must be formed before that."""

    def gradients(threads: int) -> list[np.ndarray]:
        net = Net()
        with dy.configure(threads=threads):
            _core.settings.least_work = 0
            dy.renew_cg()
            losses = []
            for k in range(6):
                u = dy.reshape(dy.concatenate([dy.tanh(net.words[k + j]) for j in range(N)]), (N, N))
                h = _core._rnn_step(net.weight("W", N, N) * net.words[k + 1], net.words[k + 2], u)
                losses.append(dy.sum_elems(_core._rnn_step(h, h, u)))
            dy.esum(losses).backward()
        return net.gradients()

    wanted = gradients(1)
    for threads in (2, 3):
        for a, b in zip(gradients(threads), wanted, strict=True):
            assert np.allclose(a, b, rtol=1e-4, atol=1e-5)
