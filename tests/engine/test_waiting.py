"""Threads that wait while another has lost its processor: they sleep and lend it theirs, and no number changes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="threads are bound to processors on Linux only"
)

BURN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    with dy.configure(threads=2):
        _core.settings.least_work = 0
        yield


class Net:
    """Sentences through an LSTM, a loss at every word."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.pc = pc = dy.ParameterCollection()
        self.words = pc.lookup_parameters_from_numpy(rng.normal(size=(40, 32)))
        self.lstm = dy.VanillaLSTMBuilder(1, 32, 32, pc)
        for p in self.lstm.get_parameters()[0]:
            p.set_value(rng.normal(size=p.shape()) * 0.3)
        self.out = pc.parameters_from_numpy(rng.normal(size=(5, 32)) * 0.4)
        self.trainer = dy.AdamTrainer(pc)
        self.rng = np.random.default_rng(4)

    def step(self) -> float:
        dy.renew_cg()
        losses = []
        for _ in range(12):
            words = self.rng.integers(40, size=int(self.rng.integers(5, 20)))
            states = self.lstm.initial_state().transduce([self.words[int(w)] for w in words])
            losses += [dy.pickneglogsoftmax(self.out * h, int(w) % 5) for h, w in zip(states, words, strict=True)]
        loss = dy.esum(losses)
        value = float(loss.value())
        loss.backward()
        self.trainer.update()
        return value

    def numbers(self) -> list[Any]:
        return [p._values().tolist() for p in self.pc._all]


def threads() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/task")]


def affinities() -> dict[int, set[int]]:
    return {thread: os.sched_getaffinity(thread) for thread in threads()}


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else True, reason="one processor"
)
def test_a_thread_beside_a_busy_process(tmp_path: Path) -> None:
    quiet = Net()
    expected = [quiet.step() for _ in range(5)]
    dy.renew_cg()
    numbers = quiet.numbers()
    core = max(os.sched_getaffinity(0))
    burner = subprocess.Popen([sys.executable, "-c", BURN, str(core)], stdout=subprocess.PIPE, cwd=tmp_path)
    try:
        assert burner.stdout
        burner.stdout.readline()
        before, lent, end = affinities(), _core.wait_counts()[1], time.monotonic() + 60
        while _core.wait_counts()[1] == lent and time.monotonic() < end:
            net = Net()
            assert [net.step() for _ in range(5)] == expected
            dy.renew_cg()
            assert net.numbers() == numbers
        assert _core.wait_counts()[1] > lent
    finally:
        burner.kill()
        burner.communicate()
    _core.settle_steps()
    assert {thread: found for thread, found in affinities().items() if thread in before} == before  # all was given back


def test_two_threads_on_one_processor() -> None:
    quiet = Net()
    expected = [quiet.step() for _ in range(20)]
    dy.renew_cg()
    before = affinities()
    lent = _core.wait_counts()[1]
    try:
        for thread in before:
            os.sched_setaffinity(thread, {min(before[thread])})
        net = Net()
        assert [net.step() for _ in range(20)] == expected
        dy.renew_cg()
        assert net.numbers() == quiet.numbers()
        assert _core.wait_counts()[1] == lent  # there is none to lend
    finally:
        for thread, processors in before.items():
            os.sched_setaffinity(thread, processors)
