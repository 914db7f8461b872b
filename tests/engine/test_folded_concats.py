"""Concatenations whose parts products read where they lie (rewrite/rules/concat.cc).

Every case is one program run twice, folded and not; the numbers must agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fused_programs import Model, Observed, both, each_strategy, engine, gone, gradients

import dynet_lite as dy
from dynet_lite import _core, structure

WORD, TAG, OUT = 24, 16, 20


def folded() -> list[str]:
    return [node.op for node in structure.read().nodes if node.sort == "op" and node.op.endswith("(concatenate)")]


def how_many(count: int) -> None:
    assert len(folded()) == (count if _core.settings.fuse else 0)


def word_and_tag(model: Model, k: int) -> Any:
    return dy.concatenate([model.table(WORD, rows=30)[k * k % 30], model.table(TAG, rows=9)[k % 9]])


def affine(model: Model, x: Any, name: str = "W") -> Any:
    return dy.affine_transform([model.weight("b" + name, OUT), model.weight(name, OUT, WORD + TAG), x])


def observe(model: Model, ys: list[Any]) -> Observed:
    loss = dy.esum([dy.squared_norm(dy.tanh(y)) for y in ys])
    del ys
    loss.backward()
    return {"loss": loss.npvalue(), **gradients(model)}


@each_strategy
@pytest.mark.parametrize("threads", [1, 2])
def test_word_and_tag(strategy: str, threads: int) -> None:
    def program(model: Model) -> Observed:
        found = observe(model, [affine(model, word_and_tag(model, k)) for k in range(200)])
        how_many(200)
        if _core.settings.fuse and strategy == "greedy" and threads == 1:
            assert dy.stats()["rows_repeated"] > 6 * 100  # three products of two parts
        return found

    both(program, strategy=strategy, threads=threads)


def test_products() -> None:
    def program(model: Model) -> Observed:
        found = observe(model, [model.weight("W", OUT, WORD + TAG) * word_and_tag(model, k) for k in range(9)])
        how_many(9)
        return found

    both(program)


def test_several_inputs() -> None:
    """Beside a concatenation another vector, and a second concatenation that cannot be folded."""

    def program(model: Model) -> Observed:
        ys = []
        for k in range(9):
            two = dy.concatenate([dy.tanh(model.table(WORD, rows=30)[k]), model.weight("c", TAG)])
            ys.append(dy.affine_transform([
                model.weight("b", OUT),
                model.weight("W", OUT, WORD + TAG), word_and_tag(model, k),
                model.weight("V", OUT, TAG), model.table(TAG, rows=9)[k],
                model.weight("U", OUT, WORD + TAG), two,
            ]))  # fmt: skip
        del two
        found = observe(model, ys)
        how_many(9)
        return found

    both(program)


def test_a_part_that_is_a_weight() -> None:
    def program(model: Model) -> Observed:
        found = observe(
            model,
            [affine(model, dy.concatenate([model.table(WORD)[k % 7], model.weight("c", TAG)])) for k in range(150)],
        )
        how_many(150)
        return found

    both(program)


@pytest.mark.parametrize("batch", [1, 3])
def test_mini_batches_by_hand(batch: int) -> None:
    def program(model: Model) -> Observed:
        words, tags = model.table(WORD, rows=30), model.table(TAG, rows=9)
        ys = []
        for k in range(5):
            x = dy.concatenate(
                [dy.lookup_batch(words, [k + e for e in range(batch)]), dy.lookup_batch(tags, list(range(batch)))]
            )
            ys.append(dy.sum_batches(dy.square(affine(model, x))))
        del x
        found = observe(model, ys)
        how_many(5)
        return found

    both(program)


@pytest.mark.parametrize("name", ["VanillaLSTMBuilder", "GRUBuilder", "SimpleRNNBuilder"])
def test_both_directions_read_it(name: str) -> None:
    def program(model: Model) -> Observed:
        dy.reset_random_seed(5)
        ahead, back = (getattr(dy, name)(1, WORD + TAG, 10, model.pc) for _ in range(2))
        for number, builder in enumerate((ahead, back)):
            model.made.update({(number, p.name()): p for p in builder.param_collection().parameters_list()})
        ys = []
        for sentence in range(5):
            xs = [word_and_tag(model, sentence + k) for k in range(3 + sentence)]
            ys += ahead.initial_state().transduce(xs)
            ys += back.initial_state().transduce(xs[::-1])
        del xs
        found = observe(model, ys)
        how_many(2 * 25)
        return found

    both(program)


def test_what_stays() -> None:
    """A concatenation that somebody can ask for, or reads in another way; that has no look-up, or small parts, or many."""

    def program(model: Model) -> Observed:
        words, tags = model.table(WORD, rows=30), model.table(TAG, rows=9)
        small = model.table(8, rows=4)
        held = word_and_tag(model, 3)
        read = word_and_tag(model, 4)
        extra = dy.sum_elems(dy.square(read))
        computed = dy.concatenate([dy.tanh(words[1]), dy.tanh(tags[1])])
        little = dy.concatenate([words[1], small[1], small[2]])
        many = dy.concatenate([small[k % 4] for k in range(5)])
        columns = dy.concatenate([dy.reshape(words[2], (WORD, 1)), dy.reshape(words[3], (WORD, 1))], d=1)
        ys = [affine(model, x, f"W{k}") for k, x in enumerate((held, read, computed, little))]
        ys += [extra, model.weight("M", OUT, 40) * many, dy.reshape(model.weight("C", OUT, WORD) * columns, (2 * OUT,))]
        del read, computed, little, many, columns, extra
        found = observe(model, ys)
        del ys
        how_many(0)
        return {**found, "held": held.npvalue()}

    both(program)


def test_a_signature_stays_in_one_piece() -> None:
    """Words with a tag and vectors that are computed go through the same map: they stay one batch."""

    def program(model: Model) -> Observed:
        xs = [word_and_tag(model, k) if k % 3 else dy.tanh(model.weight("t", WORD + TAG)) for k in range(9)]
        ys = [affine(model, x) for x in xs]
        del xs
        found = observe(model, ys)
        how_many(0)
        return found

    both(program)


def test_read_by_two_threads() -> None:
    """A product of one thread's share and one of what follows all shares read the same concatenation."""

    def program(model: Model) -> Observed:
        words, tags = model.table(WORD, rows=200), model.table(TAG, rows=200)
        xs = [dy.concatenate([words[k], tags[k]]) for k in range(80)]
        states = dy.tanh(dy.concatenate_to_batch([dy.tanh(model.weight("W", OUT, WORD + TAG) * x) for x in xs]))
        ys = []
        for k, x in enumerate(xs):
            state = dy.pick_batch_elem(states, k)
            ys.append(dy.affine_transform([
                model.weight("b", OUT), model.weight("V", OUT, WORD + TAG), x, model.weight("U", OUT, OUT), state,
            ]))  # fmt: skip
            ys.append(model.weight("R", OUT, OUT + TAG) * dy.concatenate([tags[100 + k], state]))
        del xs, x, states, state
        return observe(model, ys)

    both(program, threads=2)


def test_gates_that_are_joined_are_left_to_that() -> None:
    def program(model: Model) -> Observed:
        ys = []
        for k in range(5):
            x = word_and_tag(model, k)
            ys.append(dy.cmult(dy.logistic(affine(model, x, "Wi")), dy.tanh(affine(model, x, "Wg"))))
        del x
        found = observe(model, ys)
        how_many(0)
        return found

    both(program)


def test_nobody_can_ask_for_it() -> None:
    model = Model()
    with engine():
        x = word_and_tag(model, 1)
        number = _core.expression_node(x)[1]
        y = affine(model, x)
        del x
        loss = dy.squared_norm(y) + 0 * dy.squared_norm(affine(model, word_and_tag(model, 2)))
        loss.value()
        how_many(2)
        assert gone(number)
        with pytest.raises((ValueError, IndexError)):
            dy.cg().expression(number)
        loss.backward()
        again = loss.value(recalculate=True)
        assert again == pytest.approx(loss.value())
        np.testing.assert_allclose(y.npvalue(), affine(model, word_and_tag(model, 1)).npvalue(), rtol=1e-6)
