"""Runs the same measurement on several engines in turns and compares what comes back.

Each engine has a process of its own, which lives as long as the comparison; only one works at a time. A
stored figure is never used: on a shared machine speeds of the same program differ from hour to hour, ratios
within one run hardly do. The module knows nothing of what is measured.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from types import ModuleType
from typing import Any

Measure = Callable[[], dict[str, Any]]  # one round: what it took

PACKAGES = {"dynet": "dyNET38", "dynet_lite": "dynet_lite"}


@dataclass(frozen=True)
class Engine:
    """dynet:1 is DyNet with autobatch 1; dynet_lite:on:2 has 2 threads; dynet_lite:null computes nothing."""

    module: str
    mode: str
    threads: int

    @classmethod
    def parse(cls, text: str) -> Engine:
        module, _, rest = text.partition(":")
        mode, _, threads = rest.partition(":")
        modes = {"dynet": "0 1 2 3", "dynet_lite": "on off null"}.get(module, "").split()
        if mode not in modes or (threads and not threads.isdecimal()):
            raise ValueError(f"expected dynet:0-3 or dynet_lite:on|off|null[:THREADS], got {text!r}")
        return cls(module, mode, int(threads or 1))

    def __str__(self) -> str:
        return f"{self.module}:{self.mode}" + (f":{self.threads}" if self.threads > 1 else "")

    def start(self, seed: int = 1) -> ModuleType:
        """Imports and sets up the engine; call it once, in the process that belongs to it."""
        if self.module == "dynet":
            import dynet_config

            dynet_config.set(mem="1500", random_seed=seed, autobatch=int(self.mode))
            import dynet as dy
        else:
            import dynet_lite as dy

            dy.configure(autobatch=self.mode != "off", threads=self.threads, seed=seed)
            if self.mode == "null":
                dy.configure(backend="null")
        return dy  # type: ignore[no-any-return]

    def version(self) -> str:
        try:
            return metadata.version(PACKAGES[self.module])
        except metadata.PackageNotFoundError:
            return "from the source tree"


class Worker:
    """A process that answers one line of JSON with one line of JSON."""

    def __init__(self, engine: Engine, script: str, setup: dict[str, Any]) -> None:
        self.engine = engine
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, script, "--worker", str(engine)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | one_thread,
        )
        self.ask(setup)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout and self.process.stderr
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.process.kill()
            raise RuntimeError(f"{self.engine} stopped: {self.process.stderr.read().strip()[-2000:]}")
        return dict(json.loads(answer))

    def close(self) -> None:
        assert self.process.stdin and self.process.stderr
        self.process.stdin.close()
        self.process.wait(timeout=60)


def serve(engine: str, prepare: Callable[[ModuleType, Engine, dict[str, Any]], Measure]) -> None:
    """The worker's side: the first line is the set-up, each further line asks for one round."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # an engine may print
    measure: Measure | None = None
    for line in sys.stdin:
        question = json.loads(line)
        if measure is None:
            parsed = Engine.parse(engine)
            measure = prepare(parsed.start(), parsed, question)
            answer: dict[str, Any] = {"ready": True}
        else:
            answer = measure()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def run_rounds(
    engines: Sequence[str], script: str, setup: dict[str, Any], rounds: int, warm: int = 1
) -> dict[str, list[dict[str, Any]]]:
    """The answers of each engine, round by round; the first `warm` of them are for warming up."""
    workers = []
    answers: dict[str, list[dict[str, Any]]] = {}
    try:
        for name in engines:
            engine = Engine.parse(name)
            try:
                workers.append(Worker(engine, script, setup))
            except RuntimeError as error:
                if "ModuleNotFoundError" not in str(error):
                    raise
                print(f"{engine} is left out: {str(error).splitlines()[-1]}", file=sys.stderr)
        for number in range(warm + rounds):
            # Every second round runs backwards, so that nobody is always the first.
            for worker in workers if number % 2 == 0 else workers[::-1]:
                answers.setdefault(str(worker.engine), []).append(worker.ask({"round": number}))
            print(f"round {number + 1} of {warm + rounds} done", file=sys.stderr)
    finally:
        for worker in workers:
            worker.close()
    return {str(worker.engine): answers[str(worker.engine)] for worker in workers}


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            cpu = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "load": round(load, 2)}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, first column left, others right."""
    marks = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(head), marks, *map(list, rows)])
