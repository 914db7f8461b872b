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
from dynet_lite import _core

STATM = Path("/proc/self/statm")
SENTENCES, STEPS, SIZE, WORDS = (
    1000,
    250,
    8,
    1009,
)  # four nodes a step: row, product, sum, tanh; no sentence begins as another
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
    # All sentences step together: a batch per step for the product and one for sum and tanh, the losses, their sum.
    assert stats["batches"] == stats["lower_bound"] == 2 * STEPS + 2


def test_a_chain_of_two_hundred_thousand_nodes() -> None:
    """One after the other, so that nothing can be batched. Sums of few bits: float32 has them exactly.

    Of 7 numbers each op is a node of its own; of 8 as many run as one as a program has room for (cext/op/fused.h).
    """
    steps, room = 100_000, 24
    for size, batches in ((7, 2 * steps + 1), (8, -(-2 * steps // room) + 1)):
        pc = dy.ParameterCollection()
        p = pc.parameters_from_numpy(np.arange(1, size + 1) / 128)
        dy.renew_cg()
        x = dy.inputVector(np.arange(size))
        for _ in range(steps):
            x = dy.rectify(x + p)
        loss = dy.sum_elems(x)
        np.testing.assert_array_equal(x.npvalue(), np.arange(size) + steps * np.arange(1, size + 1) / 128)
        loss.backward()
        np.testing.assert_array_equal(p.grad_as_array(), np.full(size, steps))
        assert dy.stats()["batches"] == batches


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
    assert dy.stats()["batches"] == dy.stats()["lower_bound"] == 2 * steps + 1


@pytest.mark.parametrize("strategy", ["auto", "greedy", "agenda", "depth"])
def test_a_deep_chain_by_every_strategy(strategy: str) -> None:
    """More than 65,535 levels in a cycle of two types: the order and the lower bound are right."""
    steps = 70_000
    with dy.configure(strategy=strategy):
        dy.renew_cg()
        x = dy.inputVector([0.0])
        for _ in range(steps):
            x = dy.rectify(x + 1.0)
        assert x.value() == steps
        assert dy.stats()["batches"] == dy.stats()["lower_bound"] == 2 * steps


def test_a_deep_chain_of_many_types() -> None:
    """A cycle of more types than the default strategy looks at, and more than 65,535 nodes of one of them."""
    rounds, others = 66_000, 70
    dy.renew_cg()
    x = dy.inputVector([0.0] * 3)
    for k in range(rounds):
        x = dy.rectify(x + 1.0)
        if k < others:  # each a type of its own, and of the same cycle
            x = dy.pick_range(dy.concatenate([x, dy.zeros(k + 1)]), 0, 3) + 0.0
    assert x.value() == [rounds] * 3
    stats = dy.stats()
    assert stats["lower_bound"] == 2 * rounds + 2 * others
    assert stats["batches"] <= 1.05 * stats["lower_bound"]


# ---- memory -----------------------------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def graph_of_its_own() -> dict[str, int]:
    """A large graph in a block, twice: the peak, what stays when it is dropped, and what after small steps."""
    model = Sentences()
    model.step(SENTENCES, 1)  # every row has a gradient
    for _ in range(3):
        model.step(4, 20)
    start, out = resident(), {}
    for k in (1, 2):
        with dy.graph() as graph:
            model.loss().backward()
            out["nodes"] = len(graph)
            out[f"peak {k}"] = resident() - start
        del graph
        out[f"dropped {k}"] = resident() - start
        model.clear()
        for _ in range(40):
            model.step(4, 20)
        out[f"after {k}"] = resident() - start
    return out


def renewed_graph() -> dict[str, int]:
    """Large graphs in the current graph, with small ones between them: what stays."""
    model = Sentences()
    model.step(SENTENCES, 1)  # every row has a gradient
    for _ in range(3):
        model.step(4, 20)
    start, out = resident(), {}
    for k in (1, 2, 3):
        out["nodes"] = model.step()
        out[f"peak {k}"] = resident() - start
        for _ in range(50):
            model.step(4, 20)
        out[f"after {k}"] = resident() - start
    return out


def at_once() -> dict[str, int]:
    """node_by_node(), of a graph that runs nodes as soon as they are made."""
    return node_by_node(immediate_compute=True)


def node_by_node(**how: bool) -> dict[str, int]:
    """A hundred thousand nodes, each asked for its value, and small steps."""
    model = Sentences()
    for _ in range(3):
        model.step(4, 20)
    start = resident()
    dy.renew_cg(**how)
    x = dy.inputVector([1.0])
    for _ in range(50_000):
        x = x + 1.0
        x.forward()
        x = dy.rectify(x)
        x.forward()
    out = {"peak": resident() - start}
    for _ in range(50):
        model.step(4, 20)
    return {**out, "after": resident() - start}


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
    program.__name__: program for program in (graph_of_its_own, renewed_graph, at_once, node_by_node, wide_values)
}


@cache
def measure(program: Callable[[], dict[str, int]]) -> dict[str, int]:
    """What the program found, in a process of its own."""
    if not STATM.exists():
        pytest.skip("there is no /proc here")
    if "DYNET_LITE_TEST_SANITIZE" in os.environ:
        pytest.skip("the sanitizer keeps what is given back")
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
    """It goes with the block, though weights were used in it. Today all of 214 MB."""
    found = measure(graph_of_its_own)
    for k in (1, 2):
        assert found[f"dropped {k}"] < found[f"peak {k}"] / 3
        assert found[f"after {k}"] < 24 * MB


def test_memory_of_a_renewed_graph_comes_back() -> None:
    """While small graphs go by, that of nodes, plans and values is given back: today all of 155 MB and more."""
    found = measure(renewed_graph)
    for k in (1, 2, 3):
        assert found[f"peak {k}"] > 100 * MB
        assert found[f"after {k}"] < 16 * MB


def test_memory_of_many_plans_comes_back() -> None:
    found = measure(node_by_node)
    assert found["peak"] > 64 * MB
    assert found["after"] < 16 * MB


def test_nodes_that_run_at_once_have_one_plan() -> None:
    """Today 32 MB."""
    found = measure(at_once)
    assert 16 * MB < found["peak"] < 48 * MB
    assert found["after"] < 16 * MB


@pytest.mark.parametrize("threads", [1, 2])
def test_large_graphs_of_like_sizes_make_no_heap_call(threads: int) -> None:
    """However long the loop: memory is given back only when graphs have become far smaller."""
    model = Sentences()
    with dy.graph():
        dy.configure(threads=threads)
        _core.settings.least_work = 0  # all of them are dealt to lanes
        rounds = [100 if k % 10 == 0 else 40 for k in range(60)]
        for _ in range(10):  # each thread meets each lane of both sizes, whoever is quick to take one
            before = dy.heap_calls()
            for size in rounds:
                model.step(size, 60)
            if dy.heap_calls() == before:
                break
        before = dy.heap_calls()
        for size in rounds:
            model.step(size, 60)
        assert dy.heap_calls() == before
        for _ in range(60):
            model.step(4, 20)
        assert dy.heap_calls() > before, "the memory of this size is given back at all"


def test_memory_of_values_and_gradients_comes_back() -> None:
    """What is far above recent use is given back while small steps go by; a block of up to 16 MB may be kept."""
    found = measure(wide_values)
    assert found["peak"] > 200 * MB and found["in use"] > 200 * MB
    assert found["kept"] <= 2 * 16 * MB
    assert found["after"] < 40 * MB


PLAN_WITHOUT_MEMORY = """
import resource
import numpy as np, dynet_lite as dy
dy.configure(verify=True)
pc = dy.ParameterCollection()
weights = [pc.parameters_from_numpy(np.eye(2) * (k + 1) / 900) for k in range(900)]

def chain(few):
    dy.renew_cg()
    h = x = dy.inputVector([0.1, 0.2])
    for k in range(4000):
        h = dy.tanh(weights[k % few] * h)
    return (dy.squared_norm(h) + dy.squared_norm(x)).value()

chain(1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 3_000_000, resource.RLIM_INFINITY))
try:
    chain(900)  # its plan takes a number for each node and weight
except dy.errors.OutOfMemoryError:
    print("failed")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
dy.renew_cg()
xs = [dy.inputVector([k, 1]) for k in range(6000)]
loss = dy.esum([dy.squared_norm(dy.tanh(x * 1e-4)) for x in xs[-4000:]][:40])
wanted = sum(np.tanh(k * 1e-4) ** 2 + np.tanh(1e-4) ** 2 for k in range(2000, 2040))
print(abs(loss.value() / wanted - 1) < 1e-5)
"""


@pytest.mark.skipif(not STATM.exists(), reason="needs the memory limits of Linux")
@pytest.mark.skipif("DYNET_LITE_TEST_SANITIZE" in os.environ, reason="the sanitizer takes all addresses")
def test_a_plan_without_memory_leaves_nothing_behind(tmp_path: Path) -> None:
    """Nodes of the next graph are not taken for nodes of the plan that was begun."""
    from programs import run_code  # here: this file runs alone, too

    done = run_code(PLAN_WITHOUT_MEMORY, tmp_path)
    assert done.stdout.split() == ["failed", "True"], done.stdout + done.stderr


if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]]()))
