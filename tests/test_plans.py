"""Plans: golden texts, the number of batches against the lower bound, heap calls of a steady step, stale expressions.

DYNET_LITE_WRITE_GOLDEN=1 writes tests/golden/ anew; look at the difference before you commit it.
"""

from __future__ import annotations

import difflib
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

GOLDEN = Path(__file__).parent / "golden"
STRATEGIES = ("none", "depth", "agenda", "greedy")
LENGTHS = (3, 5, 2, 4)
# Trees by word number: a word, or a pair of trees.
TREES = (((0, 1), 2), (3, (4, (5, 6))), ((1, 2), (3, 4)), 5)


class Tagger:
    """A BiLSTM tagger over words; the loss of a mini-batch."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.words = self.pc.add_lookup_parameters((20, 6))
        self.lstm = dy.BiRNNBuilder(1, 6, 8, self.pc, dy.VanillaLSTMBuilder)
        self.w, self.b = self.pc.add_parameters((4, 8)), self.pc.add_parameters((4,))

    def loss(self, lengths: tuple[int, ...] = LENGTHS) -> Any:
        losses = []
        for n in lengths:
            states = self.lstm.transduce([self.words[(7 * n + k) % 20] for k in range(n)])
            losses += [
                dy.pickneglogsoftmax(dy.affine_transform([self.b, self.w, h]), k % 4) for k, h in enumerate(states)
            ]
        return dy.esum(losses)


class HandTagger(Tagger):
    """The same with an LSTM written by hand from single ops, in one direction."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.words = self.pc.add_lookup_parameters((20, 6))
        self.wx, self.wh = self.pc.add_parameters((32, 6)), self.pc.add_parameters((32, 8))
        self.bg = self.pc.add_parameters((32,))
        self.w, self.b = self.pc.add_parameters((4, 8)), self.pc.add_parameters((4,))

    def loss(self, lengths: tuple[int, ...] = LENGTHS) -> Any:
        losses = []
        for n in lengths:
            h = c = dy.zeros((8,))
            for k in range(n):
                gates = dy.affine_transform([self.bg, self.wx, self.words[(7 * n + k) % 20], self.wh, h])
                i, f, o = (dy.logistic(gates[8 * j : 8 * j + 8]) for j in range(3))
                c = dy.cmult(f, c) + dy.cmult(i, dy.tanh(gates[24:]))
                h = dy.cmult(o, dy.tanh(c))
                losses.append(dy.pickneglogsoftmax(dy.affine_transform([self.b, self.w, h]), k % 4))
        return dy.esum(losses)


class GateTagger(Tagger):
    """The same with an affine map for each gate."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.words = self.pc.add_lookup_parameters((20, 6))
        self.gates = [tuple(self.pc.add_parameters(d) for d in ((8,), (8, 6), (8, 8))) for _ in range(4)]
        self.w, self.b = self.pc.add_parameters((4, 8)), self.pc.add_parameters((4,))

    def loss(self, lengths: tuple[int, ...] = LENGTHS) -> Any:
        losses = []
        for n in lengths:
            h = c = dy.zeros((8,))
            for k in range(n):
                x = self.words[(7 * n + k) % 20]
                i, f, o, g = (dy.affine_transform([b, w, x, u, h]) for b, w, u in self.gates)
                c = dy.cmult(dy.logistic(f), c) + dy.cmult(dy.logistic(i), dy.tanh(g))
                h = dy.cmult(dy.logistic(o), dy.tanh(c))
                losses.append(dy.pickneglogsoftmax(dy.affine_transform([self.b, self.w, h]), k % 4))
        return dy.esum(losses)


class TreeClassifier:
    """A binary tree LSTM with a label at each node."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.words = self.pc.add_lookup_parameters((20, 6))
        self.tree = dy.NaryTreeLSTMBuilder(2, 1, 6, 8, self.pc)
        self.w = self.pc.add_parameters((5, 8))

    def loss(self, trees: Any = TREES) -> Any:
        losses: list[Any] = []

        def node(t: Any) -> Any:
            state = self.tree.node(self.words[t]) if isinstance(t, int) else self.tree.node(None, [node(c) for c in t])
            losses.append(dy.pickneglogsoftmax(self.w * state.output(), len(losses) % 5))
            return state

        for t in trees:
            node(t)
        return dy.esum(losses)


class HandTree(TreeClassifier):
    """A recursive network from single ops: another composition at leaves than at inner nodes."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.words = self.pc.add_lookup_parameters((20, 6))
        self.wl, self.wr = self.pc.add_parameters((8, 8)), self.pc.add_parameters((8, 8))
        self.leaf, self.b = self.pc.add_parameters((8, 6)), self.pc.add_parameters((8,))
        self.w = self.pc.add_parameters((5, 8))

    def loss(self, trees: Any = TREES) -> Any:
        losses: list[Any] = []

        def node(t: Any) -> Any:
            if isinstance(t, int):
                h = dy.tanh(self.leaf * self.words[t])
            else:
                left, right = map(node, t)
                h = dy.tanh(dy.affine_transform([self.b, self.wl, left, self.wr, right]))
            losses.append(dy.pickneglogsoftmax(self.w * h, len(losses) % 5))
            return h

        for t in trees:
            node(t)
        return dy.esum(losses)


MODELS: dict[str, Callable[[], Any]] = {
    "bilstm": Tagger,
    "hand-lstm": HandTagger,
    "hand-gates-lstm": GateTagger,
    "tree-lstm": TreeClassifier,
    "hand-tree": HandTree,
}


def begin(strategy: str = "greedy") -> None:
    _core.settings.strategy = strategy
    dy.renew_cg()


# ---- golden plans -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
@pytest.mark.parametrize("name", MODELS)
def test_golden_plan(name: str, strategy: str) -> None:
    model = MODELS[name]()
    begin(strategy)
    model.loss()
    text = dy.cg().plan_text()
    path = GOLDEN / f"{name}-{strategy}.txt"
    if os.environ.get("DYNET_LITE_WRITE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    wanted = path.read_text()
    difference = difflib.unified_diff(wanted.splitlines(), text.splitlines(), path.name, "now", lineterm="")
    assert text == wanted, "\n".join(difference)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_loss_by_every_strategy(name: str) -> None:
    model = MODELS[name]()
    results = []
    for strategy in STRATEGIES:
        begin(strategy)
        loss = model.loss()
        value = loss.value()
        loss.backward()
        parameters = model.pc.parameters_list() + model.pc.lookup_parameters_list()
        results.append((value, [p.grad_as_array() for p in parameters]))
        for p in parameters:
            p.zero_gradient()
    for value, grads in results[1:]:
        assert np.isclose(value, results[0][0], rtol=1e-5)
        for a, b in zip(grads, results[0][1], strict=True):
            assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max() + 1e-7


# ---- the number of batches --------------------------------------------------------------------------------------------


def lower_bound() -> int:
    """Sum over types of the longest chain of that type, found from the list of nodes: another way than the engine's.

    The type is what nodes() shows of a node: op or formula, shape, and which weights it uses. Nodes that became part of
    others are left out.
    """
    nodes = dy.cg().nodes()
    text = [t for _, t, _, _ in nodes]
    depth: list[dict[Any, int]] = []
    longest: dict[Any, int] = {}
    for _, what, dim, args in nodes:
        here: dict[Any, int] = {}
        if " inside " in what:
            args = []  # it runs there
        if ", the same as " in what:
            depth.append(depth[int(what.rsplit(" ", 1)[1])])
            continue
        for a in args:
            if a >= len(depth):
                continue  # a weight
            for key, d in depth[a].items():
                here[key] = max(here.get(key, 0), d)
        runs = not what.startswith(("input", "parameter", "lookup", "pick_range", "reshape", "nobackprop"))
        if runs and " inside " not in what:
            key = (what, dim, len(args), tuple(a for a in args if text[a].startswith("parameter")))
            here[key] = here.get(key, 0) + 1
            longest[key] = max(longest.get(key, 0), here[key])
        depth.append(here)
    return sum(longest.values())


def big_batch(name: str) -> Any:
    rng = np.random.default_rng(3)
    if "lstm" in name and "tree" not in name:
        return tuple(int(n) for n in rng.integers(2, 30, 64))

    def tree(words: int) -> Any:
        if words == 1:
            return int(rng.integers(20))
        left = int(rng.integers(1, words))
        return (tree(left), tree(words - left))

    return tuple(tree(int(n)) for n in rng.integers(2, 25, 64))


@pytest.mark.parametrize("name", MODELS)
def test_few_batches(name: str) -> None:
    """The default strategy needs at most 5 % more batches than the lower bound."""
    model = MODELS[name]()
    begin()
    model.loss(big_batch(name)).value()
    stats = dy.cg().stats()
    assert stats["batches"] <= 1.05 * stats["lower_bound"], stats
    if name.startswith("hand"):
        assert stats["lower_bound"] == lower_bound()
    assert stats["mean_batch_size"] > 10


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", MODELS)
def test_no_strategy_beats_the_lower_bound(name: str, strategy: str) -> None:
    model = MODELS[name]()
    begin(strategy)
    model.loss().value()
    stats = dy.cg().stats()
    assert stats["batches"] >= stats["lower_bound"] > 0
    if strategy == "none":
        assert stats["batches"] == stats["nodes"]


# ---- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("trainer", [dy.SimpleSGDTrainer, dy.AdamTrainer])
@pytest.mark.parametrize("name", MODELS)
def test_no_heap_call_in_a_steady_step(name: str, trainer: Any, threads: int) -> None:
    model = MODELS[name]()
    optimizer = trainer(model.pc)
    batches = [big_batch(name)[k : k + 16] for k in (0, 16, 32, 48)]
    _core.settings.threads = threads

    def epoch() -> None:
        for batch in batches:
            dy.renew_cg()
            loss = model.loss(batch)
            loss.value()
            loss.backward()
            optimizer.update()

    for _ in range(6):
        epoch()
        _core.settle_steps()  # a step that is put off would be counted later; and each batch comes to both graphs that take turns
    gc.collect()  # models of other tests are freed here, not while we count
    before = _core.heap_calls()
    epoch()
    assert _core.heap_calls() == before


def test_a_growing_step_does_call_the_heap() -> None:
    """The counter counts."""
    model = Tagger()
    dy.renew_cg()
    model.loss((2,)).value()
    before = _core.heap_calls()
    dy.renew_cg()
    model.loss(tuple(range(50, 80))).value()
    assert _core.heap_calls() > before


# ---- stale expressions ------------------------------------------------------------------------------------------------

USES: dict[str, Callable[[Any], Any]] = {
    "value": lambda e: e.value(),
    "npvalue": lambda e: e.npvalue(),
    "dim": lambda e: e.dim(),
    "forward": lambda e: e.forward(),
    "backward": lambda e: e.backward(),
    "gradient": lambda e: e.gradient(),
    "unary": dy.tanh,
    "operator": lambda e: e + 1,
    "product": lambda e: dy.inputTensor(np.ones((2, 1))) * e,
    "list": lambda e: dy.esum([e, e]),
    "index": lambda e: e[0],
    "numpy": lambda e: np.asarray(e, dtype=float),
}


@pytest.mark.parametrize("use", USES)
def test_stale_expressions(use: str) -> None:
    def check(e: Any) -> None:
        with pytest.raises(dy.StaleExpressionError):
            USES[use](e)
        assert "gone" in repr(e)
        assert dy.inputVector([2.0]).value() == 2

    e = dy.tanh(dy.inputVector([1.0]))
    e.value()
    dy.renew_cg()
    check(e)
    for _ in range(3):  # nodes of the new graph at the same places
        dy.tanh(dy.inputVector([1.0]))
    check(e)

    dy.cg_checkpoint()
    e = dy.tanh(dy.inputVector([1.0]))
    e.value()
    dy.cg_revert()
    check(e)
    dy.tanh(dy.inputVector([1.0]))
    check(e)


def test_expressions_before_a_mark_stay() -> None:
    x = dy.inputVector([1.0])
    dy.cg_checkpoint()
    y = x * 2.0
    assert y.value() == 2
    dy.cg_revert()
    assert (x * 3.0).value() == 3


# ---- the work of planning ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["greedy", "agenda", "depth"])
def test_planning_grows_with_the_nodes_not_with_the_types(strategy: str) -> None:
    """A chain over weights that all differ: each product is a type of its own, and all are one component.

    One more product, which nothing waits for before the end: without it, there would be no order to find.
    """

    def steps(weights: int, uses: int) -> int:
        pc = dy.ParameterCollection()
        made = [pc.add_parameters((2, 2), init=0.1) for _ in range(weights)]
        last = pc.add_parameters((2, 2))
        with dy.configure(strategy=strategy, fuse=False):
            dy.renew_cg()
            x = dy.inputVector([1.0, 2.0])
            beside = last * x
            for w in made * uses:
                x = dy.tanh(w * x)
            (x + beside).value()
            stats = dy.stats()
        assert stats["batches"] == 2 * weights * uses + 2
        assert stats["lower_bound"] == stats["batches"] if uses == 1 else stats["lower_bound"] > weights * uses
        return int(stats["plan_steps"])

    assert steps(6000, 1) < 2.2 * steps(3000, 1)
    assert steps(4000, 2) < 2.2 * steps(2000, 2)
