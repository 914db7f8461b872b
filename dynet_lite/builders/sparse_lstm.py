"""SparseLSTMBuilder: the standard LSTM with small weights switched off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynet_lite import _core
from dynet_lite._core import Expression
from dynet_lite.builders.base import Layer
from dynet_lite.builders.part import add_weight
from dynet_lite.builders.vanilla_lstm import VanillaLSTMBuilder
from dynet_lite.needs import number


class SparseLSTMBuilder(VanillaLSTMBuilder):
    """The LSTM of VanillaLSTMBuilder whose matrices are multiplied by masks of 0 and 1 (pruning; Narang et al. 2017).

    Arguments as VanillaLSTMBuilder. Parameters per layer: Wx, Wh, b, and masks Wx_mask, Wh_mask, which are not trained.
    """

    def _add_weights(self, collection: Any, input_dim: int) -> Layer:
        n = self.hidden_dim
        wx, wh, mask_x, mask_h = [
            add_weight(collection, name + more, shape, init)
            for more, init in (("", None), ("_mask", 1))
            for name, shape in (("Wx", (4 * n, input_dim)), ("Wh", (4 * n, n)))
        ]
        for p in (mask_x, mask_h):
            p.set_updated(False)
        return [wx, wh, add_weight(collection, "b", (4 * n,), 0), mask_x, mask_h]

    def _layer_expressions(self, layer: Layer, update: bool) -> list[Expression]:
        wx, wh, b = super()._layer_expressions(layer[:3], update)
        for p in layer[3:]:
            if p.is_updated():  # released with all others of a collection, they would decay
                p.set_updated(False)
        mask_x, mask_h = (_core.nobackprop(p) for p in layer[3:])
        return [_core.cmult(wx, mask_x), _core.cmult(wh, mask_h), b]

    def set_sparsity(self, sparsity: float) -> None:
        """Switch off this share of the weights (0 to 1): those of smallest size in all layers together, biases aside.

        What is off already counts as smallest, so with a growing share it stays off.
        """
        sparsity = number(sparsity, "a share")
        if not 0 <= sparsity <= 1:
            raise ValueError(f"[set_sparsity] a share between 0 and 1 is needed; got {sparsity}")
        pairs = [pair for wx, wh, _, mask_x, mask_h in self._parameters for pair in ((wx, mask_x), (wh, mask_h))]
        size = np.concatenate([np.abs(weight.as_array()).ravel() for weight, _ in pairs])
        on = np.concatenate([mask.as_array().ravel() for _, mask in pairs])
        off = size.size - math.ceil(size.size * (1 - sparsity) - 1e-9)
        on_now = np.ones(size.size)
        on_now[np.lexsort((size, size * on))[:off]] = 0
        at = 0
        for weight, mask in pairs:
            shape = weight.shape()
            mask.set_value(on_now[at : at + math.prod(shape)].reshape(shape))
            at += math.prod(shape)
