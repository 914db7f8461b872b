"""Random programs as cells: templates that hypothesis draws, each a cell of one argument, against the same inline."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nested import flat, is_index, nested, others, rebuilt
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
bodies = st.lists(st.lists(steps.filter(lambda s: s.op != "peek"), min_size=2, max_size=12), min_size=1, max_size=3)
calls = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8), st.integers(0, 2)), min_size=2, max_size=10)


def as_cell(model: Model, body: list[Step], seed: int) -> Any:
    @dy.cell
    def run(x: Any, label: int) -> Any:
        b = Builder(model, seed)
        b.values.append(x)
        for step in body:
            b.run(step)
        last = b.values[-1]
        return last, dy.sum_batches(dy.sum_elems(dy.pick(last, label)))

    return run


def figures(
    model: Model, cells: list[Any], plan: list[tuple[int, int, int]], how: str, threads: int
) -> list[np.ndarray]:
    """Each call takes an input or what an earlier call gave."""
    with dy.configure(cells=how, threads=threads):
        _core.settings.least_work = 0
        _core.set_seed(7)
        dy.renew_cg()
        values = [dy.inputVector(np.linspace(-1, 1, 3))]
        losses = []
        for which, source, label in plan:
            x, loss = cells[which % len(cells)](values[source % len(values)], label % 2)
            values.append(dy.tanh(x))
            losses.append(loss)
        total = dy.esum(losses)
        out = [total.npvalue(), *(e.npvalue() for e in values)]
        total.backward()
        return out + model.gradients()


@profile
@given(bodies, calls)
def test_random_cells(drawn: list[list[Step]], plan: list[tuple[int, int, int]]) -> None:
    model = Model()
    cells = [as_cell(model, body, k) for k, body in enumerate(drawn)]
    figures(model, cells, plan, "inline", 1)  # makes the weights
    for threads in (1, 2):
        wanted = figures(model, cells, plan, "inline", threads)
        for _ in range(2):
            found = figures(model, cells, plan, "recorded", threads)
            assert len(found) == len(wanted)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(a, b)


@profile
@given(st.lists(nested, min_size=1, max_size=3))
def test_random_arguments(drawn: list[Any]) -> None:
    """A nesting of integers and expressions, of which the cell gives one of expressions."""
    pc = dy.ParameterCollection()
    E, w = pc.add_lookup_parameters((7, 3)), pc.add_parameters(3)

    @dy.cell
    def run(x: Any) -> Any:
        def leaf(v: Any) -> Any:
            if v is None or isinstance(v, (str, bool, float)):
                return v
            return dy.tanh(E[v] if is_index(v) else v) + w

        return rebuilt(x, leaf)

    def figures(how: str) -> list[Any]:
        dy.renew_cg()
        with dy.configure(cells=how):
            out: list[Any] = []
            for x in drawn:
                for data in (x, others(x)):
                    given = rebuilt(data, lambda v: dy.inputVector(v) if isinstance(v, np.ndarray) else v)
                    found = run(given)
                    shape = repr(rebuilt(found, lambda v: "e" if isinstance(v, dy.Expression) else v))
                    out += [shape, *(e.npvalue() for e in flat(found) if isinstance(e, dy.Expression))]
            return out

    wanted, signatures = figures("inline"), 0
    for _ in range(2):
        found = figures("recorded")
        assert len(found) == len(wanted)
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
        signatures = signatures or run.signatures()
        assert run.signatures() == signatures <= len(drawn)
