"""Nested data that hypothesis draws, of everything that has parts, for functions that are recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import dynet_lite as dy
from dynet_lite import _core


@dataclass
class Pair:
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class Box:
    inside: Any


class Named(NamedTuple):
    first: Any
    second: Any


vectors = st.integers(0, 9).map(lambda k: np.linspace(-1, 1, 3) * (k + 1))
leaves = st.one_of(st.integers(0, 6), vectors, st.sampled_from(["a", "b", None, 0.5, True]))
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(["a", "b", "c", 0, 1]), inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(Box, inner),
        st.builds(Named, inner, inner),
        st.builds(lambda h, c: dy.state(h=h, c=c), inner, inner),
    ),
    max_leaves=8,
)


def rebuilt(x: Any, leaf: Callable[[Any], Any]) -> Any:
    """The same nesting of other leaves."""
    if isinstance(x, dict):
        return {key: rebuilt(one, leaf) for key, one in x.items()}
    if isinstance(x, _core.State):
        return dy.state(**{name: rebuilt(getattr(x, name), leaf) for name in _core.state_names(x)})
    if is_dataclass(x):
        return type(x)(*[rebuilt(getattr(x, field.name), leaf) for field in fields(x)])
    if isinstance(x, (list, tuple)):
        parts = [rebuilt(one, leaf) for one in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return leaf(x)


def flat(x: Any) -> list[Any]:
    """The leaves in their order, each container before with what tells it from others."""
    found: list[Any] = []
    rebuilt(x, found.append)
    return found


def is_index(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def others(x: Any) -> Any:
    """Other data in the same structure."""
    return rebuilt(x, lambda v: (v + 3) % 7 if is_index(v) else v * 0.5 if isinstance(v, np.ndarray) else v)


def alike(x: Any, y: Any) -> bool:
    """Have both the same nesting and nearly the same numbers?"""
    a, b = flat(x), flat(y)
    shapes = [repr(rebuilt(one, lambda v: "a number" if isinstance(v, (float, np.ndarray)) else v)) for one in (x, y)]
    return shapes[0] == shapes[1] and all(
        np.allclose(p, q, rtol=2e-5, atol=1e-6) if isinstance(p, np.ndarray) else p == q or abs(p - q) < 1e-5
        for p, q in zip(a, b, strict=True)
    )
