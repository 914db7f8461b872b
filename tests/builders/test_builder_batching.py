"""Every builder: sentences and trees that run together give what they give alone, for every strategy; gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

IN, HIDDEN = 5, 6
STRATEGIES = ["depth", "agenda", "greedy", "auto"]
SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "simple": lambda pc: dy.SimpleRNNBuilder(2, IN, HIDDEN, pc),
    "gru": lambda pc: dy.GRUBuilder(2, IN, HIDDEN, pc),
    "lstm": lambda pc: dy.VanillaLSTMBuilder(2, IN, HIDDEN, pc),
    "lstm-ln": lambda pc: dy.VanillaLSTMBuilder(1, IN, HIDDEN, pc, True),
    "compact": lambda pc: dy.CompactVanillaLSTMBuilder(1, IN, HIDDEN, pc),
    "sparse": lambda pc: dy.SparseLSTMBuilder(1, IN, HIDDEN, pc),
    "coupled": lambda pc: dy.CoupledLSTMBuilder(2, IN, HIDDEN, pc),
    "fast": lambda pc: dy.FastLSTMBuilder(1, IN, HIDDEN, pc),
    "birnn": lambda pc: dy.BiRNNBuilder(2, IN, HIDDEN, pc, dy.LSTMBuilder),
}
TREES: dict[str, Callable[[Any], Any]] = {
    "n-ary": lambda pc: dy.NaryTreeLSTMBuilder(3, 2, IN, HIDDEN, pc),
    "child-sum": lambda pc: dy.ChildSumTreeLSTMBuilder(2, IN, HIDDEN, pc, 1.0),
    "unidirectional": lambda pc: dy.UnidirectionalTreeLSTMBuilder(1, IN, IN, pc),
    "bidirectional": lambda pc: dy.BidirectionalTreeLSTMBuilder(1, HIDDEN, HIDDEN, pc),
}


def sentence_loss(builder: Any, xs: np.ndarray, batch: int) -> Any:
    """A loss over a sentence; xs: steps, IN, batch."""
    es = [dy.inputTensor(x if batch > 1 else x[:, 0], batched=batch > 1) for x in xs]
    if isinstance(builder, dy.BiRNNBuilder):
        outs = builder.transduce(es)
    else:
        outs = builder.initial_state().transduce(es)
        outs += [dy.tanh(e) for e in builder.initial_state().add_inputs(es[::-1])[-1].s()]
    return dy.sum_batches(dy.esum([dy.squared_norm(dy.sin(e)) for e in outs]))


def tree_loss(builder: Any, rng: np.random.Generator) -> Any:
    """A loss over a random tree."""
    size = builder._builders[0].input_dim if hasattr(builder, "_builders") else IN

    def grow(depth: int) -> Any:
        count = int(rng.integers(0, 4)) if depth else 0
        children = [grow(depth - 1) for _ in range(count)]
        return builder.node(dy.inputVector(rng.standard_normal(size)), children)

    root = grow(3)
    return dy.squared_norm(dy.sin(root if isinstance(root, dy.Expression) else dy.concatenate(list(root.s()))))


def loss_of(name: str, builder: Any, seed: int, batch: int) -> Any:
    rng = np.random.default_rng(seed)
    if name in TREES:
        return tree_loss(builder, rng)
    return sentence_loss(builder, rng.standard_normal((int(rng.integers(1, 7)), IN, batch)), batch)


def random_weights(model: Any) -> None:
    rng = np.random.default_rng(7)
    for p in model.parameters_list():
        if p.is_updated():
            p.set_value(rng.uniform(-0.6, 0.6, p.shape()))


def run(name: str, strategy: str, threads: int, batch: int) -> list[np.ndarray]:
    model = dy.ParameterCollection()
    builder = {**SEQUENCES, **TREES}[name](model)
    random_weights(model)
    dy._core.settings.strategy = strategy
    dy._core.settings.threads = threads
    dy.renew_cg()
    losses = [loss_of(name, builder, seed, batch) for seed in range(5)]
    total = dy.esum(losses)
    total.backward()
    return [*(e.npvalue() for e in losses), *(p.grad_as_array() for p in model.parameters_list())]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", [*SEQUENCES, *TREES])
def test_batched_is_unbatched(name: str, batch: int) -> None:
    if name in TREES and batch > 1:
        pytest.skip("trees have no mini-batch here")
    alone = run(name, "none", 1, batch)
    for strategy in STRATEGIES:
        for threads in (1, 2) if strategy == "greedy" else (1,):
            together = run(name, strategy, threads, batch)
            for a, b in zip(alone, together, strict=True):
                assert np.abs(a - b).max() <= 1e-5 * max(1.0, np.abs(a).max())


@pytest.mark.parametrize("name", [*SEQUENCES, *TREES])
def test_gradients(name: str) -> None:
    model = dy.ParameterCollection()
    builder = {**SEQUENCES, **TREES}[name](model)
    random_weights(model)
    weights = [p for p in model.parameters_list() if p.is_updated()]
    for batch in (1,) if name in TREES else (1, 2):
        dy.gradcheck(lambda b=batch: dy.esum([loss_of(name, builder, seed, b) for seed in (1, 4)]), *weights, step=3e-2)


def test_few_batches() -> None:
    """64 sentences of one LSTM layer need one projection batch and one cell batch per step."""
    model = dy.ParameterCollection()
    builder = dy.LSTMBuilder(1, IN, HIDDEN, model)
    dy.renew_cg()
    rng = np.random.default_rng(0)
    outs = [
        builder.initial_state().transduce([dy.inputVector(v) for v in rng.standard_normal((n, IN))])[-1]
        for n in rng.integers(3, 20, 64)
    ]
    dy.esum(outs).forward()
    assert dy.cg().stats()["batches"] <= 1 + 19 + 1


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("name", ["simple", "gru", "lstm", "compact", "sparse", "fast"])
def test_few_batches_with_dropout(name: str, update: bool) -> None:
    """The weights that sentences share are one expression, also where dropout gives each sentence masks of its own."""
    builder = SEQUENCES[name](dy.ParameterCollection())
    builder.set_dropout(0.5)
    counts = []
    for sentences in (1, 8):
        dy.renew_cg()
        outs = [
            builder.initial_state(update=update).transduce([dy.inputVector(np.full(IN, 0.1 * k)) for k in range(4)])[-1]
            for _ in range(sentences)
        ]
        dy.esum(outs).forward()
        counts.append(dy.cg().stats()["batches"])
    assert counts[1] <= counts[0] + 2


@pytest.mark.parametrize("frozen", ["input", "recurrent", "bias", "all"])
@pytest.mark.parametrize("make", [dy.SimpleRNNBuilder, dy.GRUBuilder, dy.VanillaLSTMBuilder, dy.CoupledLSTMBuilder])
def test_frozen_parts(make: type, frozen: str) -> None:
    """Gradients of the parameters that are left are the same when others are frozen."""

    def grads(freeze: bool) -> dict[str, np.ndarray]:
        model = dy.ParameterCollection()
        builder = make(1, IN, HIDDEN, model)
        random_weights(model)
        for p in model.parameters_list():
            kind = {(HIDDEN,): "bias", (4 * HIDDEN,): "bias"}.get(p.shape())
            kind = kind or ("input" if p.shape()[1] == IN else "recurrent")
            if freeze and frozen in (kind, "all"):
                p.set_updated(False)
        dy.renew_cg()
        table = model.add_lookup_parameters((5, IN), init=0.3)
        words = [table[0], dy.lookup(table, 1, update=False), table[2], dy.inputVector(np.ones(IN))]
        dy.squared_norm(builder.initial_state().transduce(words)[-1]).backward()
        assert table.row_grad_as_array(1).any() == 0
        assert table.row_grad_as_array(0).any()
        return {p.name(): p.grad_as_array() for p in model.parameters_list() if p.is_updated()}

    whole, rest = grads(False), grads(True)
    for name, value in rest.items():
        np.testing.assert_allclose(value, whole[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("frozen", ["nothing", "with update=False", "by set_updated"])
@pytest.mark.parametrize("name", [n for n in SEQUENCES if n != "birnn"])
def test_several_steps_from_one_state(name: str, frozen: str) -> None:
    """With inputs that want gradients, and inputs that want none: batched as one by one."""

    def grads(**settings: Any) -> list[np.ndarray]:
        model = dy.ParameterCollection()
        builder = SEQUENCES[name](model)
        table = model.add_lookup_parameters((8, IN))
        random_weights(model)
        table.init_from_array(np.random.default_rng(3).standard_normal((8, IN)))
        if frozen == "by set_updated":
            builder.param_collection().set_updated(False)
        rng = np.random.default_rng(2)
        with dy.configure(**settings):
            dy.renew_cg()
            states = [builder.initial_state(update=frozen != "with update=False").add_input(table[0])]
            for k in range(12):
                x = dy.inputVector(rng.standard_normal(IN)) if rng.random() < 0.5 else table[k % 7 + 1]
                states.append(states[int(rng.integers(len(states)))].add_input(x))
            sums = [dy.dot_product(s.output(), dy.inputVector(rng.standard_normal(HIDDEN))) for s in states]
            dy.esum(sums).backward()
        return [table.grad_as_array(), *(p.grad_as_array() for p in model.parameters_list())]

    alone = grads(autobatch=False)
    for settings in ({}, {"fuse": False}, {"threads": 2}, *({"strategy": s} for s in STRATEGIES)):
        for a, b in zip(alone, grads(**settings), strict=True):
            assert np.abs(a - b).max() <= 1e-5 * max(1.0, np.abs(a).max())
