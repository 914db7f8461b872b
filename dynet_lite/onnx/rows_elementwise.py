"""Rows of the elementwise ops: formulas of one argument, those with a constant, and those of two with broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .table import LOWERINGS, Lowering, row
from .writer import Made, Value, Writer

Unary = Callable[[Writer, str], str]


def one_node(kind: str) -> Lowering:
    """ONNX has the op, of one argument."""
    return lambda w, node, xs: w.op(kind, xs[0].name)


def composed(formula: Unary) -> Lowering:
    return lambda w, node, xs: formula(w, xs[0].name)


def with_constant(formula: Callable[[Writer, str, float], str]) -> Lowering:
    return lambda w, node, xs: formula(w, xs[0].name, next(iter(node.attributes.values())))


def broadcast(kind: str) -> Lowering:
    """ONNX has the op, of two arguments."""
    return lambda w, node, xs: w.op(kind, *both(w, xs))


def of_list(kind: str) -> Lowering:
    """ONNX has the op, of a list."""
    return lambda w, node, xs: w.op(kind, *[w.lift(w.cut(x, len(node.dims)), len(node.dims)) for x in xs])


for _op, _kind in {
    "negate": "Neg", "sqrt": "Sqrt", "reciprocal": "Reciprocal", "abs": "Abs", "exp": "Exp", "log": "Log",
    "logistic": "Sigmoid", "softplus": "Softplus", "tanh": "Tanh", "rectify": "Relu", "selu": "Selu", "softsign": "Softsign",
    "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "round": "Round", "ceil": "Ceil", "floor": "Floor",
    "flip_gradient": "Identity", "scale_gradient": "Identity", "nobackprop": "Identity",
}.items():  # fmt: skip
    LOWERINGS[_op] = one_node(_kind)


def expm1(w: Writer, x: str) -> str:
    """tanh(x / 2) (e^x + 1), which is exact also for small x."""
    return w.op("Mul", w.op("Tanh", w.op("Mul", x, w.number(0.5))), w.op("Add", w.op("Exp", x), w.number(1)))


def log1p(w: Writer, x: str) -> str:
    """2 atanh(x / (x + 2)) near 0, log(1 + x) elsewhere."""
    near = w.op("Less", w.op("Abs", x), w.number(0.5))
    small = w.op("Where", near, x, w.number(0))
    quotient = w.op("Div", small, w.op("Add", small, w.number(2)))
    return w.op(
        "Where", near, w.op("Mul", w.op("Atanh", quotient), w.number(2)), w.op("Log", w.op("Add", x, w.number(1)))
    )


def gelu(w: Writer, x: str) -> str:
    half = w.op("Mul", x, w.number(0.5))
    return w.op("Mul", half, w.op("Add", w.op("Erf", w.op("Mul", x, w.number(math.sqrt(0.5)))), w.number(1)))


_COMPOSED: dict[str, Unary] = {
    "square": lambda w, x: w.op("Mul", x, x),
    "cube": lambda w, x: w.op("Mul", w.op("Mul", x, x), x),
    "rsqrt": lambda w, x: w.op("Reciprocal", w.op("Sqrt", x)),
    "expm1": expm1,
    "log1p": log1p,
    "log_sigmoid": lambda w, x: w.op("Neg", w.op("Softplus", w.op("Neg", x))),
    "gelu": gelu,
}
for _op, _formula in _COMPOSED.items():
    LOWERINGS[_op] = composed(_formula)

_WITH_CONSTANT: dict[str, Callable[[Writer, str, float], str]] = {
    "add_const": lambda w, x, c: w.op("Add", x, w.number(c)),
    "const_minus": lambda w, x, c: w.op("Sub", w.number(c), x),
    "scale": lambda w, x, c: w.op("Mul", x, w.number(c)),
    "const_div": lambda w, x, c: w.op("Div", w.number(c), x),
    "pow_const": lambda w, x, c: w.op("Pow", x, w.number(c)),
    "const_pow": lambda w, x, c: w.op("Pow", w.number(c), x),
    "elu": lambda w, x, c: w.op("Elu", x, alpha=c),
    "silu": lambda w, x, c: w.op("Mul", x, w.op("Sigmoid", w.op("Mul", x, w.number(c)))),
}
for _op, _made in _WITH_CONSTANT.items():
    LOWERINGS[_op] = with_constant(_made)


# ---- two arguments ---------------------------------------------------------------------------------------------------


def both(w: Writer, xs: Sequence[Value]) -> list[str]:
    """Two arguments so that ONNX's broadcasting, from the last axis, is ours, from the first dim."""
    rank = max(len(x.dims) for x in xs)
    return [w.lift(x, rank) for x in xs]


for _op, _kind in {
    "add": "Add",
    "sub": "Sub",
    "cmult": "Mul",
    "cdiv": "Div",
    "bmin": "Min",
    "bmax": "Max",
    "pow": "Pow",
}.items():
    LOWERINGS[_op] = broadcast(_kind)


@row("squared_difference")
def squared_difference(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    d = w.op("Sub", *both(w, xs))
    return w.op("Mul", d, d)


@row("abs_difference")
def abs_difference(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.op("Abs", w.op("Sub", *both(w, xs)))


@row("huber")
def huber(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    c = node["c"]
    size = w.op("Abs", w.op("Sub", *both(w, xs)))
    inner = w.op("Mul", w.op("Mul", size, size), w.number(0.5))
    outer = w.op("Sub", w.op("Mul", size, w.number(c)), w.number(c * c / 2))
    return w.op("Where", w.op("LessOrEqual", size, w.number(c)), inner, outer)


@row("binary_log_loss_terms")
def binary_log_loss_terms(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    u, v = both(w, xs)
    one, tiny = w.number(1), w.number(1.17549435e-38)
    yes = w.op("Mul", v, w.op("Log", w.op("Max", u, tiny)))
    no = w.op("Mul", w.op("Sub", one, v), w.op("Log", w.op("Max", w.op("Sub", one, u), tiny)))
    return w.op("Neg", w.op("Add", yes, no))


@row("pairwise_rank")
def pairwise_rank(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    u, v = both(w, xs)
    return w.op("Relu", w.op("Add", w.op("Sub", w.number(node["m"]), u), v))


# ---- lists -----------------------------------------------------------------------------------------------------------

for _op, _kind in {"esum": "Sum", "average": "Mean", "emax": "Max"}.items():
    LOWERINGS[_op] = of_list(_kind)


@row("_sum_some")
def sum_some(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    total = w.op("Sum", *w.alike(xs[: node["n"]], len(node.dims)))
    return total if node["factor"] == 1 else w.op("Mul", total, w.number(node["factor"]))


@row("_max_some")
def max_some(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    return w.op("Max", *w.alike(xs[: node["n"]], len(node.dims)))


@row("logsumexp")
def logsumexp(w: Writer, node: Made, xs: Sequence[Value]) -> Any:
    first = int(node.batched)
    lifted = [w.op("Unsqueeze", name, w.ints(first)) for name in w.alike(xs, len(node.dims))]
    return w.op("ReduceLogSumExp", w.op("Concat", *lifted, axis=first), w.ints(first), keepdims=0)
