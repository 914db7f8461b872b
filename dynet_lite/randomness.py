"""The state of random generators of Python and NumPy: taken, checked, put back.

Known are random.Random, numpy.random.Generator and RandomState, and the modules random and numpy.random, which stand for
the generators inside them. A state from outside is compared with the generator's own (kinds, sizes, ranges) and tried on a
copy before it is put in place: NumPy itself does not look, and may read beyond its arrays.
Who may import: checkpoint.py.
"""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np

# Greatest values of the parts of NumPy's states that are places and switches.
LIMITS = {"pos": 624, "buffer_pos": 4, "has_uint32": 1, "has_gauss": 1, "uinteger": 2**32 - 1}


def known(g: Any) -> bool:
    """Is this a generator whose state can be kept?"""
    if g is random or g is np.random:
        return True
    return isinstance(g, (random.Random, np.random.Generator, np.random.RandomState)) and not isinstance(
        g, random.SystemRandom
    )


def state_of(g: Any) -> Any:
    """The state, made of tuples, dicts, numbers, text and arrays."""
    if isinstance(g, np.random.Generator):
        return g.bit_generator.state
    if g is np.random or isinstance(g, np.random.RandomState):
        return g.get_state(legacy=False)
    return g.getstate()


def put(g: Any, state: Any) -> None:
    """Let the generator go on from this state, which was checked."""
    if isinstance(g, np.random.Generator):
        g.bit_generator.state = state
    elif g is np.random or isinstance(g, np.random.RandomState):
        g.set_state(state)
    else:
        g.setstate(state)


def check(g: Any, state: Any) -> None:
    """ValueError or TypeError unless this is a state for the generator, which stays as it is."""
    if g is random or isinstance(g, random.Random):
        _version, _numbers, gauss = state
        if gauss is not None and not (isinstance(gauss, float) and math.isfinite(gauss)):
            raise ValueError(f"a number or None is needed; got {gauss!r}")
        trial: Any = random.Random()
    else:
        _compare(state_of(g), state, "")
        trial = np.random.RandomState() if g is np.random else copy.deepcopy(g)
    try:
        put(trial, state)
    except Exception as e:
        raise ValueError(f"the state does not fit: {e}") from None


def _compare(mine: Any, other: Any, key: str) -> None:
    """Is the other of the same make?"""
    if isinstance(mine, dict):
        if not isinstance(other, dict) or set(mine) != set(other):
            raise ValueError(f"the state of another kind of generator; {sorted(mine)} are needed")
        for k in mine:
            _compare(mine[k], other[k], k)
    elif isinstance(mine, np.ndarray):
        if not isinstance(other, np.ndarray) or (mine.dtype, mine.shape) != (other.dtype, other.shape):
            raise ValueError(f"{key}: {mine.size} numbers {mine.dtype} are needed")
    elif isinstance(mine, str):
        if mine != other:
            raise ValueError(f"the state of a {other!r:.40}; the generator is a {mine}")
    elif isinstance(mine, float):
        if not isinstance(other, float) or not math.isfinite(other):
            raise ValueError(f"{key}: a number is needed; got {other!r}")
    elif type(other) is not int or not 0 <= other <= LIMITS.get(key, 2**128 - 1):
        raise ValueError(f"{key}: a whole number in its range is needed; got {other!r}")
