"""Networks over graphs that are not known before the file runs: steps chosen by numbers, and what is said along edges.

Who may import: this package; dynet_lite/nn/graph.py uses it for networks that are exported.
"""

from __future__ import annotations

from typing import Any

from .symbolic import Chosen, Get, Ids, Sequence, trace
from .writer import Writer


def _numbers(what: str, *given: Any) -> list[Chosen]:
    for ids in given:
        if not isinstance(ids, Chosen) or not isinstance(ids.spec, Ids) or ids.spec.inner or not ids.spec.length:
            raise TypeError(
                f"[onnx] {what}: an input declared as onnx.Ids with a length is needed; got {type(ids).__name__}"
            )
    if len({ids.spec.length for ids in given}) > 1:
        raise ValueError(f"[onnx] {what}: the numbers have the lengths {', '.join(ids.spec.length for ids in given)}")
    return list(given)


def chosen(xs: Sequence, ids: Any) -> Sequence:
    """The steps of xs that an input of Ids chooses, counted from 0: a Sequence as long as that input."""
    (which,) = _numbers("chosen", ids)
    if xs.backwards:
        raise ValueError("[onnx] chosen: needs a sequence that goes forwards")
    here, e = trace(), xs.e

    def write(w: Writer, get: Get) -> str:
        return w.op("Gather", get(e).name, which.name, axis=0)

    symbol = which.spec.length
    return Sequence(here.place(e.shape, here.size(symbol), symbol, (e,), write), symbol)


def heard(messages: list[Sequence], sources: Any, targets: Any, kinds: Any) -> Sequence:
    """The messages that each node of a graph receives: for node v, the sum of step u of messages[k] over the edges (u,
    v, k).

    messages: for each kind of edge a sequence over the nodes; all of one length
    sources, targets, kinds: inputs of Ids of another length, which may be 0 when the file runs
    """
    u, v, k = _numbers("heard", sources, targets, kinds)
    first = messages[0]
    if any((m.symbol, m.e.shape, m.backwards) != (first.symbol, first.e.shape, False) for m in messages):
        raise ValueError("[onnx] heard: needs sequences of one length and of vectors of one size, which go forwards")
    es = tuple(m.e for m in messages)

    def write(w: Writer, get: Get) -> str:
        said = [get(e).name for e in es]
        every = w.op("Concat", *said, axis=0) if len(said) > 1 else said[0]  # [kinds n, out]
        count = w.op("Shape", said[0], start=0, end=1)
        rows = w.op("Gather", every, w.op("Add", w.op("Mul", k.name, count), u.name), axis=0)
        zeros = w.op("Expand", w.number(0), w.op("Shape", said[0]))
        return w.op("ScatterND", zeros, w.op("Unsqueeze", v.name, w.ints(1)), rows, reduction="add")

    return Sequence(trace().place(first.e.shape, first.e.batch_size, first.symbol, es, write), first.symbol)
