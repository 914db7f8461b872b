"""Graphs of a million nodes: values and gradients against NumPy, the memory they take, and what of it comes back.

Memory is the resident set of a process of its own, so that other tests do not disturb; where there is no /proc these are
skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

STATM = Path("/proc/self/statm")
SENTENCES, STEPS, SIZE, WORDS = 1000, 250, 8, 50  # four nodes a step: row, product, sum, tanh
MB = 1 << 20


class Sentences:
    """Recurrent networks of single small ops over many sentences of one length."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        pc = dy.ParameterCollection()
        self.w = pc.parameters_from_numpy(0.3 * rng.normal(size=(SIZE, SIZE)))
        self.table = pc.lookup_parameters_from_numpy(rng.normal(size=(WORDS, SIZE)))

    def loss(self, sentences: int = SENTENCES, steps: int = STEPS) -> Any:
        w, table, tanh = self.w, self.table, dy.tanh
        losses = []
        for s in range(sentences):
            h = table[s % WORDS]
            for t in range(steps):
                h = tanh(w * h + table[(7 * s + t) % WORDS])
            losses.append(dy.sum_elems(h))
        return dy.esum(losses)

    def by_numpy(self) -> tuple[float, Any]:
        """The loss and the gradient of w, in double precision; row s of h is of sentence s."""
        w, table = self.w.as_array().astype(float), self.table.as_array().astype(float)
        s = np.arange(SENTENCES)
        hs = [table[s % WORDS]]
        for t in range(STEPS):
            hs.append(np.tanh(hs[-1] @ w.T + table[(7 * s + t) % WORDS]))
        dh, dw = np.ones_like(hs[-1]), np.zeros_like(w)
        for before, h in zip(hs[-2::-1], hs[:0:-1], strict=True):
            da = dh * (1 - h * h)
            dw += da.T @ before
            dh = da @ w
        return float(hs[-1].sum()), dw

    def clear(self) -> None:
        self.w.zero_gradient()
        self.table.zero_gradient()

    def step(self, *size: int) -> int:
        """Builds, runs and forgets; how many nodes there were."""
        dy.renew_cg()
        self.loss(*size).backward()
        self.clear()
        return len(dy.cg())


# ---- values and gradients ---------------------------------------------------------------------------------------------


def test_a_million_nodes_of_many_sentences() -> None:
    model = Sentences()
    dy.renew_cg()
    loss = model.loss()
    assert len(dy.cg()) > 1_000_000
    value = loss.value()
    loss.backward()
    wanted, wanted_gradient = model.by_numpy()
    assert value == pytest.approx(wanted, rel=1e-5)
    np.testing.assert_allclose(
        model.w.grad_as_array(), wanted_gradient, rtol=1e-4, atol=1e-5 * abs(wanted_gradient).max()
    )
    stats = dy.stats()
    # All sentences step together: a batch per op and step, the losses, their sum.
    assert stats["batches"] == stats["lower_bound"] == 3 * STEPS + 2


def test_a_chain_of_two_hundred_thousand_nodes() -> None:
    """One after the other, so that nothing can be batched. Sums of few bits: float32 has them exactly."""
    steps = 100_000
    pc = dy.ParameterCollection()
    p = pc.parameters_from_numpy(np.arange(1, 9) / 128)
    dy.renew_cg()
    x = dy.inputVector(np.arange(8))
    for _ in range(steps):
        x = dy.rectify(x + p)
    loss = dy.sum_elems(x)
    np.testing.assert_array_equal(x.npvalue(), np.arange(8) + steps * np.arange(1, 9) / 128)
    loss.backward()
    np.testing.assert_array_equal(p.grad_as_array(), np.full(8, steps))
    assert dy.stats()["batches"] == 2 * steps + 1


def test_many_deep_chains_run_side_by_side() -> None:
    """Depth and width at once: 8 chains of 70,000 steps take no more batches than one. Depths above 65,535 count too."""
    steps, chains = 70_000, 8
    dy.renew_cg()
    ends = []
    for k in range(chains):
        x = dy.inputVector([float(k)])
        for _ in range(steps):
            x = dy.rectify(x + 0.5)
        ends.append(x)
    assert len(dy.cg()) > 1_000_000
    assert dy.esum(ends).value() == sum(k + 0.5 * steps for k in range(chains))
    assert dy.stats()["batches"] == 2 * steps + 1


# ---- memory -----------------------------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def graph_of_its_own() -> dict[str, int]:
    """A large graph in a block, twice: the peak, and what stays after it and a small step each time."""
    model = Sentences()
    for _ in range(3):
        model.step(4, 20)
    start, out = resident(), {}
    for k in (1, 2):
        with dy.graph() as graph:
            model.loss().backward()
            out["nodes"] = len(graph)
            out[f"peak {k}"] = resident() - start
        del graph
        model.clear()
        model.step(4, 20)  # weights remember the last graph they were used in
        out[f"after {k}"] = resident() - start
    return out


def renewed_graph() -> dict[str, int]:
    """Large graphs in the current graph, with small ones between them: what stays."""
    model = Sentences()
    for _ in range(3):
        model.step(4, 20)
    start, out = resident(), {}
    for k in (1, 2, 3):
        out["nodes"] = model.step()
        for _ in range(40):
            model.step(4, 20)
        out[f"after {k}"] = resident() - start
    return out


def wide_values() -> dict[str, int]:
    """Few nodes with much memory: values and gradients at their peak, and after 60 small steps."""
    model = Sentences()
    wide = dy.ParameterCollection().parameters_from_numpy(np.ones(4096))
    for _ in range(3):
        model.step(4, 20)
    start = resident()
    dy.renew_cg()
    x = wide
    for _ in range(10_000):
        x = dy.rectify(x)
    dy.sum_elems(x).backward()
    stats = dy.stats()
    out = {"peak": resident() - start, "in use": stats["value_bytes"] + stats["gradient_bytes"]}
    for _ in range(60):
        model.step(4, 20)
    stats = dy.stats()
    return {**out, "after": resident() - start, "kept": stats["value_bytes"] + stats["gradient_bytes"]}


PROGRAMS: dict[str, Callable[[], dict[str, int]]] = {
    program.__name__: program for program in (graph_of_its_own, renewed_graph, wide_values)
}


@cache
def measure(program: Callable[[], dict[str, int]]) -> dict[str, int]:
    """What the program found, in a process of its own."""
    if not STATM.exists():
        pytest.skip("there is no /proc here")
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).resolve().parents[1])}
    done = subprocess.run(
        [sys.executable, __file__, program.__name__], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_memory_of_a_million_nodes() -> None:
    """At most 300 bytes a node; today 200, of which 48 are values and gradients: 24 floats of each for the 4 nodes of a step."""
    found = measure(graph_of_its_own)
    assert found["nodes"] > 1_000_000
    assert 50 * found["nodes"] < found["peak 1"] < 300 * found["nodes"]


def test_memory_of_a_graph_of_its_own_comes_back() -> None:
    """It goes with the block, as soon as the weights are used elsewhere. Malloc keeps some of it: today 35 of 192 MB."""
    found = measure(graph_of_its_own)
    assert found["after 1"] < found["peak 1"] / 3
    assert found["after 2"] < found["after 1"] + 16 * MB


def test_memory_of_a_renewed_graph_stays_as_it_is() -> None:
    """The arrays of nodes and plans keep the size of the largest graph there was, and blocks below 64 MB stay too: today 155
    bytes a node after the first large graph, 200 after the second, when the blocks are joined, and no more after others."""
    found = measure(renewed_graph)
    assert found["after 2"] < 300 * found["nodes"]
    assert found["after 3"] < found["after 2"] + 16 * MB


def test_memory_of_values_and_gradients_comes_back() -> None:
    """What is far above recent use is given back while small steps go by; a block of up to 64 MB is kept, but lies unused."""
    found = measure(wide_values)
    assert found["peak"] > 200 * MB and found["in use"] > 200 * MB
    assert found["kept"] <= 2 * 64 * MB
    assert found["after"] < found["peak"] / 4


if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]]()))
