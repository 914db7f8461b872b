"""Graphs that run in several parts, for values are asked for in between, and graphs with several backward passes: their plans
are found again, too, and bits are those of plans made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fused_programs
import numpy as np
import pytest
import ragged_programs
from kept import same_kept_and_anew

import dynet_lite as dy
from dynet_lite import _core

WORDS = [(0, 1, 2), (3, 4, 5), (1, 6, 7), (7, 8, 0), (2, 3, 6)]


class Model:
    def __init__(self) -> None:
        rng = np.random.RandomState(3)
        self.m = dy.ParameterCollection()
        self.E = self.m.lookup_parameters_from_numpy(rng.uniform(-1, 1, (9, 4)).astype(np.float32))
        self.W = self.m.parameters_from_numpy(rng.uniform(-1, 1, (5, 4)).astype(np.float32))
        self.U = self.m.parameters_from_numpy(rng.uniform(-1, 1, (5, 6)).astype(np.float32))
        self.V = self.m.parameters_from_numpy(rng.uniform(-1, 1, (2, 6)).astype(np.float32))
        self.c = self.m.parameters_from_numpy(rng.uniform(-1, 1, 2).astype(np.float32))
        self.rnn = dy.SimpleRNNBuilder(1, 4, 6, self.m)
        self.lstm = dy.VanillaLSTMBuilder(1, 4, 6, self.m)

    def read(self, k: int) -> Any:
        return self.rnn.initial_state().transduce([self.E[word] for word in WORDS[k % 5]])[-1]

    def domain(self, h: Any, k: int) -> Any:
        return dy.pickneglogsoftmax(dy.affine_transform([self.c, self.V, dy.flip_gradient(h)]), k % 2)

    def arrays(self) -> list[Any]:
        return [p.as_array().copy() for p in self.m.parameters_list() + self.m.lookup_parameters_list()]


def adversarial(m: Model, k: int, update: Any) -> list[Any]:
    """A classifier and its adversary, with a pass and an update each."""
    h = m.read(k)
    loss = dy.pickneglogsoftmax(m.U * h, k % 5)
    seen = [loss.value()]
    loss.backward()
    update.update()
    other = m.domain(h, k) * 0.5
    seen.append(other.value())
    other.backward()
    return [*seen, h.gradient()]


def two_passes(m: Model, k: int, update: Any) -> list[Any]:
    """The second adds to the gradients of the first, and is one of another loss that was read before."""
    h = m.read(k)
    loss, other = dy.pickneglogsoftmax(m.U * h, k % 5), m.domain(h, k)
    seen = [loss.value(), other.value()]
    loss.backward()
    seen.append(h.gradient())
    other.backward()
    return [*seen, h.gradient()]


def twice(m: Model, k: int, update: Any) -> list[Any]:
    h = m.read(k)
    loss = dy.pickneglogsoftmax(m.U * h, k % 5)
    seen = [loss.value()]
    loss.backward()
    loss.backward()
    return [*seen, h.gradient(), m.E.grad_as_array().copy()]


def losses_by_themselves(m: Model, k: int, update: Any) -> list[Any]:
    """One pass through all parts."""
    h = m.read(k)
    loss = dy.pickneglogsoftmax(m.U * h, k % 5)
    seen = [loss.value()]
    other = m.domain(h, k)
    seen.append(other.value())
    (loss + other * 0.3).backward()
    return seen


def ten_reads(m: Model, k: int, update: Any) -> list[Any]:
    """A distribution is read at each step; the next step does not depend on it."""
    state, losses, seen = m.lstm.initial_state(), [], []
    for j in range(10):
        state = state.add_input(m.E[(k + j) % 9])
        p = dy.softmax(m.U * state.output())
        seen.append(p.npvalue())
        losses.append(-dy.log(dy.pick(p, (k + j) % 5)))
    loss = dy.esum(losses)
    loss.backward()
    return [*seen, loss.value()]


def random_numbers(m: Model, k: int, update: Any) -> list[Any]:
    """Seeds are data, in each part."""
    h = dy.dropout(m.read(k), 0.4)
    seen = [h.npvalue()]
    loss = dy.pickneglogsoftmax(dy.affine_transform([dy.zeros(5), m.U, dy.noise(h, 0.1)]), k % 5)
    seen.append(loss.value())
    loss.backward()
    return [*seen, h.gradient()]


def whole_and_parts(m: Model, k: int, update: Any) -> list[Any]:
    """Inputs get gradients in a full pass; a part of a value of an earlier part; rows of an earlier part are read again."""
    x = dy.inputTensor(np.full(6, 0.1 * k, np.float32))
    h = m.read(k) + x
    seen = [h.npvalue()]
    loss = dy.squared_norm(dy.pick_range(h, 1, 4)) + dy.dot_product(m.E[WORDS[k % 5][0]], dy.pick_range(x, 0, 4))
    seen.append(loss.value())
    loss.backward(full=True)
    seen += [x.gradient(), h.gradient()]
    loss.backward()
    return [*seen, h.gradient()]


# Of a step that has been made before: forward passes, backward passes.
PROGRAMS: dict[Callable[[Model, int, Any], list[Any]], tuple[int, int]] = {
    adversarial: (2, 2),
    two_passes: (1, 2),
    twice: (1, 2),
    losses_by_themselves: (3, 1),
    ten_reads: (11, 1),
    random_numbers: (2, 1),
    whole_and_parts: (2, 2),
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"verify": False},
    {"autobatch": False},
    {"fuse": False},
    {"keep_weights": True},
    {"strategy": "auto", "threads": 2, "overlap": False},
]


def counts() -> tuple[int, int, int, int]:
    s = dy.stats()
    return s["plans"], s["plans_again"], s["backward_plans"], s["backward_plans_again"]


def steps(program: Callable[..., list[Any]], keep: bool, setting: dict[str, Any], trainer: Any) -> list[list[Any]]:
    forward, backward = PROGRAMS[program]
    with dy.configure(keep_plans=keep, seed=5, **setting):
        model, found = Model(), []
        update = trainer(model.m)
        for k in range(24):
            dy.renew_cg()
            seen = program(model, k, update)
            if k >= 16:
                plans, again, back_plans, back_again = counts()
                assert (plans, again) == ((0, forward) if keep else (forward, 0)), k
                assert back_plans + back_again == backward and (not keep or back_plans == 0), k
            if k % 4 != 1 or k > 10:
                update.update()
            found.append([*seen, *model.arrays()])
    return found


@pytest.mark.parametrize("trainer", [dy.SimpleSGDTrainer, dy.AdamTrainer], ids=lambda t: t.__name__)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_found_again_with_the_same_bits(
    program: Callable[..., list[Any]], setting: dict[str, Any], trainer: Any
) -> None:
    same(steps(program, True, setting, trainer), steps(program, False, setting, trainer))


def same(kept: list[list[Any]], anew: list[list[Any]]) -> None:
    for k, (one, other) in enumerate(zip(kept, anew, strict=True)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"step {k}")


# ---- what must be the same -----------------------------------------------------------------------------------------


def found(*graphs: Callable[[], Any]) -> list[tuple[int, int]]:
    """Of graphs made one after the other: forward and backward passes by plans that were there."""
    seen = []
    for _ in range(3):
        dy.renew_cg()
    for graph in graphs:
        dy.renew_cg()
        kept = graph()
        seen.append((dy.stats()["plans_again"], dy.stats()["backward_plans_again"]))
        del kept
    return seen


def test_what_must_be_the_same() -> None:
    m = Model()

    def graph(
        rows: tuple[int, int] = (0, 1),
        label: int = 0,
        first: bool = False,
        second: bool = False,
        hold: bool = False,
        full: bool = False,
        other: bool = False,
        after: bool = False,
    ) -> Any:
        m.W.zero_gradient()
        m.E.zero_gradient()
        xs = [m.E[row] for row in rows]
        h = dy.tanh(dy.sin(dy.esum(xs)) if first else dy.esum(xs))
        kept = xs if hold else []
        del xs
        h.npvalue()
        loss = dy.pickneglogsoftmax(m.W * (dy.sin(h) if second else h), label)
        value = dy.sum_elems(h)
        loss.value()
        unread = dy.tanh(h) if after else None  # it has not run
        (value if other else loss).backward(full=full)
        return [h, loss, value, unread, *kept]

    def again(**how: Any) -> tuple[int, int]:
        graph_again = found(graph, graph, lambda: graph(**how))
        assert graph_again[1] == (2, 1)
        return graph_again[2]

    assert again(rows=(5, 7)) == again(label=3) == (2, 1)
    assert again(rows=(5, 5)) == again(first=True) == again(hold=True) == (0, 0)  # the first part is another one
    assert again(second=True) == (1, 0)  # the second is
    assert again(full=True) == again(other=True) == (2, 0)  # the pass is
    assert again(after=True) == (2, 1)  # nobody reads what has not run


def test_gradients_of_before() -> None:
    """Weights that had a gradient before the pass have memory of their own in it."""
    m = Model()
    update = dy.SimpleSGDTrainer(m.m)

    def graph(then_update: bool) -> Any:
        loss = dy.pickneglogsoftmax(m.U * m.read(1), 2)
        loss.backward()
        if then_update:
            update.update()
        return loss

    seen = found(*[lambda u=u: graph(u) for u in (True, True, False, True, True, False, False, True)])
    assert seen == [(0, 0), (1, 1), (1, 1), (1, 0), (1, 1), (1, 1), (1, 1), (1, 1)]


def test_going_back_and_running_again() -> None:
    """Checkpoints, fresh values of the same graph, nodes behind what is known."""

    def run(keep: bool) -> list[Any]:
        with dy.configure(keep_plans=keep, seed=3):
            m, seen = Model(), []
            update = dy.SimpleSGDTrainer(m.m)
            for k in range(40):
                dy.renew_cg()
                x = dy.inputTensor(np.full(6, 0.1 * k, np.float32))
                h = dy.tanh(m.read(k) + x)
                seen.append(h.npvalue())
                loss = dy.pickneglogsoftmax(m.U * h, k % 5)
                seen.append(loss.value())
                if k % 3 == 0:
                    dy.cg_checkpoint()
                    more = m.domain(h, k) + loss
                    seen.append(more.value())
                    more.backward()
                    dy.cg_revert()
                if k % 4 == 1:
                    x.set(np.full(6, 0.5, np.float32).tolist())
                    seen.append(loss.value())
                last = m.domain(h, k + 1) + loss if k % 5 < 3 else loss
                last.backward()
                seen.append(x.gradient().copy())
                if k % 7 == 2:
                    x.set(np.full(6, 0.7, np.float32).tolist())
                    last.backward()
                update.update()
                seen += m.arrays()
            return seen

    same_kept_and_anew(run)


def test_a_value_that_is_picked_elsewhere_between_parts() -> None:
    """It lies in another place then; that of the part behind, which reads it, was found with its plan."""

    def run(keep: bool) -> list[Any]:
        with dy.configure(keep_plans=keep):
            seen = []
            for k, place in enumerate((1, 1, 3, 2, 0, 4, 1, 3)):
                dy.renew_cg()
                h = dy.tanh(dy.inputTensor(np.random.RandomState(k).uniform(-1, 1, (8, 6))))
                x = dy.pick(h, 1, 1)
                x.value()
                x.set_index(place)
                seen.append(x.npvalue())
                loss = dy.sum_elems(dy.cmult(dy.sin(x), dy.tanh(x)))  # fused: x has one reader, not two
                seen += [loss.npvalue(), x.npvalue()]
                loss.backward(full=True)
                seen.append(h.gradient())
                if keep and k > 1:
                    assert dy.stats()["plans_again"] == 3 and dy.stats()["plans"] == 0
            return seen

    same_kept_and_anew(run)


def test_more_parts_than_are_kept() -> None:
    def run(keep: bool) -> list[Any]:
        with dy.configure(keep_plans=keep):
            m, seen = Model(), []
            for k in range(8):
                dy.renew_cg()
                x = m.E[k]
                for _ in range(90):
                    x = dy.tanh(x * 1.5)
                    seen.append(x.npvalue())
                dy.squared_norm(x).backward()
                if k > 4:
                    assert dy.stats()["plans_again"] == (64 if keep else 0)
            return [*seen, m.E.grad_as_array().copy()]

    same_kept_and_anew(run)


def test_parts_that_are_never_alike_are_seldom_looked_at() -> None:
    m = Model()

    def graph(k: int) -> Any:
        h = m.read(1)
        h.npvalue()
        x = dy.squared_norm(dy.esum([h * 1.5] * (k + 1)))
        x.value()
        return x

    assert [again for again, _ in found(*[lambda k=k: graph(k) for k in range(100)])][2:] == [1] * 98
    assert [again for again, _ in found(*[lambda: graph(0)] * 90)].count(2) >= 1  # it is noticed when that changes


@pytest.mark.parametrize("program", [two_passes, ten_reads], ids=lambda p: p.__name__)
def test_no_heap_calls(program: Callable[..., list[Any]]) -> None:
    m = Model()
    update = dy.AdamTrainer(m.m)

    def step(k: int) -> None:
        dy.renew_cg()
        program(m, k, update)
        update.update()

    for k in range(60):
        step(k)
    before = _core.heap_calls()
    for k in range(60):
        step(k)
    assert _core.heap_calls() == before


# ---- random programs -----------------------------------------------------------------------------------------------


def random_program(seed: int) -> Callable[[fused_programs.Model], fused_programs.Built]:
    if seed % 3 == 2:
        return ragged_programs.Sources(seed, examples=3, held=seed % 2 == 0)
    return fused_programs.Random(seed, affine=seed % 3 == 1, examples=2, peek=True)


def observed(seed: int, keep: bool, strategy: str, setting: dict[str, Any]) -> tuple[list[Any], int]:
    """Values are read while the graph is built and after, in one step or another order; passes are of parts of the loss."""
    model, build, seen, again = fused_programs.Model(), random_program(seed), [], 0
    how = np.random.default_rng([seed, 9])
    reads, parts, full = how.random(8) < 0.5, how.integers(0, 100, 3), bool(how.random() < 0.3)
    with dy.configure(keep_plans=keep, strategy=strategy, seed=3, **setting):
        for step in range(5):
            dy.renew_cg()
            b = build(model)
            seen += [v.npvalue() for v, read in zip(b.values, reads, strict=False) if read]
            some = b.losses[: 1 + parts[0] % len(b.losses)]
            seen += [loss.npvalue() for loss, read in zip(some, reads, strict=False) if read]
            for part in [b.loss, *[b.losses[p % len(b.losses)] for p in parts]][: 1 + seed % 4]:
                part.backward(full=full and part is b.loss)
                seen += [v.gradient() for v in b.values] if part is b.loss else []
                if step % 2:
                    seen += model.gradients().values()
            seen += [b.loss.npvalue(), *model.gradients().values()]
            again += dy.stats()["backward_plans_again"]
    return seen, again


@pytest.mark.parametrize("strategy, setting", [("greedy", {}), ("none", {"fuse": False}), ("auto", {})])
def test_random_programs(strategy: str, setting: dict[str, Any]) -> None:
    found_again = 0
    for seed in range(60):
        kept, again = observed(seed, True, strategy, setting)
        anew, none = observed(seed, False, strategy, setting)
        assert none <= 2 * 5, seed  # a pass after the same one over a graph that ran in one piece
        for k, (a, b) in enumerate(zip(kept, anew, strict=True)):
            np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}, {k}")
        found_again += again
    assert found_again > 150
