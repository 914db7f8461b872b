"""--compare: the same training twice, in turns, with automatic batching on and off."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tqdm import tqdm

import dynet_lite as dy

from .data import Data
from .loop import Epoch, train_step
from .recipe import Recipe
from .settings import Settings
from .state import get_random, make_recipe, set_random

__all__ = ["compare"]

EPOCHS = 3  # at most, but more while the times are too short to be compared
LONG_ENOUGH = 0.5  # seconds of the faster run
UPDATES = 60  # an epoch of the comparison has at most so many


def compare(kind: type[Recipe[Any, Any]], s: Settings, parts: dict[str, Any], data: Data[Any]) -> int:
    """Prints speeds, losses and their ratio. Both runs have the same weights, minibatches and random numbers."""
    quiet: dict[str, Any] = {name: 0.0 for name in s.noise if getattr(s, name, 0)}
    s = replace(s, **quiet)
    off = f"; {' and '.join(quiet)} is off" if quiet else ""
    clock = time.thread_time if s.threads == 1 else time.perf_counter  # what else runs on the machine counts less
    seconds_of = "the processor" if s.threads == 1 else "the clock"
    print(f"both runs start from the same weights and see the same minibatches, seconds are those of {seconds_of}{off}")
    _warm_up(kind, s, parts, data)
    runs = {}
    for autobatch in (True, False):
        recipe = make_recipe(kind, s, parts)
        runs[autobatch] = recipe, recipe.trainer(), get_random(recipe)
    seconds = dict.fromkeys(runs, 0.0)
    losses: dict[bool, list[float]] = {autobatch: [] for autobatch in runs}
    for number in range(1, s.epochs + 1):
        if number > EPOCHS and min(seconds.values()) >= LONG_ENOUGH:
            break
        for autobatch, (recipe, trainer, state) in runs.items():
            name = "on " if autobatch else "off"
            set_random(recipe, state)
            with dy.configure(autobatch=autobatch):
                epoch = _epoch(recipe, trainer, data, number, name, clock)
            runs[autobatch] = recipe, trainer, get_random(recipe)
            seconds[autobatch] += epoch.seconds
            losses[autobatch] += epoch.losses
            print(
                f"autobatch {name}  epoch {number}  loss {epoch.loss:.6f}  {epoch.speed:,.0f} {recipe.unit}/s  "
                f"mean batch {epoch.mean_batch:.1f}",
                flush=True,
            )
    differences = [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(losses[True], losses[False], strict=True)]
    print(
        f"automatic batching is {seconds[False] / seconds[True]:.2f} times as fast; losses differ by "
        f"{differences[0]:.1e} in the first minibatch, by {max(differences):.1e} at most (relative)"
    )
    return 0


def _warm_up(kind: type[Recipe[Any, Any]], s: Settings, parts: dict[str, Any], data: Data[Any]) -> None:
    """What happens only once (libraries that are loaded, memory that is taken) happens to a model that is thrown away."""
    recipe = make_recipe(kind, s, parts)
    trainer, batches = recipe.trainer(), recipe.batches(data.train)[:2]
    for autobatch in (True, False):
        with dy.configure(autobatch=autobatch):
            for batch in batches:
                train_step(recipe, trainer, batch, Epoch(0))


def _epoch(
    recipe: Recipe[Any, Any], trainer: dy.Trainer, data: Data[Any], number: int, name: str, clock: Callable[[], float]
) -> Epoch:
    epoch = Epoch(number)
    recipe.epoch = number
    todo = recipe.batches(data.train)[:UPDATES]
    for batch in tqdm(todo, desc=f"{name} {number}", leave=False, disable=None):
        train_step(recipe, trainer, batch, epoch, clock)
    return epoch
