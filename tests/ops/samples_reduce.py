"""Rows of sums, means, moments, maxima, norms and distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from samples import A, Arg, Row, normal, positive, probability, spread

import dynet_lite as dy

ROWS: list[Row] = []
SHAPES = [A(7), A(3, 4), A(5, batch=3), A(3, 4, batch=2), A(2, 3, 4), A(1), A(40, batch=2), A(2, 3, 2, 2, batch=2)]


def vector() -> Any:
    return dy.inputVector([1.0, 2.0, 3.0])


def wrong_dims(call: Callable[..., Any]) -> list[tuple[Callable[[], Any], type[Exception]]]:
    bad = [([1], ValueError), ([0, 0], ValueError), ([-2], ValueError), (["a"], TypeError), ([None], TypeError)]
    return [(lambda d=d: call(vector(), d), error) for d, error in bad]


# ---- over all elements, over the batch -----------------------------------------------------------------------------

ELEMS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum_elems": ("sum_elems", lambda x: dy.sum_elems(x), np.sum),
    "mean_elems": ("mean_elems", lambda x: dy.mean_elems(x), np.mean),
    "std_elems": ("_std_dims", lambda x: dy.std_elems(x), np.std),
    "moment_elems 1": ("mean_elems", lambda x: dy.moment_elems(x, 1), np.mean),
    "moment_elems 3": ("mean_elems", lambda x: dy.moment_elems(x, 3), lambda x: np.mean(x**3)),
    "l2_norm": ("l2_norm", lambda x: dy.l2_norm(x), lambda x: np.sqrt(np.sum(x * x))),
    "squared_norm": ("dot_product", lambda x: dy.squared_norm(x), lambda x: np.sum(x * x)),
}
BATCHES: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum_batches": ("sum_batches", lambda x: dy.sum_batches(x), lambda x: x.sum(-1, keepdims=True)),
    "mean_batches": ("mean_batches", lambda x: dy.mean_batches(x), lambda x: x.mean(-1, keepdims=True)),
    "std_batches": ("_std_dims", lambda x: dy.std_batches(x), lambda x: x.std(-1, keepdims=True)),
    "moment_batches 4": ("mean_batches", lambda x: dy.moment_batches(x, 4), lambda x: (x**4).mean(-1, keepdims=True)),
}
for _arg in SHAPES:
    for _name, (_op, _call, _ref) in ELEMS.items():
        if _arg.shape != (1,) or "std" not in _name:
            ROWS.append(Row(_op, _call, [_arg], _ref, note=_name))
    for _name, (_op, _call, _ref) in BATCHES.items():
        if _arg.batch > 1 or "std" not in _name:
            ROWS.append(Row(_op, _call, [_arg], _ref, whole=True, note=_name))


# ---- over dims -----------------------------------------------------------------------------------------------------


def over(f: Callable[..., Any], d: list[int], b: bool) -> Callable[[Any], Any]:
    """A NumPy reduction over dims d of an array whose last axis is the batch; what has no dim left is {1}."""

    def ref(x: np.ndarray) -> np.ndarray:
        axes = tuple(d) + ((x.ndim - 1,) if b else ())
        y = f(x, axes)
        y = y[..., None] if b else y
        return y if y.ndim > 1 else y[None, :]

    return ref


DIMS = [
    (A(7), [0], False),
    (A(3, 4), [0], False),
    (A(3, 4), [1], False),
    (A(3, 4), [1, 0], False),
    (A(3, 4), [-1], False),
    (A(3, 4, batch=3), [0], False),
    (A(3, 4, batch=3), [1], True),
    (A(3, 4, batch=3), [0, 1], True),
    (A(3, 4, batch=3), [], True),
    (A(2, 3, 4), [1], False),
    (A(2, 3, 4, batch=2), [0, 2], False),
    (A(2, 3, 4, batch=2), [0, 2], True),
    (A(2, 3, 2, 2), [1, 2], False),
    (A(20, 3), [0], False),
    (A(3, 1), [1], False),
]
for _arg, _d, _b in DIMS:
    _axes = [i % len(_arg.shape) for i in _d]
    for _name, _op, _call, _f in [
        ("sum", "_sum_dims", lambda x, d, b: dy.sum_dim(x, d, b), lambda x, axes: x.sum(axes)),
        ("mean", "_mean_dims", lambda x, d, b: dy.mean_dim(x, d, b), lambda x, axes: x.mean(axes)),
        ("std", "_std_dims", lambda x, d, b: dy.std_dim(x, d, b), lambda x, axes: x.std(axes)),
        ("moment 2", "_mean_dims", lambda x, d, b: dy.moment_dim(x, d, 2, b), lambda x, axes: (x**2).mean(axes)),
        ("mean n", "_mean_dims", lambda x, d, b: dy.mean_dim(x, d, b, 5), lambda x, axes: x.sum(axes) / 5),
    ]:
        if _name == "std" and _arg.shape == (3, 1):
            continue  # the deviation of one number is 0
        ROWS.append(
            Row(
                _op,
                lambda x, _c=_call, _d=_d, _b=_b: _c(x, _d, _b),
                [_arg],
                over(_f, _axes, _b),
                whole=True,
                note=f"{_name} {_d} {_b}",
                wrong=wrong_dims(lambda x, d, _c=_call: _c(x, d, False)),
            )
        )
for _name, _op, _ref in [
    ("sum_rows", "_sum_dims", lambda x: x.sum(0)),
    ("sum_cols", "_sum_dims", lambda x: x.sum(1)),
    ("average_cols", "_mean_dims", lambda x: x.mean(1)),
]:
    ROWS.append(Row(_op, lambda x, _n=_name: getattr(dy, _n)(x), [A(3, 4)], _ref, note=_name))


# ---- along a dim ---------------------------------------------------------------------------------------------------

ALONG = [
    (a, d) for a in (A(7), A(3, 4), A(5, batch=3), A(3, 4, batch=2), A(2, 3, 4), A(1)) for d in range(len(a.shape))
]
ALONG += [(A(21, 2), 0), (A(2, 21), 1)]


def logsumexp(x: np.ndarray, d: int) -> np.ndarray:
    return np.log(np.exp(x).sum(d))


def one_hot_of_max(x: np.ndarray, d: int) -> np.ndarray:
    return (x == x.max(d, keepdims=True)).astype(float)


for _arg, _d in ALONG:
    _apart = Arg(_arg.shape, _arg.batch, spread)
    for _name, _call, _ref in [
        ("max_dim", lambda x, d: dy.max_dim(x, d), lambda x, d: x.max(d)),
        ("min_dim", lambda x, d: dy.min_dim(x, d), lambda x, d: x.min(d)),
        ("cumsum", lambda x, d: dy.cumsum(x, d), lambda x, d: x.cumsum(d)),
        ("logsumexp_dim", lambda x, d: dy.logsumexp_dim(x, d), logsumexp),
    ]:
        ROWS.append(
            Row(
                _name,
                _call,
                [_apart if "m" in _name[:3] else _arg],
                _ref,
                attrs={"d": _d},
                wrong=[
                    (lambda _c=_call: _c(vector(), 1), ValueError),
                    (lambda _c=_call: _c(vector(), -1), ValueError),
                    (lambda _c=_call: _c(vector(), "a"), TypeError),
                    (lambda _c=_call: _c(None, 0), TypeError),
                ],
            )
        )
    for _mode in ("zero_gradient", "straight_through_gradient"):
        ROWS.append(
            Row(
                "_argmax",
                lambda x, d, _m=_mode: dy.argmax(x, _m, d),
                [_apart],
                one_hot_of_max,
                attrs={"d": _d},
                surrogate=(lambda x, d: 0 * x) if _mode == "zero_gradient" else (lambda x, d: x),
                note=_mode,
                wrong=[
                    (lambda: dy.argmax(vector(), "none"), ValueError),
                    (lambda: dy.argmax(vector(), None), ValueError),
                    (lambda: dy.argmax(vector(), "zero_gradient", 1), ValueError),
                ],
            )
        )
    for _k in {1, 2, _arg.shape[_d]}:
        if _k <= _arg.shape[_d]:
            ROWS.append(
                Row(
                    "kmax_pooling",
                    lambda x, k, d: dy.kmax_pooling(x, k, d),
                    [_apart],
                    lambda x, k, d: np.take_along_axis(x, np.sort(np.argsort(-x, axis=d).take(range(k), d), axis=d), d),
                    attrs={"k": _k, "d": _d},
                    wrong=[
                        (lambda: dy.kmax_pooling(vector(), 4, 0), ValueError),
                        (lambda: dy.kmax_pooling(vector(), 0, 0), ValueError),
                        (lambda: dy.kmax_pooling(vector(), -1, 0), ValueError),
                        (lambda: dy.kmax_pooling(vector(), 1), ValueError),
                        (lambda: dy.kmax_pooling(vector(), "a", 0), TypeError),
                    ],
                )
            )


# ---- lists ---------------------------------------------------------------------------------------------------------

LISTS = [
    [A(1)] * 5,
    [A(3)] * 2,
    [A(2, 3)] * 3,
    [A(3, batch=2), A(3)],
    [A(3), A(3, batch=2), A(3, batch=2)],
    [A(4)],
    [A(21)] * 4,
]
for _args in LISTS:
    for _name, _ref in [
        ("logsumexp", lambda *xs: np.log(sum(np.exp(x) for x in xs))),
        ("emax", lambda *xs: np.max(np.stack(xs), axis=0)),
    ]:
        ROWS.append(
            Row(
                _name,
                lambda *es, _n=_name: getattr(dy, _n)(list(es)),
                _args,
                _ref,
                bad=[[(3,)] + [(4,)] * (len(_args) - 1)] if len(_args) > 1 else (),
                wrong=[
                    (lambda _n=_name: getattr(dy, _n)([]), ValueError),
                    (lambda _n=_name: getattr(dy, _n)(dy.inputVector([1.0])), TypeError),
                    (lambda _n=_name: getattr(dy, _n)([dy.inputVector([1.0]), None]), TypeError),
                ],
            )
        )


# ---- products and distances ----------------------------------------------------------------------------------------

PAIRS: list[tuple[Any, Any]] = [
    (lambda draw: A(5, draw=draw), lambda draw: A(5, draw=draw)),
    (lambda draw: A(3, 4, draw=draw), lambda draw: A(3, 4, draw=draw)),
    (lambda draw: A(5, batch=3, draw=draw), lambda draw: A(5, batch=3, draw=draw)),
    (lambda draw: A(5, draw=draw), lambda draw: A(5, batch=3, draw=draw)),
    (lambda draw: A(2, 3, batch=2, draw=draw), lambda draw: A(2, 3, draw=draw)),
    (lambda draw: A(1, draw=draw), lambda draw: A(1, draw=draw)),
    (lambda draw: A(5, draw=draw), lambda draw: A(5, 1, draw=draw)),
]


def huber(x: np.ndarray, y: np.ndarray, c: float) -> np.ndarray:
    d = np.abs(x - y)
    return np.sum(np.where(d <= c, d * d / 2, c * d - c * c / 2))


def flat(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, **attrs: f(x.ravel(order="F"), y.ravel(order="F"), **attrs)


def binary_log_loss(x: np.ndarray, y: np.ndarray) -> float:
    return float(-np.sum(y * np.log(x) + (1 - y) * np.log(1 - x)))


lgamma = np.vectorize(math.lgamma, otypes=[float])
DISTANCES: list[tuple[str, Callable[..., Any], Callable[..., Any], Any, dict[str, Any], str]] = [
    ("dot_product", lambda x, y: dy.dot_product(x, y), lambda x, y: np.sum(x * y), normal, {}, ""),
    ("dot_product", lambda x, y: dy.trace_of_product(x, y), lambda x, y: np.sum(x * y), normal, {}, "trace_of_product"),
    ("squared_difference", lambda x, y: dy.squared_distance(x, y), lambda x, y: np.sum((x - y) ** 2), normal, {}, ""),
    ("abs_difference", lambda x, y: dy.l1_distance(x, y), lambda x, y: np.sum(np.abs(x - y)), normal, {}, ""),
    ("huber", lambda x, y, c: dy.huber_distance(x, y, c), huber, normal, {"c": 0.7}, ""),
    ("binary_log_loss_terms", lambda x, y: dy.binary_log_loss(x, y), binary_log_loss, probability, {}, ""),
]
for _op, _call, _ref, _draw, _attrs, _note in DISTANCES:
    for _a, _b in PAIRS:
        ROWS.append(
            Row(
                _op,
                _call,
                [_a(_draw), _b(_draw)],
                flat(_ref),
                attrs=_attrs,
                note=_note,
                bad=[[(3,), (4,)], [(3,), (3, 4)], [(3,), (1,)], ["3x2", "3x3"]],
                tol=4e-6,
            )
        )
for _a, _b in PAIRS[:-1]:
    ROWS.append(
        Row(
            "pairwise_rank",
            lambda x, y, m: dy.pairwise_rank_loss(x, y, m),
            [_a(normal), _b(normal)],
            lambda x, y, m: np.maximum(0, m - x + y),
            attrs={"m": 0.8},
            bad=[[(3,), (4,)], ["3x2", "3x3"]],
        )
    )
    ROWS.append(
        Row(
            "poisson",
            lambda x, y: dy.poisson_loss(x, y),
            [_a(normal), _b(positive)],
            lambda x, y: np.exp(x) - y * x + lgamma(y + 1),
            bad=[[(3,), (4,)], ["3x2", "3x3"]],
            tol=5e-6,
        )
    )
ROWS.append(
    Row(
        "poisson",
        lambda x: dy.poisson_loss(x, 3),
        [A(1)],
        lambda x: np.exp(x) - 3 * x + math.lgamma(4),
        note="count",
        tol=5e-6,
    )
)
for _m, _v in [(A(3, 4), A(3)), (A(3, 4, batch=2), A(3)), (A(3, 4), A(3, batch=2))]:
    ROWS.append(
        Row(
            "add",
            lambda x, b: dy.colwise_add(x, b),
            [_m, _v],
            lambda x, b: x + b[:, None],
            bad=[[(3, 4), (4,)], [(3, 4), (3, 4)]],
        )
    )
for _w, _g in [(A(3, 4), A(1)), (A(5, batch=2), A(1)), (A(5), A(1, batch=2))]:
    ROWS.append(
        Row(
            "l2_norm",
            lambda w, g: dy.weight_norm(w, g),
            [_w, _g],
            lambda w, g: g * w / np.sqrt(np.sum(w * w)),
            bad=[[(3, 4), (3,)], [(3, 4), (3, 4)]],
            note="weight_norm",
        )
    )
