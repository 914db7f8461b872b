"""Threads on a busy machine: they lend one another processors, or one does the work of all, and no number changes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import run_code

import dynet_lite as dy
from dynet_lite import _core

BURN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"
MS = 1_000_000  # nanoseconds


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    with dy.configure(threads=2):
        _core.settings.least_work = 0
        _core.force_threads(0)
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


def passes(cost: float, count: int, since: tuple[int, int], length: int = 10) -> list[tuple[int, int]]:
    """The clocks at the beginnings of passes of some milliseconds, where a second of work takes `cost` seconds."""
    time, work = since
    return [(time + k * length * MS, work + int(k * length * MS / cost)) for k in range(1, count + 1)]


class Machine:
    """A machine on which a second of work takes so long with several threads and with one; the passes that a trial ran."""

    def __init__(self, length: int = 10) -> None:
        self.length = length
        self.clocks: list[Any] = [(0, 0)]
        self.used = [True]

    def run(self, count: int, several: float, one: float = 1.0) -> list[bool]:
        start = len(self.used)
        for _ in range(count):
            since = next(c for c in reversed(self.clocks) if c)
            self.clocks += passes(several if self.used[-1] else one, 1, since, self.length)
            self.used = _core.try_threads(self.clocks)
        return self.used[start:]


def test_several_threads_that_gain_are_never_left() -> None:
    assert all(Machine().run(400, 0.6))


def test_threads_that_lose_are_left_and_tried_again_ever_less() -> None:
    used = Machine().run(1500, 1.2)
    assert used[:24] == [True] * 24  # five windows of 50 ms
    assert not any(used[24:54])  # that of one thread, and five more
    share = [sum(used[k : k + 500]) / 500 for k in (0, 500, 1000)]
    assert share[0] < 0.12 and all(0 < s < 0.045 for s in share[1:])  # one window in 34
    tries = sum(now and not before for before, now in zip(used, used[1:], strict=False))
    assert 8 <= tries <= 14


def test_threads_that_gain_again_are_used_again() -> None:
    machine = Machine()
    machine.run(600, 1.2)
    used = machine.run(400, 0.6)
    assert all(used[200:])  # with one thread for 33 windows at most


def test_a_small_gain_stays_with_several_and_a_doubtful_one_goes() -> None:
    small = Machine().run(1000, 0.95, one=1.1)  # too little to be sure of: one thread is tried
    assert 0.93 < sum(small) / len(small) < 1
    doubtful = Machine().run(1000, 0.97)  # threads that run at once need more time for the same work
    assert 0 < sum(doubtful) / len(doubtful) < 0.1


def test_one_bad_window_decides_nothing() -> None:
    machine = Machine()
    machine.run(100, 0.6)
    machine.run(6, 1.0)
    assert all(machine.run(400, 0.6))


def test_a_window_has_some_passes() -> None:
    used = Machine(length=300).run(12, 1.2)
    assert used[:9] == [True] * 9 and used[9:12] == [False] * 3


def test_an_interruption_begins_a_new_window() -> None:
    clocks: list[tuple[int, int] | None] = [(0, 0)]
    for k in range(1, 200):  # every fourth pass is another thread's
        clocks += [(k * 10 * MS, k * 5 * MS), None] if k % 4 == 0 else [(k * 10 * MS, k * 5 * MS)]
    assert all(_core.try_threads(clocks))
    assert not all(_core.try_threads([c for c in clocks if c]))


def test_no_work_and_clocks_that_stand_still_decide_nothing() -> None:
    assert all(_core.try_threads([(k * 100 * MS, 7) for k in range(20)]))
    assert all(_core.try_threads([(5, k * 100 * MS) for k in range(20)]))


def test_one_thread_for_two_computes_the_same() -> None:
    _core.force_threads(2)
    quiet = Net()
    expected = [quiet.step() for _ in range(20)]
    dy.renew_cg()
    numbers = quiet.numbers()
    several, one = _core.passes_by_threads()
    assert several >= 20
    _core.force_threads(1)
    net = Net()
    overlapped = _core.steps_overlapped()
    assert [net.step() for _ in range(20)] == expected
    dy.renew_cg()
    assert net.numbers() == numbers
    assert _core.passes_by_threads() == (several, one + 20)
    assert _core.steps_overlapped() <= overlapped + 1  # the first is begun before a pass has decided


def test_threads_that_come_and_go_compute_the_same() -> None:
    quiet = Net()
    expected = [quiet.step() for _ in range(20)]
    net = Net()
    for k, loss in enumerate(expected):
        _core.force_threads(1 + k // 3 % 2)
        assert net.step() == loss
    dy.renew_cg()
    quiet_numbers = quiet.numbers()
    assert net.numbers() == quiet_numbers


def test_one_thread_is_no_pass_of_several() -> None:
    dy.configure(threads=1)
    before = dy.stats()
    Net().step()
    after = dy.stats()
    assert [after[k] - before[k] for k in ("passes_on_threads", "passes_on_one_thread")] == [0, 0]
    dy.configure(threads=2)
    _core.force_threads(1)
    Net().step()
    assert dy.stats()["passes_on_one_thread"] == after["passes_on_one_thread"] + 1


def test_more_threads_than_processors() -> None:
    with dy.configure(threads=4):
        _core.force_threads(4)
        net = Net()
        expected = [net.step() for _ in range(5)]
        for at_once in (1, 2, 0):
            _core.force_threads(at_once)
            net = Net()
            assert [net.step() for _ in range(5)] == expected


NO_MORE_THREADS = """
import os, resource
import numpy as np, dynet_lite as dy
from dynet_lite import _core

def step():
    dy.renew_cg()
    losses = []
    for k in range(40):
        h = words[k]
        for _ in range(3):
            h = dy.tanh(W * h)
        losses.append(dy.squared_norm(h))
    loss = dy.esum(losses)
    value = loss.value()
    loss.backward()
    return value, W.grad_as_array().tolist()

dy.configure(threads=2, overlap=False)
_core.settings.least_work = 0
pc = dy.ParameterCollection()
rng = np.random.default_rng(0)
W, words = pc.parameters_from_numpy(rng.normal(size=(8, 8))), pc.lookup_parameters_from_numpy(rng.normal(size=(40, 8)))
_core.force_threads(1)  # from the next pass on; the steps take the memory, and begin no thread
dy.squared_norm(words[0]).value()
for _ in range(3):
    pc.reset_gradient()
    one = step()
pc.reset_gradient()
before = len(os.listdir("/proc/self/task"))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 1_500_000, resource.RLIM_INFINITY))  # less than the stack of a thread
_core.force_threads(2)
several = step()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(several == one, len(os.listdir("/proc/self/task")) - before)
pc.reset_gradient()
print(step() == one, len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="needs the memory limits of Linux, and threads with large stacks"
)
@pytest.mark.skipif("DYNET_LITE_TEST_SANITIZE" in os.environ, reason="the sanitizer takes all addresses")
def test_where_no_more_threads_are_to_be_had(tmp_path: Path) -> None:
    """A limit on processes or memory: the lanes run all the same, and later with workers."""
    done = run_code(NO_MORE_THREADS, tmp_path)
    assert done.stdout.split() == ["True", "0", "True", "1"], done.stdout + done.stderr


def affinities() -> dict[int, set[int]]:
    return {int(name): os.sched_getaffinity(int(name)) for name in os.listdir("/proc/self/task")}


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else True, reason="one processor"
)
def test_a_thread_beside_a_busy_process(tmp_path: Path) -> None:
    _core.force_threads(2)
    quiet = Net()
    expected = [quiet.step() for _ in range(5)]
    dy.renew_cg()
    numbers = quiet.numbers()
    core = max(os.sched_getaffinity(0))
    burner = subprocess.Popen([sys.executable, "-c", BURN, str(core)], stdout=subprocess.PIPE, cwd=tmp_path)
    try:
        assert burner.stdout
        burner.stdout.readline()
        before, lent, end = affinities(), _core.times_lent(), time.monotonic() + 60
        while _core.times_lent() == lent and time.monotonic() < end:
            net = Net()
            assert [net.step() for _ in range(5)] == expected
            dy.renew_cg()
            assert net.numbers() == numbers
        assert _core.times_lent() > lent
    finally:
        burner.kill()
        burner.communicate()
    _core.settle_steps()
    assert {thread: found for thread, found in affinities().items() if thread in before} == before  # all was given back


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads are bound to processors on Linux only")
def test_two_threads_on_one_processor() -> None:
    quiet = Net()
    expected = [quiet.step() for _ in range(20)]
    dy.renew_cg()
    before = affinities()
    try:
        for thread in before:
            os.sched_setaffinity(thread, {min(before[thread])})
        net = Net()
        assert [net.step() for _ in range(20)] == expected
        dy.renew_cg()
        assert net.numbers() == quiet.numbers()
        several, one = _core.passes_by_threads()
        for _ in range(4):
            net.step()
        assert _core.passes_by_threads() == (several, one + 4)
    finally:
        for thread, processors in before.items():
            os.sched_setaffinity(thread, processors)
