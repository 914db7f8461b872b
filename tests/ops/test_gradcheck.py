"""The gradient checkers, public and of the table, find wrong gradients and accept right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import as_input, close, gradient_of, graph, scalar, wanted_gradients
from samples import A, Row

import dynet_lite as dy
from dynet_lite import _core
from dynet_lite.gradcheck import GradientError, check_grad, gradcheck


def parameter(*shape: int, seed: int = 0) -> Any:
    p = _core.Parameters.make(shape, f"/p{seed}")
    p.set_value(np.random.default_rng(seed).standard_normal(shape))
    return p


def table(*shape: int) -> Any:
    t = _core.LookupParameters.make(shape, "/table")
    t.init_from_array(np.random.default_rng(9).standard_normal(shape))
    return t


def wrong_factor(x: Any) -> Any:
    """x with a gradient that is twice too large."""
    return dy.scale_gradient(x, 2.0)


def test_right_gradients_pass() -> None:
    w, b, t = parameter(3, 4), parameter(3, seed=1), table(5, 4)
    x = np.random.default_rng(3).standard_normal(4)
    before = [w.as_array(), b.as_array(), t.as_array()]

    def loss(x: Any) -> Any:
        return scalar(dy.tanh(dy.affine_transform([b, w, x + t[2], w, t[0]])))

    assert gradcheck(loss, w, b, t, x) < 2e-3
    for p, v in zip((w, b, t), before, strict=True):
        assert np.array_equal(p.as_array(), v)
        assert not np.any(p.grad_as_array())


def test_frozen_parameters(capsys: Any) -> None:
    """gradcheck() looks at the function; an expression has no gradient of them."""
    w, t, v = parameter(3, 3), table(4, 3), parameter(3, 3, seed=1)
    for p in (w, t):
        p.set_updated(False)

    def loss(x: Any) -> Any:
        return scalar(dy.tanh(v * (w * (x + t[1]))))

    assert gradcheck(loss, w, t, v, np.ones(3)) < 2e-3
    assert [p.is_updated() for p in (w, t, v)] == [False, False, True]
    with pytest.raises(GradientError, match="/p0"):
        gradcheck(lambda: scalar(wrong_factor(dy.tanh(w))), w)
    assert not w.is_updated()
    dy.renew_cg()
    assert check_grad([w, t, v], loss(dy.inputVector([0.5, -1.0, 2.0])))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("wrong", [wrong_factor, lambda x: -wrong_factor(x), dy.nobackprop, dy.flip_gradient])
def test_wrong_gradients_are_found(wrong: Any) -> None:
    w = parameter(3)
    with pytest.raises(GradientError, match="/p0.*backward gives.*differences give"):
        gradcheck(lambda: scalar(wrong(dy.tanh(w))), w)


def test_the_entry_is_named() -> None:
    x = np.array([0.3, -0.4, 0.9])

    def loss(x: Any) -> Any:
        keep, drop = dy.inputVector([1.0, 1.0, 0.0]), dy.inputVector([0.0, 0.0, 1.0])
        return scalar(dy.cmult(keep, x) + dy.nobackprop(dy.cmult(drop, x)))

    with pytest.raises(GradientError, match=r"array 0 .*entry \[2\]"):
        gradcheck(loss, x)


def test_loss_must_be_a_scalar() -> None:
    w = parameter(3)
    with pytest.raises(ValueError):
        gradcheck(lambda: dy.tanh(w), w)


def test_what_is_no_parameter_is_told() -> None:
    model = dy.ParameterCollection()
    w = model.add_parameters(3)
    for params, error, words in (
        ([], ValueError, "params are needed"),
        ([model], TypeError, r"got a ParameterCollection: write \*model.parameters_list\(\)"),
        ([[w]], TypeError, "weights, tables and arrays; got a list"),
    ):
        with pytest.raises(error, match=words):
            gradcheck(lambda: scalar(w), *params)
    with pytest.raises(TypeError, match="fn must return an expression; got a float"):
        gradcheck(lambda: 3.0, w)


def test_check_grad_of_an_expression(capsys: Any) -> None:
    w, t = parameter(3, 3), table(4, 3)
    x = dy.inputVector([0.5, -1.0, 2.0])
    good = scalar(dy.tanh(w * (x + t[1])))
    value, before = good.value(), [w.as_array(), t.as_array()]
    assert check_grad([w, t], good)
    assert capsys.readouterr().err == ""
    assert good.value() == value and not w.grad_as_array().any() and not t.grad_as_array().any()
    for now, then in zip([w.as_array(), t.as_array()], before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert check_grad([w], good, verbosity=2)
    assert check_grad(w, good) and check_grad(t, good)
    assert "agrees" in capsys.readouterr().err
    bad = scalar(wrong_factor(dy.tanh(w * x)))
    assert not check_grad([w], bad)
    assert "DIFFERS" in capsys.readouterr().err
    assert not check_grad([w], bad, verbosity=0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("wrong", [wrong_factor, dy.nobackprop, dy.flip_gradient])
def test_the_table_finds_a_wrong_gradient(wrong: Any) -> None:
    """What test_table.py does to each row, done to rows that are wrong."""
    row = Row("tanh", lambda x: wrong(dy.tanh(x)), [A(3, 2)], np.tanh)
    arrays = [row.args[0].sample(np.random.default_rng(0))]
    with graph():
        x = as_input(arrays[0])
        scalar(row.call(x)).backward(full=True)
        given = gradient_of(x)
    wanted = wanted_gradients(row, np.tanh, arrays, {})
    with pytest.raises(AssertionError, match="off by"):
        close(given, wanted[0], row.gtol, "wrong")


def test_the_table_finds_a_wrong_value() -> None:
    with pytest.raises(AssertionError, match="off by"):
        close(np.tanh(np.ones(3)) + 1e-4, np.tanh(np.ones(3)), 1e-5, "wrong")
    with pytest.raises(AssertionError):
        close(np.array([np.nan]), np.array([1.0]), 1e-5, "wrong")
    with pytest.raises(AssertionError):
        close(np.array([np.inf]), np.array([-np.inf]), 1e-5, "wrong")


def test_check_grad_that_is_interrupted_leaves_the_parameters() -> None:
    w = dy.ParameterCollection().add_parameters(2)
    before = w.as_array().copy()
    dy.renew_cg()
    loss = dy.sum_elems(w)

    class Interrupted:
        """Its value is asked for once without an error."""

        backward = staticmethod(loss.backward)

        def scalar_value(self, recalculate: bool = False) -> float:
            if recalculate:
                raise KeyboardInterrupt
            return loss.scalar_value()

    with pytest.raises(KeyboardInterrupt):
        check_grad([w], Interrupted())
    assert np.array_equal(w.as_array(), before)
