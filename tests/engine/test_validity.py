"""check_validity: the node is named that made what is not finite; an infinity that was put in is none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import nn

INF = np.inf
Make = Callable[[], Any]


@pytest.fixture(
    autouse=True, params=[{}, {"autobatch": False}, {"fuse": False}, {"autobatch": False, "fuse": False}], ids=str
)
def checked(request: pytest.FixtureRequest) -> Iterator[None]:
    with dy.configure(**request.param):
        dy.renew_cg(check_validity=True)
        yield
    dy.renew_cg()


def vec(*numbers: float) -> Any:
    return dy.inputVector(np.array(numbers))


def weight(*numbers: float) -> Any:
    return dy.ParameterCollection().parameters_from_numpy(np.array(numbers))


RIGHT: dict[str, Make] = {
    "left out": lambda: dy.pick(dy.log_softmax(vec(1, 2, 3), [0, 2]), 2),
    "left out, all of it": lambda: dy.log_softmax(vec(1, 2, 3), [0, 2]),
    "left out, exp": lambda: dy.exp(dy.log_softmax(vec(1, 2, 3), [1])),
    "left out, several": lambda: dy.esum([dy.pick(dy.log_softmax(vec(1, 2, k), [0, 2]), 0) for k in range(4)]),
    "mask": lambda: dy.softmax(vec(1, 2, 3) + vec(0, -INF, 0)),
    "mask, reshaped": lambda: dy.softmax(vec(1, 2, 3) + dy.reshape(dy.inputTensor([[0.0, -INF, 0]]), (3,))),
    "mask, batched": lambda: dy.softmax(vec(1, 2) + dy.inputTensor([[0.0, -INF], [-INF, 0]], batched=True)),
    "mask, twice": lambda: dy.softmax((vec(1, 2, 3) + vec(0, -INF, 0)) * 2.0),
    "causal": lambda: nn.Transformer(2, 4, 2, 8, dy.ParameterCollection())(dy.inputTensor(np.eye(4)), causal=True),
    "put in": lambda: vec(INF, 1),
    "tanh": lambda: dy.tanh(vec(INF, -INF)),
}
WRONG: dict[str, tuple[Make, str]] = {
    "made": (lambda: dy.log(vec(1, 0)), "log"),
    "made, beside what was left out": (lambda: dy.log_softmax(vec(1, 2), [0]) + dy.log(vec(1, 0)), "log"),
    "made, in a batch of what was put in": (lambda: dy.esum([dy.log(vec(INF)), dy.log(vec(0)), dy.log(vec(INF))]), "log"),
    "too large": (lambda: dy.exp(vec(1, 100)), "exp"),
    "too large, in the end": (lambda: dy.cmult(dy.exp(vec(80)), dy.exp(vec(80))), "cmult"),
    "NaN put in": (lambda: dy.tanh(vec(1, np.nan)), "tanh"),
    "NaN left in": (lambda: dy.log_softmax(vec(1, np.nan, 3), [0, 1]), "log_softmax"),
    "NaN of infinities": (lambda: dy.sum_elems(dy.cmult(vec(INF, 1), vec(0, 1))), "cmult"),
    "NaN of what was left out": (lambda: dy.sum_elems(dy.cmult(dy.log_softmax(vec(1, 2), [0]), vec(1, 0))), "cmult"),
    "weight": (lambda: weight(1, INF) + vec(1, 1), "add"),
    "row": (lambda: dy.ParameterCollection().lookup_parameters_from_numpy(np.array([[INF, 1]]))[0] * 2.0, "scale"),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_what_was_put_in_is_no_fault(case: str) -> None:
    e = RIGHT[case]()
    total = dy.sum_batches(dy.sum_elems(dy.exp(-dy.square(e))))  # that is finite whatever it is
    assert np.isfinite(total.value())
    assert not np.isnan(e.npvalue()).any()
    total.backward()


@pytest.mark.parametrize("case", WRONG)
def test_what_was_made_is(case: str) -> None:
    make, name = WRONG[case]
    e = make()
    for _ in range(2):  # the run is forgotten, and tried again
        with pytest.raises(dy.NotFiniteError, match=rf"^\[({name}) .*test_validity.py:\d+"):
            e.npvalue()


def test_in_later_runs() -> None:
    """What an earlier run was given is known to a later one."""
    masked = vec(1, 2, 3) + vec(0, -INF, 0)
    assert masked.npvalue()[1] == -INF
    assert dy.softmax(masked * 3.0).npvalue()[1] == 0
    bad = dy.log(dy.softmax(masked))
    with pytest.raises(dy.NotFiniteError, match=r"^\[log "):
        bad.value()


def test_over_sums() -> None:
    """Gates lie over their sums: what these brought is looked at before they are gone."""
    rnn = dy.LSTMBuilder(1, 2, 2, dy.ParameterCollection())
    start = rnn.initial_state()
    assert np.isfinite(dy.esum(start.transduce([vec(INF, 1), vec(1, 1)])).npvalue()).all()
    states = start.transduce([vec(np.nan, 1), vec(1, 1)])
    with pytest.raises(dy.NotFiniteError):
        dy.esum(states).npvalue()
