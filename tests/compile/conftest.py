"""Random programs and the samples of cells are used here, too. `same` compares a compiled function with the plain one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "ops")]

import dynet_lite as dy  # noqa: E402
from dynet_lite import _core  # noqa: E402

WAYS: list[dict[str, Any]] = [
    {},
    {"autobatch": False},
    {"fuse": False},
    {"strategy": "agenda"},
    {"threads": 2},
    {"threads": 2, "fuse": False},
]


def numbers(result: Any) -> list[Any]:
    """What a compiled function gives, flat."""
    named = _core.named_parts(result)
    if named is not None:
        return numbers(list(named.values()))
    if isinstance(result, (list, tuple)):
        return [a for one in result for a in numbers(one)]
    return [] if result is None else [np.asarray(result)]


def figures(
    model: Any,
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    on: bool,
    way: dict[str, Any],
    backward: bool,
) -> list[Any]:
    """Values of all calls, twice in turn, and the gradients after each."""
    weights = model.parameters_list() + model.lookup_parameters_list()
    for p in weights:
        p.zero_gradient()
    found = []
    with dy.configure(compile=on, **way):
        _core.settings.least_work = 0
        _core.set_seed(5)
        for call in [*calls, *calls]:
            found += numbers(function(*call))
            if backward:
                found += [p.grad_as_array() for p in weights]
    return found


@pytest.fixture
def same() -> Callable[..., None]:
    """same(model, function, calls): values and accumulated gradients, compiled as plain, under many settings."""

    def check(
        model: Any,
        function: Callable[..., Any],
        calls: Iterable[tuple[Any, ...]],
        backward: bool = True,
        rtol: float = 1e-6,
    ) -> None:
        calls = list(calls)
        compiled = dy.compile(function, backward=backward)
        for way in WAYS:
            wanted = figures(model, compiled, calls, False, way, backward)
            recorded = dy.stats()["compiled_recorded"]
            for again in range(2):
                found = figures(model, compiled, calls, True, way, backward)
                assert len(found) == len(wanted) > 0
                for a, b in zip(found, wanted, strict=True):
                    scale = float(np.abs(b).max()) if np.size(b) else 0.0
                    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(scale, 1e-3), err_msg=str(way))
                if not again:
                    now = dy.stats()["compiled_recorded"]
                    assert now > recorded, "nothing was recorded"
                else:
                    assert dy.stats()["compiled_recorded"] == now, "recorded again"

    return check
