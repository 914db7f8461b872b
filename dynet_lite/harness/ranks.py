"""A training run on several processes: each takes its part of every mini-batch, rank 0 alone writes, prints and evaluates.

What a step computes depends on the settings and the number of ranks alone: random numbers of a step are drawn from the
seed, the number of the step and the rank, so that a run can be resumed at any step, with any number of ranks.
"""

from __future__ import annotations

import math
import os
import platform
import random
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import dynet_lite as dy
from dynet_lite import _core, distributed
from dynet_lite.text import Record, Stream

from .data import Data
from .recipe import Recipe, Score
from .settings import Settings, to_dict
from .state import get_random, set_random

if TYPE_CHECKING:
    from .loop import Epoch

__all__ = ["Ranks", "alone", "complain", "follower", "parsed", "ranks_of", "silent", "wait", "without_files"]

SAMPLE = 200  # examples of each part of the data that the ranks compare
LONGEST = 2000  # letters of a message
S = TypeVar("S", bound=Settings)


def alone() -> bool:
    """Is there one process only?"""
    return distributed.current().size == 1


def follower() -> bool:
    """Is this a rank that neither prints nor writes?"""
    return distributed.current().rank > 0


@contextmanager
def silent(errors: bool = False) -> Iterator[None]:
    """Ranks other than 0 print nothing; errors: not on standard error either."""
    if not follower():
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        if errors:
            with redirect_stderr(nowhere):
                yield
        else:
            yield


def without_files(s: S) -> S:
    """The settings of this rank: rank 0 alone writes files."""
    return replace(s, save="", log="", tensorboard="", plot="") if follower() else s


def complain(text: str, status: int) -> int:
    """Says why the run ends; with several ranks all of them end here. Of a line of a file that is endless, both ends."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 200]} ... {text[-200:]}"
    distributed.current().fail(f"error: {text}", status)
    print(f"error: {text}", file=sys.stderr)
    return status


def wait() -> int:
    """What rank 0 does alone may take as long as it likes: the others go on to the end of the program."""
    world = distributed.current()
    if isinstance(world, distributed.World):
        world.timeout = math.inf
    return 0


def parsed(batch: Sequence[Any]) -> list[Any]:
    """The examples of a mini-batch, which may be records of a stream."""
    return [x.example() if isinstance(x, Record) else x for x in batch]


def ranks_of(recipe: Recipe[Any, Any], trainer: dy.Trainer, data: Data[Any]) -> Ranks | None:
    """What a run on several processes needs; None for one."""
    return None if alone() else Ranks(recipe, trainer, data)


class Ranks:
    """The steps of a run that ranks do together. NotAlike if they have other settings, data, code or models."""

    def __init__(self, recipe: Recipe[Any, Any], trainer: dy.Trainer, data: Data[Any]) -> None:
        self.world = distributed.current()
        self.recipe, self.inner = recipe, trainer
        self.world.agree(
            version=(dy.__version__, platform.python_version(), np.__version__),
            recipe=_source(type(recipe)),
            settings=to_dict(recipe.settings),
            data=[(len(part), _digest(part)) for part in (data.train, data.dev, data.test)],
            vocabularies=zlib.crc32(repr(recipe.parts).encode()),
        )
        now = get_random(recipe)
        self.trainer = distributed.Trainer(trainer, self.world)
        set_random(recipe, now)
        self.stop = False  # this rank wants the run to stop; may be set at any time
        self.stopping = False  # all ranks stop after this step

    def start(self, updates: int) -> None:
        """Before the first step: all are at the same place with the same weights."""
        self.world.agree(updates=updates)
        self.trainer.check_weights()

    def check(self) -> None:
        """All have the same weights, after an epoch."""
        self.trainer.check_weights()

    def evaluate(self, examples: list[Any]) -> Score:
        """The score: all ranks share the work where the recipe knows how, otherwise rank 0 finds it out."""
        if not self.recipe.shares_evaluation:
            return self.world.first(lambda: self.recipe.evaluate(examples))
        self.recipe.world = self.world
        try:
            return self.recipe.evaluate(examples)
        finally:
            self.recipe.world = distributed.Alone()

    def step(self, batch: list[Any], epoch: Epoch) -> tuple[float, str]:
        """One update by all ranks; its loss, and what is wrong with it or with its gradient ("" if nothing is).

        Sets `stopping` on all ranks if `stop` was set on one before they added up.
        """
        start = time.perf_counter()
        recipe = self.recipe
        mine = self.world.share(batch, recipe.cost)
        share = recipe.weight(mine) / recipe.weight(batch) if mine else 0.0
        mine = parsed(mine)
        self._seed(epoch.number, len(epoch.losses))
        recipe.training = True
        dy.renew_cg()
        value, nodes, batches = 0.0, 0, 0
        if mine:
            loss = recipe.loss(mine) * share
            value = float(loss.value())
            if math.isfinite(value):
                self.trainer.backward(loss)
            counts = dy.stats()
            nodes, batches = counts["nodes"], counts["batches"]
        recipe.training = False
        heads = self.trainer.add_up(value, self.stop, nodes, batches)
        self.stopping = bool(heads[:, 1].any())
        value = float(sum(heads[:, 0].tolist()))
        if not math.isfinite(value):
            bad = [str(r) for r, x in enumerate(heads[:, 0]) if not math.isfinite(x)]
            return value, f"the loss is {value} (on rank {', '.join(bad)})"
        try:
            self.inner.update()
        except RuntimeError as error:
            if "gradient" not in str(error):
                raise
            return value, f"the loss is {value:.4g}, but its gradient is not finite"
        epoch.losses.append(value)
        epoch.examples += len(batch)
        epoch.nodes += int(heads[:, 2].sum())
        epoch.batches += int(heads[:, 3].sum())
        epoch.seconds += time.perf_counter() - start
        return value, ""

    def _seed(self, *place: int) -> None:
        """All random numbers that a loss draws, from the seed, the place in the run and the rank."""
        seed = zlib.crc32(repr((self.recipe.settings.seed, place, self.world.rank)).encode())
        self.recipe.random.seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        _core.set_seed_state(seed * 0x9E3779B97F4A7C15 % 2**64)


def _source(kind: type[Any]) -> tuple[str, int]:
    """A class with a digest of the file that it stands in."""
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__name__, zlib.crc32(Path(path).read_bytes()) if path and Path(path).is_file() else 0


def _digest(examples: Sequence[Any]) -> int:
    """Of some examples, taken evenly; of those whose repr() tells what they are."""
    if isinstance(examples, Stream):
        return examples.fingerprint
    some = examples[:: max(1, len(examples) // SAMPLE)]
    texts = [text for text in map(repr, some) if " at 0x" not in text]
    return zlib.crc32("\n".join(texts).encode("utf-8", "surrogatepass"))
