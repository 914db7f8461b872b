"""A cell as a recurrent builder: add_input, add_inputs and transduce give what the loop gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy


@pytest.mark.parametrize("paired", [False, True])
def test_a_cell_as_a_builder(both: Callable[..., None], paired: bool) -> None:
    pc = dy.ParameterCollection()
    W, U, E = pc.add_parameters((4, 4)), pc.add_parameters((4, 4)), pc.add_lookup_parameters((5, 4))

    @dy.cell
    def step(s: Any, word: int) -> Any:
        c = s.c + dy.tanh(W * E[word] + U * s.h)
        new = dy.state(h=dy.tanh(c), c=c)
        return (new, W * c) if paired else new

    builder = dy.CellBuilder(step, lambda: dy.state(h=dy.zeros(4), c=dy.ones(4)))

    def program() -> Any:
        words = [1, 4, 2, 0]
        start = builder.initial_state()
        states = start.add_inputs(words)
        outputs = start.transduce(words)
        assert (
            start.output() is None and start.transduce([]) == [] and states[0].prev() is start and start.b() is builder
        )
        assert states[-1].state().c.dim() == ((4,), 1) and len(states[-1].s()) == 2
        found = [*outputs, *(s.output() for s in states)]
        for k in range(4):
            np.testing.assert_allclose(found[k].npvalue(), found[k + 4].npvalue(), rtol=1e-6)
        again = builder.initial_state(states[1].state()).transduce(words[2:])
        np.testing.assert_allclose(again[-1].npvalue(), outputs[-1].npvalue(), rtol=1e-6)
        return dy.squared_norm(dy.esum(found)), found

    both(pc, program)


def test_states_of_one_expression_or_a_tuple_and_errors() -> None:
    dy.renew_cg()
    xs = [dy.ones(2) * k for k in range(3)]
    total = dy.CellBuilder(dy.cell(lambda s, x: s + x), lambda: dy.zeros(2))
    assert [y.value() for y in total.initial_state().transduce(xs)] == [[0, 0], [1, 1], [3, 3]]
    beside = dy.CellBuilder(dy.cell(lambda s, x: (s + x, s)), lambda: dy.zeros(2))
    assert [y.value() for y in beside.initial_state().transduce(xs)] == [[0, 0], [0, 0], [1, 1]]
    several = dy.CellBuilder(dy.cell(lambda s, x: (s + x, (s, x))), lambda: dy.zeros(2))
    state = several.initial_state()
    for one in (state.transduce(xs)[-1], state.add_inputs(xs)[-1].output()):
        assert [part.value() for part in one] == [[1, 1], [2, 2]]  # as the cell gave it
    two = dy.CellBuilder(dy.cell(lambda s, x: (s[0] + x, s[1] + s[0])))
    state = two.initial_state((xs[0], xs[0])).add_input(xs[1]).add_input(xs[2])
    assert state.output().value() == [3, 3] and state.s()[1].value() == [1, 1]
    with pytest.raises(ValueError, match="needs a state"):
        two.initial_state()
    with pytest.raises(TypeError, match="write @dy.cell above"):
        dy.CellBuilder(lambda s, x: s)
    wrong = dy.CellBuilder(dy.cell(lambda s, x: dy.state(h=s)), lambda: dy.zeros(2))
    with pytest.raises(dy.CellError, match="is a step of a recurrent layer"):
        wrong.initial_state().add_input(xs[0])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("paired", [False, True])
def test_many_sentences_in_one_call(paired: bool, reverse: bool) -> None:
    pc = dy.ParameterCollection()
    W, U = pc.add_parameters((4, 3)), pc.add_parameters((4, 4))

    @dy.cell
    def step(s: Any, x: Any) -> Any:
        new = dy.state(h=dy.tanh(W * x + U * s.h))
        return (new, U * new.h) if paired else new

    dy.renew_cg()
    lengths = [2, 0, 3, 1]
    xs = [dy.inputVector(np.random.default_rng(k).standard_normal(3)) for k in range(6)]
    state = dy.CellBuilder(step, lambda: dy.state(h=dy.ones(4))).initial_state().add_input(xs[0])
    parts = [xs[end - n : end] for n, end in zip(lengths, np.cumsum(lengths), strict=True)]
    looped = [y for one in parts for y in (state.transduce(one[::-1])[::-1] if reverse else state.transduce(one))]
    found = state.transduce(xs, lengths=lengths, reverse=reverse)
    for one, other in zip(found, looped, strict=True):
        np.testing.assert_array_equal(one.npvalue(), other.npvalue())
    with pytest.raises(ValueError, match="their sum 6, the number of inputs"):
        state.transduce(xs, lengths=[1, 2], reverse=reverse)
    with pytest.raises(
        ValueError, match=r"the cell step got an input \{2\}, the inputs before it \{3\} \(number 5 of 6\)"
    ):
        state.transduce([*xs[:5], dy.ones(2)], lengths=lengths)


def test_no_input_at_all() -> None:
    dy.renew_cg()
    state = dy.CellBuilder(dy.cell(lambda s, x: s + x), lambda: dy.zeros(2)).initial_state()
    assert state.transduce([]) == state.transduce([], reverse=True) == state.transduce(iter([]), lengths=[0, 0]) == []
