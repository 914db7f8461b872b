"""The stack LSTM against an LSTM that reads the contents of a plain list."""

from __future__ import annotations

import random

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite.nn import StackLSTM


@pytest.mark.parametrize("autobatch", [True, False])
def test_outputs_are_those_of_the_contents(autobatch):
    model = dy.ParameterCollection()
    lstm = dy.LSTMBuilder(2, 3, 4, model)
    dy.renew_cg(autobatching=autobatch)
    rng = random.Random(4)
    vectors = [dy.inputVector(np.random.default_rng(i).normal(size=3)) for i in range(20)]
    guard, *vectors = vectors
    stack, plain, seen = StackLSTM(lstm.initial_state().add_input(guard)), [], []
    stack.extend(vectors[:3])
    plain += vectors[:3]
    for vector in vectors[3:]:
        if plain and rng.random() < 0.5:
            assert stack.pop() is plain.pop()
        else:
            stack.push(vector)
            plain.append(vector)
        assert len(stack) == len(plain) and all(stack[i] is x for i, x in enumerate(plain))
        seen.append((stack.output(), lstm.initial_state().transduce([guard, *plain])[-1]))
    for one, other in seen:
        np.testing.assert_allclose(one.npvalue(), other.npvalue(), rtol=1e-5, atol=1e-6)


def test_a_copy_goes_on_by_itself():
    lstm = dy.LSTMBuilder(1, 3, 4, dy.ParameterCollection())
    dy.renew_cg()
    guard, *vectors = (dy.inputVector(np.random.default_rng(i).normal(size=3)) for i in range(5))
    stack = StackLSTM(lstm.initial_state().add_input(guard))
    stack.extend(vectors[:2])
    twin = stack.copy()
    twin.push(vectors[2])
    assert stack.pop() is vectors[1]
    stack.push(vectors[3])
    assert len(stack) == 2 and len(twin) == 3 and twin[1] is vectors[1]
    for one, items in ((stack, [vectors[0], vectors[3]]), (twin, vectors[:3])):
        wanted = lstm.initial_state().transduce([guard, *items])[-1]
        np.testing.assert_allclose(one.output().npvalue(), wanted.npvalue(), rtol=1e-5, atol=1e-6)


def test_errors():
    lstm = dy.LSTMBuilder(1, 3, 4, dy.ParameterCollection())
    dy.renew_cg()
    with pytest.raises(ValueError, match="give it an input"):
        StackLSTM(lstm.initial_state())
    with pytest.raises(IndexError):
        StackLSTM(lstm.initial_state().add_input(dy.zeros(3))).pop()
