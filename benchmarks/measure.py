"""One engine at work on one task, in the process that belongs to it: makes model and batches, times rounds.

The set-up says task, sizes, how many sentences, whether to train. A round goes over all batches once and says what each
phase took, what the losses were and how much memory the process has had at most. The first round is asked for with
{"common": true}: every engine takes the same batches, so that the losses can be compared. After that an engine
may take batches of its own kind (sorted by length) where that is its way of working.
"""

from __future__ import annotations

import importlib
import pickle
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from side_by_side import Engine, Measure, Question
from tasks.common import initial_weights
from tasks.registry import TASKS

PHASES = ("build", "plan", "forward", "backward", "update")
COUNTED = ("nodes", "batches", "lower_bound", "heap_calls", "floats_gathered", "floats_scattered")

Batch = Sequence[Any]
# Trains on one batch (or only computes its loss): the loss, and the CPU seconds of each phase.
Step = Callable[[Batch], tuple[float, dict[str, float]]]


def prepare(dy: ModuleType, engine: Engine, setup: Question) -> Measure:
    """The worker's part: see side_by_side.serve()."""
    task, sizes = TASKS[setup["task"]], setup["sizes"]
    instances = instances_of(setup)
    make = {"torch": torch_step, "floor": floor_step}.get(engine.module, graph_step)
    step, extras = make(dy, engine, setup, initial_weights(task.shapes(sizes), setup["seed"] + 1))
    common = batches_of(instances, sizes["batch"])
    own = common
    if engine.mode in ("sorted", "compiled"):
        own = batches_of(sorted(instances, key=task.length), sizes["batch"])

    def measure(question: Question) -> dict[str, Any]:
        is_common = bool(question.get("common"))
        return one_round(step, common if is_common else own, extras, bool(question.get("profile")), is_common)

    return measure


def instances_of(setup: Question) -> list[Any]:
    """The same ones in every process: real sentences from a file that run.py wrote, or made up from the seed."""
    if setup.get("instances"):
        with open(setup["instances"], "rb") as file:
            return list(pickle.load(file))
    found = TASKS[setup["task"]].data(np.random.RandomState(setup["seed"]), setup["sentences"], setup["sizes"])
    return list(found)


def batches_of(instances: Sequence[Any], size: int) -> list[Batch]:
    return [instances[i : i + size] for i in range(0, len(instances), size)]


class Extras:
    """What an engine can tell besides time; nothing unless it is dynet_lite."""

    def begin(self, profile: bool, count: bool) -> None:
        """Before a round."""

    def after_batch(self) -> None:
        """After each batch of a round."""

    def finish(self) -> None:
        """Before the clock of a round stops: waits for what was begun."""

    def end(self) -> dict[str, Any]:
        """After a round: what to add to the answer."""
        return {}


def one_round(step: Step, batches: Sequence[Batch], extras: Extras, profile: bool, count: bool) -> dict[str, Any]:
    phases, losses = dict.fromkeys(PHASES, 0.0), []
    extras.begin(profile, count)
    wall, cpu = time.perf_counter(), time.process_time()
    for batch in batches:
        loss, took = step(batch)
        losses.append(loss)
        for phase, seconds in took.items():
            phases[phase] += seconds
        extras.after_batch()
    extras.finish()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"losses": losses, "wall": wall, "cpu": cpu, "peak_mb": peak, **phases, **extras.end()}


# --- DyNet and dynet_lite -----------------------------------------------------------------------------------


def graph_step(dy: ModuleType, engine: Engine, setup: Question, weights: dict[str, Any]) -> tuple[Step, Extras]:
    task = TASKS[setup["task"]]
    kind = task.Idiomatic if engine.variant == "idiomatic" else task.Program
    builder = "CompactVanillaLSTMBuilder" if engine.variant == "compact" else "VanillaLSTMBuilder"
    program = kind(dy, setup["sizes"], weights, builder)
    trainer = dy.AdamTrainer(program.model)
    trainer.set_clip_threshold(0)
    trainer.set_sparse_updates(True)
    cpu, train = time.process_time, not setup.get("inference")
    ours = engine.module == "dynet_lite"

    def on_gpu(batch: Batch) -> tuple[float, dict[str, float]]:
        t0 = cpu()
        dy.renew_cg()
        loss = program.batch_loss(batch)
        t1 = cpu()
        if train:
            loss.backward()
            trainer.update()
        return loss.value(), {"build": t1 - t0, "forward": cpu() - t1}  # which is all that is queued, and the wait

    if engine.device:
        return on_gpu, OnGpu(dy, program.model.parameters_list()[0])

    def step(batch: Batch) -> tuple[float, dict[str, float]]:
        t0 = cpu()
        dy.renew_cg()
        loss = program.batch_loss(batch)
        t1 = cpu()
        value = loss.value()
        t2 = cpu()
        took = {"build": t1 - t0, "forward": t2 - t1}
        if ours:
            plan = min(dy.cg().stats()["plan_time"], t2 - t1)  # wall time, which may be more
            took |= {"plan": plan, "forward": took["forward"] - plan}
            t2 = cpu()
        if train:
            loss.backward()
            t3 = cpu()
            trainer.update()
            took |= {"backward": t3 - t2, "update": cpu() - t3}  # with threads the next forward pass has their time
        return value, took

    return step, Counters(dy) if ours else Extras()


class Counters(Extras):
    """dynet_lite's counters, and time by op when a round is profiled.

    Batches are counted in the common round, which is not timed: asking after every batch would keep steps from overlapping.
    """

    def __init__(self, dy: ModuleType) -> None:
        self.dy = dy
        self.counts: Counter[str] = Counter()

    def begin(self, profile: bool, count: bool) -> None:
        self.profile, self.count = profile, count
        self.dy.configure(profile=profile)
        if count:
            self.counts.clear()
        self.heap_calls = self.dy.heap_calls()
        self.ops = self.op_times()

    def op_times(self) -> dict[tuple[str, str], float]:
        """Seconds by op and direction, since the process began."""
        ops = self.dy.stats()["ops"].items()
        return {(op, way): figures[way] for op, figures in ops for way in ("forward", "backward")}

    def after_batch(self) -> None:
        if not self.count:
            return
        stats = self.dy.stats()  # of this graph
        self.counts.update({name: stats[name] for name in COUNTED if name != "heap_calls"})

    def finish(self) -> None:
        self.dy.stats()

    def end(self) -> dict[str, Any]:
        found: dict[str, Any] = {**self.counts, "heap_calls": self.dy.heap_calls() - self.heap_calls}
        if self.profile:
            ops: dict[str, dict[str, float]] = {}
            for (op, way), seconds in self.op_times().items():
                ops.setdefault(op, {})[way] = seconds - self.ops.get((op, way), 0.0)
            found["ops"] = ops
        return found


class OnGpu(Counters):
    """The counters, and what a GPU did: launches, waits, fallbacks, the time that it was at work."""

    def __init__(self, dy: ModuleType, weight: Any) -> None:
        super().__init__(dy)
        self.weight = weight

    def begin(self, profile: bool, count: bool) -> None:
        super().begin(profile and not count, count)
        self.weight.as_array()  # waits
        self.before, self.busy = self.dy._core.backend_counts(), self.dy._core.device_busy("cuda", True)

    def finish(self) -> None:
        self.weight.as_array()

    def end(self) -> dict[str, Any]:
        after, busy = self.dy._core.backend_counts(), self.dy._core.device_busy("cuda", False)
        gpu = {name: after[name] - before for name, before in self.before.items()}
        return super().end() | {"gpu": gpu, "device_seconds": busy - self.busy}


class TorchOnGpu(Extras):
    """A round is over when the GPU has done all of it."""

    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch

    def begin(self, profile: bool, count: bool) -> None:
        self.finish()

    def finish(self) -> None:
        if self.torch.cuda.is_available():
            self.torch.cuda.synchronize()


# --- PyTorch ------------------------------------------------------------------------------------------------


def torch_step(torch: ModuleType, engine: Engine, setup: Question, weights: dict[str, Any]) -> tuple[Step, Extras]:
    """The program is in tasks/torch_<task>.py; see torch_common.py for what it holds."""
    program = importlib.import_module(f"tasks.torch_{setup['task']}")
    common = importlib.import_module("tasks.torch_common")
    if engine.device:
        common.use_device(engine.device)
    step: Step = common.training_step(program, engine.mode, setup["sizes"], weights, not setup.get("inference"))
    return step, TorchOnGpu(torch) if engine.device else Extras()


# --- the floor ----------------------------------------------------------------------------------------------


def floor_step(numpy: ModuleType, engine: Engine, setup: Question, weights: dict[str, Any]) -> tuple[Step, Extras]:
    """The matrix products alone: no graph, no data, no other arithmetic."""
    from floor import run_products

    products, sizes, train = TASKS[setup["task"]].products, setup["sizes"], not setup.get("inference")
    ready: dict[int, Any] = {}

    def step(batch: Batch) -> tuple[float, dict[str, float]]:
        key = id(batch)
        if key not in ready:
            ready[key] = (batch, products(batch, sizes))  # the batch is kept, so that its id stays its own
        return 0.0, run_products(ready[key][1], train)

    return step, Extras()
