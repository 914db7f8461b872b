"""Loops over a cell take the recording of the row before where its arguments are of the same kinds; here they are not always.

The same for steps of builders, which keep the signature of the step before, and for rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

Both = Callable[..., None]


def test_map_over_rows_of_several_kinds(both: Both) -> None:
    model = dy.ParameterCollection()
    E = model.add_lookup_parameters((9, 4))
    b, W = model.add_parameters(3), {3: model.add_parameters((2, 3)), 4: model.add_parameters((2, 4))}

    @dy.cell
    def score(x: Any, choice: Any) -> Any:
        if not isinstance(x, dy.Expression):
            x = E[x]
        h = W[x.shape[0]] * dy.tanh(x)
        return dy.pick(h, choice) if choice is not None else dy.sum_elems(h)

    def program() -> tuple[Any, list[Any]]:
        xs = [E[1], E[2], b, b, dy.inputVector([1, 2, 3]), E[3], 4, 5, 4, E.batch([1, 2]), E[6], np.int64(7), E[0]]
        choices = [0, 1, 1, None, None, 0, 1, 0, None, 1, np.int64(1), 0, 1]
        found = dy.map(score, xs, choices)
        return dy.sum_batches(dy.esum(found)), found

    both(model, program)


def test_map_over_more_rows_than_are_added_at_once(both: Both) -> None:
    """Several hundred alike, others among them; a cell of two results, and one of a list, which is made row by row."""
    model = dy.ParameterCollection()
    E, W = model.add_lookup_parameters((9, 4)), model.add_parameters((4, 4))
    pair = dy.cell(lambda x, k: (dy.tanh(W * x), dy.pick(x, k)))
    listed = dy.cell(lambda x: [x, dy.square(x)])

    def program() -> tuple[Any, list[Any]]:
        ids = [k % 9 for k in range(700)]
        xs = E.rows(ids)
        xs[300] = xs[611] = W * xs[0]
        found = dy.map(pair, xs, [k % 4 for k in ids])
        more = dy.map(listed, xs[:520])
        wanted = [dy.pick(h, 2) + p for h, p in found] + [dy.pick(y, 1) + x[0] for x, y in more]
        return dy.esum(wanted), wanted

    both(model, program)


def test_scan_over_inputs_of_several_kinds(both: Both) -> None:
    model = dy.ParameterCollection()
    E, W, b = model.add_lookup_parameters((9, 4)), model.add_parameters((4, 4)), model.add_parameters(4)

    @dy.cell
    def step(s: Any, x: Any) -> Any:
        return dy.state(h=dy.tanh(W * s.h + (x if isinstance(x, dy.Expression) else E[x])), c=s.h)

    def program() -> tuple[Any, list[Any]]:
        xs = [1, 2, 3, E[4], E[5], b, E[6], E.batch([1, 2]), 7, E.batch([3, 4]), 8, 1, 2]
        states, last = dy.scan(step, dy.state(h=b, c=b), xs)
        return dy.sum_batches(dy.sum_elems(last.h + last.c)), [s.h for s in states]

    both(model, program)


def test_integers_that_are_counted_with_stay_a_part_of_the_signature(both: Both) -> None:
    model = dy.ParameterCollection()
    W, b = model.add_parameters((4, 4)), model.add_parameters(4)

    @dy.cell
    def deep(x: Any, n: int) -> Any:
        for _ in range(n):
            x = dy.tanh(W * x)
        return x

    def program() -> tuple[Any, list[Any]]:
        found = dy.map(deep, [b * k for k in range(1, 6)], [1, 1, 3, 2, 1])
        return dy.sum_elems(dy.esum(found)), found

    both(model, program)


def test_a_wrong_row_is_an_error_at_any_place() -> None:
    E = dy.ParameterCollection().add_lookup_parameters((9, 4))
    score = dy.cell(lambda x, k: dy.pick(x, k))
    for at in range(3):
        dy.renew_cg()
        choices = [1, 1, 1]
        choices[at] = 4
        with pytest.raises(IndexError):
            dy.map(score, E.rows([1, 2, 3]), choices)
        rows = [1, 2, 3]
        rows[at] = 9
        with pytest.raises(dy.OutOfRangeError, match="row 9 of .* a table with 9 rows"):
            E.rows(rows)


def test_rows_of_any_integers() -> None:
    E = dy.ParameterCollection().add_lookup_parameters((9, 4))
    for ids in ([1, -1, np.int32(3), True], (1, 8, 3, 1), np.array([1, 8, 3, 1]), iter([1, 8, 3, 1])):
        dy.renew_cg()
        assert np.array_equal([e.npvalue() for e in E.rows(ids)], [E[i].npvalue() for i in (1, 8, 3, 1)])
    assert E.rows([]) == []
    with pytest.raises(TypeError):
        E.rows([1, "two"])


@pytest.mark.parametrize("kind", ["VanillaLSTMBuilder", "CoupledLSTMBuilder", "GRUBuilder", "SimpleRNNBuilder"])
def test_steps_of_a_builder_whose_inputs_change(kind: str) -> None:
    """Batch size, weights as inputs, the start of another sequence, another graph: as a step alone makes them."""
    model = dy.ParameterCollection()
    builder = getattr(dy, kind)(2, 4, 3, model)
    E, b = model.add_lookup_parameters((9, 4)), model.add_parameters(4)

    def inputs() -> list[Any]:
        return [E[1], E[2], b, b, E[3], E.batch([1, 2]), E[4], E.batch([3, 4]), dy.inputVector([1, 2, 3, 4])]

    for _ in range(2):
        dy.renew_cg()
        together = [e.npvalue() for _ in range(2) for e in builder.initial_state().transduce(inputs())]
        dy.renew_cg()
        alone = []
        for _ in range(2):
            state = builder.initial_state()
            for x in inputs():
                with dy.graph():
                    pass
                state = state.add_input(x)
                alone.append(state.output().npvalue())
        for x, y in zip(together, alone, strict=True):
            assert np.allclose(x, y, rtol=1e-5)
        with pytest.raises(ValueError, match=r"an input of shape \{4\} is needed; got \{2\} \(number 1 of 3\)"):
            builder.initial_state().transduce([E[1], dy.inputVector([1, 2]), E[2]])


def test_dropout_that_begins_after_the_state_was_made() -> None:
    builder = dy.VanillaLSTMBuilder(1, 4, 3, dy.ParameterCollection())
    x = dy.inputVector([1, 2, 3, 4])
    builder.initial_state().add_input(x)
    state = builder.initial_state()
    builder.set_dropout(0.5)
    assert "random_bernoulli" not in dy.plan_text()
    before = len(dy.cg())
    state.add_input(x)
    masked = len(dy.cg()) - before
    builder.set_dropout(0)
    before = len(dy.cg())
    builder.initial_state().add_input(x)
    assert masked > len(dy.cg()) - before
