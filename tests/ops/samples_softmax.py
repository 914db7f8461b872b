"""Rows of the softmax family, the losses over labels, and layer_norm."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples import A, Row, spread

import dynet_lite as dy
from dynet_lite import _core

ROWS: list[Row] = []
vector = lambda: dy.inputVector([1.0, 2.0, 3.0])  # noqa: E731
matrix = lambda: dy.inputTensor(np.ones((2, 3)))  # noqa: E731


def softmax(x: np.ndarray, d: int = 0) -> np.ndarray:
    e = np.exp(x - x.max(axis=d, keepdims=True))
    return e / e.sum(axis=d, keepdims=True)


def log_softmax(x: np.ndarray, d: int = 0) -> np.ndarray:
    top = x.max(axis=d, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis=d, keepdims=True))


for _name, _ref in (("softmax", softmax), ("log_softmax", log_softmax)):
    for _shape, _batch, _d in (
        ((5,), 1, 0),
        ((33,), 1, 0),
        ((1,), 2, 0),
        ((3, 4), 1, 0),
        ((3, 4), 1, 1),
        ((3, 4), 2, 1),
        ((4,), 3, 0),
        ((2, 3, 4), 1, 1),
        ((2, 3, 4), 2, 2),
        ((2, 1, 4), 2, 1),
    ):
        ROWS.append(
            Row(
                _name,
                lambda x, d, _n=_name: getattr(dy, _n)(x, d=d),
                [A(*_shape, batch=_batch)],
                _ref,
                attrs={"d": _d},
                tol=5e-6,
                wrong=[
                    (lambda _n=_name: getattr(dy, _n)(vector(), d=1), ValueError),
                    (lambda _n=_name: getattr(dy, _n)(matrix(), d=-1), ValueError),
                    (lambda _n=_name: getattr(dy, _n)(matrix(), d=2**40), IndexError),
                    (lambda _n=_name: getattr(dy, _n)(matrix(), d="0"), TypeError),
                    (lambda _n=_name: getattr(dy, _n)([vector()]), TypeError),
                ],
                note=f"d{_d}",
            )
        )


def some_ids(rng: np.random.Generator) -> dict[str, Any]:
    return {"restrict": [int(i) for i in rng.permutation(5)[: rng.integers(1, 6)]]}


def restricted(x: np.ndarray, restrict: list[int]) -> np.ndarray:
    y = np.full(x.shape, -np.inf)
    y[restrict] = log_softmax(x[restrict])
    return y


for _arg in (A(5), A(5, batch=3), A(5, 2, batch=2)):
    ROWS.append(
        Row(
            "_log_softmax_restricted",
            lambda x, restrict: dy.log_softmax(x, restrict=restrict),
            [_arg],
            restricted,
            attrs=some_ids,
            tol=5e-6,
            after=(lambda y: dy.exp(y), np.exp),
            wrong=[
                (lambda: dy.log_softmax(vector(), restrict=[]), ValueError),
                (lambda: dy.log_softmax(vector(), restrict=[3]), IndexError),
                (lambda: dy.log_softmax(vector(), restrict=[-1]), IndexError),
                (lambda: dy.log_softmax(vector(), restrict=["a"]), TypeError),
                (lambda: dy.log_softmax(vector(), restrict=1.5), TypeError),
            ],
        )
    )


# ---- sparsemax, constrained softmax -------------------------------------------------------------------------------


def sparsemax(x: np.ndarray) -> np.ndarray:
    """By bisection on the threshold, column by column: another way than the engine's."""
    low, high = x.max(axis=0) - 1, x.max(axis=0)
    for _ in range(100):
        mid = (low + high) / 2
        more = np.maximum(x - mid, 0).sum(axis=0) >= 1
        low, high = np.where(more, mid, low), np.where(more, high, mid)
    return np.maximum(x - (low + high) / 2, 0)


def sparsemax_loss(x: np.ndarray, v: Any) -> Any:
    """The largest value of p x - p p / 2 over distributions p, minus the same for the target."""
    ids = [v] if isinstance(v, int) else v
    p, q = sparsemax(x), np.zeros(x.shape)
    q[ids] = 1 / len(ids)
    return (p * x).sum() - (p * p).sum() / 2 - (q * x).sum() + (q * q).sum() / 2


def targets(rng: np.random.Generator) -> dict[str, Any]:
    return {"v": [int(i) for i in rng.permutation(6)[: rng.integers(1, 4)]]}


for _arg in (A(6, draw=spread), A(6, batch=3), A(5, 3, draw=spread), A(1), A(40)):
    ROWS.append(Row("sparsemax", lambda x: dy.sparsemax(x), [_arg], sparsemax))
for _arg in (A(6), A(6, batch=2), A(6, draw=spread)):
    ROWS.append(
        Row(
            "sparsemax_loss",
            lambda x, v: dy.sparsemax_loss(x, v),
            [_arg],
            sparsemax_loss,
            attrs=targets,
            tol=5e-6,
            gtol=5e-5,
            bad=[[(3, 2)]],
            wrong=[
                (lambda: dy.sparsemax_loss(vector(), 3), IndexError),
                (lambda: dy.sparsemax_loss(vector(), -1), IndexError),
                (lambda: dy.sparsemax_loss(vector(), []), ValueError),
                (lambda: dy.sparsemax_loss(vector(), [1, 1]), ValueError),
                (lambda: dy.sparsemax_loss(vector(), None), TypeError),
            ],
        )
    )


def constrained(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """min(u, e^x / z) with z by bisection."""
    e = np.exp(x - x.max())
    low, high = -60.0, 60.0
    for _ in range(200):
        mid = (low + high) / 2
        if np.minimum(u, e * np.exp(-mid)).sum() > 1:
            low = mid
        else:
            high = mid
    return np.minimum(u, e * np.exp(-(low + high) / 2))


def bounds(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.15, 0.6, shape) * 8 / shape[0]


for _x, _u in ((A(8), A(8, draw=bounds)), (A(8, batch=2), A(8, draw=bounds)), (A(8), A(8, batch=2, draw=bounds))):
    ROWS.append(
        Row(
            "constrained_softmax",
            lambda x, y: dy.constrained_softmax(x, y),
            [_x, _u],
            constrained,
            gtol=5e-5,
            bad=[[(3,), (4,)], [(3, 2), (3, 2)], ["3x2", "3x3"]],
        )
    )


# ---- losses with labels -------------------------------------------------------------------------------------------


def labels_for(n: int, count: int, margin: bool = False) -> Any:
    """Attributes: a label, or a list of labels when count > 1; and a margin."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        v: Any = [int(i) for i in rng.integers(0, n, count)]
        attrs: dict[str, Any] = {"v": v if count > 1 else v[0]}
        if margin:
            attrs["m"] = float(np.float32(rng.uniform(0.5, 1.5)))
        return attrs

    return draw


def wrong_labels(name: str) -> Any:
    f = lambda *a: getattr(dy, name)(*a)  # noqa: E731
    return [
        (lambda: f(vector(), 3), IndexError),
        (lambda: f(vector(), -1), IndexError),
        (lambda: f(vector(), 2**40), IndexError),
        (lambda: f(vector(), [0, 1]), ValueError),
        (lambda: f(vector(), []), ValueError),
        (lambda: f(vector(), None), TypeError),
        (lambda: f(vector(), "a"), TypeError),
        (lambda: f(vector(), 1.5), ValueError),
    ]


def per_element(f: Any) -> Any:
    """A reference over whole batches from one of a vector and a label."""

    def g(x: np.ndarray, v: Any, **attrs: Any) -> np.ndarray:
        ids = [v] if isinstance(v, int) else v
        return np.array([[f(x[..., e].ravel(), ids[e], **attrs) for e in range(x.shape[-1])]])

    return g


def hinge(x: np.ndarray, v: int, m: float) -> float:
    return float(np.maximum(0, m - x[v] + np.delete(x, v)).sum())


for _arg in (A(5), A(5, batch=3), A(1), A(40), A(5, 1)):
    _n, _b = _arg.shape[0], _arg.batch
    ROWS.append(
        Row(
            "pickneglogsoftmax",
            lambda x, v: dy.pickneglogsoftmax(x, v),
            [_arg],
            per_element(lambda x, v: -log_softmax(x)[v]),
            attrs=labels_for(_n, _b),
            whole=True,
            tol=5e-6,
            gtol=5e-5,
            bad=[[(3, 2)]],
            wrong=wrong_labels("pickneglogsoftmax"),
        )
    )
    if _n > 1:
        ROWS.append(
            Row(
                "hinge",
                lambda x, v, m: dy.hinge(x, v, m),
                [_arg],
                per_element(hinge),
                attrs=labels_for(_n, _b, margin=True),
                whole=True,
                gtol=5e-5,
                bad=[[(3, 2)]],
                wrong=[*wrong_labels("hinge"), (lambda: dy.hinge(vector(), 1, None), TypeError)],
            )
        )
ROWS.append(
    Row(
        "hinge",
        lambda x, v: dy.hinge_batch(x, v),
        [A(4, batch=3)],
        per_element(lambda x, v: hinge(x, v, 1.0)),
        attrs=labels_for(4, 3),
        whole=True,
        note="hinge_batch",
    )
)
ROWS.append(
    Row(
        "pickneglogsoftmax",
        lambda x, v: dy.pickneglogsoftmax_batch(x, v),
        [A(4, batch=3)],
        per_element(lambda x, v: -log_softmax(x)[v]),
        attrs=labels_for(4, 3),
        whole=True,
        note="batch",
    )
)


def hinge_dim(x: np.ndarray, v: list[int], d: int, m: float) -> np.ndarray:
    lines = x if d == 1 else np.swapaxes(x, 0, 1)  # line by line
    out = [[hinge(lines[i, :, e], v[e * len(lines) + i], m) for e in range(x.shape[-1])] for i in range(len(lines))]
    return np.array(out)


for _d, _batch in ((0, 1), (1, 1), (0, 2), (1, 2)):
    _count = (4 if _d == 0 else 3) * _batch
    ROWS.append(
        Row(
            "hinge_dim",
            lambda x, v, m, d: dy.hinge_dim(x, v, d, m),
            [A(3, 4, batch=_batch)],
            hinge_dim,
            attrs=lambda rng, _d=_d, _c=_count: {**labels_for(3 if _d == 0 else 4, _c, True)(rng), "d": _d},
            whole=True,
            gtol=5e-5,
            wrong=[
                (lambda: dy.hinge_dim(matrix(), [0, 1]), ValueError),
                (lambda: dy.hinge_dim(matrix(), [0, 1, 2]), IndexError),
                (lambda: dy.hinge_dim(matrix(), [0, 1, 1], d=2), ValueError),
                (lambda: dy.hinge_dim(matrix(), []), ValueError),
                (lambda: dy.hinge_dim(matrix(), [None, 1, 1]), TypeError),
                (lambda: dy.hinge_dim(dy.inputTensor(np.ones((2, 2, 2))), [0, 0]), ValueError),
            ],
            note=f"d{_d}",
        )
    )
ROWS.append(
    Row(
        "hinge_dim",
        lambda x: dy.hinge_dim(x, [[0, 1], [2, 0]], 0),
        [A(3, 2, batch=2)],
        lambda x: hinge_dim(x, [0, 1, 2, 0], 0, 1.0),
        whole=True,
        note="nested",
    )
)


# ---- layer_norm ---------------------------------------------------------------------------------------------------


def layer_norm(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    def like(v: np.ndarray) -> np.ndarray:
        return v.ravel()[0] if v.size == 1 else v.reshape(v.shape + (1,) * (x.ndim - v.ndim))

    return like(g) * (x - x.mean()) / x.std() + like(b)


for _args in (
    [A(6), A(6), A(6)],
    [A(37), A(37), A(37)],
    [A(4, batch=3), A(4), A(4)],
    [A(4), A(4, batch=2), A(4)],
    [A(4, batch=2), A(4, batch=2), A(4, batch=2)],
    [A(3, 4), A(3, 4), A(3, 4)],
    [A(3, 4, batch=2), A(3), A(1)],
    [A(2, 3, 2), A(1), A(2)],
):
    ROWS.append(
        Row(
            "layer_norm",
            lambda x, g, b: dy.layer_norm(x, g, b),
            _args,
            layer_norm,
            tol=1e-5,
            gtol=1e-4,
            bad=[[(3,), (4,), (3,)], [(3,), (3,), (2,)], [(3, 2), (2,), (3,)], ["3x2", "3x3", (3,)]],
        )
    )


# ---- scores of additive attention ----------------------------------------------------------------------------------------


def attention_scores(v: np.ndarray, keys: np.ndarray, query: np.ndarray) -> np.ndarray:
    return np.asarray(v @ np.tanh(keys + query[:, None]))


for _h, _n in ((5, 3), (1, 1), (33, 20), (16, 1)):
    ROWS.append(
        Row(
            "_attention_scores",
            lambda v, keys, query: _core._attention_scores(v, keys, query),
            [A(1, _h), A(_h, _n), A(_h)],
            attention_scores,
            tol=5e-6,
            gtol=5e-5,
            bad=[[(1, 5), (5, 3), (4,)], [(1, 4), (5, 3), (5,)], [(2, 5), (5, 3), (5,)], [(5,), (5, 3), (5,)], [(1, 5), (5, 3, 2), (5,)],
                 [(1, 5), "5,3x2", (5,)], [(1, 5), (5, 3), "5x2"], ["1,5x2", (5, 3), (5,)]],
        )
    )  # fmt: skip


# ---- the loss of an affine map -------------------------------------------------------------------------------------------


def affine_loss(x: np.ndarray, w: np.ndarray, *b: np.ndarray, v: Any) -> np.ndarray:
    labels = v if isinstance(v, list) else [v]
    scores = np.einsum("ij,je->ie", w[..., 0], x) + (b[0] if b else 0.0)
    return np.array([[-log_softmax(scores[:, e])[label] for e, label in enumerate(labels)]])


def call_affine_loss(x: Any, *weights: Any, v: Any) -> Any:
    return _core._affine_loss(x, weights, v)


# From one piece of classes to several; a last piece of one class.
for _n, _k, _b in ((5, 3, 1), (1, 2, 1), (40, 7, 3), (129, 6, 1), (300, 4, 2)):
    for _bias in (False, True):
        _shapes = [[(3,), (4, 2)], [(3, 2), (4, 3)], [(3,), (4, 3, 2)], [(3,), "4,3x2"]]
        _with_bias = [[(3,), (4, 3), (3,)], [(3,), (4, 3), "4x2"], [(3,), (4, 3), (4, 2)], [(3,), (4, 3), (4,), (4,)]]
        ROWS.append(
            Row(
                "_affine_loss",
                call_affine_loss,
                [A(_k, batch=_b), A(_n, _k)] + [A(_n)] * _bias,
                affine_loss,
                attrs=labels_for(_n, _b),
                whole=True,
                batches=False,
                tol=5e-6,
                gtol=5e-5,
                bad=_with_bias if _bias else _shapes,
                wrong=[
                    (lambda: _core._affine_loss(vector(), [dy.inputTensor(np.ones((4, 3)))], 4), IndexError),
                    (lambda: _core._affine_loss(vector(), [dy.inputTensor(np.ones((4, 3)))], -1), IndexError),
                    (lambda: _core._affine_loss(vector(), [dy.inputTensor(np.ones((4, 3)))], [0, 1]), ValueError),
                    (lambda: _core._affine_loss(vector(), [], 0), ValueError),
                ],
            )
        )
