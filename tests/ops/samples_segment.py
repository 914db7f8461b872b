"""Rows of the op table: sums and maxima by segment (cext/ops/segments.cc)."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples import A, Row, spread

import dynet_lite as dy
from dynet_lite import _core

ROWS: list[Row] = []


def vector() -> Any:
    return dy.inputVector([1.0, 2.0])


# ---- the first few of a list ---------------------------------------------------------------------------------------


def some(rng: np.random.Generator) -> dict[str, Any]:
    return {"n": int(rng.integers(1, 4)), "factor": float(np.float32(rng.uniform(0.5, 2)))}


def largest(rng: np.random.Generator) -> dict[str, Any]:
    return {"n": int(rng.integers(1, 4))}


for _args in ([A(3)] * 4, [A(2, 3)] * 3, [A(3, batch=2)] * 3, [A(17)] * 5):
    ROWS.append(
        Row(
            "_sum_some",
            lambda *xs, n, factor: _core._sum_some(list(xs), n, factor),
            _args,
            lambda *xs, n, factor: factor * sum(xs[:n]),
            some,
            bad=[[(3,)] * (len(_args) - 1) + [(4,)], [(3,)] * (len(_args) - 1) + ["3x2"]],
            wrong=[
                (lambda: _core._sum_some([vector()], 2, 1.0), ValueError),
                (lambda: _core._sum_some([vector()], 0, 1.0), ValueError),
            ],
        )
    )
    ROWS.append(
        Row(
            "_max_some",
            lambda *xs, n: _core._max_some(list(xs), n),
            _args,
            lambda *xs, n: np.max(np.stack(xs[:n]), axis=0),
            largest,
            bad=[[(3,)] * (len(_args) - 1) + [(4,)]],
            wrong=[(lambda: _core._max_some([vector()], 2), ValueError)],
        )
    )

# ---- along the last dim ----------------------------------------------------------------------------------------------


def by_segment(reduce: Any, empty: float = 0.0) -> Any:
    """The reference: segments without members are `empty`."""

    def reference(x: np.ndarray, ids: list[int]) -> np.ndarray:
        out = np.full((*x.shape[:-1], 3), empty)
        for s in set(ids):
            out[..., s] = reduce(x[..., np.array(ids) == s], axis=-1)
        return out

    return reference


for _shape, _batch in (((4, 5), 1), ((6,), 1), ((2, 3, 4), 2), ((17, 3), 1), ((1, 5), 3)):
    _n = _shape[-1]

    def any_ids(rng: np.random.Generator, n: int = _n) -> dict[str, Any]:
        return {"ids": rng.integers(0, 3, n).tolist()}

    def all_ids(rng: np.random.Generator, n: int = _n) -> dict[str, Any]:
        return {"ids": rng.permutation([0, 1, 2, *rng.integers(0, 3, n - 3)]).tolist()}

    for _name, _call, _ref in (
        ("_segment_sum", dy.segment_sum, np.sum),
        ("_segment_sum", dy.segment_mean, np.mean),
    ):
        ROWS.append(
            Row(
                _name,
                lambda x, ids, _call=_call: _call(x, ids, 3),
                [A(*_shape, batch=_batch)],
                by_segment(_ref),
                any_ids,
                note=_call.__name__,
                wrong=[
                    (lambda _call=_call: _call(vector(), [0]), ValueError),
                    (lambda _call=_call: _call(vector(), [0, 3], 3), IndexError),
                    (lambda _call=_call: _call(vector(), [0, -1]), IndexError),
                    (lambda _call=_call: _call(vector(), [0.5, 1]), TypeError),
                    (lambda _call=_call: _call(vector(), None), TypeError),
                ],
            )
        )
    ROWS.append(
        Row(
            "_segment_max",
            lambda x, ids: dy.segment_max(x, ids, 3),
            [A(*_shape, batch=_batch, draw=spread)],
            by_segment(np.max),
            all_ids,
            wrong=[
                (lambda: dy.segment_max(vector(), [0, 2]), ValueError),
                (lambda: dy.segment_max(vector(), [0, 0], 2), ValueError),
                (lambda: dy.segment_max(vector(), [0]), ValueError),
                (lambda: dy.segment_max(vector(), [0, 3], 3), IndexError),
            ],
        )
    )
