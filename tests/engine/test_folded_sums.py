"""Sums of products and a bias that run as one affine map (rewrite/rules/sum.cc).

Every case is one program run twice, folded and not; the numbers must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import Model, Observed, both, each_strategy, engine, gone, gradients, inputs

import dynet_lite as dy
from dynet_lite import _core, structure

N, H = 9, 12
Terms = dict[str, Any]
Way = Callable[[Terms], Any]


def terms(model: Model, x: Any, y: Any) -> Terms:
    """Weights, vectors, and products by lambda: each call is a new node."""
    W, U, V = (model.weight(name, H, N) for name in "WUV")
    return {"W": W, "U": U, "V": V, "x": x, "y": y, "b": model.weight("b", H), "c": model.weight("c", H),
            "e": dy.tanh(dy.affine_transform([model.weight("c", H), V, x])), "A": lambda b, *wx: dy.affine_transform([b, *wx])}  # fmt: skip


# A way to write a sum, and the op that it is in the end: of the sum itself, or of one of its terms.
WAYS: dict[str, tuple[Way, str]] = {
    "W x + b": (lambda t: t["W"] * t["x"] + t["b"], "affine_transform"),
    "b + W x": (lambda t: t["b"] + t["W"] * t["x"], "affine_transform"),
    "W x + U y + b": (lambda t: t["W"] * t["x"] + t["U"] * t["y"] + t["b"], "affine_transform"),
    "W x + (b + U y)": (lambda t: t["W"] * t["x"] + (t["b"] + t["U"] * t["y"]), "affine_transform"),
    "list": (lambda t: dy.esum([t["W"] * t["x"], t["b"], t["U"] * t["y"]]), "affine_transform"),
    "W x + U y": (lambda t: t["W"] * t["x"] + t["U"] * t["y"], "matmul + matmul"),
    "W x + U y + V x": (lambda t: t["W"] * t["x"] + t["U"] * t["y"] + t["V"] * t["x"], "matmul + matmul + matmul"),
    "W x + W y + b": (lambda t: t["W"] * t["x"] + t["W"] * t["y"] + t["b"], "affine_transform"),
    "W x + e + U y": (lambda t: t["W"] * t["x"] + t["e"] + t["U"] * t["y"], "matmul + matmul"),
    "e + W x + U y + b": (lambda t: t["e"] + t["W"] * t["x"] + t["U"] * t["y"] + t["b"], "affine_transform"),
    "W x + U y + b + c": (lambda t: t["W"] * t["x"] + t["U"] * t["y"] + t["b"] + t["c"], "affine_transform"),
    "map + U y": (lambda t: t["A"](t["b"], t["W"], t["x"]) + t["U"] * t["y"], "affine_transform"),
    "map + U y + c": (lambda t: t["A"](t["b"], t["W"], t["x"]) + t["U"] * t["y"] + t["c"], "affine_transform"),
    "map + map + V x": (lambda t: t["A"](t["b"], t["W"], t["x"]) + t["A"](t["c"], t["U"], t["y"]) + t["V"] * t["x"], "affine_transform"),
}  # fmt: skip
each_way = pytest.mark.parametrize("way", WAYS)


def count(op: str) -> int:
    """Nodes that ran as this op."""
    return sum(node.sort == "op" and node.op == op for node in structure.read().nodes)


def products_alone() -> int:
    return count("matmul")


def batched(n: int, batch: int, seed: int) -> list[Any]:
    rng = np.random.default_rng([seed, batch])
    return [dy.inputTensor(rng.uniform(-1, 1, (N, batch)), batched=True) for _ in range(n)]


def program(way: str, read: Callable[[Any], Any], batch: int = 1, examples: int = 3) -> Callable[[Model], Observed]:
    def run(model: Model) -> Observed:
        xs, ys = (batched(examples, batch, k) if batch > 1 else inputs(k, N, examples) for k in range(2))
        loss = dy.esum(
            [
                dy.sum_batches(dy.squared_norm(read(WAYS[way][0](terms(model, x, y)))))
                for x, y in zip(xs, ys, strict=True)
            ]
        )
        loss.backward(full=True)
        return {"loss": loss.npvalue(), **gradients(model, [*xs, *ys])}

    return run


# Elementwise, not elementwise, nothing at all: the map is read by fused nodes or not.
READS: dict[str, Callable[[Any], Any]] = {"tanh": dy.tanh, "softmax": dy.softmax, "nothing": lambda e: e}


@each_way
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("batch", [1, 3])
def test_ways_to_write_a_sum(way: str, read: str, batch: int) -> None:
    both(program(way, READS[read], batch))
    with engine():
        program(way, READS[read], batch)(Model())
        assert count(WAYS[way][1]) >= 3
        assert products_alone() == 0


@each_strategy
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", ["W x + U y + b", "e + W x + U y + b", "W x + U y"])
def test_strategies_and_threads(way: str, threads: int, strategy: str) -> None:
    both(program(way, dy.tanh, examples=6), strategy=strategy, threads=threads)


def gates(model: Model, x: Any, h: Any, ops: bool) -> Any:
    def gate(name: str) -> Any:
        w, u, b = model.weight("W" + name, H, N), model.weight("U" + name, H, H), model.weight("b" + name, H)
        return w * x + u * h + b if ops else dy.affine_transform([b, w, x, u, h])

    return dy.cmult(dy.logistic(gate("i")), dy.tanh(gate("u"))) + dy.cmult(dy.logistic(gate("f")), h)


def test_gates_run_as_those_of_affine_transform() -> None:
    """As many batches, and joined (rewrite/rules/join.cc)."""

    def run(ops: bool) -> tuple[list[str], int]:
        with engine():
            model = Model()
            h = dy.tanh(dy.inputVector(np.ones(H)))
            for x in inputs(0, N, 3):
                h = gates(model, x, h, ops)
            loss = dy.squared_norm(h)
            del h
            loss.backward()
            return [line.split("\t")[1] for line in dy.plan_text().splitlines() if "\t" in line], count(
                "affine_transform x 3"
            )

    operators, affine = run(True), run(False)
    assert operators == affine
    assert affine[1] == 3


def test_products_that_something_else_reads() -> None:
    """None of their signature, for else a batch would be two."""

    def run(model: Model) -> Observed:
        xs, losses = inputs(0, N, 4), []
        W, U, b = model.weight("W", H, N), model.weight("U", H, N), model.weight("b", H)
        for k, x in enumerate(xs):
            product = W * x
            losses.append(dy.squared_norm(dy.tanh(product + U * x + b)))
            if k == 1:
                losses.append(dy.squared_norm(dy.softmax(product)))
            del product
        loss = dy.esum(losses)
        loss.backward(full=True)
        if _core.settings.fuse:
            assert count("affine_transform") == count("matmul + matmul") == 0
        return {"loss": loss.npvalue(), **gradients(model, xs)}

    both(run)


def test_terms_that_an_expression_refers_to() -> None:
    def run(model: Model) -> Observed:
        xs = inputs(0, N, 3)
        W, U, b = model.weight("W", H, N), model.weight("U", H, N), model.weight("b", H)
        sums = [W * x + U * x for x in xs]
        losses = [dy.squared_norm(s + b) for s in sums]
        kept = W * xs[0]
        losses.append(dy.squared_norm(kept + U * xs[1] + b))
        loss = dy.esum(losses)
        loss.backward(full=True)
        if _core.settings.fuse:
            assert (count("matmul + matmul"), count("affine_transform"), products_alone()) == (3, 0, 2)
        return {"loss": loss.npvalue(), "kept": kept.npvalue(), **{f"sum {k}": s.npvalue() for k, s in enumerate(sums)},
                "of kept": kept.gradient(), "of sum": sums[1].gradient(), **gradients(model, xs)}  # fmt: skip

    both(run)


@pytest.mark.parametrize("size, together", [(128, True), (129, False)])
def test_long_rows_of_a_table_stay_out_of_what_is_computed(size: int, together: bool) -> None:
    def run(model: Model) -> Observed:
        table, W, U, b = model.table(size), model.weight("W", H, size), model.weight("U", H, H), model.weight("b", H)
        h = dy.inputVector(np.ones(H))
        for k in range(4):
            h = dy.tanh(W * table[k] + U * h + b)
        rows = [dy.tanh(W * table[k] + b) for k in range(3)]  # nothing else is in these sums
        loss = dy.squared_norm(h) + dy.esum([dy.squared_norm(r) for r in rows])
        del h
        loss.backward()
        if _core.settings.fuse:
            assert (count("affine_transform"), products_alone()) == ((7, 0) if together else (3, 8))
        return {"loss": loss.npvalue(), **gradients(model)}

    both(run)


def test_shapes_that_differ() -> None:
    """A mini-batch beside a single vector, matrices, a bias that is computed or has a mini-batch."""

    def run(model: Model) -> Observed:
        W, U, b = model.weight("W", H, N), model.weight("U", H, N), model.weight("b", H)
        (one,), (many,) = inputs(0, N, 1), batched(1, 3, 0)
        matrix = dy.inputTensor(np.random.default_rng(5).uniform(-1, 1, (N, 2)))
        computed = dy.tanh(dy.inputVector(np.linspace(-1, 1, H)))
        bs = dy.inputTensor(np.random.default_rng(6).uniform(-1, 1, (H, 3)), batched=True)
        sums = [
            W * one + U * many,
            W * one + U * many + b,
            W * matrix + U * matrix,
            W * one + computed,
            W * many + bs,
            W * one + bs,
        ]
        loss = dy.esum([dy.sum_batches(dy.sum_elems(dy.square(dy.tanh(s)))) for s in sums])
        del sums
        loss.backward(full=True)
        return {"loss": loss.npvalue(), **gradients(model, [one, many, matrix])}

    both(run)


def test_a_number_for_all_rows() -> None:
    """A weight or a value of one number, which the sum repeats, is no bias of a map and no term of a list."""

    def run(model: Model) -> Observed:
        W, U, one = model.weight("W", H, N), model.weight("U", H, N), model.weight("one", 1)
        x, y = inputs(0, N, 2)
        long = dy.tanh(model.weight("b", H))
        sums = [
            W * x + one,
            one + W * x + U * y,
            W * x + U * y + one + model.weight("b", H),
            W * x + U * y + dy.tanh(one),
            W * x + U * y + long + dy.tanh(one),
            W * x + (U * y + one) + long + one,
        ]
        loss = dy.esum([dy.squared_norm(dy.tanh(s)) for s in sums] + [dy.pickneglogsoftmax(U * x + one, 1)])
        del sums, long
        loss.backward()
        return {"loss": loss.npvalue(), **gradients(model)}

    both(run)


def test_weights_that_are_not_trained() -> None:
    for trained in ("W", "U", "b", ""):

        def run(model: Model, trained: str = trained) -> Observed:
            weights = {name: model.weight(name, H, N) for name in "WU"} | {
                "b": model.weight("b", H),
                "v": model.weight("v", H),
            }
            for name, p in weights.items():
                p.set_updated(name in (trained, "v"))
            x, y = inputs(0, N, 2)
            e = dy.cmult(dy.inputVector(np.ones(H)), weights["v"])
            products = weights["W"] * x + weights["U"] * y
            loss = dy.squared_norm(products + e + weights["b"]) + dy.squared_norm(weights["U"] * x + weights["b"])
            del e, products
            loss.backward()
            return {"loss": loss.npvalue(), **gradients(model)}

        both(run)


def test_more_terms_than_a_sum_takes() -> None:
    def run(model: Model) -> Observed:
        xs = inputs(0, N, 30)
        W, b = model.weight("W", H, N), model.weight("b", H)
        total = W * xs[0]
        for x in xs[1:]:
            total = total + W * x + b
        wide = dy.esum([W * x for x in xs])
        loss = dy.squared_norm(dy.tanh(total * 0.1)) + dy.squared_norm(dy.tanh(wide * 0.1))
        del total, wide
        loss.backward(full=True)
        return {"loss": loss.npvalue(), **gradients(model, xs)}

    both(run)


def test_a_long_chain() -> None:
    """Sums of sums, deeper than any stack of calls."""
    with engine():
        model = Model()
        W = model.weight("W", H, N)
        x = inputs(0, N, 1)[0]
        total = W * x
        for _ in range(20000):
            total = total + W * x
        total.value()
        assert total.npvalue()[0] == pytest.approx(20001 * float((W.as_array() @ x.npvalue())[0]), rel=1e-3)


def test_what_has_run_stays() -> None:
    def run(model: Model) -> Observed:
        x, y = inputs(0, N, 2)
        W, U, b = model.weight("W", H, N), model.weight("U", H, N), model.weight("b", H)
        product = W * x
        product.value()
        dy.cg().checkpoint()
        found = {"before": dy.squared_norm(product + U * y + b).npvalue()}
        dy.cg().revert()
        total = product + U * y + b
        del product
        loss = dy.squared_norm(total)
        loss.backward(full=True)
        return {**found, "loss": loss.npvalue(), "total": total.npvalue(), **gradients(model, [x, y])}

    both(run)


def test_asking_for_a_term_that_is_gone() -> None:
    with engine():
        model = Model()
        x, y = inputs(0, N, 2)
        total = model.weight("W", H, N) * x + model.weight("U", H, N) * y + model.weight("b", H)
        product = next(i for i, text, _, _ in dy.cg().nodes() if text.startswith("matmul"))
        total.value()
        assert gone(product)
        with pytest.raises(ValueError, match="needed inside another node"):
            dy.cg().expression(product)
