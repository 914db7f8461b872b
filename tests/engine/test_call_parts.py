"""Calls whose members are dealt to threads (op/intra_op.h): graphs in which all examples hang together.

The numbers are those of one thread but for the order of sums over members; two runs with equal numbers of threads are equal
to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import Model, Observed, Random, engine, gradients, near, run, weighted

import dynet_lite as dy

each_number = pytest.mark.parametrize("threads", [2, 3])


def same(program: Callable[[Model], Observed], threads: int, gtol: float = 1e-5) -> None:
    """With one thread and with several, and with several once more."""
    found = []
    for n in (1, threads, threads):
        with engine(threads=n):
            found.append(program(Model()))
    one, several, again = found
    assert one.keys() == several.keys()
    for key, value in one.items():
        near(several[key], value, gtol, key, atol=1e-6)
        np.testing.assert_array_equal(several[key], again[key], err_msg=key)


@each_number
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_of_one_example(seed: int, threads: int) -> None:
    one, several = (run(Random(seed, affine=seed % 2 == 0, examples=1), threads=n) for n in (1, threads))
    near(np.array(several.loss), np.array(one.loss), 1e-5, atol=1e-5)
    for key, grad in one.gradients.items():
        near(several.gradients[key], grad, 1e-5, key, atol=1e-6)


def padded(model: Model, lstm: bool, steps: int = 7, batch: int = 5) -> Any:
    """A language model over a mini-batch made by hand, with a mask."""
    rng = np.random.default_rng(3)
    table = model.table(6, rows=20)
    w, b, wx, wh, c = (model.weight(name, *shape) for name, shape in
                       (("W", (130, 8)), ("b", (130,)), ("Wx", (8, 6)), ("Wh", (8, 8)), ("c", (8,))))  # fmt: skip
    h = dy.inputTensor(np.zeros((8, batch)), batched=True)
    if lstm:
        dy.reset_random_seed(3)
        builder = dy.VanillaLSTMBuilder(1, 6, 8, model.pc)
        state = builder.initial_state()
    losses = []
    for t in range(steps):
        x = dy.lookup_batch(table, [int(v) for v in rng.integers(20, size=batch)])
        if lstm:
            state = state.add_input(x)
            h = state.output()
        else:
            h = dy.tanh(wx * x + wh * h + c)
        loss = dy.pickneglogsoftmax_batch(
            dy.affine_transform([b, w, h]), [int(v) for v in rng.integers(130, size=batch)]
        )
        losses.append(dy.cmult(loss, dy.inputTensor((rng.random(batch) < 0.7 + 0.1 * (t == 0)) * 1.0, batched=True)))
    return dy.sum_batches(dy.esum(losses))


@each_number
@pytest.mark.parametrize("lstm", [False, True])
def test_mini_batches_by_hand(lstm: bool, threads: int) -> None:
    def program(model: Model) -> Observed:
        loss = padded(model, lstm)
        loss.backward()
        found = {"loss": loss.npvalue(), **gradients(model)}
        loss.backward()
        return {**found, **{f"again {key}": g for key, g in gradients(model).items()}}

    same(program, threads)


BUILDERS = ("VanillaLSTMBuilder", "CompactVanillaLSTMBuilder", "LSTMBuilder", "GRUBuilder", "SimpleRNNBuilder")


@each_number
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("name", BUILDERS)
def test_elements_of_a_mini_batch_by_hand(name: str, dropout: float, threads: int) -> None:
    """A cell of one member: the elements of its mini-batch are dealt. More than 16 steps share the transpose of a matrix."""

    def program(model: Model) -> Observed:
        rng = np.random.default_rng(6)
        dy.reset_random_seed(6)
        builder = getattr(dy, name)(1, 5, 7, model.pc)
        if dropout:
            builder.set_dropout(dropout)
        found = {}
        for batch in (2, 5, 1):
            dy.renew_cg()
            xs = [dy.inputTensor(rng.uniform(-1, 1, (5, batch)), batched=True) for _ in range(18)]
            xs[3] = dy.inputTensor(rng.uniform(-1, 1, 5))  # one for all elements
            outputs = builder.initial_state().transduce(xs)
            loss = dy.sum_batches(dy.esum([weighted(h, k) for k, h in enumerate(outputs)]))
            loss.backward(full=True)
            found[f"loss of {batch}"] = loss.npvalue()
            found.update({f"{k} of {batch}": x.gradient() for k, x in enumerate(xs)})
            found.update(
                {
                    f"{p.name()} of {batch}": p.grad_as_array().copy()
                    for p in builder.param_collection().parameters_list()
                }
            )
        return found

    same(program, threads)


@each_number
@pytest.mark.parametrize("live", [0, 1, 3, 12])
def test_steps_of_a_mask(live: int, threads: int) -> None:
    """Losses that count are dealt evenly, wherever they stand: steps behind the end of all sentences are multiplied by 0."""

    def program(model: Model) -> Observed:
        rng = np.random.default_rng(7)
        W, b = model.weight("W", 130, 8), model.weight("b", 130)
        losses = []
        for t in range(12):
            h = dy.tanh(dy.inputTensor(rng.uniform(-1, 1, (8, 4)), batched=True) + model.weight("c", 8))
            loss = dy.pickneglogsoftmax_batch(
                dy.affine_transform([b, W, h]), [int(v) for v in rng.integers(130, size=4)]
            )
            mask = np.full(4, float(t < live)) * ([1, 1, 0, 1] if t else 1)
            losses.append(dy.cmult(loss, dy.inputTensor(mask, batched=True)))
        loss = dy.sum_batches(dy.esum(losses))
        loss.backward()
        return {"loss": loss.npvalue(), **gradients(model)}

    same(program, threads)


@each_number
def test_everything_reads_one_vector(threads: int) -> None:
    """Gradients of many members go to one place, which is not dealt; those of a stacked matrix are."""

    def program(model: Model) -> Observed:
        rng = np.random.default_rng(4)
        root = dy.tanh(model.weight("r", 8) + dy.inputVector(rng.uniform(-1, 1, 8)))
        parts = []
        for k in range(9):
            own = dy.inputTensor(rng.uniform(-1, 1, (8, 8)))
            y = dy.softmax(own * root) + dy.layer_norm(dy.cmult(root, dy.inputVector(rng.uniform(-1, 1, 8))),
                                                       model.weight("g", 8), model.weight("s", 8))  # fmt: skip
            y = dy.concatenate([y, dy.logistic(model.weight("W", 8, 8) * y)])
            parts.append(weighted(dy.dropout(y, 0.0), k) + dy.pick(y, k))
        loss = dy.esum(parts)
        loss.backward()
        return {"loss": loss.npvalue(), **gradients(model)}

    same(program, threads)


@each_number
def test_attention_over_one_sentence(threads: int) -> None:
    def program(model: Model) -> Observed:
        rng = np.random.default_rng(5)
        xs = [dy.tanh(model.weight("W", 8, 8) * dy.inputVector(rng.uniform(-1, 1, 8))) for _ in range(11)]
        source = dy.concatenate_cols(xs)
        out = [source * dy.softmax(dy.transpose(source) * x) for x in xs]
        loss = dy.esum([weighted(dy.rectify(model.weight("V", 8, 8) * o), k) for k, o in enumerate(out)])
        loss.backward()
        return {"loss": loss.npvalue(), **gradients(model)}

    same(program, threads)


def test_many_elements_times_many_threads() -> None:
    """Their product has more than 31 bits."""
    rnn, n = dy.SimpleRNNBuilder(1, 1, 1, dy.ParameterCollection()), 5_000_000
    xs = np.linspace(-1, 1, n, dtype=np.float32)[None]

    def outputs(threads: int, xs: Any) -> Any:
        with dy.configure(threads=threads, overlap=False):
            dy.renew_cg()
            x = dy.inputTensor(xs, batched=True)
            return rnn.initial_state().add_input(x).add_input(x).output().npvalue()[0]

    some = slice(None, None, 4096)
    np.testing.assert_allclose(outputs(512, xs)[some], outputs(1, xs[:, some]), atol=1e-6)
