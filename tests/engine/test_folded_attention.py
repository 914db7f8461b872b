"""Scores of additive attention that run as one node (rewrite/rules/attention.cc).

Every case is one program run twice, folded and not; the numbers must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import Model, Observed, both, each_strategy, engine, gone, gradients

import dynet_lite as dy
from dynet_lite import _core, structure

H = 20
Way = Callable[[Any, Any, Any], Any]
WAYS: dict[str, Way] = {
    "colwise_add": lambda v, keys, query: v * dy.tanh(dy.colwise_add(keys, query)),
    "operators": lambda v, keys, query: v * dy.tanh(query + keys),
    "transposed": lambda v, keys, query: dy.transpose(dy.transpose(v)) * dy.tanh(keys + query),
}


def folded() -> list[tuple[int, ...]]:
    """Shapes of the scores that ran as one node."""
    return [node.dim[0] for node in structure.read().nodes if node.sort == "op" and node.op == "matmul(tanh(add))"]


def sources(lengths: tuple[int, ...]) -> list[Any]:
    return [dy.inputTensor(np.random.default_rng([n, k]).uniform(-1, 1, (H, n))) for k, n in enumerate(lengths)]


def decode(model: Model, way: str, lengths: tuple[int, ...], steps: int = 3) -> Observed:
    """Each step attends to the source with what the step before found."""
    v, W_keys, W_query = model.weight("v", 1, H), model.weight("K", H, H), model.weight("Q", H, H)
    xs = sources(lengths)
    contexts = []
    for source in xs:
        keys, context = W_keys * source, dy.tanh(dy.pick(source, 0, 1))
        for _ in range(steps):
            context = source * dy.softmax(dy.transpose(WAYS[way](v, keys, W_query * context)))
        contexts.append(context)
    loss = dy.esum([dy.squared_norm(c) * (k + 1.0) for k, c in enumerate(contexts)])
    del contexts, context, keys
    loss.backward(full=True)
    assert folded() == ([(1, n) for n in lengths for _ in range(steps)] if _core.settings.fuse else [])
    return {"loss": loss.npvalue(), **gradients(model, xs)}


@each_strategy
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_decoder(way: str, threads: int, strategy: str) -> None:
    both(lambda model: decode(model, way, (4, 7, 4, 2, 9, 4)), strategy=strategy, threads=threads)


def test_a_step_is_a_batch_whatever_the_lengths() -> None:
    with engine():
        decode(Model(), "colwise_add", (5, 8, 5, 5), steps=2)
        found = [line.split("\t")[1] for line in dy.plan_text().splitlines() if "matmul(tanh(add))" in line]
        assert found == ["matmul(tanh(add)) {1,5..8} x 4"] * 2


def test_weights_that_are_not_trained() -> None:
    """Each of v, the keys and the query alone may want a gradient."""
    for trained in ("v", "keys", "query"):

        def program(model: Model, trained: str = trained) -> Observed:
            parts = {
                "v": model.weight("v", 1, H),
                "keys": model.weight("keys", H, 6),
                "query": model.weight("query", H),
            }
            for name, p in parts.items():
                p.set_updated(name == trained)
            one = dy.inputVector(np.ones(H))  # what is computed is no weight
            keys, query = dy.cmult(parts["keys"], dy.inputTensor(np.full((H, 6), 0.5))), dy.cmult(parts["query"], one)
            loss = dy.sum_elems(dy.square(WAYS["colwise_add"](parts["v"], keys, query)))
            del keys, query
            loss.backward()
            assert len(folded()) == _core.settings.fuse
            return {"loss": loss.npvalue(), **gradients(model)}

        both(program)


def test_what_stays() -> None:
    """Sums or tanh that somebody can ask for or that others read, several rows of scores, other sums, mini-batches by hand."""

    def program(model: Model) -> Observed:
        v, keys, query = model.weight("v", 1, H), *(dy.tanh(x) for x in (model.table(H, 4)[1], model.table(H)[2]))
        held_sum = dy.colwise_add(keys, query)
        held_tanh = dy.tanh(dy.colwise_add(keys, dy.square(query)))
        read = dy.tanh(dy.colwise_add(keys, dy.exp(query)))
        scores = [
            v * dy.tanh(held_sum),
            v * held_tanh,
            v * read + v * dy.square(read),
            model.weight("V", 1, H) * dy.tanh(keys + keys),
            model.weight("two", 2, H) * dy.tanh(dy.colwise_add(keys, query)),
            dy.sum_batches(v * dy.tanh(dy.colwise_add(keys, dy.lookup_batch(model.table(H), [0, 3])))),
            v * dy.logistic(dy.colwise_add(keys, query)),
        ]
        del read
        loss = dy.esum([dy.sum_elems(dy.square(s)) for s in scores])
        del scores
        loss.backward()
        assert folded() == []
        return {"loss": loss.npvalue(), "sum": held_sum.npvalue(), "tanh": held_tanh.gradient(), **gradients(model)}

    both(program)


def test_what_was_between_is_gone() -> None:
    with engine():
        model = Model()
        loss = dy.sum_elems(
            WAYS["colwise_add"](model.weight("v", 1, H), *(model.table(*shape)[1] for shape in ((H, 4), (H,))))
        )
        loss.forward()
        numbers = {what.split(" ")[0]: n for n, what, *_ in dy.cg().nodes()}
        assert gone(numbers["tanh"]) and gone(numbers["add"]) and not gone(numbers["sum_elems"])
