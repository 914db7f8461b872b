"""--compare: the same training twice, in turns, with automatic batching on and off."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import dynet_lite as dy

from .data import Data
from .loop import Epoch, train_step
from .progress import bar
from .ranks import parsed
from .recipe import Recipe
from .settings import Settings
from .state import get_random, make_recipe, set_random

__all__ = ["compare"]

EPOCHS = 3  # at most, but more while the times are too short to be compared
LONG_ENOUGH = 0.5  # seconds of the faster run
UPDATES = 60  # an epoch of the comparison has at most so many


def compare(kind: type[Recipe[Any, Any]], s: Settings, parts: dict[str, Any], data: Data[Any]) -> int:
    """Prints speeds, losses and their ratio. Both runs have the same weights, mini-batches and random numbers."""
    quiet: dict[str, Any] = {name: 0.0 for name in s.noise if getattr(s, name, 0)}
    s = replace(s, **quiet)
    off = f"; {' and '.join(quiet)} is off" if quiet else ""
    clock = time.thread_time if s.threads == 1 else time.perf_counter  # what else runs on the machine counts less
    times = "processor" if s.threads == 1 else "wall"
    print(f"both runs start from the same weights and see the same mini-batches; times are {times} times{off}")
    runs: dict[bool, _Run] = {}
    try:
        _warm_up(kind, s, parts, data)
        for autobatch in (True, False):
            recipe = make_recipe(kind, s, parts)
            runs[autobatch] = _Run("on " if autobatch else "off", recipe, recipe.trainer(), get_random(recipe))
        for number in range(1, s.epochs + 1):
            if number > EPOCHS and min(run.seconds for run in runs.values()) >= LONG_ENOUGH:
                break
            for autobatch, run in runs.items():
                set_random(run.recipe, run.random)
                with dy.configure(autobatch=autobatch):
                    run.train(data, number, clock)
                run.random = get_random(run.recipe)
    except KeyboardInterrupt:
        print("stopped by the keyboard; results so far:", flush=True)
        _print_ratio(runs)
        return 130
    _print_ratio(runs)
    return 0


@dataclass
class _Run:
    """One of the two trainings, as far as it has come."""

    name: str
    recipe: Recipe[Any, Any]
    trainer: dy.Trainer
    random: dict[str, Any]
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(epoch.seconds for epoch in self.epochs)

    @property
    def speed(self) -> float:
        """Examples per second; 0 where nothing was measured."""
        return sum(epoch.examples for epoch in self.epochs) / self.seconds if self.seconds else 0.0

    @property
    def losses(self) -> list[float]:
        return [loss for epoch in self.epochs for loss in epoch.losses]

    def train(self, data: Data[Any], number: int, clock: Callable[[], float]) -> None:
        """An epoch, and a line about it, also when it is interrupted."""
        epoch = Epoch(number)
        self.epochs.append(epoch)
        self.recipe.epoch = number
        try:
            todo = list(islice(self.recipe.batches(data.train), UPDATES))
            for batch in bar(todo, desc=f"{self.name} {number}"):
                train_step(self.recipe, self.trainer, parsed(batch), epoch, clock)
        finally:
            if epoch.losses:
                print(
                    f"autobatch {self.name}  epoch {epoch.number}  loss {epoch.loss:.6f}  {epoch.speed:,.0f} "
                    f"{self.recipe.unit}/s  mean batch {epoch.mean_batch:.1f}",
                    flush=True,
                )


def _print_ratio(runs: dict[bool, _Run]) -> None:
    """How much faster batching is, and how far the losses of the mini-batches that both runs have seen are apart."""
    if len(runs) < 2 or not all(run.losses for run in runs.values()):
        print("too little to compare: one run has not trained on any mini-batch")
        return
    pairs = zip(runs[True].losses, runs[False].losses, strict=False)
    differences = [abs(a - b) / max(abs(b), 1e-30) for a, b in pairs]
    print(
        f"automatic batching is {runs[True].speed / runs[False].speed:.2f} times as fast; losses differ by "
        f"{differences[0]:.1e} in the first mini-batch, by {max(differences):.1e} at most (relative)"
    )


def _warm_up(kind: type[Recipe[Any, Any]], s: Settings, parts: dict[str, Any], data: Data[Any]) -> None:
    """What happens only once (libraries that are loaded, memory that is taken) happens to a model that is thrown away."""
    recipe = make_recipe(kind, s, parts)
    trainer, batches = recipe.trainer(), [parsed(batch) for batch in islice(recipe.batches(data.train), 2)]
    for autobatch in (True, False):
        with dy.configure(autobatch=autobatch):
            for batch in batches:
                train_step(recipe, trainer, batch, Epoch(0))
