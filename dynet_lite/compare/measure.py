"""Training a recipe for a few mini-batches in several ways, always from the same weights and on the same mini-batches.

A way is a batch size, a strategy (or off) and a number of threads. Each way is timed some times, in turns with the others,
and of each mini-batch the fastest time counts: what else the machine does only ever makes it slower. Then each way is run
under dy.profile(), for everything else.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import _core
from dynet_lite.errors import DataError
from dynet_lite.harness import Data, Recipe, Settings, make_recipe
from dynet_lite.harness.loop import Epoch, train_step
from dynet_lite.harness.settings import of_engine

AnyRecipe = type[Recipe[Any, Any]]

OFF = "off"
# "cpu" leaves out what other programs took, on a machine that is busy; it sees one thread.
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}
BUSY = 1.3  # wall time over processor time from which a note is due


@dataclass(frozen=True)
class Way:
    """How to run: examples per mini-batch, strategy or "off", threads."""

    batch: int
    strategy: str
    threads: int

    @property
    def name(self) -> str:
        """Without the batch size: what a line of a chart is called."""
        return self.strategy + (f", {self.threads} threads" if self.threads > 1 else "")


@dataclass
class Measurement:
    """What one way gave. rounds and losses are of the timed rounds, the rest of the one under profile()."""

    way: Way
    examples: int
    rounds: list[list[float]]  # seconds of each mini-batch in each round
    losses: list[float]  # of each mini-batch
    nodes: int
    batches: int
    lower_bound: int | None  # None when batching is off and no other way of this batch size was run
    phases: dict[str, float]  # seconds: rewrite, plan, forward, backward, update, python
    memory: dict[str, int]  # bytes: values, gradients, of one mini-batch at most
    ops: list[dict[str, Any]]  # see dy.Profile.ops
    agreement: tuple[float, float] | None = None  # relative difference of losses: first mini-batch, at most

    @property
    def seconds(self) -> float:
        """For all examples: the sum over the mini-batches of the fastest time."""
        return float(sum(map(min, zip(*self.rounds, strict=True))))

    @property
    def speed(self) -> float:
        """Examples per second."""
        return self.examples / self.seconds

    @property
    def mean_batch(self) -> float:
        return self.nodes / max(1, self.batches)


@dataclass
class Comparison:
    """All measurements, and what they are of."""

    recipe: str
    data: str
    unit: str
    notes: list[str]
    machine: dict[str, Any]
    measurements: list[Measurement] = field(default_factory=list)

    def find(self, batch: int, strategy: str, threads: int = 1) -> Measurement | None:
        return next((m for m in self.measurements if m.way == Way(batch, strategy, threads)), None)

    def gain(self, m: Measurement) -> float | None:
        """How many times as fast as batching off on one thread, at the same batch size."""
        off = self.find(m.way.batch, OFF)
        return m.speed / off.speed if off else None

    def to_dict(self) -> dict[str, Any]:
        """What json.dump can write."""
        out = asdict(self)
        for one, m in zip(out["measurements"], self.measurements, strict=True):
            one.update(seconds=m.seconds, speed=m.speed, mean_batch=m.mean_batch, gain=self.gain(m))
        return out


def compare(
    kind: AnyRecipe,
    settings: Settings,
    data: Data[Any],
    ways: Iterable[Way],
    *,
    sentences: int = 0,
    rounds: int = 3,
    seconds: float = 10.0,
    clock: str = "wall",
    say: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Runs the recipe in these ways on the first `sentences` training examples (0: two of the largest mini-batches).

    rounds: how often each way is timed, less when its rounds have taken so many seconds. Noise such as dropout is
    off. clock: "wall", or "cpu" for one thread on a busy machine. Ways with more examples per mini-batch than there are
    examples are left out, which a note says; DataError if none is left.
    """
    ways = list(ways)
    if clock == "cpu" and any(w.threads > 1 for w in ways):
        raise DataError("the clock 'cpu' measures one thread: expected --threads 1")
    quiet: dict[str, Any] = {name: 0.0 for name in settings.noise if getattr(settings, name, 0)}
    settings = replace(settings, **quiet)
    examples = _some(data.train, sentences or 2 * max((w.batch for w in ways), default=1))
    notes = [
        f"{len(examples)} {kind.unit} of the training data; all settings start from the same weights and see the same mini-batches"
    ]
    if quiet:
        notes.append(f"{' and '.join(quiet)} is off")
    for batch in sorted({w.batch for w in ways if w.batch > len(examples)}):
        notes.append(f"batch size {batch} is left out: there are {len(examples)} {kind.unit}")
    if settings.device not in ("", "cpu"):
        notes.append(f"computed on {_device(settings.device)}")
    ways = [w for w in ways if w.batch <= len(examples)]
    if not ways:
        raise DataError(f"no batch size is that small: there are {len(examples)} {kind.unit} to measure with")
    parts = kind.build(settings, data.train)
    out = Comparison(kind.__name__, str(data), kind.unit, notes, {**_core.describe(), "version": dy.__version__})
    times: dict[Way, list[list[float]]] = {way: [] for way in ways}
    spent = np.zeros(2)
    for number in range(rounds):
        for way, found in times.items():
            if sum(map(sum, found)) < seconds:
                say(f"batch {way.batch}, {way.name}: round {number + 1} of {rounds}")
                wall, cpu = time.perf_counter(), time.thread_time()
                found.append(_run(kind, settings, parts, examples, way, CLOCKS[clock])[1])
                spent += np.array([time.perf_counter() - wall, time.thread_time() - cpu])
    if all(w.threads == 1 for w in ways) and spent[0] > BUSY * spent[1]:
        busy = f"the machine was busy: this program ran 1 of every {spent[0] / spent[1]:.1f} seconds"
        notes.append(busy + ("" if clock == "cpu" else "; --clock cpu counts its own time only"))
    notes.append({"wall": "times are wall times", "cpu": "times are processor times"}[clock])
    for way, found in times.items():
        say(f"batch {way.batch}, {way.name}: counting")
        out.measurements.append(_count(kind, settings, parts, examples, way, found))
    _fill_in(out)
    return out


def _device(name: str) -> str:
    """A device and what it is."""
    wanted = name if ":" in name else name + ":0"
    return next((str(d) for d in dy.devices() if d.name == wanted), name)


def _some(train: Sequence[Any], n: int) -> list[Any]:
    """The first n examples of an order that is always the same: neighbours in a corpus are alike."""
    examples = list(train)
    random.Random(1).shuffle(examples)
    return examples[:n]


def _run(
    kind: AnyRecipe, s: Settings, parts: dict[str, Any], examples: list[Any], way: Way,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Epoch, list[float], int]:  # fmt: skip
    """One pass over the examples with a new model: what it gave, seconds by mini-batch, the sum of the lower bounds."""
    s = replace(s, batch=way.batch, autobatch=way.strategy != OFF, threads=way.threads,
                strategy=s.strategy if way.strategy == OFF else way.strategy)  # fmt: skip
    with dy.configure(**of_engine(s)):
        recipe = make_recipe(kind, s, parts)
        recipe.begin()
        recipe.epoch = 1
        trainer, epoch, bound = recipe.trainer(), Epoch(1), 0
        seconds = []
        for batch in recipe.batches(examples):
            before = clock()
            train_step(recipe, trainer, batch, epoch)
            seconds.append(clock() - before)
            bound += dy.stats()["lower_bound"]
        dy.renew_cg()
    return epoch, seconds, bound


def _count(
    kind: AnyRecipe, s: Settings, parts: dict[str, Any], examples: list[Any], way: Way, times: list[list[float]]
) -> Measurement:
    with dy.profile() as p:
        epoch, _, bound = _run(kind, s, parts, examples, way)
    ops = [{**asdict(o), "mean_batch": o.mean_batch, "seconds": o.seconds} for o in p.ops()]
    phases = p.phases()
    phases["python"] = max(0.0, epoch.seconds - sum(t for name, t in phases.items() if name != "python"))
    known = bound if way.strategy != OFF else None  # without batching nothing is bounded
    return Measurement(
        way, len(examples), times, epoch.losses, epoch.nodes, epoch.batches, known, phases, p.memory(), ops
    )


def _fill_in(c: Comparison) -> None:
    """What one measurement says about another: the lower bound where batching is off, and whether losses agree."""
    for m in c.measurements:
        same = [o for o in c.measurements if o.way.batch == m.way.batch]
        if m.lower_bound is None:
            m.lower_bound = next((o.lower_bound for o in same if o.lower_bound and o.way.threads == 1), None)
        reference = c.find(m.way.batch, OFF) or same[0]
        if reference is not m:
            gaps = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(m.losses, reference.losses, strict=True)]
            m.agreement = gaps[0], max(gaps)
