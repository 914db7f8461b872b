"""Random programs as compiled functions, against the same function run at each call: values and gradients."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nested import alike, is_index, nested, others, rebuilt
from random_programs import Builder, Model, Step, steps

import dynet_lite as dy
from dynet_lite import _core

EXAMPLES = int(os.environ.get("DYNET_LITE_EXAMPLES", "0"))
profile = settings(
    max_examples=EXAMPLES or 60,
    derandomize=not EXAMPLES,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
bodies = st.lists(steps.filter(lambda s: s.op != "peek"), min_size=2, max_size=20)
data = st.lists(
    st.tuples(st.lists(st.integers(0, 6), min_size=1, max_size=3), st.integers(0, 1)), min_size=2, max_size=4
)


def program(model: Model, body: list[Step]) -> Callable[..., Any]:
    """Examples of rows, a label and a vector each, which go through one body; a mini-batch of as many as there are rows."""

    def run(rows: list[int], label: int, x: Any) -> Any:
        losses, last = [], []
        for row in rows:
            b = Builder(model, 3)
            b.values += [x, model.table(3)[row]]
            for step in body:
                b.run(step)
            losses += [
                b.loss(),
                dy.sum_batches(dy.pickneglogsoftmax_batch(b.values[-1], [label] * b.values[-1].batch_size)),
            ]
            last.append(b.values[-1])
        return dy.esum(losses), last

    return run


def figures(model: Model, f: Any, calls: list[tuple[list[int], int]], on: bool, threads: int, fuse: bool) -> list[Any]:
    out: list[Any] = []
    model.gradients()
    with dy.configure(compile=on, threads=threads, fuse=fuse):
        _core.settings.least_work = 0
        _core.set_seed(7)
        for rows, label in calls * 2:
            loss, last = f(rows, label, np.linspace(-1, 1, 3) * (1 + rows[0]))
            out += [np.asarray(loss), *map(np.asarray, last), *model.gradients()]
    return out


@profile
@given(bodies, data)
def test_random_programs(body: list[Step], calls: list[tuple[list[int], int]]) -> None:
    model = Model()
    f = dy.compile(program(model, body), backward=True)
    figures(model, f, calls, False, 1, True)  # makes the weights
    for threads, fuse in ((1, True), (1, False), (2, True)):
        wanted = figures(model, f, calls, False, threads, fuse)
        for _ in range(2):
            found = figures(model, f, calls, True, threads, fuse)
            assert len(found) == len(wanted)
            for a, b in zip(found, wanted, strict=True):
                scale = max(1.0, float(np.abs(b).max(initial=0)))
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=5e-6 * scale)


@profile
@given(st.lists(nested, min_size=1, max_size=3))
def test_random_arguments(drawn: list[Any]) -> None:
    """Nested data in, the same nesting of expressions out; other data in the same structure are not recorded again."""
    pc = dy.ParameterCollection()
    E, w = pc.add_lookup_parameters((7, 3)), pc.add_parameters(3)

    def run(x: Any) -> Any:
        made: list[Any] = []

        def leaf(v: Any) -> Any:
            if v is None or isinstance(v, (str, bool, float)):
                return v
            made.append(dy.tanh(E[v] if is_index(v) else v))
            return made[-1]

        found = rebuilt(x, leaf)
        return dy.sum_elems(dy.esum([w, *made])), found

    f = dy.compile(run, backward=True)

    def figures(x: Any, on: bool) -> tuple[Any, list[Any]]:
        for p in (E, w):
            p.zero_gradient()
        with dy.configure(compile=on):
            return f(x), [E.grad_as_array(), w.grad_as_array()]

    for x in drawn:
        recorded = 0
        for data in (x, others(x), x):
            (a, ga), (b, gb) = figures(data, True), figures(data, False)
            assert alike(a, b)
            np.testing.assert_allclose(ga[0], gb[0], rtol=2e-5, atol=1e-6)
            np.testing.assert_allclose(ga[1], gb[1], rtol=2e-5, atol=1e-6)
            recorded = recorded or dy.stats()["compiled_recorded"]
            assert dy.stats()["compiled_recorded"] == recorded
