"""Cells: what they may be given, what they may use, what they see of the world, and what is an error."""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import enum
import functools
import gc
import io
import itertools
import operator
import random
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

Both = Callable[..., None]


class Weights:
    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.W, self.U, self.b = (
            self.pc.add_parameters((4, 4)),
            self.pc.add_parameters((4, 4)),
            self.pc.add_parameters(4),
        )
        self.V, self.E = self.pc.add_parameters((3, 4)), self.pc.add_lookup_parameters((9, 4))


@pytest.fixture
def w() -> Weights:
    return Weights()


def test_parameters_look_ups_labels_and_states(w: Weights, both: Both) -> None:
    @dy.cell
    def start(word: int) -> Any:
        x = dy.tanh(w.E[word])
        return dy.state(h=x, c=w.W * x)

    @dy.cell
    def step(s: Any, words: Any, tag: int) -> Any:
        z = dy.affine_transform([w.b, w.W, s.h, w.U, dy.average([w.E[k] for k in words])])
        new = dy.state(h=dy.tanh(z), c=s.c + dy.logistic(z))
        scores = w.V * new.h
        return new, dy.pickneglogsoftmax(scores, tag) + dy.pick(scores, tag) + scores[tag]

    def program() -> Any:
        losses, shown = [], []
        for word in (1, 2, -1):
            s = start(word)
            for k in range(3):
                s, loss = step(s, [word, k, np.int64(k + 1)], k)
                losses.append(loss)
            shown.append(s.c)
        return dy.esum(losses), shown

    both(w.pc, program)
    assert start.signatures() == step.signatures() == 1


def test_what_is_random_is_drawn_at_each_call(w: Weights, both: Both) -> None:
    @dy.cell
    def noisy(x: Any) -> Any:
        return dy.dropout(dy.noise(w.W * x, 0.5), 0.5) + dy.random_normal(4)

    def program() -> Any:
        ys = [noisy(w.E[k % 2]) for k in range(6)]
        return dy.squared_norm(dy.esum(ys)), ys

    both(w.pc, program)
    dy.renew_cg()
    a, b = noisy(w.E[1]), noisy(w.E[1])
    assert not np.array_equal(a.npvalue(), b.npvalue())


def test_a_recording_draws_nothing(w: Weights) -> None:
    cell = dy.cell(lambda x: dy.dropout(x, 0.5))
    dy.reset_random_seed(3)
    dy.renew_cg()
    cell(dy.ones(5))
    state = _core.get_seed_state()
    dy.reset_random_seed(3)
    dy.renew_cg()
    dy.dropout(dy.ones(5), 0.5)
    assert _core.get_seed_state() == state


def test_builders_inside(w: Weights, both: Both) -> None:
    lstm, tree = dy.VanillaLSTMBuilder(2, 4, 4, w.pc), dy.NaryTreeLSTMBuilder(2, 1, 4, 4, w.pc)

    @dy.cell
    def read(a: Any, b: Any, c: Any) -> Any:
        s = lstm.initial_state().add_input(a).add_input(b)
        leaf = tree.node(c)
        return [*lstm.initial_state().transduce([a, b, c]), *s.s(), tree.node(b, [leaf]).output()]

    def program() -> Any:
        out = [e for k in range(3) for e in read(w.E[k], w.E[k + 1], w.b)]
        return dy.squared_norm(dy.esum(out)), out

    both(w.pc, program)
    lstm.set_dropouts(0.4, 0.2)  # other nodes: recorded anew
    both(w.pc, program)
    lstm.disable_dropout()
    both(w.pc, program)


def test_weights_as_arguments_and_frozen_ones(w: Weights, both: Both) -> None:
    layer = dy.cell(lambda W, x, b: dy.tanh(W * x + b) + dy.nobackprop(W) * x)

    def program() -> Any:
        hs = [w.E[k] for k in range(4)]
        for W in (w.W, w.U, w.W, dy.tanh(w.U)):
            hs = [layer(W, h, w.b) for h in hs]
        return dy.squared_norm(dy.esum(hs)), hs

    both(w.pc, program)
    for p in (w.W, w.E):
        p.set_updated(False)
        both(w.pc, program)
        p.set_updated(True)
    both(w.pc, program)


def test_freezing_within_a_graph(w: Weights) -> None:
    cell = dy.cell(lambda x: w.W * x)
    dy.renew_cg()
    first = cell(w.b)
    w.W.set_updated(False)
    loss = dy.squared_norm(cell(w.b) + dy.nobackprop(first))
    loss.backward()
    assert not w.W.grad_as_array().any()


def test_mini_batches_tables_and_constants(w: Weights, both: Both) -> None:
    fixed = np.arange(4.0) / 4

    @dy.cell
    def f(x: Any, rows: Any, table: Any) -> Any:
        y = dy.lookup_batch(table, rows) + dy.inputVector(fixed) + dy.ones(4)
        z = dy.cmult(dy.tanh(y + x), table.batch([1, 2]))
        return dy.sum_batches(dy.tanh(w.W * z)), dy.sum_batches(dy.pickneglogsoftmax_batch(w.V * z, rows)), table[3]

    def program() -> Any:
        out = [f(x, rows, w.E) for x in (w.b, w.E[2]) for rows in ([0, 1], [2, 2], np.array([1, 0]))]
        return dy.esum([dy.squared_norm(a) + b + dy.squared_norm(c) for a, b, c in out]), [a for a, _, _ in out]

    both(w.pc, program)
    assert f.signatures() == 4  # x is a weight, or a row; rows are a list, or an array


def test_other_dims_arguments_and_values_are_other_signatures(w: Weights) -> None:
    @dy.cell
    def f(x: Any, other: Any = None, how: str = "tanh", scale: float = 1.0, deep: bool = False) -> Any:
        y = dy.tanh(x) if how == "tanh" else dy.logistic(x)
        return (y if other is None else y + other) * scale + (1 if deep else 0)

    dy.renew_cg()
    x, y = dy.inputVector([1, 2]), dy.inputVector([1, 2, 3])
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {}), ((y,), {}), ((x, x), {}), ((x,), {"how": "logistic"}), ((x,), {"scale": 2.0}), ((x,), {"scale": -0.0}),
        ((x,), {"scale": 0.0}), ((x,), {"deep": True}), ((x, None, "tanh"), {}), ((dy.inputTensor(np.ones((2, 3)), True),), {}),
    ]  # fmt: skip
    for _ in range(3):
        for k, (args, given) in enumerate(calls):
            assert np.array_equal(f(*args, **given).npvalue(), f.function(*args, **given).npvalue()), k
    assert f.signatures() == len(calls)


def test_integers_that_are_computed_with(w: Weights) -> None:
    @dy.cell
    def deep(x: Any, layers: int, tag: int) -> Any:
        for _ in range(layers):
            x = dy.tanh(w.W * x)
        return dy.pick(x, tag)

    @dy.cell
    def declared(x: Any, tag: dy.Index) -> Any:
        return x[tag + 1]

    dy.renew_cg()
    for layers in (1, 2, 3, 1, 2):
        for tag in range(4):
            assert deep(w.b, layers, tag).value() == deep.function(w.b, layers, tag).value()
    assert deep.signatures() == 3
    with pytest.raises(dy.CellError, match=r"\[cell declared\] 'tag' is declared as dy.Index"):
        declared(w.b, 1)
    for tag in (0, 1):
        one_hot = dy.cell(lambda i: dy.one_hot(4, i))
        assert one_hot(tag).npvalue().tolist() == np.eye(4)[tag].tolist()
    choose = dy.cell(lambda i, x: x if i in (1, 2) else dy.tanh(x))
    for i in (1, 2, 3, 1):
        assert np.array_equal(choose(i, w.b).npvalue(), choose.function(i, w.b).npvalue())


class Token(NamedTuple):
    word: int
    depth: int


@dataclasses.dataclass
class Place:
    word: int
    depth: int


@pytest.mark.parametrize("made", [
    lambda word, depth: {"word": word, "depth": depth},
    lambda word, depth: (word, depth),
    Token,
    Place,
    lambda word, depth: [{"at": Place(word, depth), "words": [word] * 3}],
])  # fmt: skip
def test_parts_that_are_computed_with_are_told_from_others(made: Any, w: Weights) -> None:
    """Only `depth` is a part of the signature."""

    def parts(token: Any) -> tuple[Any, Any]:
        token = token[0]["at"] if isinstance(token, list) else token
        named = token if isinstance(token, dict) else vars(token) if isinstance(token, Place) else None
        return (named["word"], named["depth"]) if named else (token[0], token[1])

    @dy.cell
    def read(token: Any) -> Any:
        word, depth = parts(token)
        return w.E[word] * float(2 + depth)

    dy.renew_cg()
    tokens = [made(k % 9, k % 2) for k in range(18)]
    for token, x in zip(tokens, dy.map(read, tokens), strict=True):
        assert np.array_equal(x.npvalue(), read.function(token).npvalue())
        assert np.array_equal(read(token).npvalue(), read.function(token).npvalue())
    assert read.signatures() == 2


@dataclasses.dataclass
class Whole:
    word: int
    by: float = 2.0


@dataclasses.dataclass
class WithItems(Whole, dict[str, float]): ...


@dataclasses.dataclass
class WithValue(Whole, float):
    def __new__(cls, *_: Any) -> Any:
        return float.__new__(cls, 5.0)


class Member(Whole, enum.Enum):
    FIRST = 1, 2.0
    SECOND = 2, 3.0


class Slot:
    __slots__ = ("by",)


@dataclasses.dataclass
class WithSlot(Slot):
    word: int


class NotCopied(Whole):
    def __copy__(self) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError


def test_dataclasses_that_are_more_than_their_fields(w: Weights) -> None:
    @dy.cell
    def read(x: Any) -> Any:
        more = x["by"] if isinstance(x, dict) else float(x) if isinstance(x, float) else 1.0
        return w.E[x.word] * (more + x.by)

    items, slot = WithItems(3), WithSlot(4)
    for by in (1.0, 3.0):
        items["by"] = slot.by = by  # type: ignore[misc]
        for x in (items, slot, WithValue(5), *Member, NotCopied(2), NotCopied(3, by)):
            before = dict(getattr(x, "__dict__", {}))
            dy.renew_cg()
            assert np.array_equal(read(x).npvalue(), read.function(x).npvalue())
            assert getattr(x, "__dict__", {}) == before


@dataclasses.dataclass
class Scaled:
    word: int

    def __call__(self, x: Any) -> Any:
        return x * Reads.number


def test_methods_of_dataclasses_that_nobody_names(w: Weights) -> None:
    f, before = dy.cell(lambda x, scaled: scaled(x)), Reads.number
    try:
        for number in (1.0, 3.0):
            Reads.number = number
            dy.renew_cg()
            np.testing.assert_allclose(f(w.b, Scaled(1)).npvalue(), number * w.b.npvalue(), rtol=1e-6)
    finally:
        Reads.number = before


def test_all_items_of_a_list_are_alike_and_many_parts_too(w: Weights) -> None:
    ran: Any = collections.deque()

    @dy.cell
    def weighted(counts: Any) -> Any:
        ran.append(1)
        return w.b * float(sum(counts.values() if isinstance(counts, dict) else counts))

    dy.renew_cg()
    for counts in ([3, 4, 5], [3, 4, 6], (1, 2), dict.fromkeys(range(40), 2)):
        for _ in range(2):
            expected = weighted.function(counts).npvalue()
            ran.clear()
            assert np.array_equal(weighted(counts).npvalue(), expected)
            assert len(ran) <= 11


def test_integers_of_more_than_32_bits(w: Weights) -> None:
    """They choose nothing: each value is recorded."""

    def function(x: Any, n: Any) -> Any:
        return x * float(n % 7)

    cell, compiled = dy.cell(function), dy.compile(lambda n: function(w.E[1], n))
    many = [1 << 40, 1, 3, -(1 << 33), np.int64(1 << 40), np.uint64(1 << 63), 2**100, 5]
    dy.renew_cg()
    for n in many:
        wanted = w.E.row_as_array(1) * np.float32(int(n) % 7)
        np.testing.assert_allclose(cell(w.E[1], n).npvalue(), wanted, rtol=1e-6)
        np.testing.assert_allclose(compiled(n), wanted, rtol=1e-6)
    found = dy.map(dy.cell(function), [w.E[1]] * len(many), [int(n) for n in many])
    np.testing.assert_allclose(
        [e.npvalue() for e in found], [function(w.E[1], int(n)).npvalue() for n in many], rtol=1e-6
    )
    with pytest.raises(IndexError):
        dy.cell(lambda n: w.E[n])(1 << 40)


def test_too_many_signatures(w: Weights) -> None:
    deep = dy.cell(lambda x, n: x * (1 + n))
    dy.renew_cg()
    x = dy.ones(2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(1100):
            assert deep(x, n).value() == [1.0 + n] * 2
    assert len(seen) == 1 and "recorded for 512 signatures" in str(seen[0].message)
    assert seen[0].filename == __file__
    assert deep.signatures() <= 512


def test_nested_cells_and_what_they_give(w: Weights, both: Both) -> None:
    inner = dy.cell(lambda x, k: dy.tanh(w.W * x) + w.E[k])

    @dy.cell
    def outer(x: Any, k: int) -> Any:
        y = inner(inner(x, k), 2)
        return [dy.state(a=y, b=(x, None)), (dy.map(inner, [x, y], [k, k]), 7, "text")]

    def program() -> Any:
        got = [outer(w.E[k], k) for k in range(3)]
        one, (mapped, seven, text) = got[-1]
        assert (
            (seven, text, one.b[1]) == (7, "text", None) and type(mapped) is list and repr(one).startswith("state(a=")
        )
        found = [e for s, (m, _, _) in got for e in (s.a, s.b[0], *m)]
        return dy.squared_norm(dy.esum(found)), found

    both(w.pc, program)


# ---- what a cell reads besides its arguments ------------------------------------------------------------------------


def test_changed_variables_and_attributes_are_noticed(w: Weights) -> None:
    class Model:
        rate = 1.0

        def __init__(self) -> None:
            self.W, self.layers, self.training = w.W, [w.W, w.U], False

        def noise(self, x: Any) -> Any:
            return dy.dropout(x, 0.5) if self.training else x

        @dy.cell
        def go(self, x: Any) -> Any:
            for W in self.layers:
                x = dy.tanh(W * x)
            return self.noise(self.W * x) * self.rate * factor

    def same() -> None:
        dy.renew_cg()
        found = model.go(w.b).npvalue()
        plain = Model.go.function(model, w.b).npvalue()
        assert np.array_equal(found, plain) or model.training

    factor = 2.0
    model = Model()
    same()
    factor = 3.0
    same()
    model.W = w.U
    same()
    model.layers.append(w.W)
    same()
    model.layers[0] = w.U
    same()
    model.rate = 0.5
    same()
    model.training = True
    same()
    assert len({tuple(model.go(w.b).value()) for _ in range(8)}) > 1
    model.training = False
    same()


@pytest.mark.parametrize("named", [True, False])
def test_attributes_that_classes_inherit_are_noticed(w: Weights, named: bool) -> None:
    """Also of a class that lies between, and of one that a program has made with exec() in variables without a name: it is
    said to be of builtins."""
    program = """
class Base:
    rate, dim = 1.0, 0
    def shift(self, x):
        return x + self.dim
class Between(Base):
    def shift(self, x):
        return super().shift(x) * self.rate
class Below(Between):
    pass
class Derived(Below):
    def shift(self, x):
        return super().shift(x) * 2
"""
    classes: dict[str, Any] = {"__name__": "a_program"} if named else {}
    exec(program, classes)
    model, Base, Below = classes["Derived"](), classes["Base"], classes["Below"]
    shifted = dy.cell(lambda x: model.shift(dy.tanh(x)))

    def same() -> None:
        dy.renew_cg()
        assert np.array_equal(shifted(w.b).npvalue(), shifted.__wrapped__(w.b).npvalue())

    def change(kind: Any, name: str, value: Any) -> None:
        setattr(kind, name, value)
        same()

    same()
    change(Base, "rate", 0.5)
    change(Below, "rate", 0.25)
    change(model, "rate", 3.0)
    del model.rate
    same()
    change(Below, "shift", lambda self, x: x * 7)
    del Below.shift
    same()
    change(Base, "dim", 1)
    change(Below, "__bases__", (Base,))
    assert shifted.signatures() == 1


def by_try(one: Any) -> Any:
    try:
        return one.bonus
    except AttributeError:
        return 1.0


@pytest.mark.parametrize(
    "read",
    [lambda a: a.bonus if hasattr(a, "bonus") else 1.0, lambda a: getattr(a, "bonus", 1.0), by_try],
    ids=["hasattr", "getattr", "try"],
)
def test_attributes_that_were_not_there_are_noticed(w: Weights, read: Any) -> None:
    class Model:
        @dy.cell
        def go(self, x: Any) -> Any:
            return x * read(self) * read(self.part)

    class Part:
        pass

    model = Model()
    model.part = part = Part()

    def same() -> Any:
        dy.renew_cg()
        found = model.go(w.b).npvalue()
        assert np.array_equal(found, Model.go.function(model, w.b).npvalue())
        return found

    first = same()
    for one, value in ((Part, 4.0), (part, 2.0), (model, 3.0)):
        one.bonus = value
        same()
    del part.bonus
    assert np.allclose(same(), first * 12)
    del model.bonus, Part.bonus
    assert np.array_equal(same(), first)


class Times:
    """An attribute that it computes of another one."""

    def __init__(self) -> None:
        self.by = 1.0

    def __get__(self, owner: Any, kind: Any) -> Any:
        return self if owner is None else self.by * owner.base


class Computes(dict):
    """Attributes and items that are computed where there are none."""

    scaled = Times()

    def __init__(self) -> None:
        self.base, self.known = 1.0, {"rate": 1.0}

    def __getattr__(self, name: str) -> Any:
        return self.known[name]

    def __missing__(self, key: str) -> Any:
        return self.base


@pytest.mark.parametrize(
    "read", [lambda a: a.scaled, lambda a: a.rate, lambda a: a["rate"]], ids=["descriptor", "attribute", "item"]
)
def test_what_is_computed_of_attributes_is_noticed(w: Weights, read: Any) -> None:
    one, before = Computes(), set()
    found = dy.cell(lambda x: x * read(one))
    for change in (lambda: None, lambda: setattr(one, "base", 2.0), lambda: setattr(Computes.scaled, "by", 3.0),
                   lambda: one.known.update(rate=4.0), lambda: setattr(one, "rate", 5.0), lambda: one.update(rate=6.0)):  # fmt: skip
        change()
        dy.renew_cg()
        assert np.array_equal(found(w.b).npvalue(), (w.b * read(one)).npvalue())
        before.add(read(one))
    Computes.scaled.by = 1.0
    assert len(before) == 3


class Holder:
    """Has an attribute, and an object that has one; gives itself to functions."""

    def __init__(self, rate: float, inner: Any = None) -> None:
        self.rate, self.inner = rate, inner

    def itself(self) -> Holder:
        return self

    def of(self, other: Any, x: Any) -> Any:
        return scaled_by(other, x)


def scaled_by(one: Any, x: Any) -> Any:
    return x * one.rate * one.inner.rate


holder = Holder(1.0, Holder(1.0))
USES = {
    "given": lambda x: scaled_by(holder, x),
    "given by a method": lambda x: holder.of(holder, x),
    "of a list": lambda x: dy.esum([scaled_by(one, x) for one in [holder]]),
    "given on": lambda x: (lambda f, *a: f(*a))(scaled_by, holder, x),
    "given back": lambda x: scaled_by(holder.itself(), x),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_attributes_of_objects_that_functions_are_given_are_noticed(w: Weights, use: Any) -> None:
    holder.rate = holder.inner.rate = 1.0
    found, compiled = dy.cell(lambda x: use(x)), dy.compile(lambda: use(dy.ones(4)))
    for change in (lambda: None, lambda: setattr(holder, "rate", 0.5), lambda: setattr(holder.inner, "rate", 0.25)):
        change()
        dy.renew_cg()
        assert np.array_equal(found(w.b).npvalue(), use(w.b).npvalue())
        assert np.array_equal(compiled(), use(dy.ones(4)).npvalue())
        assert found.signatures() == compiled.structures() == 1


def test_new_weights_of_a_collection_are_noticed(w: Weights) -> None:
    m = dy.ParameterCollection()
    m.add_parameters(4)
    part = m.add_subcollection()

    def penalty(x: Any) -> Any:
        return dy.squared_norm(x) + dy.esum([dy.squared_norm(p) for p in m.parameters_list()])

    found, compiled = dy.cell(penalty), dy.compile(lambda: penalty(dy.ones(4)))
    for _ in range(3):
        dy.renew_cg()
        near = pytest.approx(penalty(dy.ones(4)).value())
        assert found(dy.ones(4)).value() == near and compiled() == near
        part.add_parameters(4)


def test_methods_of_several_objects_which_go_with_them(w: Weights) -> None:
    class Model:
        def __init__(self, pc: Any) -> None:
            self.W = pc.add_parameters((4, 4))

        @dy.cell
        def go(self, x: Any, word: int) -> Any:
            return dy.tanh(self.W * x) + w.E[word]

    a, b = Model(dy.ParameterCollection()), Model(dy.ParameterCollection())
    dy.renew_cg()
    for m in (a, b, a, copy.deepcopy(a)):
        assert np.array_equal(m.go(w.b, 3).npvalue(), Model.go.function(m, w.b, 3).npvalue())
    assert a.go.signatures() == b.go.signatures() == 1
    gone = weakref.ref(a.W), weakref.ref(a)
    kept = b.go
    gc.disable()
    try:
        del a, m
        dy.renew_cg()
        assert gone[0]() is None and gone[1]() is None
    finally:
        gc.enable()
    del b
    assert kept(w.b, 1).dim() == ((4,), 1)


class Round:
    """What its cells read refers to it."""

    def __init__(self, number: float = 1.0) -> None:
        self.itself, self.number = self, number

    @dy.cell
    def cell(self, x: Any) -> Any:
        next(runs)
        return x * self.itself.number

    @dy.compile
    def compiled(self, x: Any) -> Any:
        return x * self.itself.number


runs = itertools.count()


def test_objects_that_refer_to_themselves_go(w: Weights) -> None:
    for method, argument in (("cell", w.b), ("compiled", np.ones(4))):
        made = []
        for _ in range(100):
            dy.renew_cg()
            one = Round()
            getattr(one, method)(argument)
            made.append(weakref.ref(one))
        del one
        gc.collect()
        assert sum(ref() is not None for ref in made) < 50


@pytest.mark.parametrize("how, argument", [("cell", "dy.inputVector([1, 2])"), ("compile", "np.ones(2)")])
def test_classes_go_with_their_modules(how: str, argument: str) -> None:
    """What their objects' cells read is kept, variables of the module too, but by the cells alone."""
    names: dict[str, Any] = {"__name__": "page", "kept": dy.ParameterCollection().add_parameters(2)}
    program = f"""
import numpy as np, dynet_lite as dy
class Model:
    @dy.{how}
    def go(self, x):
        return kept + x if isinstance(x, dy.Expression) else kept
model = Model()
model.go({argument})
"""
    dy.renew_cg()
    exec(program, names)
    gone = weakref.ref(names["kept"])
    names = {}
    dy.renew_cg()
    gc.collect()
    assert gone() is None


def test_many_objects_are_not_recorded_for_ever(w: Weights) -> None:
    objects = [Round(float(k)) for k in range(60)]
    for _ in range(4):
        dy.renew_cg()
        before = next(runs)
        for k, one in enumerate(objects):
            assert sums(one.cell(w.b)) == pytest.approx(k * sums(w.b))
    assert next(runs) == before + 1


class Reads:
    """Each method reads ``self.number`` of an object or ``Reads.number`` in another way."""

    number = 1.0

    @property
    def as_property(self) -> float:
        return self.number

    @classmethod
    def of_class(cls) -> float:
        return cls.number

    @staticmethod
    def without_object() -> float:
        return Reads.number

    def __call__(self, x: Any) -> Any:
        return x * self.number

    @dy.cell
    def cell(self, x: Any) -> Any:
        return x * self.number


class Slots:
    __slots__ = ("number",)


class Attributes(dict[str, Any]):
    """A dict whose items are attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__  # type: ignore[assignment]


class Behind:
    """Gives what another object has, by methods that nobody names."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __getattr__(self, name: str) -> Any:
        return self.of.number

    def __getitem__(self, k: int) -> Any:
        return self.of.number

    def by_both(self) -> Any:
        return self.of.other * self.first()

    def first(self) -> Any:
        return self.second()

    def second(self) -> Any:
        return self.third()

    def third(self) -> Any:
        return self.of.number


class Reflected:
    def __init__(self, of: Any) -> None:
        self.of = of

    def __rmul__(self, x: Any) -> Any:
        return x * self.of.number


class Left:
    def __init__(self, of: Any) -> None:
        self.of = of

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: Any) -> None:
        self.held = self.of.number


class Listed(NamedTuple):
    first: list[Any]


class Made:
    """Reads when it is made."""

    def __init__(self) -> None:
        self.held = Reads.number


class Placed:
    __match_args__ = ("number",)


class Derived(Reads):
    @property
    def as_property(self) -> float:
        return super().as_property


def ways_to_read() -> dict[str, tuple[Any, Any]]:
    """(a function, whose ``number`` it reads)."""
    reads, module, slots = Reads(), types.ModuleType("module"), Slots()
    inner = types.SimpleNamespace(number=1.0, other=1.0)
    outer = types.SimpleNamespace(inner=inner)
    layer = types.SimpleNamespace(attention=outer)
    model = types.SimpleNamespace(layers=[layer])
    module.number = slots.number = 1.0  # type: ignore[attr-defined]
    placed: Any = Placed()
    placed.number, module.Placed = 1.0, Placed  # type: ignore[attr-defined]
    listed = [inner]

    def helper() -> Any:
        return outer.inner.number

    def by_partial(y: Any, x: Any) -> Any:
        return x * y.number

    def by_default(x: Any, y: Any = listed) -> Any:
        return x * y[0].number

    def of_function() -> None: ...

    def by_import(x: Any) -> Any:
        import module_of_a_cell  # type: ignore[import-not-found]

        return x * module_of_a_cell.number

    def by_with(x: Any) -> Any:
        with left:
            pass
        return x * left.held

    def by_name(x: Any) -> Any:
        match inner:
            case types.SimpleNamespace(number=n):
                return x * n

    def by_place(x: Any) -> Any:
        match placed:
            case Placed(n):
                return x * n

    def by_place_in_module(x: Any) -> Any:
        match placed:
            case module.Placed(n):
                return x * n

    beside: dict[str, Any] = {"__package__": "package_of_a_cell"}
    exec("def of_package(x):\n    from . import inside\n    return x * inside.number", beside)
    exec("def of_module(x):\n    from .inside import number\n    return x * number", beside)
    sys.modules["package_of_a_cell"] = types.ModuleType("package_of_a_cell")
    sys.modules["package_of_a_cell"].inside = module  # type: ignore[attr-defined]
    sys.modules["package_of_a_cell.inside"] = module

    of_function.number = 1.0  # type: ignore[attr-defined]
    sys.modules["module_of_a_cell"] = module
    bound = functools.partial(by_partial, inner)
    attributes, behind, derived = Attributes(number=1.0), Behind(inner), Derived()
    reflected, left = Reflected(inner), Left(inner)
    a_cell, pair = reads.cell, Listed([inner])
    ordered, by_none = collections.OrderedDict(first=inner), collections.OrderedDict({None: inner})
    return {
        "module": (lambda x: x * module.number, module),
        "module that it imports": (by_import, sys.modules["module_of_a_cell"]),
        "module beside its own": (beside["of_package"], module),
        "number of a module beside its own": (beside["of_module"], module),
        "attribute of a function": (lambda x: x * of_function.number, of_function),  # type: ignore[attr-defined]
        "class": (lambda x: x * Reads.number, Reads),
        "class of an object": (lambda x: x * reads.number, Reads),
        "property": (lambda x: x * reads.as_property, Reads),
        "class method": (lambda x: x * Reads.of_class(), Reads),
        "static method": (lambda x: x * reads.without_object(), Reads),
        "object that is called": (reads, Reads),
        "object that it calls": (lambda x: reads(x), reads),
        "cell of an object": (lambda x: reads.cell(x), reads),
        "partial": (bound, inner),
        "partial that it calls": (lambda x: bound(x), inner),
        "default": (by_default, inner),
        "slots": (lambda x: x * slots.number, slots),
        "attributes that are items": (lambda x: x * attributes.number, attributes),
        "items that are attributes": (lambda x: x * attributes["number"], attributes),
        "__getattr__": (lambda x: x * behind.other, inner),
        "__getitem__": (lambda x: x * behind[0], inner),
        "__rmul__": (lambda x: x * (1.0 * reflected), inner),
        "__exit__": (by_with, inner),
        "name in a pattern": (by_name, inner),
        "place in a pattern": (by_place, placed),
        "place in a pattern of a module": (by_place_in_module, placed),
        "methods that call each other": (lambda x: x * behind.by_both(), inner),
        "__init__": (lambda x: x * Made().held, Reads),
        "object that it makes and calls": (lambda x: Reads()(x), Reads),
        "super": (lambda x: x * derived.as_property, derived),
        "named tuple": (lambda x: x * pair.first[0].number, inner),
        "ordered dict": (lambda x: x * ordered["first"].number, inner),
        "key None": (lambda x: x * by_none[None].number, inner),
        "cell of an object outside": (lambda x: a_cell(x), reads),
        "part of a part of a layer": (lambda x: x * model.layers[0].attention.inner.number, inner),
        "two functions that read of one object": (lambda x: x * (outer.inner.other * helper()), inner),
    }


@pytest.mark.parametrize("way", ways_to_read())
def test_what_is_read_in_other_ways_is_noticed(way: str, w: Weights) -> None:
    function, owner = ways_to_read()[way]
    before = Reads.number
    for make, argument in ((dy.cell, w.b), (dy.compile, np.ones(4))):
        made = make(function)
        try:
            owner.number = 1.0
            dy.renew_cg()
            first = sums(made(argument))
            owner.number = 3.0
            assert sums(made(argument)) == pytest.approx(3 * first)
        finally:
            Reads.number = before


def test_new_code_in_a_function_is_noticed(w: Weights) -> None:
    """As autoreload puts it into functions that a notebook has imported."""

    def inner(x: Any) -> Any:
        return x * 1.0

    def three_times(x: Any) -> Any:
        return x * 3.0

    before = inner.__code__
    for make, argument in ((dy.cell, w.b), (dy.compile, np.ones(4))):
        inner.__code__ = before
        made = make(lambda x: inner(x))
        dy.renew_cg()
        first = sums(made(argument))
        inner.__code__ = three_times.__code__
        assert sums(made(argument)) == pytest.approx(3 * first)


def test_new_keys_are_noticed(w: Weights) -> None:
    numbers: dict[str, float] = {}
    cell = dy.cell(lambda x: x * numbers.get("number", 1.0))
    dy.renew_cg()
    first = sums(cell(w.b))
    numbers["number"] = 3.0
    assert sums(cell(w.b)) == pytest.approx(3 * first)


class Words(set[str]):
    factor = 3.0


@pytest.mark.parametrize("kind", [set, Words])
def test_new_members_are_noticed(kind: Any, w: Weights) -> None:
    words, objects = kind(["a"]), {Made()}
    cell = dy.cell(lambda x: x * getattr(words, "factor", 3.0) if "b" in words else x * float(len(objects)))
    dy.renew_cg()
    first = sums(cell(w.b))
    for _ in range(2):
        assert sums(cell(w.b)) == first and cell.signatures() == 1
    words.add("b")
    assert sums(cell(w.b)) == pytest.approx(3 * first)
    words.remove("b")
    assert sums(cell(w.b)) == pytest.approx(first)


class Stubborn:
    """A proxy that is not to be asked anything yet."""

    __slots__ = ("number",)

    def refuse(self, *args: Any) -> Any:
        raise AssertionError("asked")

    __getattr__ = __eq__ = __bool__ = refuse
    __hash__ = object.__hash__
    __class__ = property(refuse)  # type: ignore[assignment]


class Asked:
    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("asked")


def test_objects_are_not_asked_what_they_are(w: Weights) -> None:
    gone = weakref.proxy(Made())
    odd = [Stubborn(), Asked(), gone]
    one, two = Stubborn(), Asked()

    def function(x: Any, use: Any = None) -> Any:
        return x * (one.number, two.number, gone.number, odd) if use else x * 2.0

    dy.renew_cg()
    assert sums(dy.cell(function)(w.b)) == pytest.approx(2 * sums(w.b))
    assert sums(dy.compile(function)(np.ones(4))) == 8.0


def test_long_chains_of_functions(w: Weights) -> None:
    lines = [f"def f{k}(x):\n    return f{k + 1}(x) if x is None else x * number" for k in range(2000)]
    program: dict[str, Any] = {"number": 1.0}
    exec("\n".join([*lines, "def f2000(x):\n    return x"]), program)
    cell = dy.cell(program["f0"])
    dy.renew_cg()
    first = sums(cell(w.b))
    program["number"] = 3.0
    assert sums(cell(w.b)) == pytest.approx(3 * first)


def test_python_itself_is_not_looked_into(w: Weights) -> None:
    """What a file keeps changes when it is written."""
    runs = io.StringIO()
    note = runs.write

    @dy.cell
    def cell(x: Any) -> Any:
        note("run ")
        return x * 2.0

    dy.renew_cg()
    cell(w.b)
    once = runs.getvalue()
    cell(w.b)
    assert runs.getvalue() == once


def sums(x: Any) -> Any:
    return (x.npvalue() if isinstance(x, dy.Expression) else x).sum()


def test_changes_right_after_a_recording_are_noticed(w: Weights) -> None:
    """Also where that was made twice, for an integer that is computed with, and where all were dropped before it."""
    factor = 1.0

    def product(x: Any, n: int) -> Any:
        return x * (factor * n)

    for make, argument in ((dy.cell, w.b), (dy.compile, np.ones(4))):
        made = make(product)
        factor = 1.0
        dy.renew_cg()
        first = sums(made(argument, 2))
        factor = 3.0
        assert sums(made(argument, 2)) == pytest.approx(3 * first)
    made = dy.cell(product)
    dy.renew_cg()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(513):
            last = made(w.b, n)
    factor = 6.0
    assert sums(made(w.b, 512)) == pytest.approx(2 * sums(last))


turns = 0  # a variable whose name is that of an attribute


def test_attributes_are_not_variables_of_the_same_name(w: Weights) -> None:
    """A cell that reads self.turns is not recorded anew when the module's `turns` changes, nor the other way round."""
    global turns
    ran = io.StringIO()
    note = ran.write  # what a file keeps is not looked at

    class Model:
        turns, other = 2, 0

        @dy.cell
        def go(self, x: Any) -> Any:
            note("go ")
            for _ in range(self.turns):
                x = dy.tanh(x)
            return x

        @dy.cell
        def scaled(self, x: Any) -> Any:
            note("scaled ")
            return x * float(turns + self.other)

    model = Model()
    dy.renew_cg()
    for turns in range(5):  # noqa: B007  the cell may not look at it
        model.go(w.b)
    assert ran.getvalue() == "go go " and model.go.signatures() == 1
    ran.truncate(0)
    for model.turns in range(5):
        first = sums(model.scaled(w.b))
    assert ran.getvalue().strip("\0") == "scaled scaled "
    turns, model.other = 8, 4
    assert sums(model.scaled(w.b)) == pytest.approx(3 * first)
    assert sums(model.go(w.b)) == pytest.approx(sums(Model.go.function(model, w.b)))


def test_floats_of_numpy_are_values(w: Weights) -> None:
    cell = dy.cell(lambda x, y: x * float(y))
    dy.renew_cg()
    for kind in (float, np.float32, np.float64):
        for _ in range(3):
            assert np.allclose(cell(w.b, kind(0.5)).npvalue(), w.b.npvalue() * 0.5)
    assert cell.signatures() == 1


def test_check_finds_what_is_not_noticed(w: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "hidden", 1.0)
    cell = dy.cell(lambda x: x * globals()["hidden"])
    with dy.configure(cells="check"):
        dy.renew_cg()
        cell(w.b)
        monkeypatch.setitem(globals(), "hidden", 2.0)
        with pytest.raises(dy.CellError, match="makes other nodes now"):
            cell(w.b)


def scaled_by_default(x: Any, by: float = 1.0, *, more: float = 1.0) -> Any:
    return x * by * more


class Kind(type):
    grade = 1.0

    @property
    def level(cls) -> float:
        return cls.grade


class Part:
    size = 1.0


class Larger:
    size = 3.0


class Changing(metaclass=Kind):
    """Has what a change in place, or elsewhere, may make another number of."""

    number = 1.0

    def __init__(self) -> None:
        self.numbers = np.ones(4)
        self.view, self.gaps = self.numbers[1:].reshape(3, 1).T, self.numbers[::2]
        self.many, self.recent, self.words = [1.0] * 100, collections.deque([1.0], maxlen=3), {("a", 1)}
        self.order, self.buffer, self.labels = (
            {"a": 1.0, "b": 3.0},
            array.array("d", [1.0]),
            np.array([1, None], dtype=object),
        )
        self.inner = types.SimpleNamespace(number=1.0)
        self.ordered = collections.OrderedDict(a=1.0, b=3.0)
        self.part = Part()
        self.by_reference, self.by_proxy = weakref.ref(self.part), weakref.proxy(self.part)
        self.by_name, self.by_kind = weakref.WeakValueDictionary(part=self.part), weakref.WeakKeyDictionary({Kind: 1.0})
        self.some = weakref.WeakSet([Kind])
        self.wrapped = collections.UserDict(number=1.0)
        self.shown = types.MappingProxyType(self.order)
        self.number_2 = 1.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changing) and self.number == other.number

    def __str__(self) -> str:
        return str(self.number)

    __hash__ = None  # type: ignore[assignment]


class Other(Changing):
    number = 3.0


@functools.singledispatch
def chosen(one: Any, x: Any) -> Any:
    return x


@functools.lru_cache
def kept_number(one: type) -> float:
    return one.number  # type: ignore[attr-defined,no-any-return]


def change_kept() -> None:
    Other.number = 9.0
    kept_number.cache_clear()


def by_hidden_builtin(x: Any) -> Any:
    return x * abs(-1.0)


CHANGES: dict[str, tuple[Callable[[Changing, Any], Any], Callable[[Changing], Any]]] = {
    "class of an object": (lambda a, x: x * a.number, lambda a: setattr(a, "__class__", Other)),
    "isinstance": (lambda a, x: x if isinstance(a, Other) else x * 2.0, lambda a: setattr(a, "__class__", Other)),
    "default": (lambda a, x: scaled_by_default(x), lambda a: setattr(scaled_by_default, "__defaults__", (3.0,))),
    "named default": (lambda a, x: scaled_by_default(x), lambda a: setattr(scaled_by_default, "__kwdefaults__", {"more": 3.0})),
    "item of a named default": (lambda a, x: scaled_by_default(x), lambda a: scaled_by_default.__kwdefaults__.update(more=3.0)),
    "singledispatch": (chosen, lambda a: chosen.register(Changing, lambda one, x: x * 3.0)),
    "cached": (lambda a, x: x * kept_number(Other), lambda a: change_kept()),
    "builtin that is hidden": (lambda a, x: by_hidden_builtin(x), lambda a: globals().update(abs=lambda v: 3.0)),
    "builtin that is hidden, when another variable goes": (
        lambda a, x: by_hidden_builtin(x),
        lambda a: (globals().pop("one_variable_less"), globals().update(abs=lambda v: 3.0)),
    ),
    "class of a class": (lambda a, x: x * type(a).level, lambda a: setattr(Kind, "grade", 3.0)),
    "class of a class, hidden": (lambda a, x: x * Changing.grade, lambda a: setattr(Changing, "grade", 3.0)),
    "array": (lambda a, x: x * float(a.numbers.sum()), lambda a: a.numbers.put(2, 3.0)),
    "array as an input": (lambda a, x: dy.cmult(x, dy.inputTensor(a.numbers)), lambda a: a.numbers.put(2, 3.0)),
    "view": (lambda a, x: x * float(a.view[0, 1]), lambda a: a.numbers.put(2, 3.0)),
    "array with gaps": (lambda a, x: x * float(a.gaps.sum()), lambda a: a.numbers.put(2, 3.0)),
    "shape": (lambda a, x: x * a.numbers.shape[0], lambda a: a.numbers.resize((2, 2), refcheck=False)),
    "array of objects": (lambda a, x: x * a.labels[0], lambda a: a.labels.put(0, 3)),
    "buffer": (lambda a, x: x * a.buffer[0], lambda a: a.buffer.append(a.buffer.pop() * 3)),
    "long list": (lambda a, x: x * a.many[50], lambda a: a.many.__setitem__(50, 3.0)),
    "shorter list": (lambda a, x: x * len(a.many), lambda a: a.many.pop()),
    "deque": (lambda a, x: x * sum(a.recent), lambda a: a.recent.append(3.0)),
    "set of tuples": (lambda a, x: x * len(a.words), lambda a: a.words.add(("b", 1))),
    "order of a dict": (lambda a, x: x * next(iter(a.order.values())), lambda a: a.order.update(a=a.order.pop("a"))),
    "vars": (lambda a, x: x * vars(a.inner)["number"], lambda a: setattr(a.inner, "number", 3.0)),
    "name that is made": (lambda a, x: x * getattr(a, f"number_{2}"), lambda a: setattr(a, "number_2", 3.0)),
    "name in a variable": (lambda a, x: x * sum(getattr(a.inner, n) for n in ["number"]), lambda a: setattr(a.inner, "number", 3.0)),
    "==": (lambda a, x: x if a == Changing() else x * 2.0, lambda a: setattr(a, "number", 3.0)),
    "text": (lambda a, x: x * float(f"{a}"), lambda a: setattr(a, "number", 3.0)),
    "attrgetter": (lambda a, x: x * operator.attrgetter("inner.number")(a), lambda a: setattr(a.inner, "number", 3.0)),
    "weak reference": (lambda a, x: x * a.by_reference().size, lambda a: setattr(a.part, "size", 3.0)),
    "weak proxy": (lambda a, x: x * a.by_proxy.size, lambda a: setattr(a.part, "size", 3.0)),
    "weak values": (lambda a, x: x * a.by_name["part"].size, lambda a: setattr(a.part, "size", 3.0)),
    "other weak values": (lambda a, x: x * a.by_name["part"].size, lambda a: a.by_name.update(part=Larger)),
    "weak keys": (lambda a, x: x * a.by_kind[Kind], lambda a: a.by_kind.update({Kind: 3.0})),
    "weak set": (lambda a, x: x * len(a.some), lambda a: a.some.add(Other)),
    "order of an OrderedDict": (lambda a, x: x * next(iter(a.ordered.values())), lambda a: a.ordered.move_to_end("a")),
    "wrapped dict": (lambda a, x: x * a.wrapped["number"], lambda a: a.wrapped.update(number=3.0)),
    "view of a dict": (lambda a, x: x * a.shown["a"], lambda a: a.order.update(a=3.0)),
}  # fmt: skip


@pytest.mark.parametrize("how", CHANGES)
def test_what_changes_in_place_or_elsewhere_is_noticed(how: str, w: Weights) -> None:
    read, change = CHANGES[how]
    one, module = Changing(), globals()
    kept = [(scaled_by_default, "__defaults__", (1.0,)), (scaled_by_default, "__kwdefaults__", {"more": 1.0}),
            (Kind, "grade", 1.0), (Other, "number", 3.0)]  # fmt: skip
    for make, argument in ((dy.cell, w.b), (dy.compile, np.ones(4, dtype=np.float32))):
        one, module["one_variable_less"] = Changing(), None
        found = make(functools.partial(read, one))
        try:
            dy.renew_cg()
            before = sums(found(argument))
            assert sums(found(argument)) == before
            change(one)
            wanted = sums(read(one, w.b if make is dy.cell else dy.inputTensor(argument)))
            assert sums(found(argument)) == pytest.approx(wanted) != pytest.approx(before)
        finally:
            for name in ("abs", "one_variable_less"):
                module.pop(name, None)
            for owner, name, value in kept:
                setattr(owner, name, value)
            if "grade" in vars(Changing):
                del Changing.grade
            kept_number.cache_clear()
            chosen.register(Changing, chosen.dispatch(object))


def test_large_things_are_noticed_when_their_size_changes(w: Weights) -> None:
    words = {k: k for k in range(5000)}
    cell = dy.cell(lambda x: x * float(len(words)))
    dy.renew_cg()
    first = sums(cell(w.b))
    words[5000] = 1
    assert sums(cell(w.b)) == pytest.approx(first * 5001 / 5000)


def test_variables_that_come_and_go_do_not_matter(w: Weights) -> None:
    """A module gets other variables than those that a function names."""
    runs = io.StringIO()
    inside: dict[str, Any] = {"note": runs.write}
    exec("def times(x):\n    note('run ')\n    return x * abs(-1.0)", inside)
    cell = dy.cell(inside["times"])
    dy.renew_cg()
    for k in range(5):
        cell(w.b)
        inside[f"another{k}"] = k
    assert runs.getvalue() == "run run "


# ---- errors -----------------------------------------------------------------------------------------------------------


generator = np.random.default_rng(1)


def errors_of(w: Weights) -> dict[str, tuple[Callable[..., Any], type[Exception], str]]:
    outside = dy.tanh(w.b)
    counter = iter(range(100))
    lstm = dy.VanillaLSTMBuilder(1, 4, 4, w.pc)
    return {
        "value": (lambda x: x if x.value()[0] > 0 else -x, dy.CellError, "asks for a value"),
        "npvalue": (lambda x: dy.inputVector(dy.tanh(x).npvalue()), dy.CellError, "asks for a value"),
        "scalar": (lambda x: float(dy.sum_elems(x)) * x, dy.CellError, "asks for a value"),
        "numpy": (lambda x: np.tanh(x), TypeError, "NumPy"),
        "asarray": (lambda x: dy.inputVector(np.asarray(x, dtype=float)), dy.CellError, "asks for a value"),
        "weight": (lambda x: x if w.W.value()[0][0] > 0 else -x, dy.CellError, "asks for a value"),
        "compare": (lambda x: x if x[0] > 0 else -x, TypeError, "no order"),
        "backward": (lambda x: dy.squared_norm(x).backward(), dy.CellError, "asks for a value"),
        "renew": (lambda x: dy.renew_cg() and x, dy.CellError, "renews"),
        "checkpoint": (lambda x: dy.cg_checkpoint() or x, dy.CellError, "changes the graph"),
        "outside": (lambda x: x + outside, dy.CellError, "give it as an argument"),
        "counter": (lambda x: x * next(counter), dy.CellError, "same nodes twice"),
        "random": (lambda x: x * np.random.rand(), dy.CellError, "same nodes twice"),
        "coin of Python": (lambda x: x if random.random() < 2 else x * 2.0, dy.CellError, "draws random numbers"),
        "coin of NumPy": (lambda x: x if np.random.rand() < 2 else x * 2.0, dy.CellError, "draws random numbers"),
        "coin of a generator": (
            lambda x: x if generator.random() < 2 else x * 2.0,
            dy.CellError,
            "draws random numbers",
        ),
        "result": (lambda x: {x}, dy.CellError, "it must give an expression"),
        "state": (lambda x: lstm.initial_state().add_input(x), dy.CellError, "it must give an expression"),
        "shape": (lambda x: dy.inputVector([1, 2, 3]) + x, ValueError, r"x \+ y"),
        "own": (lambda x: 1 // 0, ZeroDivisionError, "zero"),
    }


ERRORS = [
    *(
        "value",
        "npvalue",
        "scalar",
        "numpy",
        "asarray",
        "weight",
        "compare",
        "backward",
        "renew",
        "checkpoint",
        "outside",
    ),
    *("counter", "random", "coin of Python", "coin of NumPy", "coin of a generator", "result", "state", "shape", "own"),
]


def test_every_error_is_tried(w: Weights) -> None:
    assert ERRORS == list(errors_of(w))


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_raised_at_the_line(w: Weights, name: str) -> None:
    dy.renew_cg()
    function, kind, message = errors_of(w)[name]
    cell, x = dy.cell(function), dy.tanh(w.E[1])
    nodes = len(dy.cg())
    for _ in range(2):
        with pytest.raises(kind, match=message) as info:
            cell(x)
        if message not in ("same nodes twice", "draws random numbers", "it must give an expression"):
            assert any(entry.frame.code.raw is function.__code__ for entry in info.traceback), (
                "the line is in the traceback"
            )
        assert len(dy.cg()) == nodes and cell.signatures() == 0
    assert dy.tanh(x).npvalue().shape == (4,)


def test_an_error_of_the_function_is_told_once(w: Weights) -> None:
    """Though the function runs again, with integers as they are, before it is believed."""

    def fails(k: int) -> Any:
        return {}["missing"]

    dy.renew_cg()
    for call in (lambda: dy.cell(fails)(1), lambda: dy.map(dy.cell(fails), [1]), lambda: dy.compile(fails)(1)):
        with pytest.raises(KeyError, match="missing") as info:
            call()
        assert info.value.__context__ is None
        assert info.traceback[-1].frame.code.raw is fails.__code__


def test_what_a_function_catches_is_not_recorded(w: Weights) -> None:
    """It would go another way than at a call that is not recorded."""

    def by_number(x: Any, k: int) -> Any:
        try:
            return x * float(k)
        except:  # noqa: E722
            return x * 100.0

    def by_text(x: Any, k: int) -> Any:
        return x * (3.0 if repr([k]) == "[3]" else 100.0)

    def by_value(x: Any) -> Any:
        try:
            return x * float(x.npvalue()[0])
        except Exception:
            return x

    dy.renew_cg()
    x = dy.inputVector(np.ones(4))
    for function in (by_number, by_text):
        cell, compiled = dy.cell(function), dy.compile(function)
        for k in (3, 2, 3):
            np.testing.assert_array_equal(cell(x, k).npvalue(), function(x, k).npvalue())
            np.testing.assert_array_equal(compiled(np.ones(4), k), function(x, k).npvalue())
    with pytest.raises(dy.errors.CellError, match="asks for a value"):
        dy.cell(by_value)(x)
    with pytest.raises(dy.errors.CompileError, match="asks for a value"):
        dy.compile(by_value)(np.ones(4))


def test_wrong_uses(w: Weights) -> None:
    dy.renew_cg()
    cell = dy.cell(lambda x, k=0: dy.pick(x, k))
    x = dy.tanh(w.b)
    with pytest.raises(TypeError, match="is a cell already"):
        dy.cell(cell)
    with pytest.raises(TypeError, match="a Python function is needed"):
        dy.cell(3)
    with pytest.raises(TypeError, match="inputTensor"):
        cell(np.ones(4))
    with pytest.raises(IndexError, match="out of range"):
        cell(x, 4)
    with pytest.raises(IndexError, match="32 bits"):
        cell(x, 1 << 40)
    with pytest.raises(IndexError, match="row -1000 of a table"):
        dy.cell(lambda k: w.E[k])(-1000)
    with pytest.raises(IndexError, match="row -1 of a table"):
        dy.cell(lambda k: w.E.batch([1, k]))(-1)
    with pytest.raises(TypeError):
        cell(x, 1, 2)
    with pytest.raises(TypeError, match="not copied or pickled"):
        copy.copy(cell)
    with pytest.raises(ValueError, match="at least one name"):
        dy.state()
    with pytest.raises(AttributeError, match="there are h, c"):
        _ = dy.state(h=1, c=2).x
    with pytest.raises(ValueError, match="recorded, inline or check"):
        dy.configure(cells="maybe")
    old = dy.tanh(x)
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        cell(old)


def test_an_integer_is_good_in_its_call_only(w: Weights) -> None:
    kept: list[Any] = []

    @dy.cell
    def keeps(x: Any, k: int) -> Any:
        kept.append((k, x))
        return dy.pick(x, k)

    dy.renew_cg()
    x = dy.tanh(w.b)
    keeps(x, 1)
    with pytest.raises(dy.CellError, match="kept beyond the call"):
        dy.pick(x, kept[0][0])
    with pytest.raises(dy.CellError, match="kept beyond the call"):
        w.E[kept[0][0]]
    with pytest.raises(dy.StaleExpressionError):
        dy.tanh(kept[0][1])
    with pytest.raises(dy.CellError):
        kept[0][1].value()


# ---- graphs -----------------------------------------------------------------------------------------------------------


def test_checkpoint_revert_and_values_in_the_middle(w: Weights) -> None:
    cell = dy.cell(lambda x, k: dy.tanh(w.W * x + dy.tanh(w.U) * w.E[k]))
    dy.renew_cg()
    x = cell(w.b, 1)
    wanted = x.npvalue()
    for _ in range(3):
        dy.cg_checkpoint()
        y = cell(cell(x, 2), 3)
        last = y.npvalue()
        dy.cg_revert()
        with pytest.raises(dy.StaleExpressionError):
            y.npvalue()
        assert np.array_equal(cell(cell(x, 2), 3).npvalue(), last)
    assert np.array_equal(x.npvalue(), wanted)


def test_graphs_take_turns(w: Weights) -> None:
    cell = dy.cell(lambda x, k: dy.tanh(w.W * x + w.E[k]))
    dy.renew_cg()
    outer = [cell(w.b, 0)]
    with dy.graph():
        inner = [cell(w.b, 1), cell(w.b, 2)]
        wanted = [cell.function(w.b, k).npvalue() for k in (1, 2)]
        assert [e.npvalue().tolist() for e in inner] == [a.tolist() for a in wanted]
    outer.append(cell(outer[0], 1))
    assert np.array_equal(outer[1].npvalue(), cell.function(outer[0], 1).npvalue())


def test_immediate_and_checked_graphs(w: Weights) -> None:
    cell = dy.cell(lambda x: dy.log(dy.tanh(x)))
    dy.renew_cg(immediate_compute=True, check_validity=True)
    with pytest.raises(dy.NotFiniteError, match="test_cells.py"):
        cell(dy.inputVector([-1.0]))
    dy.renew_cg(immediate_compute=True)
    assert cell(dy.inputVector([1.0])).dim() == ((1,), 1)


@pytest.mark.parametrize("when", [0, 1])
def test_a_thread_that_records_while_another_does(w: Weights, when: int) -> None:
    """What it finds out about the arguments holds for both."""
    runs, found = collections.deque([False] * when + [True]), []

    @dy.cell
    def cell(x: Any, how: str, k: int) -> Any:
        if how == "picks":
            if runs and runs.popleft():
                thread = threading.Thread(target=lambda: found.append(cell(w.E[1], "counts", 2).npvalue()))
                thread.start()
                thread.join()
            return x + w.E[k]
        for _ in range(k):
            x = dy.tanh(x)
        return x

    dy.renew_cg()
    np.testing.assert_array_equal(cell(w.E[2], "picks", 3).npvalue(), (w.E[2] + w.E[3]).npvalue())
    np.testing.assert_array_equal(found[0], dy.tanh(dy.tanh(w.E[1])).npvalue())


def test_threads_of_python(w: Weights) -> None:
    cell = dy.cell(lambda x, k: dy.tanh(w.W * x) + w.E[k])
    wanted = []
    for k in range(4):
        dy.renew_cg()
        wanted.append(cell.function(w.b, k).npvalue())
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for turn in range(50):
            dy.renew_cg()
            k = (seed + turn) % 4
            if not np.array_equal(cell(w.b, k).npvalue(), wanted[k]):
                wrong.append((seed, turn))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_batches_like_plain_nodes(w: Weights) -> None:
    """Calls batch with each other, with the plain function, and with themselves in explanations and profiles."""
    cell = dy.cell(lambda x, k: dy.tanh(w.W * x + w.E[k]))
    dy.renew_cg()
    ys = [cell(w.b, k) for k in range(5)] + [cell.function(w.b, 5)]
    dy.esum(ys).value()
    assert dy.stats()["batches"] == dy.stats()["lower_bound"]
    assert "tanh" in str(dy.explain_batches())


def test_training_goes_on_in_overlapping_steps() -> None:
    """With threads the backward pass and the update run while the next graph is built."""

    def train(how: str) -> list[float]:
        dy.reset_random_seed(2)
        w = Weights()
        trainer = dy.AdamTrainer(w.pc)
        cell = dy.cell(
            lambda x, rows: dy.tanh(w.W * x + dy.average([w.E[r] for r in rows])) + dy.sum_batches(w.E.batch(rows))
        )
        losses = []
        with dy.configure(threads=2, cells=how):
            _core.settings.least_work = 0
            for turn in range(12):
                dy.renew_cg()
                loss = dy.esum([dy.squared_norm(cell(cell(w.b, [k, turn % 9]), [1, 2])) for k in range(6)])
                losses.append(loss.value())
                loss.backward()
                trainer.update()
        return losses

    assert train("recorded") == train("inline")


def test_functions_of_no_module() -> None:
    """As exec() makes them without a name for the module: what they read is found all the same."""
    w = Weights()
    known: dict[str, Any] = {"dy": dy, "w": w, "factor": 2.0}
    code = """
def twice(x):
    return x * factor

@dy.cell
def step(x):
    return twice(dy.tanh(w.W * x))
"""
    exec(code, known)
    for factor in (2.0, 3.0):
        known["factor"] = factor
        dy.renew_cg()
        x = dy.inputVector([1.0, 2, 3, 4])
        np.testing.assert_allclose(known["step"](x).npvalue(), (dy.tanh(w.W * x) * factor).npvalue())
