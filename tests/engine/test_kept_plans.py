"""Plans of small graphs are found again where a graph is made alike: bits are those of plans made anew, and what must be the
same for that is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kept import same_kept_and_anew

import dynet_lite as dy
from dynet_lite import _core

Step = Callable[[int], Any]  # the loss of step k


class Model:
    def __init__(self) -> None:
        rng = np.random.RandomState(3)
        self.m = dy.ParameterCollection()
        self.E = self.m.lookup_parameters_from_numpy(rng.uniform(-1, 1, (9, 4)).astype(np.float32))
        self.W = self.m.parameters_from_numpy(rng.uniform(-1, 1, (8, 4)).astype(np.float32))
        self.U = self.m.parameters_from_numpy(rng.uniform(-1, 1, (5, 8)).astype(np.float32))
        self.b = self.m.parameters_from_numpy(rng.uniform(-1, 1, 8).astype(np.float32))
        self.lstm = dy.VanillaLSTMBuilder(1, 4, 8, self.m)

    def hidden(self, x: Any) -> Any:
        return dy.tanh(dy.affine_transform([self.b, self.W, x]))


def vector(k: int) -> Any:
    return np.random.RandomState(k).uniform(-1, 1, 4).astype(np.float32)


def feed_forward(m: Model, k: int) -> Any:
    return dy.pickneglogsoftmax(m.U * m.hidden(dy.inputTensor(vector(k))), k % 5)


def words(m: Model, k: int) -> Any:
    """Now all are different, now some are the same."""
    rows = [(0, 1, 2), (3, 4, 5), (1, 1, 6), (7, 7, 8), (2, 3, 2)][k % 5]
    return dy.esum([dy.squared_norm(m.hidden(m.E[row]) - m.b) for row in rows])


def sentence(m: Model, k: int) -> Any:
    hs = m.lstm.initial_state().transduce([m.E[(k + j) % 9] for j in range(2 + k % 3)])
    return dy.esum([dy.pickneglogsoftmax(m.U * h, (k * j) % 5) for j, h in enumerate(hs)])


def random_numbers(m: Model, k: int) -> Any:
    h = dy.dropout(m.hidden(dy.noise(dy.inputTensor(vector(k)), 0.1)), 0.4)
    return dy.pickneglogsoftmax(m.U * h, k % 5)


def several_rows(m: Model, k: int) -> Any:
    x = dy.lookup_batch(m.E, [k % 9, (k * 5) % 9, 3])
    return dy.sum_batches(dy.pickneglogsoftmax_batch(m.U * m.hidden(x), [k % 5, 1, (k + 2) % 5]))


def parts(m: Model, k: int) -> Any:
    """Where a part begins is a matter of the graph; a number is data."""
    h = m.hidden(m.E[k % 9])
    return dy.squared_norm(dy.pick_range(h, k % 2, 3 + k % 2)) + dy.pick(h, k % 3) * (1 + k % 2) + dy.scalarInput(k)


def constants(m: Model, k: int) -> Any:
    """Now two are equal, now not."""
    xs = [dy.constant(4, 0.5), dy.constant(4, 0.5 + k % 2), dy.constant(4, 1.5)]
    return dy.esum([dy.pickneglogsoftmax(m.U * m.hidden(x), j) for x, j in zip(xs, (0, 0, k % 2), strict=True)])


def a_tree(m: Model, k: int) -> Any:
    shapes: list[Any] = [(0, 1), ((0, 1), 2), (0, (1, 2)), ((0, 1), (2, 3))]

    def state(t: Any) -> Any:
        if isinstance(t, int):
            return m.E[(t + k) % 9]
        return dy.tanh(dy.cmult(state(t[0]), state(t[1])) + m.E[0])

    return dy.squared_norm(state(shapes[k % 4]))


def middle(m: Model, k: int) -> Any:
    """A value in the middle, and nodes after it."""
    h = m.hidden(m.E[k % 9])
    best = int(np.argmax(h.npvalue()[:5]))
    return dy.pickneglogsoftmax(m.U * h, best)


def inputs_that_move(m: Model, k: int) -> Any:
    """A graph with more inputs than there was room for: those of the next ones lie elsewhere."""
    loss = feed_forward(m, k)
    return loss + dy.sum_elems(dy.constant(20000 * k, 1e-4)) if k % 5 == 4 else loss


PROGRAMS = [
    feed_forward,
    words,
    sentence,
    random_numbers,
    several_rows,
    parts,
    constants,
    a_tree,
    middle,
    inputs_that_move,
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"verify": False},
    {"autobatch": False},
    {"strategy": "auto", "threads": 2},
    {"fuse": False},
    {"keep_weights": True},
]


def steps(program: Callable[[Model, int], Any], keep: bool, trainer: Any, setting: dict[str, Any]) -> list[list[Any]]:
    with dy.configure(keep_plans=keep, seed=5, **setting):
        model, found = Model(), []
        update, again = trainer(model.m), 0
        for k in range(40):
            dy.renew_cg()
            loss = program(model, k)
            found.append([loss.value()])
            loss.backward()
            if k % 3 == 2:
                loss.backward()
            if k % 7 == 6:
                found[-1].append(model.E.grad_as_array().copy())
            if k % 4 != 1:
                update.update()
            again += dy.stats()["plans_again"]
            found[-1] += [p.as_array().copy() for p in model.m.parameters_list() + model.m.lookup_parameters_list()]
        assert (again > 5) == keep, again
        return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("trainer", [dy.SimpleSGDTrainer, dy.AdamTrainer], ids=lambda t: t.__name__)
def test_bits_are_those_of_plans_made_anew(
    program: Callable[[Model, int], Any], setting: dict[str, Any], trainer: Any
) -> None:
    kept, anew = (steps(program, keep, trainer, setting) for keep in (True, False))
    for k, (one, other) in enumerate(zip(kept, anew, strict=True)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"step {k}")


def found_again(*graphs: Callable[[], Any]) -> list[bool]:
    """Of graphs made one after the other: did they run by a plan that was there?"""
    found = []
    for _ in range(3):  # the first renewals of a graph keep nothing
        dy.renew_cg()
    for graph in graphs:
        dy.renew_cg()
        kept = graph()  # expressions live as long as the graph
        (kept if not isinstance(kept, (list, tuple)) else kept[0]).value()
        found.append(dy.stats()["plans_again"] == 1)
        del kept
    return found


def test_what_must_be_the_same() -> None:
    m = Model()

    def graph(
        n: int = 1, rows: tuple[int, int] = (0, 1), scale: float = 2.0, label: int = 0, begin: int = 0, add: float = 0.0
    ) -> Any:
        h = dy.esum([dy.tanh(m.hidden(m.E[row]) * scale) for row in rows] * n)
        loss = dy.pickneglogsoftmax(m.U * h, label) + dy.squared_norm(dy.pick_range(h, begin, begin + 2))
        return loss + dy.scalarInput(add)

    def like(**other: Any) -> bool:
        return found_again(graph, lambda: graph(**other))[1]

    assert found_again(graph, graph, graph) == [False, True, True]
    assert like(rows=(5, 7)) and like(label=3) and like(add=1.0)
    assert not like(rows=(5, 5)) and not like(n=2) and not like(scale=2.5) and not like(begin=1)


def test_nodes_that_may_be_merged() -> None:
    """Where rows repeat, what is made of them is the same node if labels are the same, too."""
    m = Model()

    def graph(rows: tuple[int, int], labels: tuple[int, int]) -> Any:
        return dy.esum([dy.pickneglogsoftmax(m.U * m.E[r], j) for r, j in zip(rows, labels, strict=True)])

    m.U = m.m.add_parameters((5, 4))
    cases = [((1, 1), (0, 0)), ((2, 2), (0, 0)), ((2, 2), (0, 1)), ((3, 3), (0, 1)), ((3, 4), (0, 1)), ((5, 4), (2, 2))]
    found = found_again(*[lambda case=case: graph(*case) for case in cases])
    assert found == [False, True, False, True, False, True]


def test_who_is_held() -> None:
    """An expression that the program refers to keeps its value: then the graph is another one."""
    m = Model()

    def graph(hold: bool) -> Any:
        h = m.hidden(m.E[1])
        loss = dy.squared_norm(dy.tanh(h))
        return [loss, h] if hold else loss

    assert found_again(*[lambda hold=hold: graph(hold) for hold in (False, True, False, True)]) == [
        False,
        False,
        True,
        True,
    ]


def test_settings_and_weights_belong_to_a_plan() -> None:
    m, other = Model(), Model()

    def graph(model: Model = m) -> Any:
        return dy.squared_norm(model.hidden(model.E[1]))

    assert found_again(graph, lambda: graph(other), graph) == [False, False, True]
    m.b.set_updated(False)
    assert found_again(graph, graph) == [False, True]
    with dy.configure(autobatch=False):
        assert found_again(graph, graph) == [False, True]
    with dy.configure(keep_plans=False):
        assert found_again(graph, graph) == [False, False]
    dy.renew_cg(check_validity=True)
    graph().value()
    assert dy.stats()["plans_again"] == 0


def test_the_oldest_goes() -> None:
    m = Model()

    def graph(n: int, more: int = 0) -> Any:
        x = dy.esum([dy.squared_norm(m.hidden(m.E[0])) * (j + 1.5) for j in range(n)])
        for _ in range(more):
            x = dy.tanh(x)
        return x

    assert not any(found_again(*[lambda n=n: graph(n) for n in range(1, 60)]))
    assert all(found_again(*[lambda n=n: graph(n) for n in range(40, 60)]))
    for more in range(1, 8):  # the nodes of all together are bounded, too
        found_again(*[lambda n=n, k=more: graph(n, k) for n in range(40, 100)])
    assert found_again(lambda: graph(1)) == [False]


def test_large_graphs_are_not_looked_at() -> None:
    m = Model()

    def graph(n: int) -> Any:
        return dy.esum([dy.squared_norm(m.hidden(dy.inputTensor(vector(j)))) for j in range(n)])

    assert found_again(lambda: graph(100), lambda: graph(100)) == [False, True]
    assert found_again(lambda: graph(200), lambda: graph(200)) == [False, False]


def test_graphs_that_are_never_alike_are_seldom_looked_at() -> None:
    m = Model()

    def graph(k: int) -> Any:
        return dy.esum([dy.squared_norm(m.hidden(dy.inputTensor(vector(k))))] * (k + 1))

    assert not any(found_again(*[lambda k=k: graph(k) for k in range(100)]))
    assert found_again(*[lambda: graph(0)] * 90).count(True) >= 20  # it is noticed when that changes


def test_growing_and_going_back() -> None:
    """Nodes behind those of a plan, checkpoints, fresh values of the same graph."""

    def run(keep: bool) -> list[Any]:
        with dy.configure(keep_plans=keep, seed=3):
            m, found = Model(), []
            update = dy.SimpleSGDTrainer(m.m)
            for k in range(30):
                dy.renew_cg()
                x = dy.inputTensor(vector(k))
                loss = dy.squared_norm(m.hidden(x))
                found.append(loss.value())
                if k % 3 == 0:
                    dy.cg_checkpoint()
                    found.append((loss * loss + dy.squared_norm(m.b)).value())
                    dy.cg_revert()
                if k % 4 == 1:
                    x.set(vector(k + 1))
                    found.append(loss.value())
                more = loss + dy.sum_elems(x) if k % 5 == 2 else loss
                more.backward()
                found.append(x.gradient().copy())
                update.update()
            return [*found, m.W.as_array().copy(), m.b.as_array().copy()]

    same_kept_and_anew(run)


def test_a_graph_that_forgets_its_plan_for_another() -> None:
    """It has grown since it ran, and as a whole it is like one that is known, too."""

    def run(keep: bool) -> list[Any]:
        with dy.configure(keep_plans=keep, fuse=False):  # what passes have rewritten is never looked for
            m, found = Model(), []
            for k, (middle, grows) in enumerate([(False, True)] * 4 + [(True, True), (True, False), (True, False)]):
                dy.renew_cg()
                x = dy.inputTensor(vector(k))
                h = m.hidden(x)
                if middle:
                    found.append(h.npvalue())
                if grows:
                    loss = dy.squared_norm(dy.tanh(m.U * h))
                    x.set(vector(k + 9))
                    found.append(loss.npvalue())
            return found

    same_kept_and_anew(run)


def test_expressions_of_before_stay_stale() -> None:
    m = Model()
    for _ in range(4):
        dy.renew_cg()
        loss = dy.squared_norm(m.hidden(m.E[1]))
        loss.value()
    dy.renew_cg()
    again = dy.squared_norm(m.hidden(m.E[1]))
    again.value()
    assert dy.stats()["plans_again"] == 1
    with pytest.raises(dy.StaleExpressionError):
        loss.value()


def test_a_program_that_repeats_makes_no_heap_calls() -> None:
    m = Model()
    update = dy.AdamTrainer(m.m)

    def step(k: int) -> None:
        dy.renew_cg()
        sentence(m, k).backward()
        update.update()

    for k in range(60):
        step(k)
    before = _core.heap_calls()
    for k in range(60):
        step(k)
    assert _core.heap_calls() == before


def test_a_graph_that_grows_after_its_plan() -> None:
    """A value of a few nodes, then many more and a backward pass: the pass is that of the whole graph."""

    def run(keep: bool) -> list[Any]:
        with dy.configure(keep_plans=keep, seed=3):
            m, found, again = Model(), [], 0
            update = dy.SimpleSGDTrainer(m.m)
            for k in range(24):
                dy.renew_cg()
                loss = feed_forward(m, k)
                found.append(loss.value())
                again += dy.stats()["plans_again"]
                if k % 3:
                    loss = dy.esum([loss, *[dy.squared_norm(m.hidden(m.E[j % 9])) for j in range(200 * (k % 3))]])
                loss.backward()
                update.update()
            assert (again > 10) == keep
            return [*found, m.W.as_array().copy(), m.b.as_array().copy(), m.E.as_array().copy()]

    same_kept_and_anew(run)
