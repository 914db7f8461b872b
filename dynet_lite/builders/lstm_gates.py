"""DyNet's fused LSTM functions: the gates of an LSTM from its input and previous h.

With ``vanilla_lstm_c`` and ``vanilla_lstm_h`` they make an LSTM by hand. Gates {4h} stand in the order i, f, o, g after
their non-linearity; 1 is added to f before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynet_lite import _core
from dynet_lite._core import Expression

__all__ = [
    "vanilla_lstm_gates",
    "vanilla_lstm_gates_concat",
    "vanilla_lstm_gates_dropout",
    "vanilla_lstm_gates_dropout_concat",
]


def vanilla_lstm_gates(x_t: Any, h_tm1: Any, Wx: Any, Wh: Any, b: Any, weightnoise_std: float = 0.0) -> Expression:
    """The gates of an LSTM: sigmoid (i, f, o) and tanh (g) of Wx x_t + Wh h_tm1 + b, with 1 added to f.

    x_t {n}, h_tm1 {h}, Wx {4h,n}, Wh {4h,h}, b {4h} -> {4h}. weightnoise_std: Gaussian noise on Wx, Wh and b, drawn for
    this call.
    """
    if weightnoise_std:
        Wx, Wh, b = (_core.noise(w, weightnoise_std) for w in (Wx, Wh, b))
    return _core._lstm_gates(_core.affine_transform([b, Wx, x_t, Wh, h_tm1]))


def vanilla_lstm_gates_concat(
    x_t: Iterable[Any], h_tm1: Any, Wx: Any, Wh: Any, b: Any, weightnoise_std: float = 0.0
) -> Expression:
    """vanilla_lstm_gates() of a list of inputs, one above the other: {n1}, {n2}, ... with Wx {4h,n1+n2+...}."""
    return vanilla_lstm_gates(_joined(x_t), h_tm1, Wx, Wh, b, weightnoise_std)


def vanilla_lstm_gates_dropout(
    x_t: Any,
    h_tm1: Any,
    Wx: Any,
    Wh: Any,
    b: Any,
    dropout_mask_x: Any,
    dropout_mask_h: Any,
    weightnoise_std: float = 0.0,
) -> Expression:
    """vanilla_lstm_gates() of x_t times a mask {n} and h_tm1 times a mask {h}."""
    x, h = _core.cmult(x_t, dropout_mask_x), _core.cmult(h_tm1, dropout_mask_h)
    return vanilla_lstm_gates(x, h, Wx, Wh, b, weightnoise_std)


def vanilla_lstm_gates_dropout_concat(
    x_t: Iterable[Any],
    h_tm1: Any,
    Wx: Any,
    Wh: Any,
    b: Any,
    dropout_mask_x: Any,
    dropout_mask_h: Any,
    weightnoise_std: float = 0.0,
) -> Expression:
    """vanilla_lstm_gates_dropout() of a list of inputs, one above the other: {n1}, {n2}, ... with a mask {n1+n2+...}."""
    return vanilla_lstm_gates_dropout(_joined(x_t), h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h, weightnoise_std)


def _joined(xs: Iterable[Any]) -> Expression:
    return _core.concatenate(list(xs))
