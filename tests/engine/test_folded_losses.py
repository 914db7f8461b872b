"""Losses that run as one node with the map that makes their scores (rewrite/rules/loss.cc).

Every case is one program run twice, folded and not; the numbers must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import Model, Observed, both, each_strategy, engine, gone, gradients, near, numbered

import dynet_lite as dy
from dynet_lite import _core, structure

Way = Callable[[Any, Any, Any], Any]
WAYS: dict[str, Way] = {
    "affine_transform": lambda w, x, b: dy.affine_transform([b, w, x]),
    "product": lambda w, x, b: w * x,
    "product + bias": lambda w, x, b: w * x + b,
    "bias + product": lambda w, x, b: b + w * x,
}
each_way = pytest.mark.parametrize("way", WAYS)
CLASSES = (1, 5, 45, 128, 129, 300)  # one piece of classes, several, a last one of one class: ops/affine_loss.cc
K = 7


def folded() -> list[str]:
    """The texts of losses that ran as one node with their map."""
    return [
        node.op for node in structure.read().nodes if node.sort == "op" and node.op.startswith("pickneglogsoftmax(")
    ]


def batches_of_folded() -> int:
    return sum("pickneglogsoftmax(" in line for line in dy.cg().plan_text().splitlines())


def vectors(count: int, batch: int = 1, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng([seed, count, batch])
    shape = (K, batch) if batch > 1 else (K,)
    return [dy.inputTensor(rng.uniform(-1, 1, shape), batched=batch > 1) for _ in range(count)]


def labels(classes: int, count: int, seed: int = 1) -> list[int]:
    return [int(v) for v in np.random.default_rng([seed, classes]).integers(classes, size=count)]


def scores(model: Model, way: str, x: Any, classes: int = 45) -> Any:
    return WAYS[way](model.weight("W", classes, K), x, model.weight("b", classes))


def losses(model: Model, way: str, xs: list[Any], classes: int = 45) -> list[Any]:
    return [dy.pickneglogsoftmax(scores(model, way, x, classes), v)
            for x, v in zip(xs, labels(classes, len(xs)), strict=True)]  # fmt: skip


def observe(model: Model, loss: Any, xs: list[Any]) -> Observed:
    loss.backward(full=True)
    return {"loss": loss.npvalue(), **gradients(model, xs)}


# ---- values and gradients -------------------------------------------------------------------------------------------


@each_strategy
@each_way
def test_the_numbers_are_the_same(way: str, strategy: str) -> None:
    def program(model: Model) -> Observed:
        found = []
        for classes in CLASSES:
            dy.renew_cg()
            model.made.clear()
            xs = vectors(9)
            found.append(observe(model, dy.esum(losses(model, way, xs, classes)), xs))
            assert len(folded()) == (9 if _core.settings.fuse else 0)
        return numbered(*found)

    both(program, strategy=strategy)


@pytest.mark.parametrize("classes", [300, 700])
@pytest.mark.parametrize("count", [1, 15, 16, 79, 500, 1000])
def test_many_examples(count: int, classes: int) -> None:
    """More than one piece of examples takes, forward and backward; with many classes vectors are put in order first."""

    def program(model: Model) -> Observed:
        xs = vectors(count)
        mixed = [xs[k] for k in np.random.default_rng(count).permutation(count)]
        found = observe(model, dy.esum(losses(model, "affine_transform", mixed, classes)), xs)
        lanes = max(1, sum(stage == 1 for _, stage, *_ in _core.graph_plans(dy.cg())))
        assert lanes >= min(count, _core.settings.threads)
        assert batches_of_folded() == (lanes if _core.settings.fuse else 0)
        return found

    both(program)
    both(program, threads=2)


@pytest.mark.parametrize("size", [16, 128, 256])
def test_long_vectors(size: int) -> None:
    """Columns of the copies that products read are a line farther apart than columns are long, where that is a multiple of 8 lines."""

    def program(model: Model) -> Observed:
        rng = np.random.default_rng(size)
        xs = [dy.inputTensor(x) for x in rng.uniform(-1, 1, (100, size))]
        w, b = model.weight("W", 600, size), model.weight("b", 600)
        each = [dy.pickneglogsoftmax(w * dy.tanh(x) + b, v) for x, v in zip(xs, labels(600, 100), strict=True)]
        return observe_all(model, each)

    both(program, gtol=1e-4)


@each_way
def test_mini_batches_by_hand(way: str) -> None:
    def program(model: Model) -> Observed:
        found = []
        for classes in (5, 300):
            xs = vectors(3, 4)
            each = [
                dy.pickneglogsoftmax_batch(scores(model, way, x, classes), labels(classes, 4, k))
                for k, x in enumerate(xs)
            ]
            loss = dy.sum_batches(dy.esum([dy.cmult(e, dy.inputTensor([1, 2, 0, 3], batched=True)) for e in each]))
            found.append(observe(model, loss, xs))
        assert len(folded()) == (6 if _core.settings.fuse else 0)
        return numbered(*found)

    both(program)


def test_all_ways_run_as_one_batch() -> None:
    with engine():
        model = Model()
        xs = vectors(12)
        ways = [way for way in WAYS if way != "product"]
        each = [dy.pickneglogsoftmax(scores(model, ways[k % 3], x), k) for k, x in enumerate(xs)]
        dy.esum(each).value()
        assert len(folded()) == 12 and batches_of_folded() == 1
        assert set(folded()) == {"pickneglogsoftmax(affine_transform)"}


def test_against_numpy() -> None:
    with engine():
        model = Model()
        xs = vectors(4)
        loss = dy.esum([s * (k + 1) for k, s in enumerate(losses(model, "affine_transform", xs, 300))])
        loss.backward(full=True)
        w, b = (np.asarray(model.made[key].as_array(), dtype=np.float64) for key in (("W", (300, K)), ("b", (300,))))
        total, dw, db = 0.0, np.zeros_like(w), np.zeros_like(b)
        for k, (x, label) in enumerate(zip(xs, labels(300, 4), strict=True)):
            u = np.asarray(x.npvalue(), dtype=np.float64)
            z = w @ u + b
            p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            total -= (k + 1) * np.log(p[label])
            p[label] -= 1
            dw += (k + 1) * np.outer(p, u)
            db += (k + 1) * p
            near(x.gradient(), (k + 1) * (w.T @ p), 1e-5)
        near(np.array(loss.value()), np.array(total), 1e-6)
        near(model.made["W", (300, K)].grad_as_array(), dw, 1e-5)
        near(model.made["b", (300,)].grad_as_array(), db, 1e-5)


@pytest.mark.parametrize("value", [-np.inf, 1e38, -1e38, 1e4])
def test_extreme_scores(value: float) -> None:
    """A bias that takes classes out of play or brings one to the top, in each piece."""
    for at in (0, 127, 128, 299):

        def program(model: Model, at: int = at) -> Observed:
            xs = vectors(3)
            b = model.weight("b", 300)
            array = b.as_array().copy()
            array[at] = value
            b.set_value(array)
            label = at if value > 0 else (at + 1) % 300
            each = [dy.pickneglogsoftmax(scores(model, "affine_transform", x, 300), label) for x in xs]
            return observe(model, dy.esum(each), xs)

        both(program)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_comes_through(value: float) -> None:
    found = []
    for fuse in (True, False):
        with engine(fuse=fuse):
            model = Model()
            b = model.weight("b", 300)
            array = b.as_array().copy()
            array[200] = value
            b.set_value(array)
            loss = dy.pickneglogsoftmax(scores(model, "affine_transform", vectors(1)[0], 300), 3)
            loss.backward()
            found.append((loss.npvalue(), b.grad_as_array()))
    for a, c in zip(*found, strict=True):
        np.testing.assert_array_equal(a, c)


# ---- which ones ---------------------------------------------------------------------------------------------------------


def run_one(make: Callable[[Model, Any], tuple[Any, Any]]) -> int:
    """How many were folded of a program that returns its loss and what it holds on to."""
    with engine():
        loss, _held = make(Model(), vectors(1)[0])
        loss.value()
        return len(folded())


def test_only_what_nobody_can_ask_for() -> None:
    def let_go(model: Model, x: Any) -> tuple[Any, Any]:
        return dy.pickneglogsoftmax(scores(model, "product + bias", x), 3), None

    def held(model: Model, x: Any) -> tuple[Any, Any]:
        s = scores(model, "affine_transform", x)
        return dy.pickneglogsoftmax(s, 3), s

    def product_held(model: Model, x: Any) -> tuple[Any, Any]:
        s = model.weight("W", 45, K) * x
        return dy.pickneglogsoftmax(s + model.weight("b", 45), 3), s

    def read_twice(model: Model, x: Any) -> tuple[Any, Any]:
        s = scores(model, "affine_transform", x)
        return dy.pickneglogsoftmax(s, 3) + dy.pickneglogsoftmax(s, 4), None

    def two_products(model: Model, x: Any) -> tuple[Any, Any]:
        w, b = model.weight("W", 45, K), model.weight("b", 45)
        return dy.pickneglogsoftmax(dy.affine_transform([b, w, x, w, x]), 3), None

    def matrix_of_its_own(model: Model, x: Any) -> tuple[Any, Any]:
        return dy.pickneglogsoftmax(dy.inputTensor(np.ones((5, K))) * x, 3), None

    def bias_of_its_own(model: Model, x: Any) -> tuple[Any, Any]:
        return dy.pickneglogsoftmax(model.weight("W", 45, K) * x + dy.inputVector(np.ones(45)), 3), None

    def weights_alone(model: Model, x: Any) -> tuple[Any, Any]:
        return dy.pickneglogsoftmax(model.weight("W", 45, K) * model.weight("x", K), 3), None

    assert run_one(let_go) == 1
    for make in (held, product_held, read_twice, two_products, bias_of_its_own, weights_alone):
        assert run_one(make) == 0, make.__name__
    assert run_one(matrix_of_its_own) == 0


def test_nothing_is_folded_while_validity_is_checked_or_at_once() -> None:
    for how in ({"check_validity": True}, {"immediate_compute": True}):
        with engine():
            dy.renew_cg(**how)
            model = Model()
            dy.esum(losses(model, "affine_transform", vectors(3))).value()
            assert folded() == []


def test_a_computed_matrix_is_shared_too() -> None:
    """Weights tied through a table, and a matrix made of parameters."""

    def program(model: Model) -> Observed:
        xs = vectors(5)
        w = dy.tanh(model.weight("W", 45, K))
        tied = dy.transpose(model.weight("T", K, 45))
        each = [dy.pickneglogsoftmax(w * x, k) for k, x in enumerate(xs)]
        each += [dy.pickneglogsoftmax(tied * x, k) for k, x in enumerate(xs)]
        found = observe(model, dy.esum(each), xs)
        assert len(folded()) == (10 if _core.settings.fuse else 0)
        return found

    both(program)
    both(program, threads=2)


# ---- running again ------------------------------------------------------------------------------------------------------


@each_way
def test_further_passes_and_new_numbers(way: str) -> None:
    def program(model: Model) -> Observed:
        xs = vectors(6)
        each = losses(model, way, xs, 300)
        loss, part = dy.esum(each), each[1] + each[4]
        found = [observe(model, loss, xs), observe(model, part, xs), observe(model, loss, xs)]
        xs[2].set(np.linspace(-1, 1, K))
        found += [observe(model, loss, xs), observe(model, each[3], xs)]
        return numbered(*found)

    both(program)
    both(program, threads=2)


def test_losses_that_nothing_flows_into() -> None:
    """Only some of a batch take part in the gradient: first, middle, last, none of a half."""

    def program(model: Model) -> Observed:
        xs = vectors(100)
        each = losses(model, "affine_transform", xs, 129)
        found = []
        for part in (each[:1], each[40:60], each[99:], each[::3], [each[5], each[95]]):
            dy.esum(each).value()
            found.append(observe(model, dy.esum(part), xs))
        return numbered(*found)

    both(program)


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("first", [False, True])
def test_losses_times_zero(batch: int, first: bool) -> None:
    """Padding: such examples are left out of the products. Their inputs have another reader, whose gradient comes first
    or last."""

    def program(model: Model) -> Observed:
        xs = vectors(90 // batch, batch)
        hs = [dy.tanh(x) for x in xs]
        others = [dy.sum_batches(dy.sum_elems(dy.square(h))) for h in hs] if first else []
        weights = np.arange(batch * len(xs)).reshape(-1, batch) % 3
        for zeros in (weights == 0, weights == 1, weights < 3):
            weights = np.where(zeros, 0.0, weights + 1.0)
            each = []
            for h, of_x in zip(hs, weights, strict=True):
                s = scores(model, "affine_transform", h, 129)
                loss = dy.pickneglogsoftmax_batch(s, labels(129, batch)) if batch > 1 else dy.pickneglogsoftmax(s, 3)
                each.append(dy.sum_batches(dy.cmult(loss, dy.inputTensor(of_x, batched=True))))
                del s
            others = others or [dy.sum_batches(dy.sum_elems(dy.square(h))) for h in hs]
            found = observe(model, dy.esum(each + others), xs)
        return found

    both(program)


def test_after_a_mark_and_on_a_grown_graph() -> None:
    def program(model: Model) -> Observed:
        xs = vectors(4)
        first = dy.esum(losses(model, "affine_transform", xs))
        found = [{"first": first.npvalue()}]
        dy.cg().checkpoint()
        second = dy.esum(losses(model, "product + bias", xs)) + first
        found.append({"second": second.npvalue()})
        dy.cg().revert()
        third = dy.esum(losses(model, "bias + product", xs)) * 2 + first
        found.append(observe(model, third, xs))
        return numbered(*found)

    both(program)


def test_scores_made_before_the_mark_are_kept() -> None:
    def program(model: Model) -> Observed:
        xs = vectors(1)
        kept = [scores(model, "affine_transform", xs[0])]
        dy.cg().checkpoint()
        loss = dy.pickneglogsoftmax(kept.pop(), 3)
        found = {"loss": loss.npvalue()}
        dy.cg().revert()
        assert folded() == []
        return found

    both(program)


def test_asking_for_scores_that_are_gone() -> None:
    with engine():
        model = Model()
        loss = dy.esum(losses(model, "product + bias", vectors(2)))
        loss.value()
        (inside,) = {i for i, text, _, _ in dy.cg().nodes() if text.startswith("add {45}")} - set(range(8))
        assert gone(inside)
        with pytest.raises(ValueError, match="needed inside another node"):
            dy.cg().expression(inside)


def test_training_gives_the_same_weights() -> None:
    def program(model: Model) -> Observed:
        rng = np.random.default_rng(3)
        w, b, table = model.weight("W", 130, K), model.weight("b", 130), model.table(K, rows=20)
        trainer = dy.AdamTrainer(model.pc)
        found = []
        for _ in range(5):
            dy.renew_cg()
            rows, classes = rng.integers(20, size=90), rng.integers(130, size=90)
            each = [dy.pickneglogsoftmax(dy.affine_transform([b, w, dy.tanh(table[int(r)])]), int(c))
                    for r, c in zip(rows, classes, strict=True)]  # fmt: skip
            loss = dy.esum(each) * (1 / 90)
            found.append({"loss": loss.npvalue()})
            loss.backward()
            trainer.update()
        return {**numbered(*found), "b": b.as_array()}

    both(program, gtol=1e-4)
    both(program, gtol=1e-4, threads=2)


def observe_all(model: Model, losses: list[Any]) -> Observed:
    """Of their sum; the list is empty then, so that nobody refers to them."""
    loss = dy.esum(losses)
    losses.clear()
    loss.backward()
    return {"loss": loss.npvalue(), **gradients(model)}


@pytest.mark.parametrize("first", ["trained", "not trained"])
def test_one_vector_with_and_without_a_gradient(first: str) -> None:
    """The same row of memory as two nodes, of which one wants no gradient: a state and its nobackprop(), two look-ups of a row."""

    def program(model: Model) -> Observed:
        table, found = model.table(K), []
        for word in range(3):
            h = dy.tanh(model.weight("H", K, K) * table[word])
            vectors = [(h, dy.nobackprop(h)), (table[word], dy.lookup(table, word, update=False))]
            for k, pair in enumerate(vectors):
                for x in pair if first == "trained" else pair[::-1]:
                    found.append(dy.pickneglogsoftmax(scores(model, "product", x), (word + k) % 5))
        del h, vectors, pair, x
        return observe_all(model, found)

    both(program)
    both(program, merge=True)


def test_losses_of_one_vector() -> None:
    """Several labels of each, one of them twice, some losses of weight 0."""

    def program(model: Model) -> Observed:
        found = []
        for word in (0, 1, 2, 0, 1, 0):
            h = dy.tanh(model.weight("H", K, K) * model.table(K)[word])
            for label in (1, 4, 1):
                found.append(dy.pickneglogsoftmax(scores(model, "affine_transform", h), label) * (len(found) % 3))
        del h
        return observe_all(model, found)

    both(program)
    both(program, merge=True)
