"""Recurrent builders over whole sequences as ONNX's LSTM, GRU and RNN: the order of the gates, signs, biases.

Ours: LSTM blocks i, f, o, g with a forget bias; GRU blocks z, r, h with h = (1 - z) h' + z a. ONNX: i, o, f, c; GRU
h = (1 - z) a + z h', so that its z has the opposite sign. Who may import: this package.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynet_lite.builders import CompactVanillaLSTMBuilder, GRUBuilder, SimpleRNNBuilder, VanillaLSTMBuilder
from dynet_lite.structure import dim_text

from .writer import Array, Dims, Unsupported, Writer

KINDS = {VanillaLSTMBuilder: "LSTM", CompactVanillaLSTMBuilder: "LSTM", GRUBuilder: "GRU", SimpleRNNBuilder: "RNN"}


def has_op(builder: Any) -> bool:
    """Does ONNX have an op for all steps of this builder? Unsupported where it draws random numbers."""
    if builder._drops():
        raise Unsupported(f"[onnx] {type(builder).__name__}: call disable_dropout() before exporting")
    for rate, off in (("_noise", "set_weightnoise(0)"), ("_weight_rate", "set_weight_dropout(0)")):
        if getattr(builder, rate, 0.0):
            raise Unsupported(f"[onnx] {type(builder).__name__}: call {off} before exporting")
    return type(builder) in KINDS and not getattr(builder, "ln_lstm", False)


class Layers:
    """The layers of a builder, ready to be written. ValueError unless inputs of these dims are what it reads."""

    def __init__(self, builder: Any, dims: Dims) -> None:
        if not has_op(builder):
            raise Unsupported(f"[onnx] {type(builder).__name__}: over sequences of sequences only LSTMBuilder without ln_lstm, GRUBuilder "
                              "and SimpleRNNBuilder have a form")  # fmt: skip
        if dims[0] != builder.input_dim or any(n != 1 for n in dims[1:]):
            raise ValueError(
                f"[{type(builder).__name__}] an input of shape {{{builder.input_dim}}} is needed; got {dim_text((dims, 1))}"
            )
        self.builder, self.kind = builder, KINDS[type(builder)]

    def weights(self, layer: int) -> tuple[Array, Array, Array]:
        """W [1, blocks h, input], R [1, blocks h, h] and B [1, 2 blocks h] of ONNX."""
        arrays = [np.asarray(p.as_array(), dtype=np.float32) for p in self.builder._parameters[layer]]
        h = self.builder.hidden_dim
        if self.kind == "GRU":
            zx, zh, bz, rx, rh, br, hx, hh, bh = arrays
            w, r, b = np.concatenate([-zx, rx, hx]), np.concatenate([-zh, rh, hh]), np.concatenate([-bz, br, bh])
        else:
            w, r, b = arrays
            if self.kind == "LSTM":
                b = b.copy()
                b[h : 2 * h] += self.builder.forget_bias
                w, r, b = (np.concatenate([a[:h], a[2 * h : 3 * h], a[h : 2 * h], a[3 * h :]]) for a in (w, r, b))
        return w[None], r[None], np.concatenate([b, np.zeros_like(b)])[None]

    def write(self, w: Writer, xs: str, backwards: bool, start: list[str], lengths: str = "") -> tuple[str, str]:
        """xs [steps, n, input]; start: the names of state.s(). h of the last layer [steps, n, h] and at its end [1, n, h]."""
        known = w.__dict__.setdefault("recurrent", {})
        layers, last = self.builder.layers, ""
        for i in range(layers):
            key = id(self.builder), i
            if key not in known:
                stem = self.builder._parameters[i][0].name().lstrip("/")
                known[key] = (
                    self.builder,
                    [w.initializer(f"{stem}.{part}", a) for part, a in zip("WRB", self.weights(i), strict=True)],
                )
            inputs = [xs, *known[key][1], lengths]
            if start:
                hs, cs = (start[layers:], start[:layers]) if self.kind == "LSTM" else (start, [])
                inputs += [w.op("Unsqueeze", state[i], w.ints(0, 1)) for state in ((hs, cs) if cs else (hs,))]
            while not inputs[-1]:
                inputs.pop()
            more = {"linear_before_reset": 0} if self.kind == "GRU" else {}
            ys, last, *_ = w.op_n(
                2, self.kind, *inputs, hidden_size=self.builder.hidden_dim,
                direction="reverse" if backwards else "forward", **more,
            )  # fmt: skip
            xs = w.op("Squeeze", ys, w.ints(1))
        return xs, last
