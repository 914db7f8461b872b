"""Runs the same measurement on several engines in turns and compares what comes back.

Each engine has a process of its own, which lives as long as the comparison; only one works at a time, and those of
one thread on one and the same processor: on a shared machine the neighbours of another may be busier. A stored figure
is never used: speeds of the same program differ from hour to hour, ratios within one run hardly do. The module knows
nothing of what is measured.
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

Question = dict[str, Any]
Measure = Callable[[Question], dict[str, Any]]  # one round: what it took

PACKAGES = {"dynet": "dyNET38", "dynet_lite": "dynet_lite", "torch": "torch", "floor": "numpy"}
MODES = {
    "dynet": ("0", "1", "2", "3"),
    "dynet_lite": ("on", "off", "null"),
    "torch": ("one", "padded", "sorted", "compiled"),
    "floor": ("numpy",),
}
# Every matrix library chooses its kernels for this processor itself.
CHOSEN = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR", "ATEN_CPU_CAPABILITY")
VARIANTS = {"dynet": ("compact",), "dynet_lite": ("compact", "idiomatic")}


@dataclass(frozen=True)
class Engine:
    """module:mode[:threads][+variant][@device].

    Such as dynet:1, dynet_lite:on:2, dynet_lite:on+idiomatic, torch:sorted, dynet_lite:on@cuda.
    """

    module: str
    mode: str
    threads: int
    variant: str
    device: str = ""

    @classmethod
    def parse(cls, text: str) -> Engine:
        rest, _, device = text.partition("@")
        rest, _, variant = rest.partition("+")
        module, _, rest = rest.partition(":")
        mode, _, threads = rest.partition(":")
        modes = MODES.get(module, ())
        mode = mode or (modes[0] if module == "floor" else "")
        wrong_variant = variant and variant not in VARIANTS.get(module, ())
        wrong_variant = wrong_variant or (device and module not in ("dynet_lite", "torch"))
        if mode not in modes or wrong_variant or (threads and not threads.isdecimal()):
            known = ", ".join(f"{module}:{'|'.join(modes)}" for module, modes in MODES.items())
            raise ValueError(f"expected {known}, then perhaps :THREADS, +compact or +idiomatic, @cuda; got {text!r}")
        return cls(module, mode, int(threads or 1), variant, device)

    def __str__(self) -> str:
        threads = f":{self.threads}" if self.threads > 1 else ""
        return f"{self.module}:{self.mode}{threads}" + (
            (f"+{self.variant}" if self.variant else "") + (f"@{self.device}" if self.device else "")
        )

    def start(self, seed: int = 1, memory: int = 1500) -> ModuleType:
        """Imports and sets up the engine; call it once, in the process that belongs to it. memory: MB, for DyNet."""
        if self.module == "dynet":
            import dynet_config

            dynet_config.set(mem=str(memory), random_seed=seed, autobatch=int(self.mode))
            import dynet as engine
        elif self.module == "dynet_lite":
            import dynet_lite as engine

            engine.configure(autobatch=self.mode != "off", threads=self.threads, seed=seed)
            if self.mode == "null":
                engine.configure(backend="null")
            if self.device:
                engine.configure(device=self.device)
        elif self.module == "torch":
            import torch as engine

            engine.set_num_threads(self.threads)
            engine.manual_seed(seed)
        else:
            import numpy as engine
        return engine  # type: ignore[no-any-return]

    def version(self) -> str:
        try:
            return metadata.version(PACKAGES[self.module])
        except metadata.PackageNotFoundError:
            return "from the source tree"


class Worker:
    """A process that answers one line of JSON with one line of JSON."""

    def __init__(self, engine: Engine, script: str, setup: Question) -> None:
        self.engine = engine
        # The matrix library inside dynet_lite takes its threads from dynet_lite.
        blas_threads = 1 if engine.module == "dynet_lite" else engine.threads
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        settings = dict.fromkeys(names, str(blas_threads))
        self.process = subprocess.Popen(
            [sys.executable, script, "--worker", str(engine)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in CHOSEN} | settings,
        )
        if engine.threads == 1 and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})
        self.ask(setup)

    def ask(self, question: Question) -> dict[str, Any]:
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
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has died already
        self.process.wait(timeout=60)


def serve(engine: str, prepare: Callable[[ModuleType, Engine, Question], Measure]) -> None:
    """The worker's side: the first line is the set-up, each further line asks for one round."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # an engine may print
    measure: Measure | None = None
    for line in sys.stdin:
        question = json.loads(line)
        if measure is None:
            parsed = Engine.parse(engine)
            measure = prepare(parsed.start(memory=question.get("memory", 1500)), parsed, question)
            answer: dict[str, Any] = {"ready": True}
        else:
            answer = measure(question)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def start_workers(engines: Sequence[str], script: str, setup: Question) -> list[Worker]:
    """A worker for each engine that is installed."""
    workers = []
    for name in engines:
        engine = Engine.parse(name)
        try:
            workers.append(Worker(engine, script, setup))
        except RuntimeError as error:
            if "ModuleNotFoundError" not in str(error):
                for worker in workers:
                    worker.close()
                raise
            print(f"{engine} is left out: {str(error).splitlines()[-1]}", file=sys.stderr)
    return workers


def run_rounds(
    engines: Sequence[str], script: str, setup: Question, rounds: int, warm: int = 1
) -> dict[str, list[dict[str, Any]]]:
    """The answers of each engine, round by round; the first `warm` of them are for warming up."""
    workers = start_workers(engines, script, setup)
    answers: dict[str, list[dict[str, Any]]] = {}
    try:
        for number in range(warm + rounds):
            take_turns(workers, {"round": number}, answers, number)
            print(f"round {number + 1} of {warm + rounds} done", file=sys.stderr)
    finally:
        for worker in workers:
            worker.close()
    return {str(worker.engine): answers[str(worker.engine)] for worker in workers}


def take_turns(
    workers: Sequence[Worker], question: Question, answers: dict[str, list[dict[str, Any]]], number: int
) -> None:
    """Asks every worker the same thing. Every second round runs backwards, so that nobody is always the first."""
    for worker in workers if number % 2 == 0 else workers[::-1]:
        answers.setdefault(str(worker.engine), []).append(worker.ask(question))


def add_line(path: str, line: dict[str, Any]) -> None:
    """Adds a line of JSON to a file, unless the path is empty."""
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


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
