"""The rows of the op table and the random programs are used here, too. `both` runs a program with cells recorded and inline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "ops")]

import dynet_lite as dy  # noqa: E402
from dynet_lite import _core  # noqa: E402

WAYS = [("greedy", 1, True), ("none", 1, True), ("depth", 1, False), ("agenda", 2, True), ("greedy", 2, True)]


def figures(
    model: Any, program: Callable[[], tuple[Any, list[Any]]], how: str, way: tuple[str, int, bool]
) -> dict[str, Any]:
    """Loss, values and gradients of a program, which gives (loss, expressions), from a fixed seed."""
    strategy, threads, fuse = way
    weights = model.parameters_list() + model.lookup_parameters_list()
    for p in weights:
        p.zero_gradient()
    with dy.configure(cells=how, strategy=strategy, threads=threads, fuse=fuse):
        _core.settings.least_work = 0
        _core.set_seed(5)
        dy.renew_cg()
        loss, shown = program()
        out = {"loss": loss.value(), "nodes": len(dy.cg()), "values": [e.npvalue() for e in shown]}
        loss.backward()
        out["gradients"] = [p.grad_as_array() for p in weights]
        loss.backward()
        out["gradients"] += [p.grad_as_array() for p in weights]
    return out


def compare(a: dict[str, Any], b: dict[str, Any], exact: bool, what: Any) -> None:
    assert np.isfinite(b["loss"])
    pairs = [
        (a["loss"], b["loss"]),
        *zip(a["values"], b["values"], strict=True),
        *zip(a["gradients"], b["gradients"], strict=True),
    ]
    for x, y in pairs:
        if exact:
            assert np.array_equal(x, y), what
        else:
            assert np.allclose(x, y, rtol=2e-5, atol=1e-6), what


@pytest.fixture
def both() -> Callable[..., None]:
    """both(model, program): recorded, the first time and when all is known, as inline: bits by each strategy, with threads too."""

    def check(model: Any, program: Callable[[], tuple[Any, list[Any]]], exact: bool = True) -> None:
        reference = figures(model, program, "inline", ("none", 1, False))
        for way in WAYS:
            plain = figures(model, program, "inline", way)
            compare(plain, reference, False, way)
            for _ in range(2):
                recorded = figures(model, program, "recorded", way)
                # Where rewrites are on, some nodes have become one already; lanes have less to do, and are dealt and summed otherwise.
                _, threads, fuse = way
                compare(recorded, plain, exact and not (fuse and threads > 1), way)
                assert recorded["nodes"] == plain["nodes"] or fuse and recorded["nodes"] < plain["nodes"], way
        compare(figures(model, program, "check", WAYS[0]), figures(model, program, "inline", WAYS[0]), exact, "check")

    return check
