"""What a type checker sees in a program that uses dynet_lite. Nothing runs it: mypy reads it, see pyproject.toml.

A value is a number or an array, and a state has no output before its first input: `float | Any`, `Expression | Any` leave
that open without asking for a check at each use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dynet_lite as dy
from dynet_lite.nn import smoothed_loss

if TYPE_CHECKING:
    from typing_extensions import assert_type


def program(model: dy.ParameterCollection) -> None:
    """Parameters, a builder, ops, values."""
    W, E = model.add_parameters((3, 4), name="W"), model.add_lookup_parameters((9, 4), name="E")
    lstm = dy.LSTMBuilder(1, 4, 4, model, name="lstm")
    state = lstm.initial_state().add_input(E[0])
    assert_type(state, dy.RNNState)
    assert_type(state.output(), dy.Expression | Any)
    assert_type(lstm.initial_state().transduce([E[0]]), list[dy.Expression])
    assert_type(dy.BiRNNBuilder(1, 4, 4, model, dy.LSTMBuilder).transduce([E[0]]), list[dy.Expression])
    x = W * state.output()
    assert_type(x, dy.Expression)
    assert_type(x.shape, tuple[int, ...])
    assert_type(W.shape(), tuple[int, ...])
    assert_type(dy.softmax(x), dy.Expression)
    assert_type(dy.pick(x, 1) + 1, dy.Expression)
    assert_type(abs(x), dy.Expression)
    assert_type(dy.segment_sum([x, x], [0, 1]), list[dy.Expression])
    assert_type(dy.segment_sum(x, [0, 1, 1]), dy.Expression)
    loss = dy.pickneglogsoftmax(x, 1) + smoothed_loss(x, 1)
    assert_type(loss, dy.Expression)
    assert_type(loss.value(), float | Any)
    assert_type(loss.scalar_value(), float)
