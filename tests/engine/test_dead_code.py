"""What nothing reads and no expression refers to does not run (rewrite/rules/dead.cc): what goes, what stays, and that no number changes."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import pytest
from fused_programs import Model, N, Observed, engine, gone, gradients, near

import dynet_lite as dy
from dynet_lite import structure

SENTENCES = ((1, 2, 3, 4), (5, 2), (1, 6, 3), (0, 2, 4, 4, 1), (3,), (2, 2, 6), (5, 6))


def dead() -> list[int]:
    """Node numbers."""
    return [node.number for node in structure.read().nodes if node.sort == "dead"]


def same(plain: Observed, lean: Observed, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """The same numbers by the same names."""
    assert plain.keys() == lean.keys()
    for key, value in lean.items():
        near(value, plain[key], rtol, key, atol=atol)


def prefix_losses(model: Model, lstm: Any) -> Any:
    """Each state predicts; one more word is read at the end of each sentence, of which nothing is made."""
    losses = []
    S = model.weight("S", 5, N)
    for words in SENTENCES:
        state = lstm.initial_state()
        for k, w in enumerate(words):
            state = state.add_input(model.table(N)[w])
            losses.append(dy.pickneglogsoftmax(S * state.output(), k % 5))
        state.add_input(model.table(N)[0])
    return dy.esum(losses)


def lstm_of(model: Model) -> Any:
    dy.reset_random_seed(3)
    lstm = dy.VanillaLSTMBuilder(2, N, N, model.pc)
    model.made.update({p.name(): p for p in lstm.param_collection().parameters_list()})
    return lstm


@pytest.mark.parametrize(
    "how", [{}, {"threads": 2}, {"strategy": "none"}, {"strategy": "agenda"}, {"merge": True}], ids=str
)
def test_last_states_do_not_run(how: dict[str, Any]) -> None:
    found = []
    for settings in ({"fuse": False}, how):
        model = Model()
        with engine(**settings):
            loss = prefix_losses(model, lstm_of(model))
            loss.backward()
            found.append({"loss": loss.npvalue(), **gradients(model)})
            # Two layers, each a projection and a step, of each sentence.
            assert len(dead()) == dy.stats()["nodes_dead"] == (0 if settings == {"fuse": False} else 4 * len(SENTENCES))
    same(*found)


def test_an_expression_keeps_its_node() -> None:
    with engine():
        x = dy.inputVector(np.linspace(-1, 1, N))
        kept = dy.tanh(dy.square(x))
        dy.exp(kept)
        loss = dy.sum_elems(x)
        loss.value()
        assert [structure.read().nodes[i].op for i in dead()] == ["exp"]
        near(kept.npvalue(), np.tanh(np.linspace(-1, 1, N) ** 2), 1e-6, "kept")
        more = dy.cmult(kept, kept)  # and it may be used further
        near(more.npvalue(), np.tanh(np.linspace(-1, 1, N) ** 2) ** 2, 1e-6, "more")
        assert len(dead()) == 1


def test_chains_die_from_their_end() -> None:
    with engine():
        x = dy.inputVector(np.ones(N))
        y = dy.square(x)
        dy.tanh(dy.cmult(y, dy.logistic(y)))  # three
        z = dy.esum([y, x])
        loss = dy.sum_elems(z)
        del y, z
        loss.value()
        assert sorted(structure.read().nodes[i].op for i in dead()) == ["cmult", "logistic", "tanh"]


def test_the_same_argument_twice() -> None:
    with engine():
        x = dy.inputVector(np.ones(N))
        dy.cmult(*[dy.tanh(x)] * 2)
        loss = dy.sum_elems(x)
        assert loss.value() == N
        assert sorted(structure.read().nodes[i].op for i in dead()) == ["cmult", "tanh"]


@pytest.mark.parametrize("output", ["h", "c"])
def test_one_of_two_outputs_is_enough(output: str) -> None:
    found = []
    for fuse in (False, True):
        model = Model()
        with engine(fuse=fuse):
            state = lstm_of(model).initial_state().add_inputs([model.table(N)[1], model.table(N)[2]])[1]
            last = state.output() if output == "h" else state.s()[1]
            del state
            loss = dy.sum_elems(dy.square(last))
            del last
            loss.backward()
            assert not dead()
            found.append({"loss": loss.npvalue(), **gradients(model)})
    same(*found)


def test_a_part_keeps_the_whole() -> None:
    """An alias has no memory of its own, and its expressions are not counted."""
    with engine():
        part = dy.tanh(dy.inputVector(np.linspace(0, 1, N)))[2:4]
        loss = dy.sum_elems(dy.inputVector(np.ones(3)))
        loss.value()
        assert not dead()
        near(part.npvalue(), np.tanh(np.linspace(0, 1, N)[2:4]), 1e-6, "part")


def test_more_readers_than_are_counted() -> None:
    """Nobody knows when the last of them has gone: the node runs."""
    with engine():
        x = dy.tanh(dy.inputVector(np.ones(N)))
        for _ in range(300):
            dy.exp(x)
        del x
        loss = dy.sum_elems(dy.inputVector(np.ones(3)))
        loss.value()
        assert len(dead()) == 300


def test_whole_graphs_run_whole() -> None:
    """Who asks for no value but for a picture of the graph, or marks a point in it, gets all of it."""
    for ask in (structure.read, dy.explain_batches, dy.cg_checkpoint):
        with engine():
            dy.tanh(dy.inputVector(np.ones(N)))
            ask()
            assert not dead() and dy.stats()["nodes"] == 1


@pytest.mark.parametrize("how", [{"immediate_compute": True}, {"check_validity": True}], ids=str)
def test_nodes_that_run_as_they_are_made(how: dict[str, bool]) -> None:
    model = Model()
    with engine():
        dy.renew_cg(**how)
        loss = prefix_losses(model, lstm_of(model))
        assert np.isfinite(loss.value())
        assert not dead()


def test_random_numbers_do_not_depend_on_it() -> None:
    found = []
    for fuse in (False, True):
        with engine(fuse=fuse):
            dy.reset_random_seed(5)
            dy.renew_cg()
            x = dy.inputVector(np.ones(64))
            dy.dropout(x, 0.5)
            kept = dy.dropout(x, 0.5)
            dy.random_normal((3,))
            noise = dy.random_normal((5,))
            found.append((kept.npvalue(), noise.npvalue()))
            assert len(dead()) == (2 if fuse else 0)
    for plain, lean in zip(*found, strict=True):
        assert np.array_equal(plain, lean)


def test_after_a_checkpoint() -> None:
    """What was made before stays as it is; what comes after may go, again and again."""
    with engine():
        x = dy.inputVector(np.linspace(-1, 1, N))
        y = dy.tanh(x)
        dy.cg_checkpoint()
        for k in range(3):
            dy.exp(dy.square(y))
            loss = dy.sum_elems(y)
            near(loss.value(), np.tanh(np.linspace(-1, 1, N)).sum(), 1e-5, "loss", atol=1e-6)
            assert len(dead()) == 2
            assert dy.stats()["nodes_dead"] == 2 * (k + 1)
            dy.cg_revert()
            dy.cg_checkpoint()


def test_again_with_other_inputs() -> None:
    with engine():
        x = dy.vecInput(N)
        x.set(np.ones(N))
        dy.tanh(dy.square(x))
        loss = dy.sum_elems(dy.square(x))
        assert loss.value() == N
        x.set(np.full(N, 2.0))
        assert loss.value(recalculate=True) == 4 * N
        assert len(dead()) == 2


SIZE = 16  # of what is worth folding


def twice(build: Any, fuse: bool) -> dict[str, Any]:
    """A program whose first run holds expressions that are let go before its second: numbers of the second."""
    model = Model()
    with engine(fuse=fuse):
        x = dy.vecInput(SIZE)
        x.set(np.ones(SIZE))
        loss, held = build(model, x)
        loss.value()
        held.clear()
        x.set(np.linspace(-1, 2, SIZE))
        loss.value(recalculate=True)
        loss.backward()
        return {"loss": loss.npvalue(), **gradients(model)}


def joined(model: Model, x: Any) -> tuple[Any, list[Any]]:
    """Three maps of one input are one node, each read by one formula."""
    y = dy.inputVector(np.linspace(0, 1, SIZE))
    a, b, c = (
        dy.cmult(f(model.weight(name, SIZE, SIZE) * x), y)
        for name, f in (("A", dy.tanh), ("B", dy.logistic), ("C", dy.logistic))
    )
    return dy.sum_elems(b), [a, c]


def folded(model: Model, x: Any) -> tuple[Any, list[Any]]:
    """Two products read a concatenation in parts."""
    both = dy.concatenate([model.table(SIZE)[1], dy.softmax(x)])
    return dy.sum_elems(model.weight("A", SIZE, 2 * SIZE) * both), [model.weight("B", SIZE, 2 * SIZE) * both]


@pytest.mark.parametrize("build", [joined, folded])
def test_what_is_let_go_between_two_runs(build: Any) -> None:
    """Nodes that were rewritten have other readers than they were made with: they go on to run."""
    same(twice(build, False), twice(build, True))


@pytest.mark.parametrize("fuse", [False, True])
def test_a_revert_after_a_second_run(fuse: bool) -> None:
    """Everything had run before the checkpoint; run again, nodes on both sides of it are of one run, which goes."""
    model = Model()
    with engine(fuse=fuse):
        W = model.weight("W", N, N)
        y = dy.tanh(dy.inputVector(np.ones(N)))
        dy.cg_checkpoint()
        z = dy.tanh(dy.softmax(W * y))
        z.value()
        z.value(recalculate=True)
        dy.cg_revert()
        dy.sum_elems(W * y).backward()
        near(W.grad_as_array(), np.full((N, N), np.tanh(1.0)), 1e-5, "gradient")


def test_a_revert_behind_parts_of_inputs() -> None:
    """What runs again as a whole has parts of inputs on both sides of the mark; then other nodes come in their places."""

    def run(back: bool) -> list[np.ndarray]:
        model = Model()
        with engine():
            lstm, W = lstm_of(model), model.weight("W", N, N)
            x, y = (dy.inputTensor(np.full((2, N // 2), f)) for f in (0.1, 0.2))
            h = dy.tanh(W * dy.reshape(x, (N,)))
            h.npvalue()
            if back:
                dy.cg_checkpoint()
                z = dy.esum([h, *(dy.tanh(W * dy.reshape(y, (N,))) for _ in range(20))])
                z.npvalue()
                x.set(np.full(N, 0.3))
                z.npvalue()
                dy.cg_revert()
            states = [s for _ in range(3) for s in lstm.initial_state().add_inputs([h, h])]
            parts = [e for state in states for e in state.s()]
            total, found = dy.esum([dy.tanh(e) for e in parts]), []
            for f in (0.4, 0.5, 0.6):
                x.set(np.full(N, f))
                found += [total.npvalue(), *(e.npvalue() for e in parts)]
            return found

    for given, wanted in zip(run(True), run(False), strict=True):
        near(given, wanted, 1e-6)


def test_all_outputs_of_a_dead_cell_are_dead() -> None:
    model = Model()
    with engine():
        lstm_of(model).initial_state().add_input(model.table(N)[1])
        last = len(dy.cg()) - 1  # its cell
        loss = dy.sum_elems(dy.inputVector(np.ones(N)))
        loss.value()
        assert gone(last) and gone(last - 1)
        with pytest.raises(ValueError, match="was needed nowhere"):
            dy.cg().expression(last)
        with redirect_stderr(io.StringIO()) as told:
            dy.dump_cg()
        assert (
            told.getvalue().count("needed nowhere: it did not run") == 6
        )  # of two layers a projection and two outputs


def test_people_are_told() -> None:
    with engine():
        x = dy.inputVector(np.ones(N))
        dy.tanh(x)
        loss = dy.sum_elems(x)
        loss.value()
        (number,) = dead()
        assert gone(number)
        with pytest.raises(ValueError, match=f"node {number} was needed nowhere"):
            dy.cg().expression(number)
        assert "which nothing needs" in dy.cg().nodes()[number][1]
        assert "1 more nodes do not run" in str(dy.explain_batches())
        assert dy.explain_batches().to_dict()["nodes_dead"] == 1
        with redirect_stderr(io.StringIO()) as told:
            dy.dump_cg()
        assert "needed nowhere: it did not run" in told.getvalue()


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    """Some nodes are held, most are not; all that is held, and all gradients, are as if everything had run."""
    found = []
    for settings in ({"fuse": False}, {"merge": bool(seed % 2), "threads": 1 + seed % 3}):
        rng = np.random.default_rng(seed)
        model = Model()
        W, b, table = model.weight("W", N, N), model.weight("b", N), model.table(N)
        with engine(**settings):
            held, losses = [], []
            for _ in range(6):
                made = [table[int(rng.integers(7))] for _ in range(3)]
                for _ in range(12):
                    u, v = (made[int(k)] for k in rng.integers(len(made), size=2))
                    kind = int(rng.integers(5))
                    e = (dy.cmult(u, v) if kind == 0 else dy.tanh(u) if kind == 1 else dy.affine_transform([b, W, u]) if kind == 2
                         else dy.esum([u, v, u]) if kind == 3 else dy.rectify(dy.affine_transform([b, W, u, W, v])))  # fmt: skip
                    made.append(e)
                held.append(made[int(rng.integers(len(made)))])
                losses.append(dy.sum_elems(dy.square(made[int(rng.integers(len(made)))])))
                del made, u, v, e
            loss = dy.esum(losses)
            del losses
            loss.backward()
            count = len(dead())
            found.append({"loss": loss.npvalue(), **{k: h.npvalue() for k, h in enumerate(held)}, **gradients(model)})
    assert count > 0
    same(*found, rtol=1e-4, atol=1e-5)
