"""Arguments whose own code changes a list or renews the graph while they are read: an error, never a crash."""

from __future__ import annotations

import contextlib
import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

N = 2000


@pytest.fixture(autouse=True)
def still_alive() -> Iterator[None]:
    """Each test begins with a new graph, and after it the next one works."""
    dy.renew_cg()
    yield
    dy.renew_cg()
    assert dy.sum_elems(dy.inputVector([1.0, 2.0])).value() == 3


class Runs:
    """A number that runs something when it is read."""

    def __init__(self, what: Callable[[], Any], number: int = 1) -> None:
        self.what, self.number = what, number

    def __index__(self) -> int:
        self.what()
        return self.number

    def __float__(self) -> float:
        self.what()
        return float(self.number)


def vectors() -> list[Any]:
    return [dy.inputVector([1.0, 2.0]) for _ in range(N)]


# ---- lists that become shorter -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["map", "map of two", "scan", "scan back", "recurse", "recurse without children"])
def test_lists_that_a_cell_changes(how: str) -> None:
    xs, ys, children = vectors(), list(range(N)), [[], *[[i] for i in range(N - 1)]]

    def clears(x: Any, *_: Any) -> Any:
        if how != "recurse without children":
            xs.clear()
        ys.clear()
        children.clear()
        return dy.tanh(x)

    cell: Any = dy.cell(clears)
    calls: dict[str, Callable[[], Any]] = {
        "map": lambda: dy.map(cell, xs),
        "map of two": lambda: dy.map(cell, list(xs), ys),
        "scan": lambda: dy.scan(cell, dy.inputVector([0.0, 0.0]), xs),
        "scan back": lambda: dy.scan(cell, dy.inputVector([0.0, 0.0]), xs, reverse=True),
    }
    with pytest.raises(RuntimeError, match="changed while it was read"):
        calls.get(how, lambda: dy.recurse(cell, xs, children))()


@contextlib.contextmanager
def runs_at_collection(number: int, what: Callable[[], Any], containers: int = 50) -> Iterator[None]:
    """The so-manieth time that a collection of garbage begins or ends, this runs. Before Python 3.12 that may be wherever a
    container is made."""
    calls = itertools.count(1)

    def look(phase: str, info: dict[str, int]) -> None:
        if next(calls) == number:
            what()

    before = gc.get_threshold()
    # So that Python has no tuples and lists left over, whose use is not counted.
    kept = [(k, k) for k in range(5 * N)], [[k] for k in range(N)]
    gc.callbacks.append(look)
    gc.set_threshold(containers)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(look)
        del kept


@pytest.mark.parametrize("at", [3, 7, 15])
@pytest.mark.parametrize("which", ["expressions", "numbers", "list to come"])
def test_lists_that_change_while_results_are_made(which: str, at: int) -> None:
    xs: Any = vectors()
    numbers = [0] * N
    if which == "list to come":
        builder = dy.GRUBuilder(1, 2, 2, dy.ParameterCollection())
        xs = builder.initial_state().transduce(xs, lengths=[N])
    cell = dy.cell(lambda x, k: (dy.tanh(x), dy.pick(x, k)))
    dy.map(cell, vectors()[:2], [0, 1])
    with runs_at_collection(at, (numbers if which == "numbers" else xs).clear):
        try:
            made = dy.map(cell, xs, numbers)
        except RuntimeError as error:
            assert "changed while it was read" in str(error)
        else:
            assert len(made) == N


@pytest.mark.parametrize("at", [3, 7, 15])
def test_a_graph_that_is_renewed_while_results_are_made(at: int) -> None:
    xs = vectors()
    cell = dy.cell(lambda x: (dy.tanh(x), -x))
    dy.map(cell, xs[:2])
    with runs_at_collection(at, dy.renew_cg):
        try:
            made = dy.map(cell, xs)
        except RuntimeError as error:
            assert "renewed or reverted meanwhile" in str(error)
        else:
            assert len(made) == N


@pytest.mark.parametrize("init", ["plain", "of sentences"])
def test_a_list_whose_items_go_while_a_cell_is_recorded(init: str) -> None:
    """And the graph runs: what nobody refers to any more does not."""
    builder = dy.GRUBuilder(1, 2, 2, dy.ParameterCollection())
    state = builder.initial_state()
    how = {"lengths": [5, 5]} if init == "of sentences" else {}
    xs, ys = state.transduce(vectors()[:10], **how), state.transduce(vectors()[:10], **how)

    @dy.cell
    def empties(x: Any, y: Any) -> Any:
        xs[:] = [None] * 10
        ys[0].value()
        return x + y

    with pytest.raises(TypeError):
        dy.map(empties, xs, ys)


@pytest.mark.parametrize("how", [{}, {"lengths": [4, 6]}])
@pytest.mark.parametrize("renews", [True, False])
def test_a_builder_whose_graph_changes_while_results_are_made(renews: bool, how: dict[str, Any]) -> None:
    builder = dy.LSTMBuilder(2, 2, 2, dy.ParameterCollection())

    def other_use() -> None:
        builder.initial_state().transduce(vectors()[:7])

    wanted = [h.npvalue() for h in builder.initial_state().transduce(vectors()[:10], **how)]
    for at in range(1, 12):
        dy.renew_cg()
        xs = vectors()[:10]
        try:
            with runs_at_collection(at, dy.renew_cg if renews else other_use, containers=1):
                hs = builder.initial_state().transduce(xs, **how)
        except dy.StaleExpressionError:
            assert renews
        else:
            assert len(hs) == 10
            if not renews:
                np.testing.assert_array_equal([h.npvalue() for h in hs], wanted)


def test_lists_of_numbers_that_change() -> None:
    table = dy.ParameterCollection().add_lookup_parameters((10, 3))
    x = dy.inputTensor([[1.0, 2.0], [3.0, 4.0]], batched=True)
    ids: list[Any] = []
    ids += [Runs(ids.clear), *[1] * N]
    with pytest.raises(RuntimeError, match="changed while it was read"):
        table.rows(ids)
    ids += [Runs(lambda: ids.extend([0] * N)), 1]
    with pytest.raises(RuntimeError, match="changed while it was read"):
        dy.pickneglogsoftmax(x, ids)


def test_rows_of_a_table_that_left_the_graph() -> None:
    """After a renewal it enters anew."""
    table = dy.ParameterCollection().add_lookup_parameters((10, 3))
    before = vectors()
    *_, last = table.rows([1, Runs(dy.renew_cg), 2])
    assert last.npvalue().tolist() == table.row_as_array(2).tolist()
    del before


def test_children_whose_numbers_change() -> None:
    """What gives a number is asked for it once."""

    class Odd(int):
        def __le__(self, other: Any) -> bool:
            return True

        __lt__ = __ge__ = __gt__ = __le__

    class Lies:
        def __index__(self) -> int:
            return Odd(1 << 30)

    @dy.cell
    def gather(x: Any, *below: Any) -> Any:
        return dy.esum([x, *below])

    with pytest.raises(ValueError, match="earlier nodes"):
        dy.recurse(gather, vectors()[:2], [[], [Lies()]])


# ---- graphs that are renewed -------------------------------------------------------------------------------------------


class Renewing(tuple):
    """A pair that renews the graph when it is made."""

    armed = False

    def __new__(cls, *parts: Any) -> Any:
        if cls.armed:
            dy.renew_cg()
        return tuple.__new__(cls, parts)


@pytest.mark.parametrize("how", ["call", "map", "scan", "recurse"])
def test_results_that_renew_the_graph(how: str) -> None:
    weight: Any = dy.ParameterCollection().add_parameters((2, 2))

    @dy.cell
    def pairs(x: Any, *_: Any) -> Any:
        return Renewing(Renewing(dy.tanh(x), weight * x), weight * dy.tanh(x))

    @dy.cell
    def step(s: Any, k: Any) -> Any:
        return dy.tanh(s), Renewing(dy.tanh(s), weight * s)

    @dy.cell
    def node(k: Any, *below: Any) -> Any:
        return Renewing(weight[0], weight[1])

    x = vectors()[-1]
    calls: dict[str, Callable[[], Any]] = {
        "call": lambda: pairs(x),
        "map": lambda: dy.map(pairs, [x] * N),
        "scan": lambda: dy.scan(step, x, list(range(N))),
        "recurse": lambda: dy.recurse(node, list(range(N)), [[], *[[i] for i in range(N - 1)]]),
    }
    calls[how]()
    Renewing.armed = True
    try:
        with pytest.raises(RuntimeError):
            calls[how]()
    finally:
        Renewing.armed = False


class Array:
    """Numbers of which NumPy asks for an array; the graph is renewed then."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        for _ in range(2):
            dy.renew_cg()
            dy.inputVector([7.0] * 4)
        return np.array(self.numbers)


class Two(int):
    """A number, for operators."""

    def __float__(self) -> float:
        dy.renew_cg()
        return 2.0

    def __neg__(self) -> Any:
        return Two(-int(self))


class Yes:
    def __bool__(self) -> bool:
        dy.renew_cg()
        return True


def of_a_table() -> Any:
    return dy.ParameterCollection().add_lookup_parameters((10, 3))[1]


RENEWS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "set": (lambda: vectors()[-1], lambda e: e.set(Array([1.0, 2.0]))),
    "set of much": (lambda: dy.zeros(1 << 24), lambda e: e.set(Array(np.ones(1 << 24)))),
    "set of a row": (of_a_table, lambda e: e.set(Array(2))),
    "set_index": (lambda: dy.pick(vectors()[-1], 0), lambda e: e.set_index(Runs(dy.renew_cg))),
    "set_index of several": (
        lambda: dy.pick_batch(vectors()[-1], [0, 1]),
        lambda e: e.set_index([0, Runs(dy.renew_cg)]),
    ),
    "plus": (lambda: vectors()[-1], lambda e: e + Two(2)),
    "minus": (lambda: vectors()[-1], lambda e: e - Two(2)),
    "from": (lambda: vectors()[-1], lambda e: Two(2) - e),
    "times": (lambda: vectors()[-1], lambda e: e * Two(2)),
    "over": (lambda: vectors()[-1], lambda e: e / Two(2)),
    "under": (lambda: vectors()[-1], lambda e: Two(2) / e),
    "to the power": (lambda: vectors()[-1], lambda e: e ** Two(2)),
    "base": (lambda: vectors()[-1], lambda e: Two(2) ** e),
    "index": (lambda: vectors()[-1], lambda e: dy.pick(e, Runs(dy.renew_cg))),
    "float": (lambda: vectors()[-1], lambda e: dy.noise(e, Two(2))),
    "forward": (lambda: vectors()[-1], lambda e: e.forward(Yes())),
    "backward": (lambda: dy.sum_elems(vectors()[-1]), lambda e: e.backward(Yes())),
    "value": (lambda: vectors()[-1], lambda e: e.value(Yes())),
}


@pytest.mark.parametrize("how", RENEWS)
def test_numbers_that_renew_the_graph(how: str) -> None:
    """The node is asked for after them, and other nodes keep their numbers."""
    make, use = RENEWS[how]
    e = make()
    with pytest.raises(RuntimeError, match=r"stale|made nodes"):
        result = use(e)
        result.value()


def test_set_still_takes_all_kinds_of_numbers() -> None:
    e: Any = dy.inputTensor([[1.0, 2.0], [3.0, 4.0]])
    for numbers in (
        [5, 6.0, 7, 8],
        np.array([[5, 7], [6, 8]]),
        (5, 6, 7, 8),
        [[5, 7], [6, 8]],
        [np.float32(5), 6, 7, 8],
    ):
        e.set([0.0] * 4)
        e.set(numbers)
        assert e.npvalue().tolist() == [[5, 7], [6, 8]]
    for wrong in ([], [1.0], 1.0, np.zeros(3), np.zeros((2, 3))):
        with pytest.raises(ValueError, match=r"\[set\] (4 numbers are needed|an array of shape \(2, 2\) is needed)"):
            e.set(wrong)
    one: Any = dy.scalarInput(1.0)
    for single in (2.0, 2, [2.0], np.float64(2), np.array(2.0)):
        one.set(0.0)
        one.set(single)
        assert one.value() == 2


def test_what_only_says_that_it_is_an_array() -> None:
    class Says(Array):
        @property
        def __class__(self) -> Any:
            return np.ndarray

    x = vectors()[-1]
    for use in (lambda: dy.cmult(x, Says([1.0, 2.0])), lambda: dy.esum([x, Says([1.0, 2.0])])):
        with pytest.raises(TypeError, match="an expression, an array or a number is needed"):
            use()
    assert x.value() == [1, 2]


def test_arrays_that_tell_another_size() -> None:
    class Long(np.ndarray):
        def ravel(self, order: Any = "C") -> Any:
            return np.ones(1, dtype=np.float32)

    a = np.arange(1000.0).reshape(10, 100)
    assert (dy.inputTensor(a.view(Long)).npvalue() == a).all()


# ---- sequences and trees whose length is another than what they give ---------------------------------------------------


class Padded(list):
    """A list that counts its real tokens."""

    def __len__(self) -> int:
        return 1


class Doubled(tuple):
    def __iter__(self) -> Any:
        yield from [*tuple.__iter__(self)] * 2


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("kind", [Padded, Doubled])
def test_inputs_that_are_more_than_their_length(kind: Any, dropout: bool) -> None:
    builder = dy.LSTMBuilder(1, 2, 2, dy.ParameterCollection())
    if dropout:
        builder.set_dropouts(0.5, 0.5)
    x = dy.inputVector([1.0, 2.0])
    xs = kind([x] * 5000)
    state = builder.initial_state()
    assert len(state.transduce(xs)) == len(state.add_inputs(xs)) == len([*xs])


def test_children_that_are_more_than_their_length() -> None:
    trees = dy.NaryTreeLSTMBuilder(2, 1, 2, 2, dy.ParameterCollection())
    leaf = trees.node(dy.inputVector([1.0, 2.0]))
    assert trees.node(None, Padded([leaf, leaf])).output().shape == (2,)
    with pytest.raises(ValueError, match="at most 2 children"):
        trees.node(None, Padded([leaf] * N))


def test_numbers_in_after_that_change() -> None:
    """An input follows what the number was when it was checked; inputs that are added meanwhile are none."""

    class Later:
        asked = 0

        def __index__(self) -> int:
            self.asked += 1
            return 0 if self.asked == 1 else 1 << 28

    builder = dy.LSTMBuilder(1, 2, 2, dy.ParameterCollection())
    x = dy.inputVector([1.0, 2.0])
    wanted = builder.initial_state().transduce([x, x, x], after=[-1, 0, 0])[2].value()
    assert builder.initial_state().transduce([x, x, x], after=[-1, 0, Later()])[2].value() == wanted
    xs = [x, x]
    assert len(builder.initial_state().transduce(xs, after=[-1, Runs(lambda: xs.extend([x] * N), 0)])) == 2


# ---- tuples that give other items each time ----------------------------------------------------------------------------


class Fickle(tuple):
    """Gives one item the first time and the last, when a call is written down, and all in between."""

    asked = 0

    def __new__(cls, *parts: Any) -> Any:
        return tuple.__new__(cls, parts)

    def __iter__(self) -> Any:
        Fickle.asked += 1
        return iter([*tuple.__iter__(self)][: 1 if Fickle.asked in (1, 6) else None])

    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize("make", [dy.cell, dy.compile])
def test_tuples_that_give_other_items_each_time(make: Any) -> None:
    Fickle.asked = 0
    item: Any = dy.inputVector([1.0, 2.0]) if make is dy.cell else np.ones(100)
    with pytest.raises(RuntimeError, match="gives other items"):
        make(lambda v: dy.esum(list(v)))(Fickle(*[item] * 20_000))


def test_an_integer_in_an_array_without_dims_is_data() -> None:
    assert dy.compile(lambda a: a * 2)(np.array(3)) == 6


def test_no_warning_of_numpy_renews_the_graph() -> None:
    """What NumPy calls when a number becomes infinite: such numbers are refused before it would."""
    dy.renew_cg()
    x = dy.inputTensor([1.0, 2.0, 3.0])

    def renew(*_: object) -> None:
        dy.renew_cg()
        dy.inputTensor([7.0])

    before = np.seterrcall(renew)
    try:
        with np.errstate(over="call"), pytest.raises(ValueError, match="numbers must fit a float32"):
            x + np.array([1e300, 0, 0, 0, 0, 0])[::2]
    finally:
        np.seterrcall(before)
