"""Objects that no __init__ of ours has seen: of a subclass that forgets it, or made by __new__. TypeError, never a crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dynet_lite as dy
from dynet_lite import _core, errors


class OwnParameters(dy.Parameters):
    def __init__(self) -> None:
        self.note = "mine"


class OwnTable(dy.LookupParameters):
    def __init__(self) -> None:
        self.note = "mine"


class OwnState(dy.RNNState):
    def __init__(self) -> None:
        self.note = "mine"


def x() -> Any:
    return dy.inputVector([1.0, 2.0])


def blank(kind: Any) -> Any:
    return kind.__new__(kind)


def trees() -> Any:
    return dy.NaryTreeLSTMBuilder(2, 2, 2, 2, dy.ParameterCollection())


def cell_over(thing: Any) -> Any:
    return dy.cell(lambda s, y: dy.tanh(y))(thing, x())


USES: dict[str, Callable[[], Any]] = {
    "parameters": lambda: OwnParameters().shape,
    "parameters, blank": lambda: repr(blank(dy.Parameters)),
    "parameters, blank and used": lambda: blank(OwnParameters) * x(),
    "table": lambda: len(OwnTable()),
    "table, blank": lambda: blank(dy.LookupParameters)[0],
    "state": lambda: OwnState().add_input(x()),
    "state, several inputs": lambda: OwnState().add_inputs([x()]),
    "state, transduced": lambda: OwnState().transduce([x()]),
    "state, set": lambda: OwnState().set_s([x()]),
    "state, shown": lambda: repr(OwnState()),
    "state, of a builder without any": lambda: dy.RNNState(type("B", (), {"initial_state": lambda self: None})()),
    "state, copied": lambda: dy.RNNState(type("B", (), {"initial_state": lambda self: OwnState()})()).b(),
    "cell": lambda: blank(type(dy.cell(lambda y: y)))(x()),
    "cell, mapped": lambda: dy.map(blank(type(dy.cell(lambda y: y))), [x()]),
    "cell, scanned": lambda: dy.scan(blank(type(dy.cell(lambda y: y))), x(), [x()]),
    "cell, recursed": lambda: dy.recurse(blank(type(dy.cell(lambda y: y))), [x()], [[]]),
    "named state": lambda: cell_over(blank(type(dy.state(h=x())))),
    "tree node": lambda: trees().node(x(), [blank(_core.TreeNode)]),
    "tree node, its output": lambda: blank(_core.TreeNode).output(),
    "tree node by hand": lambda: _core.TreeNode((x(),)),
    "tree node of a builder with fewer layers": lambda: trees().node(
        x(), [dy.NaryTreeLSTMBuilder(2, 1, 2, 2, dy.ParameterCollection()).node(x())]
    ),
    "stack": lambda: blank(_core.CellStack).step(x(), None, None),
    "tree stack": lambda: blank(_core.TreeStack).node(x(), []),
}


@pytest.mark.parametrize("use", USES)
def test_not_initialised(use: str) -> None:
    dy.renew_cg()
    with pytest.raises((TypeError, ValueError), match=r"\[|NoneType"):
        USES[use]()
    assert dy.sum_elems(x()).value() == 3


def test_what_stands_for_an_integer() -> None:
    kinds = []

    @dy.cell
    def row(y: Any, i: dy.Index) -> Any:
        kinds.append(type(i))
        return dy.pick(y, i)

    dy.renew_cg()
    assert row(x(), 1).value() == 2
    for use in (int, lambda i: dy.pick(x(), i), lambda i: i + 1):
        with pytest.raises(errors.CellError, match="kept beyond the call"):
            use(blank(kinds[0]))


def test_states_of_builders_whose_layers_were_changed() -> None:
    dy.renew_cg()
    builder = dy.LSTMBuilder(2, 2, 2, dy.ParameterCollection())
    state = builder.initial_state()
    builder.layers = 1
    for use in (lambda s: s.add_input(x()), lambda s: s.transduce([x()])):
        with pytest.raises(ValueError, match="must have 2 layers"):
            use(state.set_s([x(), x()]))
