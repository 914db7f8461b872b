"""Initializers: the ranges and moments of DyNet's formulas; the seed decides all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_dynet import needs_dynet, run

import dynet_lite as dy
from dynet_lite import _core, initializers

# Shapes and initializers whose moments are compared: (lookup?, shape, expression). Large, so that moments are sharp.
SAMPLES = [
    (False, (300, 500), "None"),
    (False, (50000,), "None"),
    (False, (30, 50, 40), "None"),
    (False, (3, 5, 40, 60), "None"),
    (True, (3000, 50), "None"),
    (True, (300, 50, 20), "None"),
    (True, (3000, 50), "dy.GlorotInitializer(True)"),
    (True, (300, 50, 20), "dy.GlorotInitializer(True)"),
    (False, (300, 500), "dy.GlorotInitializer(gain=2.0)"),
    (False, (300, 500), "'glorot'"),
    (False, (300, 500), "'he'"),
    (False, (30000,), "'he'"),
    (True, (3000, 50), "'he'"),
    (False, (300, 500), "'normal'"),
    (False, (300, 500), "'uniform'"),
    (False, (300, 500), "dy.NormalInitializer(2, 0.25)"),
    (True, (3000, 50), "dy.NormalInitializer(-1, 4)"),
    (False, (300, 500), "dy.UniformInitializer(0.3)"),
    (True, (3000, 50), "dy.UniformInitializer(0.3)"),
    (False, (3, 5), "dy.ConstInitializer(2)"),
    (True, (3, 5), "4"),
    (False, (7, 7), "dy.IdentityInitializer()"),
    (False, (7, 7), "'identity'"),
]
MOMENTS = """
out = []
for lookup, shape, init in data:
    m = dy.ParameterCollection()
    add = m.add_lookup_parameters if lookup else m.add_parameters
    a = add(tuple(shape), init=eval(init), scale=0.2, mean=3.0, std=0.5).as_array()
    out.append([float(a.min()), float(a.max()), float(a.mean()), float(a.std())])
"""


@needs_dynet
def test_distributions_are_dynets() -> None:
    space: dict[str, Any] = {"dy": dy, "data": SAMPLES}
    exec(MOMENTS, space)
    for sample, ours, theirs in zip(SAMPLES, space["out"], run(MOMENTS, SAMPLES), strict=True):
        spread = theirs[3] + 1e-9
        assert ours[2] == pytest.approx(theirs[2], abs=0.03 * spread), sample
        assert ours[3] == pytest.approx(theirs[3], rel=0.02, abs=1e-7), sample
        uniform = "ormal" not in sample[2] and "he" not in sample[2]
        if uniform:  # the ends of a uniform range are sharp
            assert ours[:2] == pytest.approx(theirs[:2], abs=0.01 * spread), sample


@pytest.mark.parametrize(
    "shape,lookup,is_lookup,expected",
    [
        ((3, 5), False, False, np.sqrt(6 / 8)),
        ((5,), False, False, np.sqrt(3 / 5)),
        ((2, 3, 4, 5), False, False, np.sqrt(6 / (6 * 9))),
        ((7, 5), True, False, np.sqrt(6 / 12)),
        ((7, 5), True, True, np.sqrt(3 / 5)),
    ],
)
def test_glorot_formula(shape: tuple[int, ...], lookup: bool, is_lookup: bool, expected: float) -> None:
    dims = (*shape[1:], shape[0]) if lookup else shape
    assert dy.GlorotInitializer(is_lookup).scale(dims) == pytest.approx(expected)
    assert dy.GlorotInitializer(is_lookup, 3.0).scale(dims) == pytest.approx(3 * expected)


@pytest.mark.parametrize(
    "shape,lookup,expected",
    [
        ((3, 5), False, np.sqrt(3 / 5)),
        ((3000, 5), False, np.sqrt(3 / 5)),
        ((5,), False, np.sqrt(3 / 5)),
        ((2, 3, 4, 5), False, np.sqrt(3 / 24)),
        ((7, 5), True, np.sqrt(3 / 5)),
        ((7000, 5), True, np.sqrt(3 / 5)),
        ((7, 5, 2), True, np.sqrt(3 / 10)),
    ],
)
def test_fan_in_does_not_shrink_with_the_vocabulary(shape: tuple[int, ...], lookup: bool, expected: float) -> None:
    m = dy.ParameterCollection()
    add = m.add_lookup_parameters if lookup else m.add_parameters
    for init, gain in (("fan-in", 1), (dy.FanInInitializer(0.5), 0.5)):
        a = np.abs(add(shape, init=init).as_array())
        assert a.max() <= expected * gain * (1 + 1e-6)
        assert a.size < 1000 or a.max() > 0.99 * expected * gain
    assert np.abs(add(shape, init="fan-in", scale=3.0).as_array()).max() <= 3 * expected * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_saxe_is_orthogonal(scale: float) -> None:
    a = dy.ParameterCollection().add_parameters((40, 40), init=dy.SaxeInitializer(scale)).as_array()
    np.testing.assert_allclose(a.T @ a, scale**2 * np.eye(40), atol=1e-4)


def test_the_seed_decides() -> None:
    def draw() -> list[np.ndarray[Any, Any]]:
        m = dy.ParameterCollection()
        inits = [None, "he", "normal", dy.SaxeInitializer(), dy.UniformInitializer(2)]
        return [m.add_parameters((6, 6), init=i).as_array() for i in inits]

    dy.reset_random_seed(7)
    one = draw()
    two = draw()
    dy.reset_random_seed(7)
    for a, b, c in zip(one, draw(), two, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()


def test_generators_are_numpys_without_making_them() -> None:
    words = np.zeros(4, dtype=np.uint64)
    for k in range(300):
        state = (k * 0x9E3779B97F4A7C15) % 2**64
        _core.set_seed_state(state)
        seed = _core.next_seed()
        _core.set_seed_state(state)
        _core.next_sfc64(words)
        np.testing.assert_array_equal(words, np.random.SFC64(seed).state["state"]["state"])
    one = initializers.generator()
    state = _core.get_seed_state()
    again = initializers.generator()
    drawn = again.standard_normal(5)
    assert again is one
    _core.set_seed_state(state)
    np.testing.assert_array_equal(drawn, np.random.Generator(np.random.SFC64(_core.next_seed())).standard_normal(5))


def test_from_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("1 2 3\n4 5 6\n")
    m = dy.ParameterCollection()
    for name in (str(path), path, str(path).encode()):
        p = m.add_parameters((2, 3), init=dy.FromFileInitializer(name))
        np.testing.assert_array_equal(p.as_array(), [[1, 3, 5], [2, 4, 6]])
    t = m.add_lookup_parameters((3, 2), init=dy.FromFileInitializer(path))
    np.testing.assert_array_equal(t.as_array(), [[1, 2], [3, 4], [5, 6]])
    with pytest.raises(FileNotFoundError):
        m.add_parameters(2, init=dy.FromFileInitializer(tmp_path / "missing"))
    with pytest.raises(ValueError, match="4 numbers are needed"):
        m.add_parameters((2, 2), init=dy.FromFileInitializer(path))
    path.write_text("1 2 x")
    with pytest.raises(ValueError, match="x"):
        m.add_parameters(3, init=dy.FromFileInitializer(path))


def test_wrong_initializers() -> None:
    m = dy.ParameterCollection()
    for init in ("foo", object(), {}):
        with pytest.raises(ValueError, match="init must be"):
            m.add_parameters(2, init=init)
    for init in (
        "identity",
        "saxe",
        dy.IdentityInitializer(),
        np.zeros((3, 2)).tolist(),
        dy.NumpyInitializer(np.zeros(2)),
    ):
        with pytest.raises(ValueError, match="[sS]quare|shape"):
            m.add_parameters((2, 3), init=init)
    for kind, argument in (
        (dy.UniformInitializer, (-1,)),
        (dy.NormalInitializer, (0, -1)),
        (dy.NormalInitializer, (0, np.nan)),
        *((dy.NormalInitializer, (bad,)) for bad in (np.nan, np.inf, 1e300)),
        *((kind, (1e300,)) for kind in (dy.UniformInitializer, dy.FanInInitializer, dy.SaxeInitializer)),
        *((dy.SaxeInitializer, (bad,)) for bad in (np.nan, -np.inf)),
        (dy.NormalInitializer, (0, 1e300)),
        (dy.GlorotInitializer, (False, 1e300)),
    ):
        with pytest.raises(ValueError):
            kind(*argument)
    with pytest.raises(TypeError, match="base class"):
        m.add_parameters(2, init=dy.PyInitializer())
    assert not m.add_parameters(3, init=dy.UniformInitializer(0)).as_array().any()
    assert m.parameters_list()[0].name() == "/_0"


@pytest.mark.parametrize("init", ["normal", "uniform", "saxe", "fan-in"])
def test_no_initializer_makes_infinity_or_nan(init: str) -> None:
    """Whatever it is given: it refuses that, or all numbers are finite."""
    for scale, mean, std in (
        (1e36, 1e36, 1e18),
        (np.nan, 0, 1),
        (1, np.nan, 1),
        (3e38, 0, 1),
        (1, 1e38, 1),
        (1, 0, 1e30),
    ):
        m = dy.ParameterCollection()
        try:
            p = m.add_parameters((30, 30), init, scale=scale, mean=mean, std=std)
        except ValueError:
            assert (scale, mean, std) != (1e36, 1e36, 1e18) or init == "fan-in"
        else:
            assert np.isfinite(p.as_array()).all()


@pytest.mark.parametrize("c", [np.nan, np.inf, -np.inf])
def test_a_constant_may_be_anything(c: float) -> None:
    """A program that writes NaN wants it: rows that are to be set later."""
    for init in (c, dy.ConstInitializer(c), np.full(2, c)):
        assert np.array_equal(dy.ParameterCollection().add_parameters(2, init=init).as_array(), [c, c], equal_nan=True)


def test_numbers_of_a_file_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("1 1e300")
    with pytest.raises(ValueError, match=r"FromFileInitializer\] numbers must fit a float32"):
        dy.ParameterCollection().add_parameters(2, init=dy.FromFileInitializer(tmp_path / "numbers"))
