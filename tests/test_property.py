"""Batching changes nothing: random programs give the same values and gradients by every strategy and number of threads.

The plans are verified as in all tests. DYNET_LITE_EXAMPLES=N tries N programs instead of the usual number, at random
instead of always the same.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_programs import Model, Program, programs

import dynet_lite as dy
from dynet_lite import _core

EXAMPLES = int(os.environ.get("DYNET_LITE_EXAMPLES", "0"))
profile = settings(
    max_examples=EXAMPLES or 150,
    derandomize=not EXAMPLES,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
WAYS = [
    ("none", 1),
    ("depth", 1),
    ("agenda", 1),
    ("greedy", 1),
    ("auto", 1),
    ("none", 2),
    ("greedy", 2),
    ("auto", 2),
    ("agenda", 3),
]


def run(program: Program, model: Model, strategy: str, threads: int) -> dict[str, Any]:
    _core.settings.strategy = strategy
    _core.settings.threads = threads
    _core.settings.least_work = 0  # threads also where they do not pay
    _core.settings.verify = True
    _core.set_seed(11)
    dy.renew_cg()
    loss, last, peeked = program.build(model)
    out = {"loss": loss.value(), "peeked": peeked, "values": [e.npvalue() for e in last]}
    loss.backward()
    out["gradients"] = model.gradients()
    loss.backward()  # once more: gradients do not depend on what an earlier pass left behind
    out["again"] = model.gradients()
    out["node"] = loss
    return out


def same(a: Any, b: Any, what: str, rtol: float = 2e-5) -> None:
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    assert a.shape == b.shape, what
    assert np.all(np.isfinite(a)), f"{what}: {a}"
    limit = rtol * max(1e-1, float(np.max(np.abs(b), initial=0.0)))
    assert np.all(np.abs(a - b) <= limit), f"{what}: {np.max(np.abs(a - b))} > {limit}"


@profile
@given(programs)
def test_batching_changes_nothing(program: Program) -> None:
    model = Model()
    run(program, model, "none", 1)  # makes the weights
    wanted = run(program, model, "none", 1)
    for strategy, threads in WAYS[1:]:
        given_ = run(program, model, strategy, threads)
        what = f"{strategy}, {threads} threads"
        same(given_["loss"], wanted["loss"], f"{what}: loss")
        same(given_["peeked"], wanted["peeked"], f"{what}: values in the middle")
        for a, b in zip(given_["values"], wanted["values"], strict=True):
            same(a, b, f"{what}: value")
        for key in ("gradients", "again"):
            for a, b in zip(given_[key], wanted["gradients"], strict=True):
                same(a, b, f"{what}: {key}")


@profile
@given(programs)
def test_runs_repeat_exactly(program: Program) -> None:
    """One way of running gives the same bits each time, with threads too."""
    model = Model()
    for strategy, threads in (("greedy", 1), ("auto", 2)):
        run(program, model, strategy, threads)  # makes the weights
        first, second = run(program, model, strategy, threads), run(program, model, strategy, threads)
        for key in ("loss", "peeked"):
            assert first[key] == second[key], f"{strategy}, {threads} threads: {key}"
        for a, b in zip(first["gradients"], second["gradients"], strict=True):
            assert np.array_equal(a, b), f"{strategy}, {threads} threads: gradients"


def test_plans_that_are_kept_change_nothing() -> None:
    """Graphs that are made alike, with other data and weights: the bits are those of plans made anew."""
    found_again = 0

    def steps(program: Program, keep: bool, strategy: str, threads: int) -> list[dict[str, Any]]:
        nonlocal found_again
        model, seen = Model(), []
        update = dy.SimpleSGDTrainer(model.pc, 0.1)
        with dy.configure(keep_plans=keep):
            for n in (0, 0, 0, 1, 2, 2, 3, 0):
                seen.append(run(program.with_other_data(n), model, strategy, threads))
                found_again += keep and dy.stats()["plans_again"]
                seen[-1].pop("node").backward()
                update.update()
        return seen

    @profile
    @given(programs)
    def check(program: Program) -> None:
        for strategy, threads in (("greedy", 1), ("none", 1), ("auto", 2)):
            kept, anew = (steps(program, keep, strategy, threads) for keep in (True, False))
            for one, other in zip(kept, anew, strict=True):
                for key, wanted in other.items():
                    np.testing.assert_equal(one[key], wanted, err_msg=f"{strategy}, {threads} threads: {key}")

    check()
    assert found_again > 300


@settings(profile, max_examples=EXAMPLES or 40)
@given(programs)
def test_gradients_are_right(program: Program) -> None:
    """Against differences of the loss, along a direction in all weights at once."""
    if any(s.op in ("nobackprop", "dropout", "noise", "rectify") for t in program.templates for s in t):
        return
    model = Model()
    run(program, model, "greedy", 1)
    weights = model.pc.parameters_list()
    if not weights:
        return

    def fresh() -> Any:
        return program.build(model)[0]

    for w in weights[:3]:
        dy.gradcheck(fresh, w, directions=1, rtol=1e-2, atol=2e-3)


def test_the_comparison_sees_differences() -> None:
    with pytest.raises(AssertionError):
        same([1.0, 2.0], [1.0, 2.001], "off")
    with pytest.raises(AssertionError):
        same([np.nan], [np.nan], "nan")
