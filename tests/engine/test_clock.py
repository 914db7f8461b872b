"""Times in stats() and profiles are seconds, whatever counts them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import dynet_lite as dy


def products() -> Any:
    x = dy.inputTensor(np.ones((300, 300), np.float32))
    w = dy.ParameterCollection().add_parameters((300, 300))
    for _ in range(8):
        x = dy.tanh(w * x)
    return dy.sum_elems(x)


def test_times_are_seconds() -> None:
    """A good part of the time of two long calls, and nothing besides."""
    dy.renew_cg()
    loss = products()
    begin = time.perf_counter()
    loss.value()
    between = time.perf_counter()
    loss.backward()
    end = time.perf_counter()
    stats = dy.stats()
    assert 0.1 * (between - begin) < stats["forward_time"] + stats["plan_time"] <= 1.01 * (between - begin)
    assert 0.1 * (end - between) < stats["backward_time"] <= 1.01 * (end - between)
