"""Nodes whose arguments differ in a length run in one call (OpDef::ragged): attention over sources of many lengths.

Values and gradients are those of the same program node by node, whatever runs together.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from fused_programs import Model, agree, engine, near, run
from ragged_programs import KINDS, H, Sources, decoded

import dynet_lite as dy
from dynet_lite import _core, nn
from dynet_lite.errors import NotFiniteError

SEEDS = range(24)
STRATEGIES = ("depth", "agenda", "greedy", "auto")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_batched_is_unbatched(seed: int, held: bool, strategy: str) -> None:
    program = Sources(seed, held=held)
    alone = run(program, strategy="none", passes=4)
    agree(run(program, strategy=strategy, passes=4), alone, exact=False)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_lanes(seed: int, threads: int) -> None:
    program = Sources(seed, held=seed % 2 == 0)
    agree(run(program, threads=threads), run(program, strategy="none"), exact=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_rewritten(seed: int) -> None:
    program = Sources(seed)
    agree(run(program, fuse=False), run(program, strategy="none"), exact=False)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_a_call(kind: Any, threads: int) -> None:
    """Examples that hang together are no lanes: members are dealt to threads."""

    def program(model: Model) -> dict[Any, Any]:
        rng = np.random.default_rng(5)
        common = dy.tanh(model.weight("c", H) + dy.inputVector(rng.uniform(-1, 1, H)))
        parts = []
        for n in (3, 9, 1, 4, 4, 7, 2, 5):
            source = dy.cmult(dy.inputTensor(rng.uniform(-1, 1, (H, n))), dy.concatenate_cols([common] * n))
            parts.append(source * kind(model, source, model.weight("K", H, H) * source, common))
        for _ in range(2):
            mean = dy.average(parts)
            parts = [dy.tanh(model.weight("M", H, H) * (part + mean)) for part in parts]
        loss = dy.sum_elems(dy.square(dy.esum(parts)))
        loss.backward()
        return {"loss": loss.npvalue(), **model.gradients()}

    found = []
    for n, strategy in ((1, "none"), (threads, "greedy"), (threads, "greedy")):
        with engine(threads=n, strategy=strategy):
            found.append(program(Model()))
    for key, value in found[0].items():
        near(found[1][key], value, 1e-5, key, atol=1e-6)
        np.testing.assert_array_equal(found[1][key], found[2][key])


def batches(lengths: list[int], steps: int, kind: Any) -> Counter[str]:
    """How many calls there were of each op for decoders that take some steps, over sources of these lengths."""
    with engine():
        decoded(Model(), lengths, steps, kind).backward()
        return Counter(line.split("\t")[1].split(" {")[0] for line in dy.plan_text().splitlines()[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_all_lengths_are_one_call(kind: Any) -> None:
    one, many = batches([5] * 6, 4, kind), batches([5, 1, 2, 9, 5, 3], 4, kind)
    for op in ("matmul", "matmul(tanh(add))", "softmax", "log_softmax"):
        assert many[op] == one[op], op
    assert many["softmax"] + many["log_softmax"] == 4 and many["matmul"] >= 4


def test_a_text_of_the_plan_says_what_differs() -> None:
    with engine():
        xs = [dy.tanh(dy.inputVector(np.ones(n))) for n in (2, 5, 3)]
        dy.esum([dy.sum_elems(dy.softmax(x)) for x in xs]).value()
        assert "softmax {2..5} x 3" in dy.plan_text()


def test_floats_of_a_plan_are_those_of_its_nodes() -> None:
    with engine():
        loss = dy.esum([dy.pick(dy.softmax(dy.inputVector(np.ones(n))), 0) for n in (200, 500, 300)])
        loss.value()
        assert 1000 <= int(dy.plan_text().split(" types, ")[1].split(" ")[0]) <= 1000 + 4 * 16


def test_repeated_sources_and_weights_that_are_shared_by_some() -> None:
    """One source is read by several members of a call; of others the argument is one that a call has already written to."""

    def program(model: Model) -> dict[Any, Any]:
        rng = np.random.default_rng(3)
        sources = [dy.tanh(dy.inputTensor(rng.uniform(-1, 1, (H, n)))) for n in (4, 2, 7, 4, 3)]
        queries = [dy.tanh(dy.inputVector(rng.uniform(-1, 1, H))) for _ in range(9)]
        first = [sources[k % 5] * KINDS[1](model, sources[k % 5], sources[k % 5], q) for k, q in enumerate(queries)]
        again = [sources[0] * KINDS[1](model, sources[0], sources[0], first[0])]
        loss = dy.esum([dy.squared_norm(x) * (k + 1.0) for k, x in enumerate(first + again)])
        loss.backward(full=True)
        return {"loss": loss.npvalue(), **{("s", k): s.gradient() for k, s in enumerate(sources)},
                **{("q", k): q.gradient() for k, q in enumerate(queries)}}  # fmt: skip

    found = []
    for strategy in ("none", *STRATEGIES):
        with engine(strategy=strategy):
            found.append(program(Model()))
    for one in found[1:]:
        for key, value in found[0].items():
            near(one[key], value, 1e-5, key, atol=1e-6)


def test_validity_names_the_member() -> None:
    dy.renew_cg(check_validity=True)
    try:
        matrices = [dy.inputTensor(np.full((2, n), 1e30 if n == 3 else 1.0)) for n in (2, 3, 4)]
        vectors = [dy.exp(dy.inputVector(np.full(n, 60.0))) for n in (2, 3, 4)]
        products = [m * v for m, v in zip(matrices, vectors, strict=True)]
        with pytest.raises(NotFiniteError, match=r"matmul \{2\}"):
            dy.esum(products).value()
        dy.renew_cg(check_validity=True)
        numbers = [dy.inputVector(np.where(np.arange(n) == 1, np.nan if n == 5 else 0.0, 1.0)) for n in (2, 5, 3)]
        dy.esum([dy.sum_elems(dy.softmax(x)) for x in numbers[:1]]).value()
        with pytest.raises(NotFiniteError, match=r"softmax \{5\}"):
            dy.esum([dy.sum_elems(dy.softmax(x)) for x in numbers]).value()
    finally:
        dy.renew_cg()


def test_a_graph_that_is_run_again() -> None:
    """Values change and the plan is kept."""
    with engine():
        model = Model()
        inputs = [dy.inputVector(np.zeros(n)) for n in (3, 1, 6)]
        loss = dy.esum([dy.pick(dy.softmax(x), 0) for x in inputs])
        for k in range(3):
            for x in inputs:
                x.set(np.arange(x.dim()[0][0], dtype=float) * k)
            wanted = sum(1 / np.exp(np.arange(n) * float(k)).sum() for n in (3, 1, 6))
            assert np.isclose(loss.value(recalculate=True), wanted)
        assert model.made == {}


def test_after_a_checkpoint() -> None:
    """Signatures that are dropped take their families with them."""
    with engine():
        before = dy.sum_elems(dy.softmax(dy.inputVector(np.ones(3)) * 2.0))
        assert np.isclose(before.value(), 1)
        for _ in range(3):
            dy.cg_checkpoint()
            some = [dy.softmax(dy.inputVector(np.ones(n)) * 2.0) for n in (4, 3, 7)]
            products = [dy.inputTensor(np.ones((2, n))) * s for n, s in zip((4, 3, 7), some, strict=True)]
            assert np.allclose(dy.esum(products).npvalue(), 3)
            dy.cg_revert()
        assert np.isclose(dy.sum_elems(dy.softmax(dy.inputVector(np.ones(5)))).value(), 1)


@pytest.mark.parametrize("heads", [1, 2])
def test_several_queries(heads: int) -> None:
    """Products whose inner length differs; the weights are matrices, which differ in both."""

    def program() -> list[Any]:
        rng, pc = np.random.default_rng(1), dy.ParameterCollection()
        dy.reset_random_seed(4)
        attention = nn.MultiHeadAttention(H, heads, pc)
        found = [attention(dy.inputTensor(rng.uniform(-1, 1, (H, 3))), dy.inputTensor(rng.uniform(-1, 1, (H, n)))) for n in (2, 5, 1)]  # fmt: skip
        loss = dy.esum([dy.sum_elems(dy.square(x)) for x in found])
        loss.backward()
        return [loss.npvalue(), *(p.grad_as_array() for p in pc.parameters_list())]

    runs = []
    for strategy in ("none", "greedy"):
        with engine(strategy=strategy):
            runs.append(program())
    for alone, together in zip(*runs, strict=True):
        near(together, alone, 1e-5, atol=1e-6)


def test_the_lower_bound_is_met() -> None:
    with engine():
        loss = Sources(3, examples=8)(Model()).loss
        loss.value()
        stats = dy.stats()
        assert stats["batches"] == stats["lower_bound"]
    assert _core.settings.verify
