"""Sentences in one call: transduce() with `lengths` and `reverse` does what a loop over them does, and what `after` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

IN, HIDDEN = 3, 4
LENGTHS = [2, 0, 4, 1, 0]
N = sum(LENGTHS)

BUILDERS: dict[str, Callable[[Any], Any]] = {
    "RNN": lambda m: dy.SimpleRNNBuilder(2, IN, HIDDEN, m),
    "GRU": lambda m: dy.GRUBuilder(2, IN, HIDDEN, m),
    "LSTM": lambda m: dy.LSTMBuilder(2, IN, HIDDEN, m),
    "coupled": lambda m: dy.CoupledLSTMBuilder(2, IN, HIDDEN, m),
    "normed": lambda m: dy.VanillaLSTMBuilder(2, IN, HIDDEN, m, True),  # no cell nodes
}


def sentences(xs: list[Any]) -> list[list[Any]]:
    ends = np.cumsum(LENGTHS)
    return [xs[end - n : end] for n, end in zip(LENGTHS, ends, strict=True)]


def following(lengths: list[int]) -> list[int]:
    """What `after` says of such sentences."""
    after: list[int] = []
    for n in lengths:
        after += [-1, *range(len(after), len(after) + n - 1)][:n]
    return after


def numbers(make: Callable[[Any], Any], rate: float, outputs: Any) -> list[np.ndarray]:
    """Values of the outputs, and gradients of inputs and weights; outputs: of a builder and inputs."""
    dy.reset_random_seed(5)
    model = dy.ParameterCollection()
    builder = make(model)
    if rate:
        builder.set_dropout(rate)
    dy.renew_cg()
    rng = np.random.default_rng(1)
    xs = [dy.inputVector(rng.standard_normal(IN)) for _ in range(N)]
    hs = outputs(builder, xs)
    weights = np.random.default_rng(2).standard_normal((N, HIDDEN))
    dy.esum([dy.dot_product(h, dy.inputVector(w)) for h, w in zip(hs, weights, strict=True)]).backward(full=True)
    return [
        *(h.npvalue() for h in hs),
        *(x.gradient() for x in xs),
        *(p.grad_as_array() for p in model.parameters_list()),
    ]


def begun(builder: Any) -> Any:
    """A state after an input."""
    return builder.initial_state().add_input(dy.inputVector(np.ones(IN)))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("start", [lambda builder: builder.initial_state(), begun], ids=["start", "begun"])
@pytest.mark.parametrize("kind", BUILDERS)
def test_as_a_loop(kind: str, start: Any, reverse: bool) -> None:
    def looped(builder: Any, xs: list[Any]) -> list[Any]:
        state = start(builder)
        if reverse:
            return [h for some in sentences(xs) for h in state.transduce(some[::-1])[::-1]]
        return [h for some in sentences(xs) for h in state.transduce(some)]

    got = numbers(BUILDERS[kind], 0, lambda b, xs: start(b).transduce(xs, lengths=LENGTHS, reverse=reverse))
    for one, other in zip(got, numbers(BUILDERS[kind], 0, looped), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lengths", [LENGTHS, None])
@pytest.mark.parametrize(
    ("kind", "rate"), [*((kind, 0) for kind in BUILDERS), *((kind, 0.4) for kind in ("GRU", "LSTM", "coupled"))]
)
def test_as_after_says(kind: str, rate: float, lengths: list[int] | None, reverse: bool) -> None:
    """To the last bit: the nodes are the same, in the same order."""
    given = lengths or [N]

    def along(builder: Any, xs: list[Any]) -> list[Any]:
        if reverse:
            return begun(builder).transduce(xs[::-1], following(given[::-1]))[::-1]
        return begun(builder).transduce(xs, following(given))

    got = numbers(BUILDERS[kind], rate, lambda b, xs: begun(b).transduce(iter(xs), lengths=lengths, reverse=reverse))
    for one, other in zip(got, numbers(BUILDERS[kind], rate, along), strict=True):
        np.testing.assert_array_equal(one, other)


def test_both_directions() -> None:
    def make(model: Any) -> Any:
        return dy.BiRNNBuilder(2, IN, HIDDEN, model, dy.LSTMBuilder)

    got = numbers(make, 0, lambda builder, xs: builder.transduce(xs, lengths=iter(LENGTHS)))
    looped = numbers(make, 0, lambda builder, xs: [h for some in sentences(xs) for h in builder.transduce(some)])
    for one, other in zip(got, looped, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


class Stacked:
    """A GRU that reads what an LSTM gives."""

    def __init__(self, model: Any) -> None:
        self.builders = dy.LSTMBuilder(1, IN, 5, model), dy.GRUBuilder(1, 5, HIDDEN, model)

    def initial_state(self) -> Any:
        return dy.StackedRNNState([builder.initial_state() for builder in self.builders])


@pytest.mark.parametrize(
    "how", [{"lengths": LENGTHS}, {"lengths": LENGTHS, "reverse": True}, {"after": following(LENGTHS)}]
)
def test_states_that_are_stacked(how: dict[str, Any]) -> None:
    def one_by_one(stacked: Stacked, xs: list[Any]) -> Any:
        for builder in stacked.builders:
            xs = builder.initial_state().transduce(xs, **how)
        return xs

    consumed = {name: given if given is True else iter(given) for name, given in how.items()}
    got = numbers(Stacked, 0, lambda stacked, xs: stacked.initial_state().transduce(xs, **consumed))
    for one, other in zip(got, numbers(Stacked, 0, one_by_one), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"lengths": [1]}, ValueError, "their sum 2, the number of inputs; got"),
        ({"lengths": [1, 2]}, ValueError, "their sum 2"),
        ({"lengths": [3, -1]}, ValueError, "must be 0 or more"),
        ({"lengths": [-1, 3]}, ValueError, "must be 0 or more"),
        ({"lengths": []}, ValueError, "their sum 2"),
        ({"lengths": [1, 2**31 - 1]}, ValueError, "their sum 2"),
        ({"lengths": [2**70]}, ValueError, "a length"),
        ({"lengths": [0.5, 1.5]}, ValueError, "a length must be a whole number; got 0.5"),
        ({"lengths": [None]}, TypeError, "a length must be a whole number; got None"),
        ({"lengths": 2}, TypeError, "`lengths` needs a list of numbers; got int"),
        ({"after": [-1, 0], "lengths": [2]}, ValueError, "`after` says all"),
        ({"after": [-1, 0], "reverse": True}, ValueError, "`after` says all"),
    ],
)
@pytest.mark.parametrize("make", [dy.GRUBuilder, dy.CoupledLSTMBuilder])
def test_wrong_sentences(make: type, given: dict[str, Any], error: type[Exception], message: str) -> None:
    """Nothing is added to the graph."""
    dy.renew_cg()
    xs = [dy.inputVector(np.ones(IN))] * 2
    state = make(1, IN, HIDDEN, dy.ParameterCollection()).initial_state()
    state.transduce(xs)
    before = len(dy.cg().nodes())
    with pytest.raises(error, match=rf"\[transduce\].*{message}"):
        state.transduce(xs, **given)
    assert len(dy.cg().nodes()) == before


def test_no_sentences() -> None:
    dy.renew_cg()
    state = dy.LSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection()).initial_state()
    assert state.transduce([], lengths=[]) == state.transduce([], lengths=[0, 0], reverse=True) == []


def test_lengths_that_change_the_inputs() -> None:
    dy.renew_cg()
    xs = [dy.inputVector(np.ones(IN))] * 3

    class Length:
        def __index__(self) -> int:
            xs.clear()
            return 3

    state = dy.LSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection()).initial_state()
    assert len(state.transduce(xs, lengths=[Length()])) == 3


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in BUILDERS if kind != "GRU"])  # which has no masks
def test_masks_are_those_of_the_first_step(kind: str, reverse: bool) -> None:
    """Its mini-batch may be smaller than those of the others."""
    got = []
    for looped in (False, True):
        dy.reset_random_seed(5)
        builder = BUILDERS[kind](dy.ParameterCollection())
        builder.set_dropout(0.4)
        dy.renew_cg()
        xs = [dy.inputTensor(np.full((IN, n), 0.5), batched=True) for n in (1, 2, 2)]
        state, hs = builder.initial_state(), []
        for x in (xs[::-1] if reverse else xs) if looped else ():
            state = state.add_input(x)
            hs.append(state.output())
        hs = (hs[::-1] if reverse else hs) if looped else state.transduce(xs, reverse=reverse)
        got.append([h.npvalue().tobytes() for h in hs])
    assert got[0] == got[1]
