"""Rows that occur several times in a product, the vectors of frequent words, are multiplied once: counts, and that nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import Array, Model, engine, near

import dynet_lite as dy

ROWS, SIZE, OUT = 30, 24, 20
Words = list[int]
Scores = Callable[[Model, Words], list[Any]]


def words(count: int, rows: int = ROWS) -> Words:
    return [k * k % rows for k in range(count)]


def vectors(model: Model, ids: Words) -> list[Any]:
    table = model.table(SIZE, rows=ROWS)
    return [table[i] for i in ids]


def product(model: Model, ids: Words) -> list[Any]:
    return [model.weight("W", OUT, SIZE) * x for x in vectors(model, ids)]


def affine(model: Model, ids: Words) -> list[Any]:
    return [dy.affine_transform([model.weight("b", OUT), model.weight("W", OUT, SIZE), x]) for x in vectors(model, ids)]


def affine_of_two(model: Model, ids: Words) -> list[Any]:
    """Each with the vector of the word before it: the product of the second is added to that of the first."""
    xs = vectors(model, ids)
    weights = model.weight("b", OUT), model.weight("W", OUT, SIZE), model.weight("V", OUT, SIZE)
    return [
        dy.affine_transform([weights[0], weights[1], x, weights[2], before])
        for x, before in zip(xs, xs[-1:] + xs, strict=False)
    ]


def joined(model: Model, ids: Words) -> list[Any]:
    """Two maps of the same vector, which become one node."""
    maps = [(model.weight(f"b{k}", OUT), model.weight(f"W{k}", OUT, SIZE)) for k in range(2)]
    return [dy.cmult(*(dy.logistic(dy.affine_transform([b, W, x])) for b, W in maps)) for x in vectors(model, ids)]


def hidden(model: Model, ids: Words) -> list[Any]:
    """Vectors that are computed, each read by many."""
    near_words = [dy.tanh(x) for x in vectors(model, list(range(ROWS)))]
    return [model.weight("W", OUT, SIZE) * near_words[i] for i in ids]


WAYS: dict[str, Scores] = {f.__name__: f for f in (product, affine, affine_of_two, joined, hidden)}


def observe(scores: Scores, ids: Words, **how: Any) -> tuple[list[Array], int]:
    """Loss and gradients, and how many rows were not multiplied."""
    model = Model()
    with engine(**how):
        loss = dy.esum([dy.squared_norm(dy.tanh(y)) for y in scores(model, ids)])
        value = loss.numpy()
        loss.backward()
        repeated = dy.stats()["rows_repeated"]
        return [value, *model.gradients().values()], repeated


def agree(a: list[Array], b: list[Array]) -> None:
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        near(x, y, 1e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [127, 128, 400])
@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_changes(way: str, count: int, threads: int) -> None:
    given, repeated = observe(WAYS[way], words(count), threads=threads)
    wanted, never = observe(WAYS[way], words(count), strategy="none")
    agree(given, wanted)
    assert never == 0
    if threads == 1:
        assert (repeated > 0) == (count >= 128)


@pytest.mark.parametrize(("way", "products"), [("product", 1), ("affine", 1), ("affine_of_two", 2), ("joined", 2)])
def test_each_word_is_multiplied_once(way: str, products: int) -> None:
    """Forward, and backward for the vectors and for the matrix (joined maps have one product there)."""
    ids = words(400)
    spared = len(ids) - len(set(ids))
    _, repeated = observe(WAYS[way], ids)
    assert repeated == spared * (3 * products if way != "joined" else 2 + 1 + 1)


def test_different_words() -> None:
    """Nothing is spared where nothing repeats, nor where hardly anything does."""
    model = Model()
    with engine():
        table = model.table(SIZE, rows=400)
        for first, ids in (
            ("distinct", range(400)),
            ("hardly", [*range(380), *range(20)]),
            ("half", [*range(200)] * 2),
        ):
            dy.renew_cg()
            dy.esum([dy.squared_norm(model.weight("W", OUT, SIZE) * table[i]) for i in ids]).backward()
            assert dy.stats()["rows_repeated"] == (3 * 200 if first == "half" else 0), first


def test_words_that_are_not_trained() -> None:
    """Lookups without update of the same rows beside others: the rows are one memory, only some have a gradient."""

    def scores(model: Model, ids: Words) -> list[Any]:
        table, W = model.table(SIZE, rows=ROWS), model.weight("W", OUT, SIZE)
        return [W * (dy.lookup(table, i, update=False) if k % 3 else table[i]) for k, i in enumerate(ids)]

    given, repeated = observe(scores, words(300))
    wanted, _ = observe(scores, words(300), strategy="none")
    agree(given, wanted)
    assert repeated > 0


def test_gradients_of_each_occurrence() -> None:
    """Of the products, which may be asked for one by one, though they are added up for the word."""
    model = Model()
    ids = words(200)
    with engine():
        ys = product(model, ids)
        factors = np.random.default_rng(1).normal(size=len(ids))
        dy.esum([f * dy.sum_elems(y) for f, y in zip(factors, ys, strict=True)]).backward(full=True)
        assert dy.stats()["rows_repeated"] > 0
        for f, y in zip(factors, ys, strict=True):
            np.testing.assert_allclose(y.gradient(), np.full(OUT, f), rtol=1e-6)


def test_no_heap_call() -> None:
    model = Model()
    with engine():
        calls = []
        for _ in range(4):
            dy.renew_cg()
            dy.esum([dy.squared_norm(y) for y in affine_of_two(model, words(400))]).backward()
            calls.append(dy.stats()["heap_calls"])
    assert calls[-1] == calls[-2]
