"""Two arguments from different allocations lie "at one distance" that no BLAS can be given: they must be gathered."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy


@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (24, 40)])
@pytest.mark.parametrize("order", ["table first", "input first", "two tables"])
def test_rows_far_apart(order: str, shape: tuple[int, int], capfd: pytest.CaptureFixture[str]) -> None:
    model = dy.ParameterCollection()
    weight, n = model.add_parameters(shape), shape[1]
    # More than 32 MB: memory of its own from the system, far from the heap where the small ones lie.
    small, large = model.add_lookup_parameters((4, n)), model.add_lookup_parameters((10_000_000 // n, n), init=0.1)
    for batched in (True, False):
        dy.renew_cg(autobatching=batched)
        a, b = small[0], large[7] if order == "two tables" else dy.inputTensor(np.linspace(-1, 1, n))
        if order == "input first":
            a, b = b, a
        weight.zero_gradient()
        loss = dy.esum([dy.sum_elems(dy.tanh(weight * x)) for x in (a, b)])
        value = loss.value()
        loss.backward()
        if batched:
            expected = value, weight.grad_as_array()
    assert value == pytest.approx(expected[0], rel=1e-5)
    np.testing.assert_allclose(weight.grad_as_array(), expected[1], rtol=1e-4, atol=1e-5)
    printed = capfd.readouterr()
    assert printed.out == printed.err == "", "a BLAS complains on its own"


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (24, 40)])
def test_one_of_two_rows_far_apart(shape: tuple[int, int], which: int, capfd: pytest.CaptureFixture[str]) -> None:
    """A gradient flows into one member only: its row is alone, at a distance to nothing."""
    model = dy.ParameterCollection()
    weight, n = model.add_parameters(shape), shape[1]
    small, large = model.add_lookup_parameters((4, n)), model.add_lookup_parameters((10_000_000 // n, n), init=0.1)
    for first, second in ((small, large), (large, small)):
        found = []
        for batched in (True, False):
            dy.renew_cg(autobatching=batched)
            a, b = first[3], second[3]
            losses = [dy.sum_elems(dy.tanh(weight * x)) for x in (a, b)]
            dy.esum(losses).value()
            weight.zero_gradient()
            small.zero_gradient()
            large.zero_gradient()
            losses[which].backward()
            found.append([weight.grad_as_array(), *(t.grad_as_array() for t in (small, large))])
        for x, y in zip(*found, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    printed = capfd.readouterr()
    assert printed.out == printed.err == "", "a BLAS complains on its own"
