"""set_h and set_s: a state with other contents goes on as one that was started with them."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy

BUILDERS = [dy.SimpleRNNBuilder, dy.GRUBuilder, dy.VanillaLSTMBuilder, dy.CompactVanillaLSTMBuilder, dy.CoupledLSTMBuilder,
            dy.FastLSTMBuilder]  # fmt: skip
LAYERS, IN, HIDDEN = 2, 5, 6


@pytest.mark.parametrize("make", BUILDERS)
def test_contents_decide(make: type) -> None:
    builder = make(LAYERS, IN, HIDDEN, dy.ParameterCollection())
    rng = np.random.default_rng(4)
    dy.renew_cg()
    x, y = (dy.inputVector(rng.standard_normal(IN)) for _ in range(2))
    h, c = ([dy.inputVector(rng.standard_normal(HIDDEN)) for _ in range(LAYERS)] for _ in range(2))
    first = builder.initial_state().add_input(x)
    whole = [*c, *h] if builder.has_cell else h

    def same(state: dy.RNNState, contents: list) -> None:
        for a, b in zip(state.s(), contents, strict=True):
            np.testing.assert_array_equal(a.npvalue(), b.npvalue())
        expected = builder.initial_state(contents).add_input(y)
        for a, b in zip(state.add_input(y).s(), expected.s(), strict=True):
            np.testing.assert_allclose(a.npvalue(), b.npvalue(), rtol=1e-6, atol=1e-7)

    same(first.set_s(whole), whole)
    same(builder.initial_state().set_s(whole), whole)
    cells = list(first.s()[:LAYERS]) if builder.has_cell else []
    same(first.set_h(h), [*cells, *h])
    if builder.has_cell:
        same(first.set_s(c), [*c, *first.h()])
    assert first.set_h(h).prev() is first
