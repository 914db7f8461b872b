"""Rows of the elementwise ops: every formula of one argument, and those of two with all kinds of broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from samples import A, Arg, Draw, Row, above_one, between_integers, nonzero, normal, positive, unit

import dynet_lite as dy
from dynet_lite import _core

erf = np.vectorize(math.erf, otypes=[float])
lgamma = np.vectorize(math.lgamma, otypes=[float])
SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# ---- one argument, no attribute ---------------------------------------------------------------------------------

UNARY: dict[str, tuple[Callable[[Any], Any], Draw]] = {
    "abs": (np.abs, nonzero),
    "acos": (np.arccos, unit),
    "acosh": (np.arccosh, above_one),
    "asin": (np.arcsin, unit),
    "asinh": (np.arcsinh, normal),
    "atan": (np.arctan, normal),
    "atanh": (np.arctanh, unit),
    "cos": (np.cos, normal),
    "cosh": (np.cosh, normal),
    "cube": (lambda x: x**3, normal),
    "erf": (erf, normal),
    "exp": (np.exp, normal),
    "expm1": (np.expm1, normal),
    "gelu": (lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))), normal),
    "lgamma": (lgamma, positive),
    "log": (np.log, positive),
    "log1p": (np.log1p, positive),
    "log_sigmoid": (lambda x: -np.log1p(np.exp(-x)), normal),
    "logistic": (sigmoid, normal),
    "reciprocal": (lambda x: 1 / x, nonzero),
    "rectify": (lambda x: np.maximum(x, 0), nonzero),
    "rsqrt": (lambda x: x**-0.5, positive),
    "selu": (lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x)), nonzero),
    "sin": (np.sin, normal),
    "sinh": (np.sinh, normal),
    "softplus": (lambda x: np.log1p(np.exp(x)), normal),
    "softsign": (lambda x: x / (1 + np.abs(x)), nonzero),
    "sqrt": (np.sqrt, positive),
    "square": (np.square, normal),
    "tan": (np.tan, unit),
    "tanh": (np.tanh, normal),
}
ROWS: list[Row] = []
for _name, (_ref, _draw) in UNARY.items():
    # The sizes are odd and beyond one vector register, so that the tails of the vector loops run too.
    for _arg in (A(3, 4, draw=_draw), A(37, draw=_draw), A(2, 3, 2, batch=3, draw=_draw)):
        ROWS.append(Row(_name, lambda x, _n=_name: getattr(dy, _n)(x), [_arg], _ref, tol=4e-6, gtol=5e-5))


# ---- one argument with attributes ---------------------------------------------------------------------------------


def alphas(rng: np.random.Generator) -> dict[str, float]:
    return {"a": float(np.float32(rng.uniform(0.5, 2.0)))}


def raising(name: str, bad: Any) -> list[tuple[Callable[[], Any], type[Exception]]]:
    return [(lambda: getattr(dy, name)(dy.inputVector([1.0, 2.0]), bad), TypeError)]


def unary(name: str, call: Callable[..., Any], ref: Callable[..., Any], draw: Draw = normal, **more: Any) -> None:
    for arg in (A(5, draw=draw), A(3, 4, batch=2, draw=draw)):
        ROWS.append(Row(name, call, [arg], ref, **{"attrs": alphas, "gtol": 5e-5, "tol": 4e-6, **more}))


unary(
    "elu",
    lambda x, a: dy.elu(x, a),
    lambda x, a: np.where(x > 0, x, a * np.expm1(x)),
    nonzero,
    wrong=raising("elu", "s"),
)
unary("silu", lambda x, a: dy.silu(x, a), lambda x, a: x * sigmoid(a * x), wrong=raising("silu", None))
unary("add_const", lambda x, a: x + a, lambda x, a: x + a)
unary("const_minus", lambda x, a: a - x, lambda x, a: a - x)
unary("scale", lambda x, a: x * a, lambda x, a: x * a)
unary("scale", lambda x, a: a * x, lambda x, a: x * a, note="left")
unary("const_div", lambda x, a: a / x, lambda x, a: a / x, nonzero)
unary("const_pow", lambda x, a: a**x, lambda x, a: a**x)
unary("pow_const", lambda x, a: x**a, lambda x, a: x**a, positive)
for _power in (0.0, 1.0, 2.0, 3.0, -1.0):
    unary("pow_const", lambda x, a: x**a, lambda x, a: x**a, positive, attrs={"a": _power}, note=f"{_power}")
unary("negate", lambda x: -x, lambda x: -x, attrs={})
unary("abs", lambda x: abs(x), np.abs, nonzero, attrs={}, note="operator")

# Gradients that are not the derivative.
unary("flip_gradient", lambda x: dy.flip_gradient(x), lambda x: x, attrs={}, surrogate=lambda x: -x)
unary("scale_gradient", lambda x, a: dy.scale_gradient(x, a), lambda x, a: x, surrogate=lambda x, a: a * x)
unary("nobackprop", lambda x: dy.nobackprop(x), lambda x: x, attrs={}, surrogate=lambda x: 0 * x, batches=False)
for _name, _ref in (("round", np.rint), ("ceil", np.ceil), ("floor", np.floor)):
    _raw = getattr(_core, _name)
    unary(_name, lambda x, _f=_raw: _f(x, False), _ref, between_integers, attrs={}, surrogate=lambda x: 0 * x)
    unary(
        _name, lambda x, _f=_raw: _f(x, True), _ref, between_integers, attrs={}, surrogate=lambda x: x, note="through"
    )


# ---- two arguments --------------------------------------------------------------------------------------------------

# Shapes of both; a dim of 1 or a missing one is repeated, in both directions.
PAIRS: list[tuple[Arg, Arg]] = [
    (A(3, 4), A(3, 4)),
    (A(19), A(19)),
    (A(4, batch=3), A(4, batch=3)),
    (A(3), A(3, batch=2)),
    (A(3, 2, batch=2), A(3, 2)),
    (A(3, 4), A(3)),
    (A(1, 4), A(3, 1)),
    (A(3, 1, 2), A(1, 4, 2, batch=2)),
    (A(1), A(2, 3)),
    (A(2, 3, batch=2), A(1)),
    (A(1, batch=2), A(5)),
    (A(2, 3, 4), A(2, 1, 4)),
    (A(2, 3, 4), A(1, 3)),
]
CLASHES = [[(3,), (4,)], [(3, 4), (4, 3)], [(2, 3), (2, 2)], [(2, 1, 3), (2, 1, 2)], ["3x2", "3x3"]]


def aligned(f: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy broadcasts from the last axis, the engine from the first: append axes of length 1."""

    def g(u: Any, v: Any, **attrs: Any) -> Any:
        nd = max(u.ndim, v.ndim)
        return f(u.reshape(u.shape + (1,) * (nd - u.ndim)), v.reshape(v.shape + (1,) * (nd - v.ndim)), **attrs)

    return g


def binary(
    name: str, call: Callable[..., Any], ref: Callable[..., Any], u: Draw = normal, v: Draw = normal, **more: Any
):
    for k, (a, b) in enumerate(PAIRS):
        ROWS.append(
            Row(
                name,
                call,
                [A(*a.shape, batch=a.batch, draw=u), A(*b.shape, batch=b.batch, draw=v)],
                aligned(ref),
                **{"bad": CLASHES if k == 0 else (), "gtol": 5e-5, "tol": 4e-6, **more},
            )
        )


binary("add", lambda x, y: x + y, lambda x, y: x + y)
binary("sub", lambda x, y: x - y, lambda x, y: x - y)
binary("cmult", lambda x, y: dy.cmult(x, y), lambda x, y: x * y)
binary("cdiv", lambda x, y: dy.cdiv(x, y), lambda x, y: x / y, v=nonzero)
binary("pow", lambda x, y: dy.pow(x, y), lambda x, y: x**y, u=positive, v=positive)


def far_from(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers near the grid 0.5 + whole numbers; those of `normal_grid` are near whole numbers: never equal."""
    return rng.integers(-2, 2, shape) + 0.5 + rng.uniform(-0.15, 0.15, shape)


def normal_grid(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-2, 3, shape) + rng.uniform(-0.15, 0.15, shape)


binary("bmin", lambda x, y: dy.bmin(x, y), np.minimum, u=normal_grid, v=far_from)
binary("bmax", lambda x, y: dy.bmax(x, y), np.maximum, u=normal_grid, v=far_from)
