"""The grammar of graphs after rewriting: uses are counted exactly (the verifier is on in all tests)."""

from __future__ import annotations

import pytest
from fused_programs import Model, engine, inputs, weighted

import dynet_lite as dy


@pytest.mark.parametrize("products", [1, 2, 4])
def test_parts_of_a_concatenation_that_several_products_read(products: int) -> None:
    """Each product reads the parts, and its matrix once for each part."""
    with engine():
        model = Model()
        x = inputs(n=16, count=1)[0]
        h = dy.softmax(model.weight("U", 16, 16) * x)
        cs = [dy.concatenate([model.table(16)[k], h]) for k in (1, 2)]
        loss = dy.esum([dy.logsumexp_dim(model.weight(f"W{k}", 16, 32) * c) for k in range(products) for c in cs])
        del cs
        loss.backward()
        assert "matmul(concatenate)" in dy.plan_text()


def test_inputs_of_joined_maps_and_programs() -> None:
    with engine():
        model = Model()
        x, h = (dy.tanh(e) for e in inputs(count=2))
        gates = [model.weight("W" + g, 8, 8) * x + model.weight("U" + g, 8, 8) * h for g in "ifo"]
        i, f, o = (dy.logistic(g) for g in gates)
        del gates
        y = dy.cmult(i, x) + dy.cmult(f, x) + dy.cmult(o, dy.tanh(h)) + dy.cmult(h, h)
        del x, h, i, f, o
        weighted(y).backward()
        assert " x 3" in dy.plan_text()


def test_readers_that_are_gone() -> None:
    """What nodes behind a checkpoint read is read no more when they go."""
    with engine():
        x = inputs(count=1)[0]
        y = dy.tanh(x)
        for _ in range(3):
            dy.cg_checkpoint()
            assert weighted(dy.exp(y) + y).value()
            dy.cg_revert()
        z = weighted(dy.cmult(y, dy.logistic(y)))
        del y
        before = z.value()
        dy.cg().invalidate()
        assert z.value() == before


def test_a_map_that_was_a_sum_joins_one_that_was_a_node() -> None:
    """The sum is as deep as its last addition, but what reads the joined node need not be."""
    with engine():
        model = Model()
        x, h = inputs(count=2)
        w, u, b = model.weight("W", 8, 8), model.weight("U", 8, 8), model.weight("b", 8)
        gates = [dy.logistic(w * x + u * h + b), dy.tanh(dy.affine_transform([b, u, x, w, h]))]
        loss = weighted(dy.cmult(gates[0], gates[1]))
        loss.backward()
        assert "affine_transform x 2 {16}" in dy.plan_text()
