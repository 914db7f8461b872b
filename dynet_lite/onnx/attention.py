"""Attention over sequences whose length is not known, and the waves that say where in a sequence a step stands.

Who may import: this package; dynet_lite/nn/transformer.py uses it for networks that are exported.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynet_lite._core import Expression
from dynet_lite.structure import dim_text

from .sizes import cut, with_dims
from .symbolic import Get, Sequence, trace
from .writer import Unsupported, Writer

MINUS_INFINITY = float("-inf")


def attend(queries: Any, keys: Sequence, values: Sequence, heads: int, causal: bool = False) -> Any:
    """Scaled dot products in several heads (Vaswani and others 2017): for each query {d} a weighted mean {d} of the
    values.

    queries: a Sequence, or an expression for a single query
    keys, values: sequences of {d} with one length. Head k takes the numbers k d/heads to (k+1) d/heads of each
    causal: query i sees only the keys 0 to i
    """
    single = isinstance(queries, Expression)
    e, k, v = (with_dims(x, cut(x.shape)) for x in (queries if single else queries.e, keys.e, values.e))
    if single and e.batch_size != 1:
        raise Unsupported(f"[onnx] attend: one query is needed, or a sequence; got a mini-batch {dim_text(e.dim())}")
    dim = e.shape[0]
    if not e.shape == k.shape == v.shape or keys.symbol != values.symbol or dim % heads:
        raise ValueError(
            f"[onnx] attend: {heads} heads, queries {e.shape}, keys {k.shape} and values {v.shape} do not fit"
        )
    if keys.backwards or values.backwards or not single and queries.backwards:
        raise Unsupported("[onnx] attend: needs sequences that go forwards")

    def write(w: Writer, get: Get) -> str:
        def split(name: str) -> str:  # [heads, n, d / heads]
            parts = w.op("Reshape", name, w.ints(-1, heads, dim // heads))
            return w.op("Transpose", parts, perm=[1, 0, 2])

        q = w.op("Mul", split(get(e).name), w.number(math.sqrt(heads / dim)))
        turned = w.op("Transpose", split(get(k).name), perm=[0, 2, 1])
        scores = w.op("MatMul", q, turned)
        if causal:
            scores = w.op("Where", _seen(w, scores), scores, w.number(MINUS_INFINITY))
        mixed = w.op("MatMul", w.op("Softmax", scores, axis=-1), split(get(v).name))
        return w.op("Reshape", w.op("Transpose", mixed, perm=[1, 0, 2]), w.ints(dim) if single else w.ints(-1, dim))

    here = trace()
    if single:
        return here.place((dim,), 1, "", (e, k, v), write)
    return Sequence(here.place((dim,), e.batch_size, queries.symbol, (e, k, v), write), queries.symbol)


def _seen(w: Writer, scores: str) -> str:
    """Which key a query may look at: those up to its own place."""
    ones = w.op("Expand", w.number(1), w.op("Shape", scores, start=1))
    return w.op("Cast", w.op("Trilu", ones, upper=0), to=9)


def waves(xs: Sequence, dim: int, after: bool = False) -> Any:
    """Sines and cosines of the position of each step, from 0, as in dynet_lite.nn.positions: a Sequence of {dim}.

    after: returns instead an expression {dim} for the position after the last step; xs may then be empty
    """
    e, row = xs.e, np.arange(dim)
    speed = 10000.0 ** -(row // 2 * 2 / dim)
    phase = np.where(row % 2, math.pi / 2, 0.0)  # a cosine is a sine a quarter later

    def write(w: Writer, get: Get) -> str:
        count = w.length(get(e).name)
        zero, one = (w.constant(np.array(x, dtype=np.int64)) for x in (0, 1))
        places = count if after else w.op("Unsqueeze", w.op("Range", zero, count, one), w.ints(1))
        angle = w.op("Add", w.op("Mul", w.op("Cast", places, to=11), w.constant(speed)), w.constant(phase))
        return w.op("Cast", w.op("Sin", angle), to=1)

    if after:
        return trace().place((dim,), 1, "", (e,), write)
    return Sequence(trace().place((dim,), e.batch_size, xs.symbol, (e,), write), xs.symbol, xs.backwards)
