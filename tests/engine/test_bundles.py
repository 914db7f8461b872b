"""Mini-batches made by concatenate_to_batch whose elements are read where they lie (rewrite/rules/bundle.cc).

Every case is one program run twice, bundled and not; the numbers must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import Model, Observed, both, each_strategy, engine, gone, gradients, inputs

import dynet_lite as dy
from dynet_lite import _core, structure

N, OUT = 20, 12
Reader = Callable[[Model, list[Any]], Any]


def bundled() -> int:
    """How many lists are read where they lie."""
    return sum(node.sort == "fused" and node.op == "concatenate_to_batch" for node in structure.read().nodes)


def lists(count: int) -> None:
    assert bundled() == (count if _core.settings.fuse else 0)


def chain(model: Model, k: int, length: int) -> list[Any]:
    """States of a recurrence."""
    W, states = model.weight("recurrent", N, N), inputs(k, n=N, count=1)
    for _ in range(length):
        states.append(dy.tanh(W * states[-1]))
    return states


def affine(model: Model, *xs: Any, rows: int = OUT) -> Any:
    pairs = [e for k, x in enumerate(xs) for e in (model.weight(f"W{k}", rows, N), x)]
    return dy.affine_transform([model.weight("b", rows), *pairs])


def weighted(batch: Any, k: int = 0) -> Any:
    """A sum in which no two elements weigh the same."""
    (size,), n = batch.dim()
    return dy.sum_batches(
        dy.dot_product(batch, dy.inputTensor(np.random.default_rng([k, 6]).uniform(0.5, 1.5, (size, n)), batched=True))
    )


def golden(n: int) -> list[int]:
    return [7 * k % OUT for k in range(n)]


READERS: dict[str, tuple[int, Reader]] = {  # how many lists
    "affine": (1, lambda model, xs: affine(model, dy.concatenate_to_batch(xs))),
    "affine of three": (3, lambda model, xs: affine(model, *(dy.concatenate_to_batch(some) for some in (xs, xs[::-1], xs[:1] * len(xs))))),
    "product": (1, lambda model, xs: model.weight("W", OUT, N) * dy.concatenate_to_batch(xs)),
    "product of a list transposed": (0, lambda model, xs: dy.transpose(dy.concatenate_to_batch(xs)) * dy.concatenate_to_batch(xs[::-1])),
    "concatenation": (2, lambda model, xs: dy.concatenate([dy.concatenate_to_batch(xs), dy.concatenate_to_batch(xs[::-1])])),
    "loss": (1, lambda model, xs: dy.pickneglogsoftmax_batch(affine(model, dy.concatenate_to_batch(xs)), golden(len(xs)))),
    "loss of a product": (1, lambda model, xs: dy.pickneglogsoftmax_batch(
        model.weight("W", OUT, N) * dy.concatenate_to_batch(xs), golden(len(xs)))),
}  # fmt: skip


@each_strategy
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("reader", READERS)
def test_states_of_sentences(reader: str, threads: int, strategy: str) -> None:
    """Some of them several times."""
    count, read = READERS[reader]

    def program(model: Model) -> Observed:
        xs = [x for k, length in enumerate((4, 1, 6, 4)) for x in chain(model, k, length)]
        xs += [xs[3], xs[3], xs[0]]
        first = xs[0]
        y = weighted(read(model, xs))
        del xs
        y.backward(full=True)
        lists(count)
        return {"y": y.npvalue(), **gradients(model, [first])}

    both(program, strategy=strategy, threads=threads)


def test_all_sorts_of_elements() -> None:
    """Look-ups, parameters, inputs, constants, parts of vectors, cell states."""

    def program(model: Model) -> Observed:
        table, lstm = model.table(N), dy.VanillaLSTMBuilder(1, N, N, dy.ParameterCollection())
        for p in lstm.param_collection().parameters_list():
            p.set_value(np.linspace(-0.3, 0.3, int(np.prod(p.shape()))).reshape(p.shape()))
        lstm_state = lstm.initial_state().add_input(table[2])
        long = dy.tanh(model.weight("long", 3 * N))
        held = inputs(count=2, n=N)
        elements = [table[1], table[1], model.weight("p", N), held[0], dy.zeros(N), dy.ones(N), long[N : 2 * N], long[0:N],
                    lstm_state.s()[0], lstm_state.output(), held[0], held[1], dy.nobackprop(held[1])]  # fmt: skip
        del lstm_state
        y = weighted(dy.rectify(affine(model, dy.concatenate_to_batch(elements))))
        del elements, long
        y.backward(full=True)
        lists(1)
        return {"y": y.npvalue(), **gradients(model, held)}

    both(program)


def test_several_bundles_are_one_batch() -> None:
    """Of the same number of elements; what is shared collects from all of them, those that get no gradient are left out."""

    def program(model: Model) -> Observed:
        sentences = [chain(model, k, 5) for k in range(4)]
        ys = [affine(model, dy.concatenate_to_batch(xs)) for xs in sentences]
        del sentences
        parts = [weighted(dy.tanh(y), k) for k, y in enumerate(ys)]
        loss = dy.esum([parts[0], parts[2], parts[3]])
        loss.backward()
        lists(4)
        if _core.settings.fuse:
            assert [line.split("\t")[1] for line in dy.plan_text().splitlines() if "affine_transform" in line] == [
                "affine_transform {12}X6 x 4"
            ]
        return {"loss": loss.npvalue(), "left out": ys[1].npvalue(), **gradients(model)}

    both(program)


def test_bundles_one_after_the_other() -> None:
    """Of one signature in several batches, which a later pass goes through again."""

    def program(model: Model) -> Observed:
        x = chain(model, 0, 3)
        square = [model.weight("b", N), model.weight("W", N, N)]
        found: Observed = {}
        for _ in range(3):
            y = dy.tanh(dy.affine_transform([*square, dy.concatenate_to_batch(x)]))
            x = [dy.pick_batch_elem(y, e) for e in (1, 0, 3, 2)]
        loss = weighted(y)
        for k in range(2):
            loss.backward(full=True)
            found.update({f"{k} {name}": grad for name, grad in gradients(model).items()})
        lists(3)
        return {"loss": loss.npvalue(), **found}

    both(program)


def test_elements_that_want_no_gradient_and_weights_that_are_not_trained() -> None:
    for trained in ("W0", "b", "recurrent"):

        def program(model: Model, trained: str = trained) -> Observed:
            weights = {
                "recurrent": model.weight("recurrent", N, N),
                "W0": model.weight("W0", OUT, N),
                "b": model.weight("b", OUT),
            }
            for name, p in weights.items():
                p.set_updated(name == trained)
            loss = weighted(affine(model, dy.concatenate_to_batch(chain(model, 0, 4) + inputs(1, n=N))))
            loss.backward()
            lists(1)
            return {"loss": loss.npvalue(), **gradients(model)}

        both(program)


def test_built_in_steps() -> None:
    """Values that have run, and a program that goes on after its first part was read; then back, and on another way."""

    def program(model: Model) -> Observed:
        xs = chain(model, 0, 4)
        found = {"read": xs[2].npvalue()}
        first = weighted(affine(model, dy.concatenate_to_batch(xs)))
        found["first"] = first.npvalue()
        lists(1)
        dy.cg_checkpoint()
        found["gone"] = weighted(affine(model, dy.concatenate_to_batch(xs[1:]))).npvalue()
        lists(2)
        dy.cg_revert()
        lists(1)
        second = first + weighted(affine(model, dy.concatenate_to_batch(xs[:2] + xs)))
        second.backward()
        lists(2)
        return {**found, "second": second.npvalue(), **gradients(model)}

    both(program)


def test_inputs_that_change() -> None:
    def program(model: Model) -> Observed:
        x = dy.vecInput(N)
        x.set(np.linspace(-1, 1, N))
        y = weighted(affine(model, dy.concatenate_to_batch([dy.tanh(x), x, *inputs(n=N)])))
        before = y.npvalue()
        x.set(np.linspace(2, 1, N))
        after = y.npvalue(recalculate=True)
        y.backward()
        lists(1)
        assert before != after
        return {"before": before, "after": after, **gradients(model)}

    both(program)


def test_what_stays() -> None:
    """Lists that somebody can ask for or that several read, of mini-batches, of one element; a mini-batch of another kind."""

    def program(model: Model) -> Observed:
        xs = chain(model, 0, 3)
        held = dy.concatenate_to_batch(xs)
        read = dy.concatenate_to_batch(xs[::-1])
        batch = dy.lookup_batch(model.table(N), [0, 1, 2, 3])
        ys = [
            affine(model, held),
            affine(model, read) + affine(model, dy.square(read)),
            affine(model, dy.concatenate_to_batch([batch, xs[0]])),
            affine(model, dy.concatenate_to_batch([xs[2]])),
            affine(model, dy.concatenate_to_batch(xs), batch),
            dy.tanh(dy.concatenate_to_batch(xs)),
        ]
        del read
        loss = dy.esum([dy.sum_batches(dy.squared_norm(y)) for y in ys])
        del ys
        loss.backward(full=True)
        assert bundled() == 0
        return {"loss": loss.npvalue(), "held": held.npvalue(), "gradient": held.gradient(), **gradients(model)}

    both(program)


def test_what_was_between_is_gone_and_counted_out() -> None:
    with engine():
        model = Model()
        y = affine(model, dy.concatenate_to_batch(chain(model, 0, 4)))
        y.forward()
        numbers = {what.split(" ")[0]: n for n, what, *_ in dy.cg().nodes()}
        assert gone(numbers["concatenate_to_batch"]) and not gone(numbers["affine_transform"])
        assert dy.stats()["nodes"] == 4 + 4 + 1  # products, tanh, one map


def test_states_that_are_the_same_are_multiplied_once() -> None:
    """Sentences that begin alike: one row of scores for both."""
    for merge in (True, False):
        with engine(merge=merge):
            model = Model()
            xs = [x for length in (2, 3) for x in chain(model, 0, length)[1:]]
            loss = dy.sum_batches(dy.pickneglogsoftmax_batch(affine(model, dy.concatenate_to_batch(xs)), golden(5)))
            del xs
            value = loss.value()
            loss.backward()
            found = gradients(model)
            lists(1)
        if merge:
            wanted, wanted_gradients = value, found
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
    for name, grad in found.items():
        np.testing.assert_allclose(grad, wanted_gradients[name], rtol=1e-5, atol=1e-6)


def test_lists_of_other_lengths_are_other_bundles() -> None:
    """Two lists of three have as many elements as three lists of two."""

    def program(model: Model) -> Observed:
        matrix = dy.inputTensor(np.linspace(-1, 1, 12).reshape(4, 3))
        xs = [dy.tanh(matrix * (k + 1.0)) for k in range(6)]
        batch = dy.concatenate_to_batch
        two = dy.concatenate([batch(xs[:3]), batch(xs[3:])])
        three = dy.concatenate([batch(xs[:2]), batch(xs[2:4]), batch(xs[4:])])
        del xs
        loss = dy.sum_batches(dy.sum_elems(dy.square(two))) + dy.sum_batches(dy.sum_elems(three))
        loss.backward(full=True)
        lists(5)
        return {"two": two.npvalue(), "three": three.npvalue(), **gradients(model, [matrix])}

    both(program)


def test_an_explanation_tells_lengths_apart() -> None:
    with engine():
        model = Model()
        ys = [affine(model, dy.concatenate_to_batch(chain(model, k, 1 + k))) for k in range(2)]
        dy.esum([weighted(y) for y in ys]).forward()
        why = str(dy.explain_batches().why(*ys))
        assert "{20}X2" in why and "{20}X3" in why


# ---- threads -----------------------------------------------------------------------------------------------------------


def stages() -> list[int]:
    """Of each plan: 0 all there is, or the head; 1 a lane; 2 the tail."""
    return [stage for _, stage, *_ in _core.graph_plans(dy.cg())]


def agree(found: Observed, wanted: Observed) -> None:
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@each_strategy
def test_examples_are_lanes_until_they_are_one_mini_batch(strategy: str) -> None:
    """What follows the mini-batch is the tail, sums of losses that are not of it as well."""

    def program(model: Model) -> Observed:
        sentences = [chain(model, k, 3 + k % 4) for k in range(12)]
        own = dy.esum([weighted(xs[-1]) for xs in sentences])
        hidden = dy.tanh(affine(model, dy.concatenate_to_batch([x for xs in sentences for x in xs]), rows=N))
        loss = dy.sum_batches(dy.pickneglogsoftmax_batch(affine(model, hidden), golden(hidden.dim()[1]))) + own
        first = sentences[0][0]
        del sentences, hidden
        loss.backward(full=True)
        assert stages() == ([1, 1, 2] if threads == 2 else [0])
        return {"loss": loss.npvalue(), **gradients(model, [first])}

    for threads in (1, 2):
        found = both(program, strategy=strategy, threads=threads)
        if threads == 1:
            alone = found
    agree(found, alone)


def test_mini_batches_inside_examples_are_dealt_with_them() -> None:
    """Examples that do not hang together by them stay examples."""

    def program(model: Model) -> Observed:
        losses = []
        for k in range(6):
            memory = dy.concatenate_to_batch([model.table(N)[w] for w in range(1 + k % 3, 5)])
            losses.append(weighted(dy.tanh(affine(model, memory)), k))
        loss = dy.esum(losses)
        del losses, memory
        loss.backward()
        assert stages() == [1, 1, 2]
        return {"loss": loss.npvalue(), **gradients(model)}

    both(program, threads=2)


def test_threads_share_the_calls_of_a_bundle() -> None:
    """Also where gradients of some elements meet: then they are added later."""

    def program(model: Model) -> Observed:
        sentences = [chain(model, k, 4) for k in range(4)]
        elements = [x for xs in sentences for x in (*xs, xs[0], *xs[2:])]
        loss = weighted(affine(model, dy.concatenate_to_batch(elements)))
        once_more = dy.sum_batches(
            dy.pickneglogsoftmax_batch(affine(model, dy.concatenate_to_batch(elements)), golden(len(elements)))
        )
        xs = [sentences[0][0], sentences[3][0]]
        total = loss + once_more
        del sentences, elements, once_more
        for _ in range(2):
            total.backward(full=True)
        return {"total": total.npvalue(), **gradients(model, xs)}

    for merge in (True, False):
        one, two = (both(program, threads=threads, merge=merge) for threads in (1, 2))
        agree(two, one)


def test_gates_over_states_and_over_the_mini_batch_of_them() -> None:
    """What is joined in a lane is not read by the tail."""

    def program(model: Model) -> Observed:
        def gate(h: Any) -> Any:
            parts = (
                dy.affine_transform([model.weight("b", N), model.weight(name, N, N), h]) for name in ("gate", "new")
            )
            return dy.cmult(dy.logistic(next(parts)), dy.tanh(next(parts)))

        states = [chain(model, k, 1)[1] for k in range(4)]
        batch = dy.tanh(affine(model, dy.concatenate_to_batch(states), rows=N))
        p, q = dy.pick_batch_elem(batch, 0), dy.pick_batch_elem(batch, 1)
        W = model.weight("W", N, N)
        total = dy.squared_norm(W * dy.tanh(p + gate(states[1])) + W * dy.tanh(p + gate(q))) + dy.squared_norm(
            states[3]
        )
        total += dy.squared_norm(dy.cmult(p, gate(states[2])))
        del batch, p, q, states
        found: Observed = {}
        for k in range(2):
            total.backward()
            found.update({f"{k} {name}": grad for name, grad in gradients(model).items()})
        return {"total": total.npvalue(), **found}

    one, two = (both(program, threads=threads) for threads in (1, 2))
    agree(two, one)
