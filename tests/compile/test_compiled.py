"""Compiled functions: what is data and what is structure, what they give, when they are recorded anew, what is an error."""

from __future__ import annotations

import gc
import pickle
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

Same = Callable[..., None]


class Weights:
    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.W, self.U = self.pc.add_parameters((12, 12)), self.pc.add_parameters((12, 12))
        self.b, self.V = self.pc.add_parameters(12), self.pc.add_parameters((5, 12))
        self.E = self.pc.add_lookup_parameters((9, 12))

    def step(self, h: Any, x: Any) -> Any:
        gate = dy.logistic(self.W * x + self.U * h + self.b)
        return dy.cmult(gate, dy.tanh(self.U * h)) + dy.cmult(1 - gate, dy.tanh(self.W * x))

    def tagger(self, words: Any, tags: Any) -> Any:
        h, losses = dy.zeros(12), []
        for word, tag in zip(words, tags, strict=True):
            h = self.step(h, self.E[word])
            losses.append(dy.pickneglogsoftmax(self.V * h, tag))
        return dy.esum(losses)


@pytest.fixture
def w() -> Weights:
    return Weights()


def recorded() -> int:
    return int(dy.stats()["compiled_recorded"])


# ---- equality ----------------------------------------------------------------------------------------------------------


def test_sentences(w: Weights, same: Same) -> None:
    rng = np.random.RandomState(1)
    calls = [(rng.randint(9, size=n).tolist(), rng.randint(5, size=n).tolist()) for n in (3, 1, 6, 3, 3, 6)]
    same(w.pc, w.tagger, calls)
    same(w.pc, w.tagger, [(np.array(words), np.array(tags)) for words, tags in calls])


def test_rows_that_are_alike_when_recorded(w: Weights, same: Same) -> None:
    """Nodes of equal rows and labels are not one node for good."""

    def loss(words: Any, tags: Any) -> Any:
        xs = [dy.tanh(w.W * dy.tanh(w.E[word])) for word in words]
        return dy.esum([dy.pickneglogsoftmax(w.V * x, tag) for x, tag in zip(xs, tags, strict=True)])

    same(w.pc, loss, [([2, 2, 2], [1, 1, 1]), ([2, 3, 2], [1, 0, 4]), ([4, 4, 4], [1, 1, 0])])


def test_trees(w: Weights, same: Same) -> None:
    def node(tree: Any) -> Any:
        if not isinstance(tree, tuple):
            return dy.tanh(w.E[tree])
        return dy.tanh(w.W * node(tree[0]) + w.U * node(tree[1]) + w.b)

    def loss(tree: Any, label: int) -> Any:
        return dy.pickneglogsoftmax(w.V * node(tree), label)

    same(w.pc, loss, [((1, (2, 3)), 0), (((1, 2), 3), 1), ((4, (4, 5)), 2), (7, 3)])


def test_look_ups_labels_and_places(w: Weights, same: Same) -> None:
    """All that takes integers, in several ways; mini-batches by hand."""

    def loss(rows: Any, place: int, places: Any, last: int) -> Any:
        x = dy.tanh(w.W * dy.lookup_batch(w.E, rows))
        scores = w.V * x
        one = w.E[last]
        return dy.esum(
            [
                dy.sum_batches(dy.pickneglogsoftmax_batch(scores, places)),
                dy.sum_batches(dy.square(dy.pick_batch(scores, places))),
                dy.square(dy.pick(w.V * one, place)),
                dy.square((w.V * one)[place]),
                dy.sum_batches(dy.hinge_batch(scores, places)),
                dy.square(dy.sum_elems(dy.pick(w.W, place))),
            ]
        )

    calls = [([1, 2, 3], 0, [0, 1, 2], 4), ([4, 4, 1], 3, [4, 4, 0], -1), ([8, 0, 3], 2, [1, 1, 1], -9)]
    same(w.pc, loss, calls, rtol=2e-6)


def test_bundled_losses(w: Weights, same: Same) -> None:
    """Labels of a mini-batch that is read where its elements lie."""

    def loss(words: Any, tags: Any) -> Any:
        hs = [dy.tanh(w.W * w.E[word]) for word in words]
        return dy.sum_batches(dy.pickneglogsoftmax_batch(w.V * dy.concatenate_to_batch(hs), tags))

    same(w.pc, loss, [([1, 2, 3], [0, 1, 2]), ([3, 3, 4], [4, 4, 4]), ([5, 1, 1], [0, 3, 0])])
    f = dy.compile(loss)
    f([1, 2, 3], [0, 1, 2])
    with pytest.raises(IndexError):
        f([1, 2, 3], [0, 5, 2])
    assert np.isfinite(f([1, 2, 3], [0, 4, 2]))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, bool])
def test_arrays(w: Weights, same: Same, kind: Any) -> None:
    """Integers are data for look-ups, all others inputs."""

    def of_numbers(x: Any, m: Any) -> Any:
        h = dy.tanh(w.W * x + w.U * dy.inputTensor(m, batched=True))
        return dy.sum_batches(dy.sum_elems(h)) + dy.sum_elems(w.V * dy.inputVector(x))

    def of_rows(x: Any, m: Any) -> Any:
        return dy.esum([dy.sum_elems(dy.tanh(w.W * w.E[k])) for row in [x, *m] for k in row])

    rng = np.random.RandomState(1)
    calls = [(rng.randint(0, 8, 12).astype(kind), rng.randint(0, 8, (12, n)).astype(kind)) for n in (2, 3, 2)]
    same(w.pc, of_rows if kind is np.int64 else of_numbers, calls, rtol=5e-6)


def test_arrays_of_other_layouts(w: Weights) -> None:
    f = dy.compile(lambda m: dy.inputTensor(m) * 1.0)
    for a in (
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24.0).reshape(3, 8)[:, ::2],
    ):
        np.testing.assert_array_equal(f(a), a.astype(np.float32))
    np.testing.assert_array_equal(f(np.arange(6.0)[::-2]), [5, 3, 1])
    assert f(np.float32(2.5)) == 2.5
    assert f.structures() == 3


def test_random_functions_draw_anew(w: Weights, same: Same) -> None:
    def loss(words: Any) -> Any:
        hs = [dy.dropout(w.step(dy.noise(w.E[word], 0.1), w.E[word]), 0.5) for word in words]
        return dy.sum_elems(dy.esum(hs)) + dy.sum_elems(dy.random_normal(3))

    same(w.pc, loss, [([1, 2],), ([3, 4],), ([1, 2],)])
    f = dy.compile(loss)
    assert len({f([1, 2]) for _ in range(5)}) == 5


def test_a_call_that_fails_draws_as_the_function_does(w: Weights) -> None:
    f = dy.compile(lambda word: dy.dropout(w.E[word] * 0 + 1, 0.5))
    drawn = []
    for on in (True, False):
        with dy.configure(compile=on):
            f(1)
            dy.reset_random_seed(7)
            with pytest.raises(IndexError):
                f(9)
            drawn.append(f(1))
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("how", [dy.compile, dy.cell])
def test_arguments_that_are_nested_too_deep(w: Weights, how: Callable[..., Any]) -> None:
    deep: Any = 1
    for _ in range(60_000):
        deep = (deep, 1)
    dy.renew_cg()
    with pytest.raises(RecursionError, match="arguments that are nested too deep"):
        how(lambda x: w.E[1])(deep)
    assert how(lambda x: w.E[x[0][0]])(((2, 1), 1)) is not None


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("kind", ["list", "dict", "list in a dict", "dict in a list", "tuple in a list"])
def test_what_holds_itself_is_nested_too_deep(w: Weights, kind: str, recorded: bool) -> None:
    """It is this that tells, not what is called on the way, which Python counts as well."""
    ring: Any = {} if kind in ("dict", "list in a dict") else []
    within = {"list in a dict": [ring], "dict in a list": {"again": ring}, "tuple in a list": (ring,)}
    inner: Any = within.get(kind, ring)
    if isinstance(ring, dict):
        ring["again"] = inner
    else:
        ring.append(inner)
    with dy.configure(compile=recorded):
        dy.renew_cg()
        with pytest.raises(RecursionError, match="in arguments that are nested too deep"):
            dy.compile(lambda x: w.E[1])(ring)
        with pytest.raises(RecursionError, match="in arguments that are nested too deep"):
            dy.cell(lambda x: w.E[1])(ring)
        with pytest.raises(RecursionError, match="in results that are nested too deep"):
            dy.compile(lambda x: ring)(1)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("how", [dy.compile, dy.cell])
@pytest.mark.parametrize("kind", [tuple, list, lambda parts: dy.state(a=parts[0]), lambda parts: {0: parts[0]}])
def test_results_that_are_nested_too_deep(w: Weights, how: Any, kind: Any, recorded: bool) -> None:
    def nested(depth: int, word: int) -> Any:
        out: Any = w.E[word]
        for _ in range(depth):
            out = kind([out])
        return out

    f = how(nested)
    with dy.configure(compile=recorded, cells="recorded" if recorded else "inline"):
        dy.renew_cg()
        if recorded or how is dy.compile:
            with pytest.raises(RecursionError, match="results that are nested too deep"):
                f(60_000, 1)
        out = f(3, 1)
    for _ in range(3):
        out = out[0]
    np.testing.assert_array_equal(out if how is dy.compile else out.npvalue(), w.E[1].npvalue())


def test_builders_and_cells(w: Weights, same: Same) -> None:
    rnn = dy.BiRNNBuilder(1, 12, 12, w.pc, dy.VanillaLSTMBuilder)
    tree = dy.NaryTreeLSTMBuilder(2, 1, 12, 12, w.pc) if hasattr(dy, "NaryTreeLSTMBuilder") else None

    @dy.cell
    def step(s: Any, word: int) -> Any:
        return dy.tanh(w.W * w.E[word] + w.U * s)

    def loss(words: Any, label: int) -> Any:
        hs = rnn.transduce([w.E[word] for word in words])
        outputs, last = dy.scan(step, dy.zeros(12), words)
        out = dy.esum([dy.pickneglogsoftmax(w.V * h, label) for h in [*hs, *outputs, last]])
        return out

    assert tree is not None
    same(w.pc, loss, [([1, 2, 3], 0), ([4, 4, 1, 0], 3), ([8, 0, 3], 2)], rtol=5e-6)


def test_training_steps(w: Weights) -> None:
    """Whole steps with each trainer: the weights after some are those of plain steps."""
    rng = np.random.RandomState(1)
    calls = [(rng.randint(9, size=n).tolist(), rng.randint(5, size=n).tolist()) for n in (3, 5, 3, 3, 5, 2, 3)]
    start = [p.as_array() for p in [*w.pc.parameters_list(), w.E]]
    for kind in (dy.SimpleSGDTrainer, dy.AdamTrainer, dy.MomentumSGDTrainer, dy.AdagradTrainer):
        found = []
        for how in ("plain", "on", "off"):
            for p, a in zip([*w.pc.parameters_list(), w.E], start, strict=True):
                (p.init_from_array if p is w.E else p.set_value)(a)
            trainer = kind(w.pc)
            step = dy.compile(w.tagger, trainer=trainer)
            values = []
            for call in calls * 3:
                if how == "plain":
                    dy.renew_cg()
                    loss = w.tagger(*call)
                    values.append(loss.value())
                    loss.backward()
                    trainer.update()
                else:
                    with dy.configure(compile=how == "on"):
                        values.append(step(*call))
            found.append([np.array(values), *(p.as_array() for p in [*w.pc.parameters_list(), w.E])])
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6)


def test_weight_decay_and_moving_on(w: Weights) -> None:
    """Rows owe decay between calls; values are those of the weights of now."""
    w.pc.set_weight_decay(0.1)
    trainer = dy.SimpleSGDTrainer(w.pc)
    f = dy.compile(lambda word: dy.tanh(w.W * w.E[word]))
    for k in range(4):
        np.testing.assert_allclose(f(k), np.tanh(w.W.as_array() @ w.E.row_as_array(k)), rtol=1e-4, atol=1e-6)
        dy.renew_cg()
        dy.sum_elems(w.W * w.E[1]).backward()
        trainer.update()


@dataclass
class Example:
    words: Any
    tags: Any

    def __post_init__(self) -> None:
        self.scale = 2.0 if len(self.words) > 2 else 1.0

    def weighted(self, loss: Any) -> Any:
        return loss * self.scale * factors["of a method"]


@dataclass(frozen=True, slots=True)
class Frozen:
    vector: Any
    example: Any = None


factors = {"of a method": 1.0}


def test_dicts_and_dataclasses(w: Weights, same: Same) -> None:
    sentences = [([1, 2], [0, 1]), ([3, 4, 5], [1, 1, 0]), ([6, 7], [4, 3])]

    def of_dict(example: Any) -> Any:
        return {"loss": w.tagger(example["words"], example["tags"]), "kept": [None, w.b]}

    def of_dataclass(given: Any) -> Any:
        loss = given.example.weighted(w.tagger(given.example.words, given.example.tags))
        return Frozen(loss, {"x": dy.inputVector(given.vector)})

    same(w.pc, of_dict, [({"words": words, "tags": np.array(tags), "name": "a"},) for words, tags in sentences])
    vectors = [np.linspace(0, k, 4) for k in (1, 2, 3)]
    same(w.pc, of_dataclass, [(Frozen(v, Example(*one)),) for v, one in zip(vectors, sentences, strict=True)])


# ---- what they give ----------------------------------------------------------------------------------------------------


def test_results(w: Weights) -> None:
    @dy.compile
    def f(x: Any) -> Any:
        h = dy.tanh(w.W * w.E[x])
        return dy.state(h=h, parts=[dy.sum_elems(h), (h * 2.0, None)]), "name", dy.inputTensor(np.ones((2, 3)))

    state, name, m = f(3)
    h = np.tanh(w.W.as_array() @ w.E.row_as_array(3))
    np.testing.assert_allclose(state.h, h, rtol=1e-5, atol=1e-6)
    assert state.h.dtype == np.float32 and name == "name" and m.shape == (2, 3)
    total, (twice, nothing) = state.parts
    assert type(total) is float and abs(total - h.sum()) < 1e-5 and nothing is None
    np.testing.assert_allclose(twice, 2 * h, rtol=1e-5, atol=1e-6)
    before = state.h.copy()
    f(4)
    np.testing.assert_array_equal(state.h, before)  # a copy of its own


def test_beside_a_graph(w: Weights) -> None:
    """Calls leave the current graph as it is, in the middle of building and between value and backward."""
    f = dy.compile(w.tagger, backward=True)
    dy.renew_cg()
    x = w.step(w.E[1], w.E[2])
    a = f([1, 2], [0, 0])
    loss = dy.sum_elems(x)
    value = loss.value()
    assert f([1, 2], [0, 0]) == a
    assert loss.value() == value
    for p in [*w.pc.parameters_list(), w.E]:
        p.zero_gradient()
    loss.backward()
    assert np.isfinite(w.W.grad_as_array()).all() and np.abs(w.W.grad_as_array()).max() > 0


@pytest.mark.parametrize("recorded", [True, False])
def test_weights_that_change_after_a_call(w: Weights, recorded: bool) -> None:
    """The current graph is computed again, although a call has used them since."""
    f = dy.compile(w.tagger)
    with dy.configure(compile=recorded):
        dy.renew_cg()
        of_weight, of_row, of_table = dy.sum_elems(w.W), dy.sum_elems(w.E[1]), dy.sum_elems(w.E)
        for change in (
            lambda: w.W.scale(2),
            lambda: w.E.init_row(1, np.full(w.E.shape[1], 3.0)),
            lambda: w.E.scale(0.5),
        ):
            dy.forward([of_weight, of_row, of_table])
            f([1, 2], [0, 0])
            change()
            assert of_weight.value() == pytest.approx(w.W.as_array().sum(), rel=1e-5)
            assert of_row.value() == pytest.approx(w.E.as_array()[1].sum(), rel=1e-5)
            assert of_table.value() == pytest.approx(w.E.as_array().sum(), rel=1e-5)


# ---- structures --------------------------------------------------------------------------------------------------------


def test_what_is_recorded_when(w: Weights) -> None:
    f = dy.compile(w.tagger)
    before = recorded()
    for words, tags in (([1, 2], [0, 1]), ([3, 4], [1, 1]), ([5], [0]), ([1, 1], [0, 0])):
        f(words, tags)
    assert recorded() - before == 2 and f.structures() == 2
    f([1, 2, 3], [0, 0, 0])
    with dy.configure(fuse=False):
        f([1, 2, 3], [0, 0, 0])
    assert recorded() - before == 4
    f([1, 2, 3], [0, 0, 0])
    assert recorded() - before == 4
    f.forget_structures()
    assert f.structures() == 0
    f([1], [1])
    assert recorded() - before == 5


def test_numbers_that_are_computed_with(w: Weights) -> None:
    @dy.compile
    def f(layers: int, x: int) -> Any:
        h = w.E[x]
        for _ in range(layers):
            h = dy.tanh(w.W * h)
        return h

    before = recorded()
    for layers in (1, 2, 1, 2):
        for x in (1, 2, 3):
            h = w.E.row_as_array(x)
            for _ in range(layers):
                h = np.tanh(w.W.as_array() @ h)
            np.testing.assert_allclose(f(layers, x), h, rtol=1e-4, atol=1e-6)
    assert recorded() - before == 2


def test_parts_that_are_computed_with(w: Weights) -> None:
    @dy.compile
    def read(token: Any, path: Any) -> Any:
        h = dy.esum([w.E[k] for k in token["words"]])
        for _ in range(token["depth"]):
            h = dy.tanh(w.W * h)
        return dy.pick(h * float(path[1]), path[0])

    for depth, scale in ((1, 2), (3, 2), (1, 5)):
        for word in range(4):
            token, path = {"words": [word, 2], "depth": depth}, (word % 3, scale)
            with dy.configure(compile=False):
                expected = read(token, path)
            assert read(token, path) == pytest.approx(expected, rel=1e-5)
    assert read.structures() == 3


def test_the_cache_is_bounded(w: Weights) -> None:
    f = dy.compile(w.tagger, structures=3)
    dropped = dy.stats()["compiled_dropped"]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in [*range(1, 9)] * 3:
            f([1] * n, [0] * n)
            assert f.structures() <= 3
    assert dy.stats()["compiled_dropped"] - dropped == 21
    assert [one.filename for one in seen if "structures" in str(one.message)] == [__file__]
    for n in (7, 8, 6, 8, 7, 6):  # those called last are there
        now = recorded()
        f([1] * n, [0] * n)
        assert recorded() == now


def test_attributes_and_variables_are_watched(w: Weights) -> None:
    class Model:
        def __init__(self) -> None:
            self.rate, self.scale = 0.0, 1.0

        def loss(self, word: int) -> Any:
            x = w.E[word] * self.scale
            return dy.sum_elems(dy.dropout(x, self.rate) if self.rate else x)

    m = Model()
    f = dy.compile(m.loss)
    plain = f(1)
    m.scale = 2.0
    assert abs(f(1) - 2 * plain) < 1e-4
    m.rate = 0.5
    assert len({f(1) for _ in range(6)}) > 1
    m.rate, m.scale = 0.0, 1.0
    assert f(1) == plain


def test_structure_of_dicts_and_dataclasses(w: Weights) -> None:
    """Keys, their order, types, and what a dataclass has besides its fields; data may be changed in place."""

    def row(x: Any) -> Any:
        first = next(iter(x)) if isinstance(x, dict) else x.scale
        return {"row": w.E[x["word"] if isinstance(x, dict) else x.words], "of": first}

    f = dy.compile(row)
    given: dict[Any, Any] = {"word": 1, "name": "a"}
    for key, value, structures in (("word", 1, 1), ("word", 2, 1), ("name", "b", 2), ("word", 3, 2), (7, None, 3)):
        given[key] = value
        found = f(given)
        np.testing.assert_array_equal(found["row"], w.E.row_as_array(given["word"]))
        assert (list(found), found["of"], f.structures()) == (["row", "of"], "word", structures)
    assert f({"name": "a", "word": 1})["of"] == "name" and f.structures() == 4
    example = Example([1], None)
    for words, scale, structures in ((1, 1.0, 5), (2, 1.0, 5), (2, 3.0, 6), (1, 1.0, 6)):
        example.words, example.scale = words, scale
        found = f(example)
        np.testing.assert_array_equal(found["row"], w.E.row_as_array(words))
        assert (found["of"], f.structures()) == (scale, structures)
    box: list[Any] = []
    box.append({"again": box})
    with pytest.raises(RecursionError, match="nested too deep"):
        f(box)


@dataclass
class Branch:
    word: int
    kids: list[Branch] = field(default_factory=list)
    parent: Branch | None = None


def test_links_back_to_what_holds_them(w: Weights) -> None:
    """A tree whose nodes know their parents is an object to its nodes; without the links it is data."""

    def total(tree: Branch) -> Any:
        assert tree.parent is None or tree.parent.word
        return dy.esum([w.E[tree.word], *map(total, tree.kids)])

    def numbers(*words: int) -> Any:
        return sum(w.E.row_as_array(word) for word in words)

    f, c = dy.compile(total), dy.cell(total)
    for words, structures in (((1, 2, 3), 1), ((2, 1, 4), 1), ((3, 4, 1), 2), ((4, 2, 2), 3)):
        root, *kids = map(Branch, words)
        root.kids = kids
        if structures > 1:
            for kid in kids:
                kid.parent = root
        np.testing.assert_allclose(f(root), numbers(*words), rtol=1e-6)
        assert f.structures() == structures
        with dy.configure(compile=False):
            np.testing.assert_allclose(f(root), numbers(*words), rtol=1e-6)
        dy.renew_cg()
        np.testing.assert_allclose(c(root).npvalue(), numbers(*words), rtol=1e-6)


class Inner:
    def __init__(self) -> None:
        self.number = 1.0

    def result(self) -> float:
        return self.number * factors["of a method"]


class Outer(Inner):
    __slots__ = ("slot",)

    def __init__(self) -> None:
        super().__init__()
        self.slot, self.items, self.named, self.inner = 1.0, [1.0], {"a": 1.0}, Inner()

    @property
    def twice(self) -> float:
        return 2 * self.number


def helper(one: Outer) -> float:
    return one.inner.number


CHANGES: dict[str, tuple[Callable[[Outer], float], Callable[[Outer], object]]] = {
    "attribute": (lambda one: one.number, lambda one: setattr(one, "number", 3.0)),
    "slot": (lambda one: one.slot, lambda one: setattr(one, "slot", 3.0)),
    "item": (lambda one: one.items[0], lambda one: one.items.__setitem__(0, 3.0)),
    "items": (lambda one: sum(one.items), lambda one: one.items.append(3.0)),
    "item of a dict": (lambda one: one.named["a"], lambda one: one.named.update(a=3.0)),
    "property": (lambda one: one.twice, lambda one: setattr(one, "number", 3.0)),
    "method": (lambda one: one.result(), lambda one: setattr(one, "number", 3.0)),
    "inside": (lambda one: one.inner.number, lambda one: setattr(one.inner, "number", 3.0)),
    "helper": (lambda one: helper(one), lambda one: setattr(one.inner, "number", 3.0)),
}


@pytest.mark.parametrize("how", [dy.compile, dy.cell])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_objects_that_change_in_place(w: Weights, name: str, nested: bool, how: Any) -> None:
    """What the function names of an argument is looked at, and what it calls names."""
    read, change = CHANGES[name]
    f = how((lambda x, one: w.E[x] * read(one["of"])) if nested else (lambda x, one: w.E[x] * read(one)))
    one, other = Outer(), Outer()

    def check() -> None:
        for given in (one, other):
            dy.renew_cg()
            found = f(2, {"of": given} if nested else given)
            wanted = read(given) * w.E.row_as_array(2)
            np.testing.assert_allclose(found if how is dy.compile else found.npvalue(), wanted)

    check()
    change(one)
    check()
    change(other)
    check()
    gone, inner = weakref.ref(one), weakref.ref(one.inner)
    del one
    one = Outer()
    gc.collect()
    assert gone() is None and inner() is None


def test_functions_and_classes_as_arguments(w: Weights) -> None:
    class Numbers:
        number = 1.0

    amount = 1.0
    f = dy.compile(lambda x, g, kind: g(w.E[x]) * kind.number)

    def given(x: Any) -> Any:
        return x * amount

    for amount in (1.0, 2.0):
        for Numbers.number in (1.0, 3.0):
            np.testing.assert_allclose(f(1, given, Numbers), amount * Numbers.number * w.E.row_as_array(1), rtol=1e-6)
    assert f.structures() == 1


def test_frozen_weights(w: Weights) -> None:
    f = dy.compile(w.tagger, backward=True)
    for frozen in (False, True, False):
        w.W.set_updated(not frozen)
        w.E.set_updated(not frozen)
        for p in [*w.pc.parameters_list(), w.E]:
            p.zero_gradient()
        for _ in range(2):
            f([1, 2], [0, 1])
        assert (np.abs(w.W.grad_as_array()).max() == 0) == frozen
        assert (np.abs(w.E.grad_as_array()).max() == 0) == frozen
        assert np.abs(w.U.grad_as_array()).max() > 0


def test_saved_and_loaded_between_calls(w: Weights, tmp_path: Path) -> None:
    f = dy.compile(w.tagger)
    first = f([1, 2], [0, 1])
    w.pc.save(str(tmp_path / "model"))
    for p in w.pc.parameters_list():
        p.scale(0.5)
    assert f([1, 2], [0, 1]) != first
    w.pc.populate(str(tmp_path / "model"))
    assert f([1, 2], [0, 1]) == pytest.approx(first, rel=1e-6)


def test_parameters_added_later(w: Weights) -> None:
    trainer = dy.SimpleSGDTrainer(w.pc)
    more: list[Any] = []

    def loss(word: int) -> Any:
        x = dy.tanh(w.W * w.E[word])
        for p in more:
            x = dy.tanh(p * x)
        return dy.sum_elems(x)

    f = dy.compile(loss, trainer=trainer)
    f(1)
    more.append(w.pc.add_parameters((12, 12)))
    before = more[0].as_array()
    f(1)
    assert np.abs(more[0].as_array() - before).max() > 0
    dy.renew_cg()
    wanted = loss(1).value()
    assert f(1) == pytest.approx(wanted, rel=1e-5)


def test_weights_that_go() -> None:
    """A compiled function keeps neither weights nor objects in memory beyond what its function does."""
    made: dict[str, Any] = {"w": Weights()}
    f = dy.compile(lambda x: dy.sum_elems(made["w"].W * made["w"].E[x]))
    f(1)
    gone = weakref.ref(made["w"].W)
    made["w"] = Weights()
    assert np.isfinite(f(1)) and f.structures() == 1
    gc.collect()
    assert gone() is None
    g = weakref.ref(f)
    del f
    gc.collect()
    assert g() is None


def test_states_that_were_pickled(w: Weights) -> None:
    """As those that another process has made."""
    f = dy.compile(lambda s: w.E[s.word] * s.factor)
    for word in (1, 2, 1):
        s = pickle.loads(pickle.dumps(dy.state(word=word, factor=2.0)))
        assert repr(s) == f"state(word={word}, factor=2.0)"
        np.testing.assert_allclose(f(s), 2 * w.E.row_as_array(word))
    assert f.structures() == 1


def test_methods(w: Weights) -> None:
    class Model:
        def __init__(self, k: int) -> None:
            self.k = k

        @dy.compile
        def first(self, word: int) -> Any:
            return w.E[word] * float(self.k)

    a, b = Model(1), Model(2)
    np.testing.assert_allclose(2 * a.first(1), b.first(1))
    assert a.first.structures() == b.first.structures() == 1


@pytest.mark.parametrize("how", [dy.cell, dy.compile])
def test_methods_of_objects_without_references(how: Any) -> None:
    class Slots:
        __slots__ = ()
        method = how(lambda self, word: word)

    with pytest.raises(TypeError, match="add '__weakref__'"):
        _ = Slots().method


def test_check_finds_what_is_read_in_secret(w: Weights) -> None:
    hidden = [[1.0] * 2000]

    @dy.compile
    def f(word: int) -> Any:
        return w.E[word] * max(hidden[0])

    f(1)
    hidden[0][7] = 3.0
    with dy.configure(cells="check"), pytest.raises(dy.errors.CompileError, match="other nodes"):
        f(1)


# ---- threads -----------------------------------------------------------------------------------------------------------


def test_called_from_threads(w: Weights) -> None:
    f = dy.compile(w.tagger)
    wanted = {n: f([n % 9] * n, [0] * n) for n in range(1, 6)}
    failures: list[str] = []

    def work(n: int) -> None:
        for _ in range(60):
            found = f([n % 9] * n, [0] * n)
            if found != wanted[n]:
                failures.append(f"{n}: {found}")

    threads = [threading.Thread(target=work, args=(1 + n % 5,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_overlapped_steps_beside_it(w: Weights) -> None:
    """Steps of a loop that overlap are finished before a compiled function reads weights."""
    trainer = dy.SimpleSGDTrainer(w.pc)
    f = dy.compile(w.tagger)
    with dy.configure(threads=2):
        _core.settings.least_work = 0
        for k in range(6):
            dy.renew_cg()
            loss = dy.esum([w.tagger([k % 9, 2, n], [0, 1, 2]) for n in range(6)])
            loss.value()
            loss.backward()
            trainer.update()
            value = f([1, 2], [0, 1])
            dy.renew_cg()
            assert value == pytest.approx(w.tagger([1, 2], [0, 1]).value(), rel=1e-5)


# ---- errors ------------------------------------------------------------------------------------------------------------


def line_of(info: Any) -> str:
    """The user's line that an error was raised at."""
    here = [f for f in traceback.extract_tb(info.tb) if f.filename == __file__]
    return here[-1].line or ""


def test_values_are_errors(w: Weights) -> None:
    def asks(word: int) -> Any:
        h = dy.tanh(w.W * w.E[word])
        if h.npvalue()[0] > 0:
            return h
        return -h

    f = dy.compile(asks)
    with pytest.raises(dy.errors.CompileError, match="decide outside") as info:
        f(1)
    assert "npvalue" in line_of(info)
    assert f.structures() == 0
    with dy.configure(compile=False):
        assert f(1).shape == (12,)

    @dy.compile
    def renews(word: int) -> Any:
        dy.renew_cg()
        return w.E[word]

    @dy.compile
    def calls(word: int) -> Any:
        return w.E[word] * f(word)

    for g, message in ((renews, "asks for a value"), (calls, "calls asks, a compiled function")):
        with pytest.raises(dy.errors.CompileError, match=message):
            g(1)


def test_expressions_from_outside_are_errors(w: Weights) -> None:
    dy.renew_cg()
    x = dy.inputVector([1.0] * 12)
    with pytest.raises(dy.errors.CompileError, match="outside"):
        dy.compile(lambda word: w.E[word] + x)(1)
    with pytest.raises(TypeError, match="takes numbers"):
        dy.compile(lambda x: x + 1.0)(x)
    kept: list[Any] = []

    @dy.compile
    def keeps(word: int) -> Any:
        kept.append(w.E[word])
        return kept[-1]

    keeps(1)
    with pytest.raises((ValueError, RuntimeError)):
        dy.tanh(kept[0])


def test_what_changes_is_an_error(w: Weights) -> None:
    @dy.compile
    def f(word: int) -> Any:
        return w.E[word] * float(np.random.rand())

    with pytest.raises(dy.errors.CompileError, match="twice"):
        f(1)


def test_a_wrong_index_is_not_left_in_the_graph(w: Weights) -> None:
    """It may run again before the next call."""
    losses = (
        lambda x, k: dy.pickneglogsoftmax(w.V * x, k),
        lambda x, k: dy.hinge(w.V * x, k),
        lambda x, k: dy.sum_batches(dy.pick_batch(w.V * x, [1, k])),
        lambda x, k: dy.sum_elems(dy.pick(dy.tanh(w.V * x), k)),
        lambda x, k: dy.sum_elems(dy.select_cols(w.W, [0, k]) * x[:2]),
        lambda x, k: dy.sum_elems(dy.cmult(w.E[k], x)),
    )
    for loss in losses:
        f = dy.compile(loss, backward=True)
        value = f(np.ones(12), 2)
        with pytest.raises(IndexError):
            f(np.ones(12), 2_000_000_000)
        assert dy.explain_batches(f).kinds  # which runs it
        assert f(np.ones(12), 2) == value


def test_wrong_arguments(w: Weights) -> None:
    f = dy.compile(w.tagger)
    f([1, 2], [0, 1])
    for words, tags in (([1, 9], [0, 1]), ([1, 2], [0, 5]), ([-10, 1], [0, 0]), ([1, 2], [-1, 0])):
        with pytest.raises(IndexError):
            f(words, tags)
    assert np.isfinite(f([1, 2], [0, 1]))
    with pytest.raises(TypeError):
        f([1, 2])
    with pytest.raises(ValueError):
        f([1, 2], [0])
    with pytest.raises((TypeError, ValueError)):
        dy.compile(lambda x: x)(np.array(["a"]))
    with pytest.raises(ValueError, match="empty"):
        dy.compile(lambda x: x)(np.zeros(0))
    with pytest.raises(dy.errors.CompileError, match="gives"):
        dy.compile(lambda x: {w.E[x]})(1)
    with pytest.raises(TypeError, match="Python function"):
        dy.compile(3)
    with pytest.raises(TypeError, match="compiled already"):
        dy.compile(f)
    with pytest.raises(TypeError, match="trainer"):
        dy.compile(w.tagger, trainer=3)
    with pytest.raises(ValueError, match="structures"):
        dy.compile(w.tagger, structures=0)
    with pytest.raises(ValueError, match="scalar"):
        dy.compile(lambda x: w.E[x], backward=True)(1)


@pytest.mark.parametrize("kind", [dy.compile, dy.cell])
def test_calling_a_compiled_function(kind: Any) -> None:
    """It gives numbers, which there are none of yet. Recursion, too, is for the plain function."""
    double = dy.compile(lambda x: x * 2.0)

    def outer(x: Any) -> Any:
        return double(x)

    f = kind(outer)
    x = np.ones(2) if kind is dy.compile else dy.inputVector([1.0, 1.0])
    with pytest.raises(
        dy.CompileError if kind is dy.compile else dy.CellError, match="outer. calls <lambda>, a compiled"
    ):
        f(x)


@pytest.mark.parametrize("fault", ["function", "argument", "row"])
def test_random_numbers_after_a_call_that_failed(w: Weights, fault: str) -> None:
    """They are those that follow where the function itself fails."""

    def f(x: Any, k: int) -> Any:
        if fault == "function" and k == 1:
            raise KeyError(k)
        return dy.dropout(w.E[k] + x, 0.5)

    found = []
    for on in (True, False):
        with dy.configure(compile=on):
            dy.reset_random_seed(3)
            g = dy.compile(f)
            numbers = [g(np.ones(12), 0)]
            for _ in range(2):
                with pytest.raises((KeyError, TypeError, IndexError)):
                    g("x" if fault == "argument" else np.ones(12), 99 if fault == "row" else 1)
                numbers += [g(np.ones(12), 0), g(np.ones(12), 2)]
            found.append(np.array(numbers))
    np.testing.assert_array_equal(*found)


def test_pythons_own() -> None:
    assert eval(dy.compile("1 + 1", "text", "eval")) == 2
    assert eval(dy.compile("__debug__", "text", "eval", 0, False, 1)) is False
    text = "def f(x: int): pass"
    for first, wanted in (("", int), ("from __future__ import annotations\n", "int")):
        inside: dict[str, Any] = {"dy": dy, "text": text}
        exec(compile(f"{first}code = dy.compile(text, 'text', 'exec')", "outside", "exec", dont_inherit=True), inside)
        exec(inside["code"], inside)
        assert inside["f"].__annotations__ == {"x": wanted}


def test_no_heap_calls_once_warm(w: Weights) -> None:
    f = dy.compile(w.tagger, trainer=dy.SimpleSGDTrainer(w.pc))
    for k in range(6):
        f([k, 2, 3], [0, 1, k % 5])
    before = dy.heap_calls()
    for k in range(6):
        f([k, 2, 3], [0, 1, k % 5])
    assert dy.heap_calls() == before
