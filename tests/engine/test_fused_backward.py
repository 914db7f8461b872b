"""Gradients of graphs whose ops were fused and whose affine maps were joined: which losses, which readers.

Every case is one program run twice, fused and not; the numbers must agree.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fused_programs import (
    Cell,
    Model,
    N,
    Observed,
    both,
    each_strategy,
    each_way,
    engine,
    gradients,
    inputs,
    near,
    numbered,
    ops,
    weighted,
)

import dynet_lite as dy
from dynet_lite import _core


def test_one_step_is_three_nodes() -> None:
    """What the cases below are about: the gates are one node, c and h are two."""
    with engine():
        h, c = Cell(Model()).step(*inputs())
        h.npvalue()
        assert sorted(ops()) == ["fused", "fused", "joined"]


# ---- several backward passes, parts that nothing flows into -----------------------------------------------------------


@each_strategy
@each_way
@pytest.mark.parametrize("full", [False, True])
def test_backward_twice_adds(way: str, strategy: str, full: bool) -> None:
    def program(model: Model) -> Observed:
        xs = inputs()
        h, c = Cell(model, way).step(*xs)
        loss = weighted(h) + weighted(c, 1)
        loss.backward(full=full)
        once = gradients(model, xs if full else ())
        loss.backward(full=full)
        loss.backward(full=full)
        twice = gradients(model, xs if full else ())
        for key, grad in once.items():
            near(twice[key], grad if key.startswith("input") else 2 * grad, 1e-6, key)
        return once

    both(program, strategy=strategy)


@each_strategy
@each_way
def test_losses_of_one_reader_each(way: str, strategy: str) -> None:
    """c reads three gates, h the fourth: losses of c alone, of h, of c again, of both."""

    def program(model: Model) -> Observed:
        xs = inputs()
        h, c = Cell(model, way).step(*xs)
        of_c, of_h = weighted(c), weighted(h, 1)
        of_both = of_c + of_h
        of_both.value()
        found = []
        for loss in (of_c, of_h, of_c, of_both, of_h):
            loss.backward(full=True)
            found.append(gradients(model, [*xs, h, c]))
        assert not np.any(found[0]["('Wo', (8, 8))"]) and not np.any(found[2]["('Uo', (8, 8))"])
        return numbered(*found)

    both(program, strategy=strategy)


@pytest.mark.parametrize("threads", [1, 2, 3])
@each_way
def test_a_loss_before_the_output_gate(way: str, threads: int) -> None:
    """The loss of c is built before the weights of the output gate enter the graph: they stand behind the loss."""

    def program(model: Model) -> Observed:
        cell = Cell(model, way)
        sentences = [inputs(k) for k in range(7)]
        cs = [cell.c(*xs) for xs in sentences]
        early = dy.esum([weighted(c, k) for k, c in enumerate(cs)])
        hs = [cell.h(x, h, c) for (x, h, _), c in zip(sentences, cs, strict=True)]
        late = dy.esum([weighted(h, k) for k, h in enumerate(hs)])
        late.value()
        found = []
        for loss in (early, late, early):
            loss.backward(full=True)
            found.append(gradients(model, [x for xs in sentences for x in xs]))
        early.backward()
        found.append(gradients(model))
        assert not np.any(found[0]["('Wo', (8, 8))"]) and np.any(found[1]["('Wo', (8, 8))"])
        return numbered(*found)

    both(program, threads=threads)


WEIGHTS_BEHIND_THE_LOSS = """
import numpy as np, dynet_lite as dy
dy.configure(threads={threads}, fuse={fuse})
dy._core.settings.least_work = 0
dy.renew_cg()
rng = np.random.default_rng(2)
P = {{s + k: dy.ParameterCollection().parameters_from_numpy(rng.normal(size=(8, 8)) / 4) for s in "WU" for k in "ifgo"}}
inputs = [[dy.inputVector(rng.normal(size=8)) for _ in range(3)] for _ in range(6)]
def gate(k, x, h):
    return P["W" + k] * x + P["U" + k] * h
cs = [dy.cmult(dy.logistic(gate("f", x, h)), c) + dy.cmult(dy.logistic(gate("i", x, h)), dy.tanh(gate("g", x, h)))
      for x, h, c in inputs]
loss = dy.esum([dy.sum_elems(c) for c in cs])
hs = [dy.cmult(dy.logistic(gate("o", x, h)), dy.tanh(c)) for (x, h, _), c in zip(inputs, cs)]
dy.esum([dy.sum_elems(h) for h in hs]).value()
loss.backward()
print("gradients", *(float(np.sum(p.grad_as_array() * np.arange(8))) for p in P.values()))
"""


def test_weights_behind_the_loss_with_threads(tmp_path: Path) -> None:
    """In a process of its own whose memory is full of ones before it is written: what is read must have been."""

    def child(fuse: bool, threads: int) -> list[float]:  # not in the folder of the sources, which may not be built
        code = WEIGHTS_BEHIND_THE_LOSS.format(fuse=fuse, threads=threads)
        path = str(Path(dy.__file__).parents[1])
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, cwd=tmp_path,
                              env={**os.environ, "PYTHONPATH": path, "MALLOC_PERTURB_": "165"})  # fmt: skip
        assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
        return [float(x) for x in done.stdout.split("gradients")[1].split()]

    wanted = child(False, 1)
    for threads in (1, 2):
        near(np.array(child(True, threads)), np.array(wanted), 1e-5)


@each_strategy
def test_readers_of_which_some_are_not_reached(strategy: str) -> None:
    """Of the sentences some lose the output gate, some the cell, some have both."""

    def program(model: Model) -> Observed:
        cell = Cell(model)
        losses, others = [], []
        for k in range(9):
            xs = inputs(k)
            h, c = cell.step(*xs)
            losses += [weighted(c, k)] * (k % 3 > 0) + [weighted(h, k)] * (k % 3 < 2)
            others.append(weighted(h) + weighted(c))
        loss, other = dy.esum(losses), dy.esum(others)
        other.value()
        loss.backward()
        first = gradients(model)
        other.backward()
        return numbered(first, gradients(model))

    both(program, strategy=strategy)


@each_strategy
@pytest.mark.parametrize("way", ["nobackprop", "argmax", "floor", "unread"])
def test_a_reader_through_which_nothing_flows(way: str, strategy: str) -> None:
    """Its part of the gradient is zero, and nothing is left there from before."""
    stop: dict[str, Callable[[Any], Any]] = {
        "nobackprop": dy.nobackprop,
        "argmax": lambda e: dy.argmax(e, gradient_mode="zero_gradient"),
        "floor": lambda e: _core.floor(e, False),
        "unread": lambda e: dy.zeros(N),
    }

    def program(model: Model) -> Observed:
        found = []
        for k in range(3):
            if k:
                dy.renew_cg()
            xs = inputs(k)
            h, c = Cell(model).step(*xs)
            for full in (False, True):
                loss = weighted(c) + weighted(stop[way](h) if k < 2 else h)
                loss.backward(full=full)
                found.append(gradients(model, xs if full else ()))
        return numbered(*found)

    both(program, strategy=strategy)


@pytest.mark.parametrize("threads", [1, 2, 3])
@each_way
def test_passes_over_a_graph_that_grows(way: str, threads: int) -> None:
    """Backward, more is built, backward through old and new, from the old loss, after new inputs, and again."""

    def program(model: Model) -> Observed:
        cell = Cell(model, way)
        sentences = [inputs(k) for k in range(5)]
        leaves = [e for xs in sentences for e in xs]
        states = [tuple(xs[1:]) for xs in sentences]
        losses, found = [], []
        for t in range(3):
            states = [cell.step(xs[0], h, c) for xs, (h, c) in zip(sentences, states, strict=True)]
            losses.append(dy.esum([weighted(h, k) + weighted(c, t) for k, (h, c) in enumerate(states)]))
            for loss in (losses[-1], losses[0], losses[-1]):
                loss.backward(full=t > 0)
                found.append({"loss": loss.npvalue(), **gradients(model, leaves if t else ())})
        for x in sentences[1]:
            x.set(np.linspace(-1, 1, N))
        for loss in (losses[1], losses[2], dy.esum(losses), losses[0]):
            loss.backward(full=True)
            found.append({"loss": loss.npvalue(), **gradients(model, leaves)})
        return numbered(*found)

    both(program, threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_joined_maps_with_readers_in_lanes_and_in_the_tail(threads: int) -> None:
    """What sums over all sentences runs after them; some gates of a sentence are read there."""

    def program(model: Model) -> Observed:
        xs = [inputs(k, count=1)[0] for k in range(7)]
        found = []
        for late in (False, True):
            dy.renew_cg()
            xs = [inputs(k, count=1)[0] for k in range(7)]
            maps = [[model.weight(f"W{k}", N, N) * x for k in range(4)] for x in xs]
            total = dy.esum([dy.cmult(dy.tanh(m[0]), dy.logistic(m[1])) for m in maps])
            ends = [dy.tanh(m[2]) * 2.0 + dy.cmult(dy.exp(dy.tanh(m[3])), total) for m in maps]
            del maps
            each = [weighted(e, k) for k, e in enumerate(ends)]
            of_total = weighted(total)
            loss = dy.esum(each) + of_total
            loss.value()
            for part in (of_total, loss, each[2], loss) if late else (loss, of_total, loss):
                part.backward(full=True)
                found.append({"loss": part.npvalue(), **gradients(model, xs)})
        return numbered(*found)

    both(program, threads=threads)


# Formulas read a joined part itself, first and second, or what was made of it.
READERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product of parts": lambda a, b, c: dy.cmult(a, b) + c,
    "part times formula": lambda a, b, c: dy.cmult(a, dy.tanh(b)) + dy.sin(c),
    "formula times part": lambda a, b, c: dy.cmult(dy.square(a), b) - dy.softplus(c),
    "quotient": lambda a, b, c: dy.cdiv(a, dy.exp(b)) + dy.cube(c),
    "chains": lambda a, b, c: dy.sin(dy.tanh(a)) + dy.exp(dy.sin(b)) + dy.square(dy.square(c)),
    "reads x": lambda a, b, c: dy.square(a) + dy.cube(b) + dy.softsign(c),
    "reads y": lambda a, b, c: dy.tanh(a) + dy.logistic(b) + dy.exp(c * 0.1),
    "reads nothing": lambda a, b, c: -a + (1 - b) + c * 2.0,
    "largest": lambda a, b, c: dy.bmax(dy.bmin(a, b), c),
    "three nodes": lambda a, b, c: dy.esum(
        [weighted(dy.tanh(a)), weighted(dy.square(dy.sin(b))), weighted(dy.cmult(c, dy.zeros(N) + 2.0))]
    ),
}


@each_strategy
@pytest.mark.parametrize("name", READERS)
def test_what_reads_the_parts(name: str, strategy: str) -> None:
    """Gradients of joined nodes may lie over their values: no formula may read what is gone. Three passes, many members."""
    for members in (1, 5, 70):
        for n in (N, 19, 130) if members == 5 else (N,):

            def program(model: Model, members: int = members, n: int = n) -> Observed:
                xs = [inputs(k, n, 1)[0] for k in range(members)]
                losses = []
                for x in xs:
                    e = READERS[name](
                        *(
                            dy.affine_transform([model.weight(f"b{k}", n), model.weight(f"W{k}", n, n), x])
                            for k in range(3)
                        )
                    )
                    losses.append(e if e.dim()[0] == (1,) else weighted(e))
                loss = dy.esum(losses)
                found = []
                for part in (loss, losses[-1], loss):
                    part.backward(full=True)
                    found.append(gradients(model, xs[:: members - 1 or 1]))
                return numbered(*found)

            if name == "three nodes" and n != N:
                continue
            both(program, strategy=strategy)


@each_strategy
@each_way
def test_sequences(way: str, strategy: str) -> None:
    """Sentences of different lengths; the state of a step is read by the next gates, which are joined too."""

    def program(model: Model) -> Observed:
        cell, table = Cell(model, way), model.table(N)
        losses = []
        for k, length in enumerate((4, 1, 7, 3, 3)):
            _, h, c = inputs(k)
            for t in range(length):
                h, c = cell.step(table[(3 * k + t) % 7], h, c)
                if (k + t) % 3 == 0:
                    losses.append(weighted(h, t))
            losses.append(weighted(c, k))
        loss = dy.esum(losses)
        value = loss.value()
        loss.backward()
        first = gradients(model)
        losses[3].backward()
        return {"loss": np.array(value), **numbered(first, gradients(model))}

    both(program, strategy=strategy)
    both(program, strategy=strategy, threads=2)


def test_many_gates_of_one_input() -> None:
    """More than fit into one joined node, and more readers than are counted."""
    for count in (13, 29, 30, 31, 32, 33, 70):

        def program(model: Model, count: int = count) -> Observed:
            x, h, _ = inputs()
            parts = [dy.tanh(model.weight(f"W{k}", N, N) * x) for k in range(count)]
            loss = dy.esum([weighted(p, k) for k, p in enumerate(parts)])
            loss.backward(full=True)
            first = gradients(model, [x])
            parts[-1] = weighted(parts[-1])
            parts[-1].backward(full=True)
            return numbered(first, gradients(model, [x]))

        both(program)


def test_gates_of_many_inputs_side_by_side() -> None:
    """Gate by gate over all sentences, so that the maps of one input lie far apart; more inputs than are remembered."""

    def program(model: Model) -> Observed:
        xs = [inputs(k, count=1)[0] for k in range(300)]
        first = [dy.logistic(model.weight("W", N, N) * x) for x in xs]
        second = [dy.tanh(model.weight("V", 2 * N, N) * x) for x in xs]
        third = [dy.sin(model.weight("U", N, N) * x) for x in xs]
        loss = dy.esum([weighted(e, k) for k, e in enumerate(first + second + third)])
        loss.backward(full=True)
        return gradients(model, xs[::50])

    both(program)


def test_gates_of_unequal_size() -> None:
    """Maps of 8, 16, 3 and 100 rows, with one reader each; those of 3 are too small for fusing."""

    def program(model: Model) -> Observed:
        x, h, _ = inputs()
        parts = [f(model.weight("W", m, N) * x + model.weight("U", m, N) * h) for m, f in
                 ((8, dy.tanh), (16, dy.exp), (3, dy.tanh), (100, dy.square), (9, dy.logistic))]  # fmt: skip
        loss = dy.esum([weighted(p, k) for k, p in enumerate(parts)])
        loss.backward(full=True)
        return gradients(model, [x, h])

    both(program)


@each_strategy
def test_a_gate_that_two_read_is_not_joined(strategy: str) -> None:
    """... and the others are; and maps that are read through slices are not."""

    def program(model: Model) -> Observed:
        xs = inputs()
        cell = Cell(model)
        x, h, c = xs
        i = cell.gate("i", x, h)
        new = dy.cmult(dy.logistic(i), dy.tanh(i)) + dy.cmult(dy.logistic(cell.gate("f", x, h)), c)
        big = dy.affine_transform(
            [model.weight("bb", 2 * N), model.weight("BW", 2 * N, N), x, model.weight("BU", 2 * N, N), h]
        )
        out = dy.cmult(dy.logistic(big[:N]), dy.tanh(big[N:])) + dy.cmult(
            dy.logistic(cell.gate("o", x, h)), dy.tanh(new)
        )
        loss = weighted(out)
        loss.backward(full=True)
        return gradients(model, xs)

    both(program, strategy=strategy)
