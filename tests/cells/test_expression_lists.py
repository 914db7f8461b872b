"""What recurrent builders and dy.map give for many sentences is used like a list: nothing of it shows that its expressions are
made when they are first asked for."""

from __future__ import annotations

import collections.abc
import copy
import gc
import operator
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

N = 5


class Network:
    def __init__(self) -> None:
        dy.reset_random_seed(1)
        self.model = dy.ParameterCollection()
        self.E = self.model.add_lookup_parameters((10, 3))
        self.lstm = dy.LSTMBuilder(1, 3, 4, self.model)
        W = self.model.add_parameters((2, 4))

        @dy.cell
        def loss(h: Any, tag: dy.Index) -> Any:
            return dy.pickneglogsoftmax(W * h, tag)

        @dy.cell
        def both(h: Any, g: Any) -> Any:
            return h + g, dy.cmult(h, g)

        self.loss, self.both = loss, both

    def outputs(self) -> Any:
        return self.lstm.initial_state().transduce(self.E.rows([1, 2, 3, 4, 5]), lengths=[2, 3])


@pytest.fixture
def net() -> Iterator[Network]:
    dy.renew_cg()
    yield Network()
    dy.renew_cg()


def test_what_gives_them(net: Network) -> None:
    hs = net.outputs()
    for made in (hs, dy.map(net.loss, hs, [0, 1, 0, 1, 0])):
        assert type(made) is _core.ExpressionList
    assert type(net.lstm.initial_state().transduce(net.E.rows([1, 2]))) is list
    assert type(dy.map(net.loss, list(hs), [0, 1, 0, 1, 0])) is list
    assert type(dy.map(net.both, hs, hs)) is list


def test_it_is_a_list(net: Network) -> None:
    hs = net.outputs()
    assert isinstance(hs, list)
    assert isinstance(hs, collections.abc.Sequence)
    assert len(hs) == N
    assert hs[0] is hs[0] is list(hs)[0] is hs[0:1][0] is next(iter(hs)) is hs[-N]
    first, *others = hs
    assert first is hs[0] and others == hs[1:] and type(others) is list is type(hs[1:])
    assert list(reversed(hs)) == hs[::-1] == list(hs)[::-1]
    assert hs[2] in hs and net.outputs()[2] not in hs
    assert hs == list(hs) and list(hs) == hs and hs == hs and hs != net.outputs() and hs != [] and not hs == tuple(hs)
    assert (hs.index(hs[3]), hs.index(hs[3], 1, 4), hs.count(hs[3])) == (3, 3, 1)
    assert repr(hs) == repr(list(hs)) == str(hs)
    assert hs + [1] == [*hs, 1] == list(hs) + [1]
    assert hs + hs == hs * 2 == 2 * hs == [*hs, *hs]
    assert hs.copy() == copy.copy(hs) == hs and hs.copy() is not hs
    assert bool(hs) and not net.lstm.initial_state().transduce([], lengths=[])
    match hs:
        case [one, *_]:
            assert one is hs[0]
        case _:
            raise AssertionError
    for wrong in (lambda: hash(hs), lambda: hs + (1,), lambda: {hs}, lambda: [1] + hs):
        with pytest.raises(TypeError):
            wrong()
    for index in (N, -N - 1):
        with pytest.raises(IndexError, match="list index out of range"):
            hs[index]
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(hs)


def test_others_grow_by_it(net: Network) -> None:
    """In place, as by a list."""
    hs = net.outputs()
    ours = others = [1]
    ours += hs
    ours.extend(hs)
    ours[1:1] = hs
    assert ours is others and ours == [1, *hs, *hs, *hs]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "item": lambda xs: xs.__setitem__(1, 7),
    "slice": lambda xs: xs.__setitem__(slice(1, 3), [7, 8, 9]),
    "del": lambda xs: xs.__delitem__(0),
    "append": lambda xs: xs.append(7),
    "clear": lambda xs: xs.clear(),
    "extend": lambda xs: xs.extend([7, 8]),
    "extend by itself": lambda xs: xs.extend(xs),
    "grow by itself": lambda xs: operator.iadd(xs, xs),
    "insert": lambda xs: xs.insert(1, 7),
    "pop": lambda xs: xs.pop(),
    "pop 1": lambda xs: xs.pop(1),
    "remove": lambda xs: xs.remove(xs[2]),
    "reverse": lambda xs: xs.reverse(),
    "shuffle": lambda xs: random.Random(3).shuffle(xs),
    "sort": lambda xs: xs.sort(key=id, reverse=True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes(change: str, net: Network) -> None:
    hs = net.outputs()
    same = hs
    plain = list(hs) if change in ("item", "sort") else None  # the others change it before anybody looks
    got = CHANGES[change](hs)
    if plain is None:
        fresh = net.outputs()
        plain = list(fresh)
        expected = CHANGES[change](plain)
        numbers = [[x if isinstance(x, int) else x.npvalue().tolist() for x in xs] for xs in (hs, plain)]
        assert numbers[0] == numbers[1]
        assert (got is None) == (expected is None)
    else:
        CHANGES[change](plain)
        assert hs == plain
    assert hs is same


def test_grows_in_place(net: Network) -> None:
    hs = same = net.outputs()
    hs += [1]
    hs *= 2
    assert hs is same and len(hs) == 2 * N + 2 and hs[N] == 1


@pytest.mark.parametrize("look", ["never", "before", "after"])
def test_numbers_are_the_same(look: str, net: Network) -> None:
    """As with lists, whoever has looked into which: losses and gradients, to the last bit."""

    def run(as_list: Callable[[Any], Any]) -> list[Any]:
        net.model.reset_gradient()
        dy.renew_cg()
        hs = as_list(net.outputs())
        losses = as_list(dy.map(net.loss, hs, [0, 1, 0, 1, 1]))
        loss = dy.esum(losses) + dy.sum_elems(dy.average(hs)) + dy.squared_norm(dy.concatenate(hs))
        loss.backward()
        shown = [x.npvalue() for xs in (hs, losses) for x in xs] if look == "after" else []
        return [loss.value(), *shown, *(p.grad_as_array() for p in net.model.parameters_list()), net.E.grad_as_array()]

    def touched(xs: Any) -> Any:
        if look == "before":
            assert xs[0].dim()
        return xs

    for one, other in zip(run(touched), run(list), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_it_holds_stays(net: Network) -> None:
    """Its nodes keep values and gradients of their own while it is there, as for expressions, though nobody has looked."""
    hs = net.outputs()
    mine = dy.map(net.loss, hs, [0, 1, 0, 1, 0])
    loss = dy.esum(dy.map(net.loss, hs, [0, 1, 0, 1, 0])) + dy.esum(mine)
    loss.backward()
    assert np.isfinite([x.value() for x in mine]).all()
    assert all(np.abs(h.gradient()).max() > 0 for h in hs)


def test_what_nobody_holds_goes(net: Network) -> None:
    """Nothing is computed for results that nobody can ask for."""
    hs = net.outputs()
    made = dy.map(net.loss, hs, [0, 1, 0, 1, 0])
    before = dy.stats()["nodes"]
    del made
    hs[0].value()
    gone = dy.stats()["nodes"] - before
    dy.renew_cg()
    hs = net.outputs()
    made = dy.map(net.loss, hs, [0, 1, 0, 1, 0])
    before = dy.stats()["nodes"]
    hs[0].value()
    assert dy.stats()["nodes"] - before > gone
    assert len(made) == N


@pytest.mark.parametrize("looked", [False, True])
def test_of_a_graph_that_is_gone(looked: bool, net: Network) -> None:
    hs = net.outputs()
    if looked:
        assert hs[0].dim()
    dy.renew_cg()
    net.outputs()  # other nodes of the same numbers
    assert len(hs) == N
    for use in (
        lambda: hs[0].value(),
        lambda: dy.esum(hs),
        lambda: dy.map(net.loss, hs, [0] * N),
        lambda: net.lstm.initial_state().transduce(hs, lengths=[N]),
        lambda: net.lstm.initial_state().transduce(hs),
        lambda: [h.dim() for h in hs],
    ):
        with pytest.raises(dy.StaleExpressionError):
            use()


def test_reverted(net: Network) -> None:
    start = dy.zeros(3)
    dy.cg_checkpoint()
    hs = net.outputs()
    dy.cg_revert()
    assert start.dim() == ((3,), 1)
    with pytest.raises(dy.StaleExpressionError):
        dy.esum(hs)
    del hs


def test_outlives_its_graph() -> None:
    net = Network()
    with dy.graph():
        hs = net.outputs()
    with pytest.raises(dy.StaleExpressionError):
        dy.esum(hs)
    del hs


def test_an_argument_of_a_cell(net: Network) -> None:
    """The structure of a list."""

    @dy.cell
    def total(hs: Any) -> Any:
        return dy.esum(hs)

    @dy.cell
    def step(state: Any, h: Any) -> Any:
        return [s + h for s in state]

    hs = net.outputs()
    value = dy.esum(list(hs)).npvalue()
    for _ in range(2):
        np.testing.assert_array_equal(total(net.outputs()).npvalue(), value)
        np.testing.assert_array_equal(total(list(net.outputs())).npvalue(), value)
    dy.renew_cg()
    xs = list(net.outputs())
    for cells in ("recorded", "inline"):
        dy.configure(cells=cells)
        try:
            for init in (net.outputs(), list(net.outputs())):
                _, last = dy.scan(step, init, xs)
                assert len(last) == N
        finally:
            dy.configure(cells="recorded")


def test_results_of_several_forms(net: Network) -> None:
    """Expressions first, then a pair: a list from the start."""

    @dy.cell
    def form(h: Any, kind: str) -> Any:
        return h if kind == "one" else (h, h + h)

    hs = net.outputs()
    made = dy.map(form, hs, ["one", "one", "two", "one", "two"])
    assert type(made) is list
    assert [type(x) is tuple for x in made] == [False, False, True, False, True]
    np.testing.assert_array_equal(made[1].npvalue(), hs[1].npvalue())


def test_a_cell_that_changes_the_list(net: Network) -> None:
    """While it is recorded: what was given is mapped."""
    hs = net.outputs()

    @dy.cell
    def meddle(h: Any, tag: dy.Index) -> Any:
        hs.clear()
        return dy.pick(h, tag)

    try:
        made = dy.map(meddle, hs, [0, 1, 2, 3, 0])
    except RuntimeError as error:
        assert "changed while it was read" in str(error)
    else:
        assert len(made) == N


def test_a_call_that_fails_leaves_nothing(net: Network) -> None:
    hs = net.outputs()
    dy.map(net.loss, hs, [0] * N)
    before = len(dy.cg().nodes())
    with pytest.raises(IndexError):
        dy.map(net.loss, hs, [0, 1, 0, 2, 0])
    assert len(dy.cg().nodes()) == before


def test_a_graph_that_is_renewed_meanwhile(net: Network) -> None:
    hs = net.outputs()

    class Renews(tuple):
        def __iter__(self) -> Any:
            dy.renew_cg()
            return super().__iter__()

    @dy.cell
    def first(pair: Any, h: Any) -> Any:
        return h

    with pytest.raises((RuntimeError, dy.StaleExpressionError)):
        dy.map(first, [Renews((1, 2))] * N, hs)


def test_looked_into_while_it_is_looked_into(net: Network) -> None:
    """By what runs when garbage is collected: both see the same expressions, and changes stay."""
    hs = net.outputs()
    seen: list[Any] = []

    def look(phase: str, info: dict[str, int]) -> None:
        if not seen:
            seen.append(hs[0])
            hs.append(7)

    threshold = gc.get_threshold()
    kept: list[Any] = [[] for _ in range(200)]  # no free ones are left: memory for the next is asked for
    gc.callbacks.append(look)
    gc.set_threshold(1)
    try:
        first = hs[0]
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(look)
    assert all(h is first for h in seen) and len(hs) == N + len(seen) and kept


def test_containers_that_copy_their_kind(net: Network) -> None:
    hs = net.outputs()
    again = type(hs)(h for h in hs)
    assert again == hs and again is not hs


def test_immediate_and_checked(net: Network) -> None:
    for settings in ({"immediate_compute": True}, {"check_validity": True}):
        dy.renew_cg(**settings)
        hs = net.outputs()
        assert np.isfinite(dy.esum(dy.map(net.loss, hs, [0, 1, 0, 1, 0])).value())
        assert np.isfinite(hs[0].npvalue()).all()
