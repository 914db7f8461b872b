"""The real DyNet runs programs, in a process of its own (fuzz_in_dynet.py), which may die without harm; what it shows is compared."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from itertools import compress
from pathlib import Path

from fuzz_program import Observation, Program, difference, from_json, may_round, rounding, smallest
from fuzz_ways import Finding, Way, finding, observed

INSTALLED = importlib.util.find_spec("_dynet") is not None
# DyNet's graph keeps the weights it began with.
OURS: Way = {"keep_weights": True}


class Peer:
    """A process with DyNet, started again when it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def observed(self, program: Program, numbers: int = 0) -> list[Observation] | None:
        """What DyNet saw; None if it died."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("fuzz_in_dynet.py").resolve()), "--dynet-mem", "256"], text=True, cwd=tempfile.gettempdir(),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([numbers, [s.text for s in program]]) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._end()
            return None
        return from_json(answer)

    def differs(self, program: Program, numbers: int) -> tuple[int, str] | None:
        """As far as DyNet gets: what it does not show is not compared, nor what follows a statement that it refuses."""
        theirs = self.observed(program, numbers)
        if theirs is None:
            return None
        whole = observed(program, OURS, numbers)
        errors = [k for k, how, _ in theirs if how == "error"]
        end = min((k for k in errors if not program[k].text.startswith("see(")), default=len(program))
        compared = [o[0] < end and o[0] not in errors for o in whole]
        ours = list(compress(whole, compared))
        theirs = [o for o in theirs if o[0] < end and o[0] not in errors]
        found = difference(ours, theirs)
        if found is None or not may_round(program):
            return found
        off = rounding(whole, lambda moved: observed(program, OURS, numbers, moved))
        return difference(ours, theirs, roundings=list(compress(off, compared)))

    def check(self, program: Program, seed: int) -> Finding | None:
        if self.differs(program, 0) is None:
            return None
        small = smallest(program, self.differs)
        if small is None:
            return None
        return finding(
            small, seed, "against DyNet", lambda n: self.differs(small, n), "dy.configure(keep_weights=True)"
        )
