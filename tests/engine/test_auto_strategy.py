"""strategy="auto": never more batches than greedy, fewer on structures beyond chains and trees, the same numbers."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, structure

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
EASY = ("tagger", "words of letters", "attention", "documents", "shared encoder", "trees")
HARD = ("trees of two cells", "module networks", "n-ary sums", "lattices", "messages", "stack parser", "acyclic graphs",
        "mixed sequences", "skipping layers")  # fmt: skip


@pytest.fixture(scope="module")
def zoo() -> Iterator[Any]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import schedule_zoo

        yield schedule_zoo
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(autouse=True)
def verified() -> Iterator[None]:
    before = _core.settings.verify
    _core.settings.verify = True
    yield
    _core.settings.verify = before


def build(zoo: Any, parts: Any, name: str, strategy: str, examples: int = 32) -> Any:
    rng = Random(1)
    with dy.configure(strategy=strategy):
        dy.renew_cg()
    loss = dy.esum([loss for _ in range(examples) for loss in zoo.STRUCTURES[name](parts, rng)])
    loss.forward()
    return loss


def test_the_zoo_is_all_here(zoo: Any) -> None:
    assert {*EASY, *HARD} == {*zoo.STRUCTURES}


@pytest.mark.parametrize("name", EASY)
def test_where_greedy_reaches_the_bound_the_plan_is_its_own(zoo: Any, name: str) -> None:
    parts, texts = zoo.Parts(), []
    for strategy in ("greedy", "auto"):
        build(zoo, parts, name, strategy)
        assert dy.stats()["batches"] == dy.stats()["lower_bound"]
        texts.append(dy.plan_text())
    assert texts[0] == texts[1]


# Batches of auto, at most; greedy's are 36, 76, 24, 172, 56, 86, 53, 180 and 153.
MOST = dict(zip(HARD, (34, 53, 24, 123, 34, 67, 44, 129, 139), strict=True))


@pytest.mark.parametrize("name", HARD)
def test_elsewhere_it_needs_no_more_batches_and_mostly_fewer(zoo: Any, name: str) -> None:
    parts, batches = zoo.Parts(), {}
    for strategy in ("greedy", "auto"):
        build(zoo, parts, name, strategy)
        batches[strategy] = dy.stats()["batches"]
        assert dy.stats()["lower_bound"] <= batches[strategy]
    assert batches["auto"] <= min(batches["greedy"], MOST[name])


def steps_of(word: int, steps: int, wide: int = 0) -> Any:
    """A chain of four kinds of steps in an order of its own; wide: before it two steps that read so many others each."""
    rng, x = Random(word), dy.tanh(dy.inputVector([0.1 * word, 0.2]))
    for _ in range(2 if wide else 0):
        x = dy.esum([dy.tanh(dy.logistic(x) * (k / wide)) for k in range(wide)])
    for _ in range(steps):
        x = rng.choice((dy.tanh, dy.logistic, dy.rectify, dy.softsign))(x)
        x = dy.esum([x, x]) if wide and rng.random() < 0.5 else x
    return dy.sum_elems(x)


@pytest.mark.parametrize("steps, wide", [(800, 0), (40, 66_000)])
def test_what_the_search_is_too_slow_for_and_many_arguments(steps: int, wide: int) -> None:
    """More batches than it looks for; a node with more arguments than 16 bits hold."""
    found = []
    for strategy in ("greedy", "auto"):
        with dy.configure(strategy=strategy, fuse=False):
            dy.renew_cg()
            loss = dy.esum([steps_of(word, steps, wide) for word in range(2)])
            value = loss.value()
            found.append((value, dy.stats()["batches"]))
    assert np.isclose(found[0][0], found[1][0], rtol=1e-5)
    assert found[1][1] <= found[0][1]
    assert wide or found[1][1] > 512


def two_parts(word: int, steps: int, early: int) -> Any:
    """A chain of steps in an order of its own, of four kinds at first and of three kinds later."""
    rng, x = Random(word), dy.tanh(dy.inputVector([0.1 * word, 0.2]))
    for k in range(steps):
        x = rng.choice((dy.tanh, dy.logistic, dy.rectify, dy.softsign)[: 4 if k < early else 3])(x)
    return dy.sum_elems(x)


def test_the_rule_by_itself() -> None:
    """More batches than the search looks for; one type is done before the others."""
    batches = []
    for strategy in ("greedy", "auto"):
        with dy.configure(strategy=strategy, fuse=False):
            dy.renew_cg()
        dy.esum([two_parts(word, 600, 450) for word in range(3, 6)]).value()
        batches.append(dy.stats()["batches"])
    assert batches[1] <= 1102 < 1120 <= batches[0]


def test_memory_is_kept_from_plan_to_plan(zoo: Any) -> None:
    parts, calls = zoo.Parts(), []
    gc.collect()  # what other tests made is freed here, not while we count
    with dy.configure(keep_plans=False):
        for _ in range(6):
            before = _core.heap_calls()
            build(zoo, parts, "lattices", "auto", examples=8)
            calls.append(_core.heap_calls() - before)
    assert calls[3:] == [0, 0, 0]


def test_a_parser_with_a_stack_reaches_the_bound(zoo: Any) -> None:
    build(zoo, zoo.Parts(), "stack parser", "auto")
    assert dy.stats()["batches"] == dy.stats()["lower_bound"]


@pytest.mark.parametrize("name", ["lattices", "messages"])
def test_the_plan_depends_on_the_graph_alone(zoo: Any, name: str) -> None:
    """Not on what was planned before it."""
    parts, texts = zoo.Parts(), []
    for before in ("module networks", "trees", name):
        build(zoo, parts, before, "auto", examples=4)
        build(zoo, parts, name, "auto", examples=8)
        texts.append(dy.plan_text())
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("name", HARD)
def test_values_and_gradients_are_those_of_other_strategies(zoo: Any, name: str) -> None:
    parts = zoo.Parts()
    found = []
    for strategy in ("none", "greedy", "auto"):
        loss = build(zoo, parts, name, strategy, examples=8)
        loss.backward()
        weights = [*parts.model.parameters_list(), *parts.model.lookup_parameters_list()]
        found.append((loss.value(), [w.grad_as_array() for w in weights]))
        for w in weights:
            w.zero_gradient()
    for value, gradients in found[1:]:
        assert np.isclose(value, found[0][0], rtol=1e-5)
        for a, b in zip(gradients, found[0][1], strict=True):
            assert np.abs(a - b).max() <= 2e-5 * np.abs(b).max() + 1e-6


def test_threads_split_a_minibatch_that_auto_plans(zoo: Any) -> None:
    parts = zoo.Parts()
    wanted = build(zoo, parts, "lattices", "auto").value()
    before = _core.settings.least_work
    _core.settings.least_work = 0
    try:
        with dy.configure(threads=2):
            assert np.isclose(build(zoo, parts, "lattices", "auto").value(), wanted, rtol=1e-5)
    finally:
        _core.settings.least_work = before
        dy.renew_cg()


@pytest.mark.parametrize("name", ["module networks", "messages", "stack parser"])
def test_the_search_of_the_benchmark_finds_orders_between_bound_and_greedy(zoo: Any, name: str) -> None:
    from schedule_search import best_known, problem_of

    build(zoo, zoo.Parts(), name, "greedy", examples=8)
    greedy, bound = dy.stats()["batches"], dy.stats()["lower_bound"]
    assert bound <= best_known(problem_of(structure.read()), width=4) < greedy
