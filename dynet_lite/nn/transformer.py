"""Transformer layers over sequences that are matrices {dim,n}, a column per position. Over public operations only.

Vaswani and others: Attention is all you need (2017), with the normalisation before each part and not after it (Xiong and
others 2020): such a stack trains without warmup and needs a last normalisation, which Transformer has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.needs import part, rows

from .attention import MultiHeadAttention, causal_mask, width

__all__ = ["LayerNorm", "Transformer", "TransformerLayer", "positions"]


def positions(dim: int, n: int) -> Any:
    """A constant {dim,n} of sines and cosines of the position, to be added to vectors. Each pair of rows has its own
    wavelength.
    """
    row, column = np.arange(dim)[:, None], np.arange(n)[None, :]
    angle = column / 10000.0 ** (row // 2 * 2 / dim)
    return dy.inputTensor(np.where(row % 2, np.cos(angle), np.sin(angle)))


@part(x=rows("a vector or matrix", "dim"))
class LayerNorm:
    """Layer normalisation of a vector {dim}, or of each column of a matrix {dim,n} (Ba, Kiros, Hinton 2016)."""

    def __init__(self, dim: int, model: dy.ParameterCollection, *, name: str = "layer-norm") -> None:
        self.dim = dim
        collection = model.add_subcollection(name)
        self.gain = collection.add_parameters(dim, init=1, name="gain")
        self.bias = collection.add_parameters(dim, init=0, name="bias")

    def __call__(self, x: Any) -> Any:
        """As x."""
        if isinstance(x, np.ndarray):
            x = dy.inputTensor(x)
        shape = x.dim()[0]
        if shape[0] != self.dim:
            raise ValueError(f"[LayerNorm] {self.dim} rows are needed; got {{{','.join(map(str, shape))}}}")
        if len(shape) == 1:
            return dy.layer_norm(x, self.gain, self.bias)
        columns = dy.layer_norm(dy.reshape(x, (self.dim,), shape[1]), self.gain, self.bias)
        return dy.reshape(columns, shape)


@part(x=rows("a matrix", lambda self: self.attention.dim))
class TransformerLayer:
    """Self-attention over the columns, then a hidden layer for each column; both are added to their input."""

    def __init__(
        self, dim: int, heads: int, hidden: int, model: dy.ParameterCollection, *, name: str = "transformer-layer"
    ) -> None:
        collection = model.add_subcollection(name)
        add = collection.add_parameters
        self.before_attention = LayerNorm(dim, collection, name="before-attention")
        self.before_hidden = LayerNorm(dim, collection, name="before-hidden")
        self.attention = MultiHeadAttention(dim, heads, collection, name="attention")
        self.W1, self.b1 = add((hidden, dim), name="W1"), add(hidden, init=0, name="b1")
        self.W2, self.b2 = add((dim, hidden), name="W2"), add(dim, init=0, name="b2")

    def __call__(self, x: Any, mask: Any = None, dropout: float = 0.0) -> Any:
        """{dim,n} -> {dim,n}. mask {n,n} is added to the scores; dropout drops a share of what is added to x."""
        x = x + dy.dropout(self.attention(self.before_attention(x), mask=mask), dropout)
        return x + dy.dropout(self._hidden(x), dropout)

    def _hidden(self, x: Any) -> Any:
        hidden = dy.gelu(dy.affine_transform([self.b1, self.W1, self.before_hidden(x)]))
        return dy.affine_transform([self.b2, self.W2, hidden])

    # ---- for files: dynet_lite/onnx ----------------------------------------------------------------------------------

    def symbolic(self, xs: Any, causal: bool) -> Any:
        """__call__ for a sequence of unknown length, in exported networks."""
        before = xs.map(self.before_attention)
        seen = self.attention.symbolic(before, before.map(self.attention.key), before.map(self.attention.value), causal)
        return xs.map(lambda x, y: x + y, seen).map(lambda x: x + self._hidden(x))

    def step(self, x: Any, keys: Any, values: Any) -> tuple[Any, Any, Any]:
        """One more column of a causal layer. Returns it with the keys and values, this column's added."""
        before = self.before_attention(x)
        keys, values = keys.ended(self.attention.key(before)), values.ended(self.attention.value(before))
        x = x + self.attention.symbolic(before, keys, values)
        return x + self._hidden(x), keys, values


@part(x=rows("a matrix", lambda self: self.layers[0].attention.dim))
class Transformer:
    """A stack of transformer layers with a final normalisation (Vaswani et al. 2017): {dim,n} -> {dim,n}."""

    def __init__(
        self,
        layers: int,
        dim: int,
        heads: int,
        hidden: int,
        model: dy.ParameterCollection,
        *,
        name: str = "transformer",
    ) -> None:
        if layers < 1:
            raise ValueError(f"[transformer] expected at least one layer, got {layers}")
        if layers > 10_000:  # a size in the place of their number would take all memory
            raise ValueError(f"[transformer] expected 10000 layers at most, got {layers}")
        collection = model.add_subcollection(name)
        self.layers = [TransformerLayer(dim, heads, hidden, collection, name=f"layer{i}") for i in range(layers)]
        self.norm = LayerNorm(dim, collection, name="norm")

    def __call__(self, x: Any, mask: Any = None, causal: bool = False, dropout: float = 0.0) -> Any:
        """{dim,n} -> {dim,n}. causal: column i sees columns 0..i only, and of these what the mask, if any, lets be seen."""
        if isinstance(x, np.ndarray):
            x = dy.inputTensor(x)
        if causal:
            earlier = causal_mask(width(x))
            mask = earlier if mask is None else earlier + mask
        for layer in self.layers:
            x = layer(x, mask, dropout)
        return self.norm(x)

    # ---- for files: dynet_lite/onnx ----------------------------------------------------------------------------------

    def symbolic(self, xs: Any, causal: bool = False) -> Any:
        """__call__ for a sequence of unknown length, in exported networks."""
        for layer in self.layers:
            xs = layer.symbolic(xs, causal)
        return xs.map(self.norm)

    def step(self, x: Any, keys: Sequence[Any], values: Sequence[Any]) -> tuple[Any, list[Any], list[Any]]:
        """One more column of a causal transformer. Returns it with the keys and values for the next step.

        It needs the last input column, and the keys and values that each layer has of the columns before.
        """
        more_keys, more_values = [], []
        for layer, k, v in zip(self.layers, keys, values, strict=True):
            x, k, v = layer.step(x, k, v)
            more_keys.append(k)
            more_values.append(v)
        return self.norm(x), more_keys, more_values
