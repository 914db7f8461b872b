"""Nodes that compute the same are computed once (rewrite/rules/merge.cc): counts, and that no number changes.

Programs run merged and as written; values and gradients must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fused_programs import Cell, Model, N, Observed, engine, gradients, near
from programs import run_code

import dynet_lite as dy
from dynet_lite import structure

Program = Callable[[Model], list[Any]]  # vectors; the loss is made of them
SENTENCES = ((1, 2, 3, 4), (1, 2, 5), (1, 2, 3, 6, 2), (2,), (1, 2, 3, 4), (4, 4, 4))
TREES: tuple[Any, ...] = (((1, 2), 3), ((1, 2), (1, 2)), (4, (1, (2, 3))), 5, ((5, 4), (1, 2)), (1, 2), (2, 2))


def rows(model: Model, words: Any) -> list[Any]:
    table = model.table(N)
    return [table[w] for w in words]


def lstm(model: Model) -> list[Any]:
    cell = Cell(model)
    return [h for words in SENTENCES for h in hand_states(cell, rows(model, words))]


def hand_states(cell: Cell, xs: list[Any]) -> list[Any]:
    state = (dy.zeros(N), dy.zeros(N))
    out = []
    for x in xs:
        state = cell.step(x, *state)
        out.append(state[0])
    return out


def builder(name: str, layers: int = 1) -> Program:
    def program(model: Model) -> list[Any]:
        dy.reset_random_seed(3)
        made = getattr(dy, name)(layers, N, N, model.pc)
        model.made.update({p.name(): p for p in made.param_collection().parameters_list()})
        return [h for words in SENTENCES for h in made.initial_state().transduce(rows(model, words))]

    program.__name__ = f"{name}_{layers}"
    return program


def both_directions(model: Model) -> list[Any]:
    dy.reset_random_seed(3)
    made = dy.BiRNNBuilder(1, N, N, model.pc, dy.VanillaLSTMBuilder)
    model.made.update({p.name(): p for p in made.param_collection().parameters_list()})
    W = model.weight("W", N, N)
    return [W * h for words in SENTENCES for h in made.transduce(rows(model, words))]


def taken(values: list[Any]) -> list[Any]:
    """A copy of the list, which is empty then: a function that calls itself keeps what it knows until the garbage collector comes."""
    out = list(values)
    values.clear()
    return out


def trees(model: Model) -> list[Any]:
    """Binary tree LSTMs with gates by hand."""
    out: list[Any] = []

    def gate(what: str, children: tuple[Any, ...]) -> Any:
        maps = [part for k, h in enumerate(children) for part in (model.weight(f"{what}{len(children)}{k}", N, N), h)]
        return dy.affine_transform([model.weight(f"b{what}", N), *maps])

    def node(tree: Any) -> tuple[Any, Any]:
        children = [node(part) for part in tree] if isinstance(tree, tuple) else []
        below = tuple(h for h, _ in children) or (model.table(N)[tree],)
        i, o, u = dy.logistic(gate("i", below)), dy.logistic(gate("o", below)), dy.tanh(gate("u", below))
        c = dy.cmult(i, u)
        for k, (_, inner) in enumerate(children):
            c = c + dy.cmult(dy.logistic(gate(f"f{k}", below)), inner)
        h = dy.cmult(o, dy.tanh(c))
        out.append(h)
        return h, c

    for tree in TREES:
        node(tree)
    return taken(out)


def tree_builder(model: Model) -> list[Any]:
    dy.reset_random_seed(3)
    made = dy.NaryTreeLSTMBuilder(2, 1, N, N, model.pc)
    model.made.update({p.name(): p for p in made.param_collection().parameters_list()})
    out: list[Any] = []

    def node(tree: Any) -> Any:
        """A word has the one child of none."""
        state = (
            made.node(None, [node(part) for part in tree])
            if isinstance(tree, tuple)
            else made.node(model.table(N)[tree], [None])
        )
        out.append(state.output())
        return state

    for tree in TREES:
        node(tree)
    return taken(out)


def concatenations(model: Model) -> list[Any]:
    W = model.weight("W", N, 2 * N)
    xs = [
        dy.concatenate([a, b])
        for words in SENTENCES
        for a, b in zip(rows(model, words), rows(model, words[::-1]), strict=True)
    ]
    return [W * x for x in xs] + [dy.tanh(W * dy.cmult(x, x)) for x in xs]


def the_same_in_a_sentence(model: Model) -> list[Any]:
    """Twice in one expression, and as several arguments of one op."""
    out = []
    for w in (1, 2, 1):
        h = [dy.tanh(model.weight("W", N, N) * model.table(N)[w]) for _ in range(3)]
        out += [dy.cmult(h[0], h[1]) + h[2], dy.esum([h[0], h[0], h[1]]), dy.concatenate([h[1], dy.exp(h[2])])[:N]]
    return out


def attributes(model: Model) -> list[Any]:
    """What is equal but for a number is not the same."""
    xs = [dy.tanh(x) for x in rows(model, (1, 1, 2, 2))]
    return [
        v for k, x in enumerate(xs) for v in (x * (k % 2 + 0.5), dy.pickneglogsoftmax(x, k % 2), dy.elu(x, k % 2 + 1.0))
    ]


def ways_to_look_up(model: Model) -> list[Any]:
    """Rows that are trained and not, one by one and in a mini-batch."""
    table, out = model.table(N), []
    for k in range(6):
        x = dy.lookup(table, k % 2, update=k % 3 > 0)
        out += [dy.tanh(x), dy.sum_batches(dy.square(dy.lookup_batch(table, [k % 2, 3])))]
    return out


PROGRAMS: dict[str, Program] = {
    p.__name__: p
    for p in (lstm, both_directions, trees, tree_builder, concatenations, the_same_in_a_sentence, attributes, ways_to_look_up,
              *(builder(name) for name in ("VanillaLSTMBuilder", "GRUBuilder", "SimpleRNNBuilder", "CoupledLSTMBuilder")),
              builder("VanillaLSTMBuilder", 2))
}  # fmt: skip


def observe(program: Program, fold: bool = False) -> tuple[Observed, int]:
    """The loss of a program, gradients, and how many nodes were merged. fold: the losses are of classes."""
    model = Model()
    vectors = program(model)
    if fold:
        losses = [dy.pickneglogsoftmax(model.weight("S", 5, v.dim()[0][0]) * v, k % 3) for k, v in enumerate(vectors)]
    else:
        losses = [dy.sum_elems(dy.cmult(v, dy.square(v))) * (1 + k % 4) for k, v in enumerate(vectors)]
    loss = dy.esum(losses)
    del vectors, losses
    loss.backward()
    return {"loss": loss.npvalue(), **gradients(model)}, int(dy.stats()["nodes_merged"])


@pytest.mark.parametrize("fold", [False, True], ids=["sums", "classes"])
@pytest.mark.parametrize(
    "how",
    [{}, {"threads": 2}, {"threads": 3}, {"strategy": "none"}, {"strategy": "agenda"}, {"strategy": "depth"}],
    ids=str,
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_number_changes(name: str, how: dict[str, Any], fold: bool) -> None:
    with engine(fuse=False):
        plain, none = observe(PROGRAMS[name], fold)
    assert none == 0
    with engine(merge=True, **how):
        merged, count = observe(PROGRAMS[name], fold)
    assert count > 0 or how.get("threads") or (fold and name == "ways_to_look_up")  # lanes may have nothing in common
    assert merged.keys() == plain.keys()
    for key, value in merged.items():
        near(value, plain[key], 1e-5, key, atol=1e-6)


# ---- what is merged, and what not ----------------------------------------------------------------------------------------


def merged_ops() -> list[str]:
    """Without those of losses_of()."""
    ops = [node.op for node in structure.read().nodes if node.sort == "merged"]
    assert len(ops) == dy.stats()["nodes_merged"]
    return sorted(op for op in ops if op not in ("square", "sum_elems"))


def losses_of(*values: Any) -> Any:
    """Each weighs more than the one before."""
    return dy.esum([dy.sum_elems(dy.square(v)) * (k + 1.0) for k, v in enumerate(values)])


def test_beginnings_of_sentences() -> None:
    """Each step is made once for all sentences that begin alike; of two layers both, and of an LSTM its projection, too."""
    beginnings = {words[:n] for words in SENTENCES for n in range(1, len(words) + 1)}
    spared = sum(map(len, SENTENCES)) - len(beginnings)
    with engine(merge=True):
        losses_of(*builder("VanillaLSTMBuilder", 2)(Model())).forward()
        steps = [op for op in merged_ops() if op.startswith("lstm")]
        assert len(steps) == 2 * spared
        assert merged_ops().count("affine_transform") == 2 * spared


def test_who_is_asked_for_is_kept() -> None:
    """A node that an expression refers to has a value and a gradient of its own, as have all that it is made of."""
    with engine(merge=True):
        model = Model()
        table, W = model.table(N), model.weight("W", N, N)
        hs = [dy.tanh(W * table[1]) for _ in range(4)]
        kept = hs[2]
        loss = losses_of(*hs)
        del hs
        loss.backward()
        assert merged_ops() == ["matmul", "matmul", "tanh", "tanh"]
        value = np.tanh(W.as_array() @ table.row_as_array(1))
        near(kept.npvalue(), value, 1e-6)
        near(kept.gradient(), 2 * 3 * value, 1e-6)


def test_a_row_that_is_asked_for() -> None:
    with engine(merge=True):
        model = Model()
        xs = [model.table(N)[1] for _ in range(3)]
        loss = losses_of(*(dy.tanh(x) for x in xs))
        kept = xs[1]
        del xs
        loss.value()
        assert merged_ops() == ["tanh"]
        assert kept.npvalue().shape == (N,)


def test_a_row_that_changes() -> None:
    with engine(merge=True):
        model = Model()
        xs = [model.table(N)[1] for _ in range(3)]
        zeros = [dy.zeros(N) for _ in range(3)]
        loss = losses_of(*(dy.exp(x) for x in xs + zeros))
        with_kept = [xs[0], zeros[0]]
        del xs, zeros
        loss.value()
        assert merged_ops() == ["exp", "exp"]
        with_kept[0].set(2)
        with_kept[1].set(np.ones(N))
        del with_kept
        one, two = (float(np.exp(2 * model.table(N).row_as_array(k)).sum()) for k in (1, 2))
        assert loss.value() == pytest.approx(two + 5 * one + 4 * np.exp(2) * N + 11 * N, rel=1e-5)


def test_a_constant_that_was_set() -> None:
    with engine(merge=True):
        xs = [dy.zeros(N) for _ in range(3)]
        xs[1].set(np.ones(N))
        loss = losses_of(*(dy.exp(x) for x in xs))
        del xs
        assert loss.value() == pytest.approx((1 + 2 * np.exp(2) + 3) * N, rel=1e-5)


def test_parts_of_what_is_made_twice() -> None:
    """A slice is a view: what it is a part of stays, and so do the gradients of both."""
    with engine(merge=True):
        model = Model()
        hs = [dy.tanh(model.table(N)[1]) for _ in range(3)]
        parts = [h[:4] for h in hs]
        loss = losses_of(*hs, *parts)
        del hs
        loss.backward()
        assert merged_ops() == []
        value = np.tanh(model.table(N).row_as_array(1))[:4]
        for k, part in enumerate(parts):
            near(part.gradient(), 2 * ((k + 1) + (k + 4)) * value, 1e-6)


def test_random_numbers_and_inputs_are_their_own() -> None:
    with engine(merge=True):
        model = Model()
        x = [model.table(N)[1] for _ in range(4)]
        noisy = [dy.noise(dy.tanh(x[0]), 0.5), dy.noise(dy.tanh(x[1]), 0.5)]
        inputs = [dy.inputVector(np.arange(N)) for _ in range(2)]
        ends = [*noisy, *(dy.tanh(i) for i in inputs), dy.dropout(dy.tanh(x[2]), 0.5), dy.dropout(dy.tanh(x[3]), 0.5)]
        loss = losses_of(*ends)
        del x
        loss.value()
        assert merged_ops() == []
        assert not np.array_equal(noisy[0].npvalue(), noisy[1].npvalue())


def test_outputs_of_a_cell() -> None:
    """h and c of a step are merged with the step, unless an expression refers to one of them."""
    for held in (None, "h", "c"):
        with engine(merge=True):
            model = Model()
            made = dy.VanillaLSTMBuilder(1, N, N, model.pc)
            states = [made.initial_state().add_input(model.table(N)[1]) for _ in range(2)]
            c, h = states[0].s()
            kept = {"h": h, "c": c, None: None}[held]
            del c, h
            loss = losses_of(*states[0].s(), *states[1].s())
            del states
            loss.value()
            assert merged_ops() == ([] if held else ["affine_transform", "lstm_start"])
            del kept


# ---- graphs that change or go on ---------------------------------------------------------------------------------------


def test_a_graph_runs_again_with_other_weights() -> None:
    """invalidate() reads rows and weights anew; what was merged stays so."""
    with engine(merge=True):
        model = Model()
        table, W = model.table(N), model.weight("W", N, N)
        loss = losses_of(*(dy.tanh(W * table[1]) for _ in range(3)))
        loss.backward()
        assert merged_ops() == ["matmul", "matmul", "tanh", "tanh"]
        model.gradients()
        table.init_row(1, np.arange(N) / 10)
        value = np.tanh(W.as_array() @ (np.arange(N) / 10))
        assert loss.value(recalculate=True) == pytest.approx(6 * (value**2).sum(), rel=1e-5)
        loss.backward()
        near(W.grad_as_array(), np.outer(12 * value * (1 - value**2), np.arange(N) / 10), 1e-5)


def test_a_graph_grows_and_shrinks() -> None:
    """What stands before a checkpoint is not merged with what stands behind it, and goes on without it."""
    with engine(merge=True):
        model = Model()
        table, W = model.table(N), model.weight("W", N, N)
        h = dy.tanh(W * table[1])
        first = losses_of(h, dy.tanh(W * table[1]))
        value = float((np.tanh(W.as_array() @ table.row_as_array(1)) ** 2).sum())
        assert first.value() == pytest.approx(3 * value, rel=1e-5)
        dy.cg_checkpoint()
        more = losses_of(*(dy.tanh(W * table[1]) for _ in range(2)), h)
        assert more.value() == pytest.approx(6 * value, rel=1e-5)
        assert merged_ops() == ["matmul", "tanh"]
        dy.cg_revert()
        again = first + losses_of(dy.tanh(W * table[1]), h)
        again.backward()
        assert again.value() == pytest.approx(6 * value, rel=1e-5)
        near(h.gradient(), (2 + 4) * h.npvalue(), 1e-5)


def test_an_index_that_changes() -> None:
    with engine(merge=True):
        x = dy.tanh(Model().table(N)[1])
        picked = [dy.pick(x, 0), dy.pick(x, 0)]
        both = dy.exp(picked[0]) + dy.exp(picked[1])
        assert both.value() == pytest.approx(2 * np.exp(x.npvalue()[0]), rel=1e-6)
        picked[0].set_index(3)
        assert both.value() == pytest.approx(np.exp(x.npvalue()[3]) + np.exp(x.npvalue()[0]), rel=1e-6)


def test_an_index_of_a_shared_part_that_changes() -> None:
    """What was merged does not lie in the part that moves, though it reads it first of all."""

    def run(merge: bool) -> list[float]:
        model = Model()
        with engine(merge=merge):
            bias = dy.pick(model.weight("B", N, 5), 1, 1)
            W, table = model.weight("W", N, N), model.table(N)
            hs = [dy.affine_transform([bias, W, table[2]]) for _ in range(3)]
            loss = dy.esum([dy.squared_norm(h) for h in (*hs, *hs)])
            del hs
            values = [loss.value()]
            for k in (2, 4, 3):
                bias.set_index(k)
                values.append(loss.value())
            return values

    assert run(merge=True) == pytest.approx(run(merge=False), rel=1e-5)


def test_nodes_by_number() -> None:
    """One that was merged has the value of the other."""
    with engine(merge=True):
        model = Model()
        losses_of(*(dy.exp(dy.sum_elems(model.table(N)[1])) for _ in range(2))).value()
        first, second = (n for n, what, *_ in dy.cg().nodes() if what.startswith("exp"))
        texts = [what for _, what, *_ in dy.cg().nodes()]
        assert texts[second] == f"exp {{1}}, the same as {first}"
        assert dy.cg().expression(second).value() == dy.cg().expression(first).value() == pytest.approx(
            np.exp(model.table(N).row_as_array(1).sum()), rel=1e-5)  # fmt: skip


def test_steps_make_no_heap_call() -> None:
    with engine(merge=True):
        model, calls = Model(), []
        for _ in range(5):
            dy.renew_cg()
            losses_of(*trees(model)).backward()
            calls.append(dy.stats()["heap_calls"])
        assert dy.stats()["nodes_merged"] > 50
    assert calls[-1] == calls[-2]


def test_without_fusing_nothing_is_merged() -> None:
    with engine(merge=True, fuse=False):
        losses_of(*lstm(Model())).value()
        assert dy.stats()["nodes_merged"] == 0


# ---- lanes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("looked_up", [False, True])
@pytest.mark.parametrize("threads", [2, 3])
def test_lanes_share_what_they_read(threads: int, looked_up: bool, merge: bool) -> None:
    """Maps of one input, which is a leaf, lie in several lanes and are not joined: lanes run at the same time."""

    def program() -> Observed:
        model, size = Model(), 64
        x = model.table(size)[1] if looked_up else dy.inputVector(np.linspace(-1, 1, size))
        losses = []
        for k in range(8):
            h = dy.tanh(model.weight(f"W{k % 5}", size, size) * x)
            for _ in range(6):
                h = dy.cmult(dy.tanh(model.weight("U", size, size) * h), dy.logistic(model.weight("V", size, size) * h))
            losses.append(dy.squared_norm(h))
        del h
        loss = dy.esum(losses)
        del losses
        loss.backward()
        return {"loss": loss.npvalue(), **gradients(model)}

    with engine(fuse=False):
        plain = program()
    for _ in range(5):
        with engine(merge=merge, threads=threads):
            found = program()
        for key, value in found.items():
            near(value, plain[key], 1e-5, key, atol=1e-6)


ASKED_FOR_LATER = """
import numpy as np

import dynet_lite as dy

dy.configure(verify=True)
E = dy.ParameterCollection().add_lookup_parameters((5, 16))
dy.renew_cg()
x = dy.inputVector(np.ones(16))
vectors = [dy.softmax(dy.tanh(dy.exp(E[1]))) for _ in range(2)]
loss = dy.sum_elems(dy.cmult(vectors[0] + vectors[1], x))
del vectors
loss.value()
kept = [dy.cg().kept_expression(k) for k in range(10)]
first, second = kept[2:6], kept[6:]
assert [e is None for e in first] == [e is None for e in second] == [False, True, False, False]
for a, b in zip(first, second):
    assert a is None or np.array_equal(a.npvalue(), b.npvalue())
more = dy.sum_elems(dy.tanh(second[2])) + loss
value = more.value()
del kept, first, second, a, b
x.set(np.ones(16))
assert more.value() == value
dy.dump_cg("nodes.txt")
"""


def test_nodes_that_are_asked_for_when_they_are_merged(tmp_path: Path) -> None:
    """What they were merged into may run inside another node: then both have no value of their own."""
    done = run_code(ASKED_FOR_LATER, tmp_path)
    assert done.returncode == 0, done.stderr
