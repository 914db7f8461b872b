"""Sessions beside one another: several threads with models of their own, several threads with one model, a fork in the
middle.

    python tests/fuzz/fuzzer.py --programs 1000 --beside

Each thread must see the bits that it sees alone, and so must both processes after a fork. With builders, an update of
another thread decides whether two runs share what is made of their weights: then the order of sums differs. Of one
model that several threads run backward, the gradients must add up to what they are one after the other, but for
rounding. A program that hangs ends its process.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import fuzz_again
import fuzz_calls
import numpy as np
from fuzz_again import USUAL, gone, mistake
from fuzz_functions import HELPERS
from fuzz_names import Names, names
from fuzz_program import MAKES, Observation, Program, Step, compiled, difference, execute, from_json, to_json
from fuzz_ways import Finding, Way, setting

import dynet_lite as dy
from dynet_lite import _core

# Settings belong to all threads, and so do weights in a fork's file.
OF_ALL = re.compile(r"configure\(|m0\.(?:save|populate)|import gc|wrong\(")
# What a thread may not do with the model of all: what others would see.
SHARED = re.compile(r"\btr\d+|\b[WT]\d+\.\w*(?:set|scale|clip|init|zero|grad)|see\([WT]\d+\.|^[GOB]\d+[. ]|m0\.|set_dropout|deepcopy|"
                    r"^(?:@dy|def )|dy\.compile\(")  # fmt: skip
HANGS = 100  # seconds
WAYS: list[Way] = [
    {},
    {},
    {"threads": 2},
    {"threads": 2, "overlap": False},
    {"autobatch": False},
    {"strategy": "agenda"},
    {"backend": "apart"},
]


def session(seed: int, steps: int = 8) -> Program:
    """Of either kind, without what is of all threads."""
    made = (fuzz_calls if seed % 3 else fuzz_again).session(seed, steps)
    return tuple(step for step in made if not OF_ALL.search(step.text))


@contextmanager
def ready(way: Way) -> Iterator[None]:
    """Threads are interrupted often, and a hang ends the process."""
    interval = sys.getswitchinterval()
    faulthandler.dump_traceback_later(HANGS, exit=True)
    try:
        with setting({**USUAL, **way}):
            _core.settings.verify = False
            sys.setswitchinterval(1e-5)
            yield
            _core.settings.verify = True
    finally:
        faulthandler.cancel_dump_traceback_later()
        sys.setswitchinterval(interval)


def run(program: Program, more: Names) -> list[Observation]:
    dy.reset_random_seed(11)
    dy.renew_cg()
    try:
        return execute(program, dy, more={**HELPERS, "gone": gone, "mistake": mistake, **more})
    finally:
        dy.renew_cg()


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """What the jobs give, each in a thread of its own."""
    start, results = threading.Barrier(len(jobs)), [None] * len(jobs)

    def work(k: int) -> None:
        start.wait()
        results[k] = jobs[k]()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def compared(found: Sequence[Any], wanted: Sequence[Any], what: str, bits: bool = True) -> str | None:
    near = {"rtol": 0.0, "atol": 0.0} if bits else {}
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        off = difference(a, b, **near) if a is not None else (-1, "an exception")
        if off is not None:
            return f"{what} {k}: {off}"
    return None


def alone(seeds: Sequence[int], way: Way) -> str | None:
    """Each thread has a model of its own."""
    programs = [session(seed) for seed in seeds]
    built = any("uilder(" in step.text for program in programs for step in program)
    with ready(way):
        jobs = [lambda p=p: run(p, {}) for p in programs]
        return compared(at_once(jobs), [job() for job in jobs], "thread", not built)


def in_one_model(seed: int, count: int, way: Way) -> str | None:
    """Threads use the weights, cells and compiled functions of one model."""
    program = tuple(Step(re.sub(r"trainer=tr\d+", "backward=True", step.text)) for step in session(seed))
    weights = sorted(set(re.findall(r"\b[WT]\d+\b", " ".join(step.text for step in program))))
    made = [step for step in program if MAKES.search(step.text) and "Trainer(" not in step.text]
    rest = tuple(step for step in program if not MAKES.search(step.text) and not SHARED.search(step.text))
    starts = [k for k, step in enumerate(rest) if "renew_cg(" in step.text]
    parts = [rest[starts[k % len(starts)] :] for k in range(count)] if starts else []

    def gradients(how: Callable[[Sequence[Callable[[], Any]]], list[Any]]) -> tuple[list[Any], list[np.ndarray]]:
        env = {**names(dy, 0), **HELPERS, "see": lambda x: None}
        for step in made:
            if all(name in env for name in step.needs):
                exec(compiled(step.text), env)
        shared = {name: value for name, value in env.items() if re.fullmatch(r"[A-Za-z]+\d+", name)}
        dy.renew_cg()
        found = how([lambda part=part: run(part, shared) for part in parts])
        return found, [env[name].grad_as_array() for name in weights if name in env]

    with ready(way):
        found, added = gradients(at_once)
        wanted, expected = gradients(lambda jobs: [job() for job in jobs])
    off = compared(found, wanted, "thread of one model")
    for name, a, b in zip(weights, added, expected, strict=False):
        if off is None and not np.allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(b).max(initial=0)))):
            off = f"{name}'s gradient is off by {np.abs(a - b).max()}"
    return off


def forked(seed: int, way: Way) -> str | None:
    """A child goes on where the parent is; both see what one process does."""
    program = session(seed, 10)
    where = len(program) // 2
    with ready(way), tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "seen")
        child = []

        def fork() -> None:
            faulthandler.cancel_dump_traceback_later()  # a child has no thread that could end it
            child.append(os.fork())
            signal.alarm(HANGS // 2 if child[0] == 0 else HANGS)

        seen = run((*program[:where], Step("fork()"), *program[where:]), {"fork": fork})
        if child[0] == 0:
            with open(file, "w") as out:
                out.write(to_json(seen))
            os._exit(0)
        _, status = os.waitpid(child[0], 0)
        signal.alarm(0)
        if status:
            return f"the child ended with {status}"
        wanted = run((*program[:where], Step("pass"), *program[where:]), {})
        with open(file) as given:
            return compared([seen, from_json(given.read())], [wanted, wanted], "process")


def check(seed: int) -> Finding | None:
    rng = np.random.default_rng([seed, 37])
    way, kind = WAYS[int(rng.integers(len(WAYS)))], seed % 3
    if kind == 0:
        what = alone([int(k) for k in rng.integers(0, 10_000, 3)], way)
    else:
        what = in_one_model(seed, 3, way) if kind == 1 else forked(seed, way)
    text = f"# seed {seed}, {way}, {('models of their own', 'one model', 'fork')[kind]}: {what}"
    return Finding(seed, text, text) if what else None
