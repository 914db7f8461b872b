"""Tree builders: values against NumPy, both ways of building, absent children, errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy

IN, HIDDEN = 4, 3


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def reference(builder: Any, x: np.ndarray | None, children: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """h and c of a node of a builder with one layer; children: (h, c) or None."""
    (layer,) = builder.get_parameters()
    wx, b, wf, bf, *u = (p.as_array().astype(float) for p in layer)
    iog, f = (b, bf) if x is None else (wx @ x + b, wf @ x + bf)
    zero = (np.zeros(HIDDEN), np.zeros(HIDDEN))
    states = [zero if child is None else child for child in children]
    if isinstance(builder, dy.NaryTreeLSTMBuilder):
        total = sum((w @ h for w, (h, _) in zip(u, states, strict=False)), np.zeros((3 + builder.N) * HIDDEN))
        iog = iog + total[: 3 * HIDDEN]
        forget = [f + total[(3 + k) * HIDDEN : (4 + k) * HIDDEN] for k in range(len(states))]
    else:
        iog = iog + u[0] @ sum((h for h, _ in states), np.zeros(HIDDEN))
        forget = [f + u[1] @ h for h, _ in states]
    i, o, g = np.split(iog, 3)
    c = sigmoid(i) * np.tanh(g)
    for k, (_, cell) in zip(forget, states, strict=True):
        c = c + sigmoid(k + builder.forget_bias) * cell
    return sigmoid(o) * np.tanh(c), c


def makers() -> list[Any]:
    return [
        dy.NaryTreeLSTMBuilder(2, 1, IN, HIDDEN, dy.ParameterCollection()),
        dy.NaryTreeLSTMBuilder(4, 1, IN, HIDDEN, dy.ParameterCollection(), 1.0),
        dy.ChildSumTreeLSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection()),
        dy.ChildSumTreeLSTMBuilder(1, IN, HIDDEN, dy.ParameterCollection(), 0.5),
    ]


@pytest.mark.parametrize("which", range(4))
def test_values(which: int) -> None:
    builder = makers()[which]
    rng = np.random.default_rng(which)
    for p in builder.param_collection().parameters_list():
        p.set_value(rng.uniform(-0.7, 0.7, p.shape()))
    x = [rng.standard_normal(IN) for _ in range(3)]
    dy.renew_cg()
    a, b = (builder.node(dy.inputVector(v)) for v in x[:2])
    both = builder.node(None, [a, b])
    root = builder.node(dy.inputVector(x[2]), [both])
    ra, rb = (reference(builder, v, []) for v in x[:2])
    rboth = reference(builder, None, [ra, rb])
    rroot = reference(builder, x[2], [rboth])
    for node, (h, c) in ((a, ra), (b, rb), (both, rboth), (root, rroot)):
        np.testing.assert_allclose(node.output().npvalue(), h, atol=2e-6)
        np.testing.assert_allclose(node.s()[0].npvalue(), c, atol=2e-6)
    left_out = builder.node(None, [None, b])
    np.testing.assert_allclose(left_out.output().npvalue(), reference(builder, None, [None, rb])[0], atol=2e-6)


@pytest.mark.parametrize("which", range(4))
def test_numbers_and_nodes_agree(which: int) -> None:
    builder = makers()[which]
    dy.renew_cg()
    x = [dy.inputVector(np.random.default_rng(k).standard_normal(IN)) for k in range(3)]
    a, b = builder.node(x[0]), builder.node(x[1])
    root = builder.node(x[2], [a, b])
    builder.set_num_elements(3)
    builder.add_input(0, [], x[0])
    builder.add_input(1, [], x[1])
    np.testing.assert_array_equal(builder.add_input(2, [0, 1], x[2]).npvalue(), root.output().npvalue())


def test_order_of_children() -> None:
    """It matters for the n-ary form only."""
    x = [np.random.default_rng(k).standard_normal(IN) for k in range(2)]
    for builder, matters in zip(makers(), (True, True, False, False), strict=True):
        dy.renew_cg()
        a, b = (builder.node(dy.inputVector(v)) for v in x)
        one, other = builder.node(None, [a, b]).output().npvalue(), builder.node(None, [b, a]).output().npvalue()
        assert np.allclose(one, other, atol=1e-6) != matters


@pytest.mark.parametrize("make", [dy.UnidirectionalTreeLSTMBuilder, dy.BidirectionalTreeLSTMBuilder])
def test_lstm_over_children(make: type) -> None:
    builder = make(2, 6, 6, dy.ParameterCollection())
    dy.renew_cg()
    x = [dy.inputVector(np.random.default_rng(k).standard_normal(6)) for k in range(3)]
    builder.set_num_elements(3)
    a, b = builder.add_input(0, [], x[0]), builder.add_input(1, [], x[1])
    root = builder.add_input(2, [0, 1], x[2])
    parts = [
        lstm.initial_state().transduce([x[2], *children])[-1].npvalue()
        for lstm, children in zip(builder._builders, ([a, b], [b, a]), strict=False)
    ]
    np.testing.assert_allclose(root.npvalue(), np.concatenate(parts), atol=1e-6)
    np.testing.assert_array_equal(builder.node(x[2], (child for child in (a, b))).npvalue(), root.npvalue())
    with pytest.raises(ValueError, match="input_dim"):
        make(1, 4, 6, dy.ParameterCollection())


def test_errors() -> None:
    nary, _, child_sum, _ = makers()
    dy.renew_cg()
    leaf = nary.node(dy.inputVector(np.ones(IN)))
    with pytest.raises(ValueError, match="at most 2 children"):
        nary.node(None, [leaf] * 3)
    with pytest.raises(IndexError):
        child_sum.add_input(0, [], dy.inputVector(np.ones(IN)))
    child_sum.set_num_elements(2)
    with pytest.raises(ValueError, match="children come before"):
        child_sum.add_input(1, [0], dy.inputVector(np.ones(IN)))
    with pytest.raises(IndexError):
        child_sum.add_input(2, [], dy.inputVector(np.ones(IN)))
    with pytest.raises(TypeError, match=r"number of a node must be a whole number; got 'a'"):
        child_sum.add_input(1, ["a"], dy.inputVector(np.ones(IN)))
    with pytest.raises(ValueError):
        nary.node(dy.inputVector(np.ones(IN + 1)))
    dy.renew_cg()
    with pytest.raises(dy.StaleExpressionError):
        nary.node(None, [leaf])


@pytest.mark.parametrize("which", range(4))
def test_update_flag_spec_and_copies(which: int) -> None:
    model = dy.ParameterCollection()
    first = makers()[which]
    builder = type(first).from_spec(first.spec, model)
    assert [p.shape() for p in model.parameters_list()] == [
        p.shape() for layer in first.get_parameters() for p in layer
    ]
    dy.renew_cg()
    leaf = builder.node(dy.inputVector(np.ones(IN)), update=False)
    dy.squared_norm(builder.node(None, [leaf], update=False).output()).backward()
    assert not any(p.grad_as_array().any() for p in model.parameters_list())
    dy.squared_norm(builder.node(None, [leaf]).output()).backward()
    assert any(p.grad_as_array().any() for p in model.parameters_list())
    for twin in (copy.deepcopy(builder), pickle.loads(pickle.dumps(builder))):
        other = twin.node(dy.inputVector(np.ones(IN))).output()
        np.testing.assert_array_equal(other.npvalue(), leaf.output().npvalue())


def test_a_child_that_is_absent_after_a_revert() -> None:
    """What stands for it goes with the checkpoint and is made anew."""
    model = dy.ParameterCollection()
    builder, table = dy.NaryTreeLSTMBuilder(2, 1, 3, 3, model), model.add_lookup_parameters((4, 3))
    dy.renew_cg()
    leaf = builder.node(table[0], [])
    dy.cg_checkpoint()
    wanted = builder.node(table[1], [leaf, None]).output().npvalue()
    dy.cg_revert()
    others = [dy.tanh(table[3] + k) for k in range(3)]
    np.testing.assert_array_equal(builder.node(table[1], [leaf, None]).output().npvalue(), wanted)
    del others
