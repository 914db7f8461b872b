"""Numbers that operators apply to expressions, from far too small for a float32 to far too large."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dynet_lite as dy

FACTORS = [1e-300, 1e-77, 1e-45, 3e-40, 1e-38, 1e-30, 1e30, 1e38, 4e38, 1e40, 1e77, 1e300, 5e-324, -1e-45, -1e40]
XS = np.float32([0.0, 1e-30, -1e30, 1.0, 1e-44, 3e38, -2.5, 7e-20])


def denormals_are_zero() -> bool:
    """Where the real DyNet was imported into the process."""
    return bool(np.float64(5e-324) * 1.0 == 0)


def rounded(exact: np.ndarray) -> np.ndarray:
    """Float64 numbers as float32, without NumPy's warning."""
    with np.errstate(over="ignore", under="ignore"):
        return exact.astype(np.float32)


def check(value: np.ndarray, exact: np.ndarray) -> None:
    """Equal but for a few roundings; numbers that float32 holds with few digits only to one of these."""
    np.testing.assert_allclose(np.float32(value), rounded(exact), rtol=2e-6, atol=3e-45)


def run(build, **settings):
    """Value and gradient of an expression of the row XS, and of its sum."""
    m = dy.ParameterCollection()
    p = m.add_parameters(len(XS), init=dy.NumpyInitializer(XS))
    with settings_for(**settings):
        dy.renew_cg()
        y = build(p)
        dy.dot_product(y, dy.inputVector(np.ones(len(XS)))).backward()
        return y.npvalue(), p.grad_as_array()


class settings_for:
    def __init__(self, **settings):
        self.settings = settings

    def __enter__(self):
        dy.configure(**self.settings)

    def __exit__(self, *exc):
        dy.configure(autobatch=True, fuse=True, threads=1)


def test_a_quotient_that_was_infinite():
    dy.renew_cg()
    x = dy.inputVector([1.0, -2.0, 0.0])
    np.testing.assert_allclose(((x * 1e-30) / 1e-40).npvalue(), [1e10, -2e10, 0], rtol=1e-6)
    np.testing.assert_allclose(((x * 1e30) * 1e-45).npvalue(), [1e-15, -2e-15, 0], rtol=1e-6)
    np.testing.assert_allclose((1e40 / (x * 1e30)).npvalue()[:2], [1e10, -5e9], rtol=1e-6)
    np.testing.assert_allclose((1e300 ** (x / 100)).npvalue(), [1e3, 1e-6, 1], rtol=1e-5)


@pytest.mark.parametrize("c", FACTORS)
def test_one_factor(c):
    if 0 <= c < 1e-300 and denormals_are_zero():
        pytest.skip("the factor is 0")
    exact = XS.astype(np.float64)
    dy.renew_cg()
    x = dy.inputVector(XS)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        check((x * c).npvalue(), exact * c)
        check((c * x).npvalue(), exact * c)
        check((x / c).npvalue(), exact / c)
        check((c / x).npvalue()[1:], (c / exact)[1:])


@pytest.mark.parametrize(("c", "d"), [*itertools.product(FACTORS[:12:2], FACTORS[1::2])])
def test_two_factors_under_every_setting(c, d):
    def build(p):
        return dy.tanh((p * c) / d) + (p / d) * c

    settings = [{"autobatch": a, "fuse": f, "threads": t} for a in (True, False) for f in (True, False) for t in (1, 2)]
    results = [run(build, **s) for s in settings]
    for value, gradient in results[1:]:
        np.testing.assert_allclose(value, results[0][0], rtol=1e-6, atol=3e-45)
        np.testing.assert_allclose(gradient, results[0][1], rtol=1e-6, atol=3e-45)


@pytest.mark.parametrize("c", FACTORS)
def test_gradients(c):
    if 0 <= c < 1e-300 and denormals_are_zero():
        pytest.skip("the factor is 0")
    _, product = run(lambda p: p * c)
    _, quotient = run(lambda p: p / c)
    check(product, np.full(len(XS), c))
    with np.errstate(over="ignore", divide="ignore"):
        check(quotient, 1 / np.full(len(XS), c))


def test_ends_of_the_range():
    dy.renew_cg()
    x = dy.inputVector([1.0, 0.0])
    with pytest.raises(ZeroDivisionError):
        x / 0
    np.testing.assert_array_equal((x / float("inf")).npvalue(), [0, 0])
    assert np.isinf((x * float("inf")).npvalue()[0])
    assert np.isnan((x * float("nan")).npvalue()).all()
    if not denormals_are_zero():
        np.testing.assert_allclose((x / np.float32(1e-40)).npvalue(), [np.inf, 0])
        np.testing.assert_allclose((x * 1e-30 / np.float32(1e-40)).npvalue(), [1e10, 0], rtol=1e-4)
    with pytest.raises(OverflowError):
        x * 10**400


def test_an_attribute_that_no_float32_holds_is_an_error():
    dy.renew_cg()
    x = dy.inputVector([1.0, 0.0])
    with pytest.raises(ValueError, match=r"\[scale_gradient\] lambd must fit a float32 \(.*; got 1e\+40"):
        dy.scale_gradient(x, 1e40)
    assert dy.elu(x, float("inf")).npvalue()[0] == 1


def test_a_factor_that_fits_is_one_node():
    dy.renew_cg()
    x = dy.inputVector([1.0, 2.0])
    before = len(dy.cg())
    (x * 1e-30, x / 3, 2 / x, 2**x)
    assert len(dy.cg()) == before + 4
