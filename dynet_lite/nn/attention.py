"""Attention: a query gets the weighted mean of the columns of a memory. Uses public operations only.

    attention = MLPAttention(query_dim, memory_dim, hidden_dim, model)
    memory = attention.remember(encodings)     # once per sentence
    context = attention(state, memory)         # once per step

Written for one sentence, like everything here. A step of many sentences runs in one call per operation, whatever the
lengths of their memories.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.needs import of, part, rows

__all__ = ["DotAttention", "MLPAttention", "Memory", "MultiHeadAttention", "causal_mask"]


@dataclass(slots=True)
class Memory:
    """A prepared memory: its columns {d,n}, and the keys {a,n} that queries are compared with."""

    columns: Any
    keys: Any

    def __len__(self) -> int:
        """The number of columns."""
        return width(self.columns)


def width(x: Any) -> int:
    """The number of columns; a vector is one."""
    shape = x.dim()[0]
    return shape[1] if len(shape) > 1 else 1


def _columns(memory: Any) -> Any:
    """A matrix {d,n}, from itself or from a list of n vectors {d}."""
    if isinstance(memory, dy.Expression):
        return memory
    vectors = list(memory)
    if not vectors:
        raise ValueError("[attention] the memory is empty: expected at least one vector")
    return dy.concatenate_cols(vectors)


@part(
    remember__memory=rows("a memory", "memory_dim", listed=True),
    memory=of("a memory that remember() gave", Memory),
    query=rows("a query", "query_dim"),
)
class _Attention:
    """A query {query_dim} and a memory of n columns {memory_dim}: weights {n} and their mean of the columns."""

    query_dim: int
    memory_dim: int

    def remember(self, memory: Any | Iterable[Any]) -> Memory:
        """The memory, prepared for any number of queries: a matrix {d,n} or a list of n vectors {d}."""
        columns = _columns(memory)
        return Memory(columns, self._keys(columns))

    def weights(self, query: Any, memory: Memory) -> Any:
        """How much of each column the query gets: {n}, positive, with sum 1."""
        return dy.softmax(self.logits(query, memory))

    def logits(self, query: Any, memory: Memory) -> Any:
        """The scores of the columns before the softmax: {n}. What a pointer network or an added mask needs."""
        scores = self._scores(query, memory.keys)
        return dy.reshape(scores, (len(memory),), scores.batch_size)

    def __call__(self, query: Any, memory: Memory) -> Any:
        """The mean of the columns with these weights: {memory_dim}."""
        return memory.columns * self.weights(query, memory)

    def _keys(self, columns: Any) -> Any:
        raise NotImplementedError

    def _scores(self, query: Any, keys: Any) -> Any:
        """{1,n} or {n}."""
        raise NotImplementedError


@part()
class MLPAttention(_Attention):
    """Additive attention (Bahdanau, Cho, Bengio 2015): the score of a column m is v' tanh(W m + U q).

    attention = MLPAttention(query_dim, memory_dim, hidden_dim, model)
    memory = attention.remember(encodings)  # once per sentence
    context = attention(state, memory)      # once per step
    """

    def __init__(
        self,
        query_dim: int,
        memory_dim: int,
        hidden_dim: int,
        model: dy.ParameterCollection,
        *,
        name: str = "mlp-attention",
    ) -> None:
        self.query_dim, self.memory_dim = query_dim, memory_dim
        collection = model.add_subcollection(name)
        self.W = collection.add_parameters((hidden_dim, memory_dim), name="W")
        self.U = collection.add_parameters((hidden_dim, query_dim), name="U")
        self.v = collection.add_parameters((1, hidden_dim), name="v")

    def _keys(self, columns: Any) -> Any:
        return self.W * columns

    def _scores(self, query: Any, keys: Any) -> Any:
        return self.v * dy.tanh(keys + self.U * query)

    def symbolic(self, query: Any, memory: Any, keys: Any) -> tuple[Any, Any]:
        """(mean, weights) for a memory of unknown length, in exported networks. The weights are a sequence of {1}.

        keys: memory.map(attention.key)
        """
        weights = self.symbolic_logits(query, keys).softmax()
        return weights.map(dy.cmult, memory).sum(), weights

    def symbolic_logits(self, query: Any, keys: Any) -> Any:
        """The scores before the softmax, a sequence of {1}: see symbolic()."""
        added = self.U * query
        return keys.map(lambda k: self.v * dy.tanh(k + added))

    def key(self, column: Any) -> Any:
        """The part of a column that queries are compared with."""
        return self.W * column


@part()
class DotAttention(_Attention):
    """Multiplicative attention (Luong, Pham, Manning 2015): the score of a column m is q' W m.

    With `projected=False` there is no W: the score is q' m / sqrt(d), and both sizes must be equal.
    """

    def __init__(
        self, query_dim: int, memory_dim: int, model: dy.ParameterCollection | None = None, projected: bool = True, *,
        name: str = "dot-attention",
    ) -> None:  # fmt: skip
        self.query_dim, self.memory_dim = query_dim, memory_dim
        self.W: Any = None
        if projected:
            if model is None:
                raise ValueError("[DotAttention] a projection needs the model that holds it")
            self.W = model.add_subcollection(name).add_parameters((query_dim, memory_dim), name="W")
        elif query_dim != memory_dim:
            raise ValueError(f"[attention] without a projection the dims are equal; got {query_dim} and {memory_dim}")
        self.scale = 1 / math.sqrt(max(1, memory_dim))

    def _keys(self, columns: Any) -> Any:
        return columns * self.scale if self.W is None else self.W * columns

    def _scores(self, query: Any, keys: Any) -> Any:
        return dy.transpose(keys) * query


def causal_mask(n: int) -> Any:
    """A mask {n,n} of 0 and minus infinity, to be added to scores: query i (a column) sees only the memory columns 0..i."""
    return dy.inputTensor(np.tril(np.full((n, n), -np.inf, dtype=np.float32), -1))


@part(queries=rows("a matrix of queries", "dim"), memory=rows("a memory", "dim"))
class MultiHeadAttention:
    """Scaled dot products in several heads (Vaswani et al. 2017). A sequence is a matrix with a column per position,
    or a vector if it has one position.

    `dim` is a multiple of `heads`. Inside, the heads are a mini-batch, so sequences cannot be one: call it for each
    sequence.
    """

    def __init__(
        self, dim: int, heads: int, model: dy.ParameterCollection, *, name: str = "multi-head-attention"
    ) -> None:
        if heads < 1 or dim % heads:
            raise ValueError(f"[attention] the dim must be a multiple of the number of heads; got {dim} and {heads}")
        self.dim, self.heads = dim, heads
        collection = model.add_subcollection(name)
        names = "Wq", "Wk", "Wv", "Wo"
        self.Wq, self.Wk, self.Wv, self.Wo = (collection.add_parameters((dim, dim), name=W) for W in names)
        self.bo = collection.add_parameters(dim, init=0, name="bo")

    def _split(self, x: Any) -> Any:
        """{dim,n} -> {dim/heads,n} X heads."""
        n = width(x)
        parts = dy.transpose(dy.reshape(x, (self.dim // self.heads, self.heads, n)), (0, 2, 1))
        return dy.reshape(parts, (self.dim // self.heads, n), self.heads)

    def _join(self, x: Any) -> Any:
        """The reverse of _split."""
        n = width(x)
        parts = dy.transpose(dy.reshape(x, (self.dim // self.heads, n, self.heads)), (0, 2, 1))
        return dy.reshape(parts, (self.dim, n))

    def weights(self, queries: Any, memory: Any, mask: Any = None) -> Any:
        """How much of each memory column query i gets, in column i: {n_memory,n_queries} X heads."""
        return dy.softmax(self.logits(queries, memory, mask))

    def logits(self, queries: Any, memory: Any, mask: Any = None) -> Any:
        """The scaled products before the softmax: column i has those of query i with the memory. The mask is added.
        Shape as in weights().
        """
        q, k = self._split(self.Wq * queries), self._split(self.Wk * memory)
        scores = dy.transpose(k) * (q * math.sqrt(self.heads / self.dim))
        return scores if mask is None else scores + mask

    def __call__(self, queries: Any, memory: Any = None, mask: Any = None, dropout: float = 0.0) -> Any:
        """Attention of each column of `queries` {dim,n} to the columns of `memory` {dim,m} (default: to each other).

        mask {m,n} is added to the scores (causal_mask()); dropout is the share of the weights to drop. -> {dim,n}
        """
        memory = queries if memory is None else memory
        weights = dy.dropout(self.weights(queries, memory, mask), dropout)
        mixed = self._join(self._split(self.Wv * memory) * weights)
        out = dy.affine_transform([self.bo, self.Wo, mixed])
        return out if width(mixed) > 1 else dy.reshape(out, (self.dim, 1))  # of one column that op makes a vector

    # ---- for files: dynet_lite/onnx ----------------------------------------------------------------------------------

    def symbolic(self, queries: Any, keys: Any, values: Any, causal: bool = False) -> Any:
        """__call__ for a memory of unknown length, in exported networks.

        queries: a sequence of {dim}, or one query
        keys, values: memory.map(self.key) and memory.map(self.value)
        """
        from dynet_lite import onnx

        def last(x: Any) -> Any:
            return dy.affine_transform([self.bo, self.Wo, x])

        if isinstance(queries, dy.Expression):
            return last(onnx.attend(self.Wq * queries, keys, values, self.heads))
        return onnx.attend(queries.map(lambda x: self.Wq * x), keys, values, self.heads, causal).map(last)

    def key(self, column: Any) -> Any:
        """The part of a column that queries are compared with."""
        return self.Wk * column

    def value(self, column: Any) -> Any:
        """The part of a column that is averaged."""
        return self.Wv * column
