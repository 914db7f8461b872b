"""The training loop: epochs of mini-batches, a score after each, the best model kept; stops, saves and resumes.

What a run computes depends on the settings alone: a run that was stopped and resumed gives the same losses, bit for bit.
"""

from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.errors import DataError

from .data import Data
from .progress import bar
from .ranks import Ranks, follower, parsed, ranks_of
from .recipe import Recipe, Score
from .report import Report
from .schedule import factor
from .settings import MAY_CHANGE, Settings
from .state import Arrays, about, get_random, get_weights, read, save_recipe, set_random, set_weights
from .streaming import Pace

__all__ = ["Diverged", "Epoch", "Stopped", "train", "train_step"]


ADVICE = "try a smaller --learning-rate, or --warmup; dy.renew_cg(check_validity=True) names the op"


class Diverged(RuntimeError):
    """The loss or a gradient is no longer a number."""


class Stopped(Exception):
    """Ctrl-C came during an update, which has been finished."""


@dataclass
class Epoch:
    """What one pass over the training examples gave, or the finished part of one."""

    number: int
    losses: list[float] = field(default_factory=list)  # of each mini-batch
    examples: int = 0
    seconds: float = 0.0
    nodes: int = 0
    batches: int = 0  # nodes / batches: how many nodes ran together
    score: dict[str, Any] | None = None

    @property
    def loss(self) -> float:
        """The mean of the losses of its mini-batches."""
        return sum(self.losses) / max(1, len(self.losses))

    @property
    def speed(self) -> float:
        """Examples per second."""
        return self.examples / max(1e-9, self.seconds)

    @property
    def mean_batch(self) -> float:
        """How many nodes ran together on average."""
        return self.nodes / max(1, self.batches)


def train_step(
    recipe: Recipe[Any, Any],
    trainer: dy.Trainer,
    batch: list[Any],
    epoch: Epoch,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """One update; its loss. `epoch` counts it. Diverged if the loss or the gradient is not finite."""
    start = clock()
    recipe.training = True
    dy.renew_cg()
    loss = recipe.loss(batch)
    value = float(loss.value())
    where = f"epoch {epoch.number}, mini-batch {len(epoch.losses) + 1}"
    if not math.isfinite(value):
        raise Diverged(f"{where}: the loss is {value}; {ADVICE}")
    loss.backward()
    try:
        trainer.update()
    except RuntimeError as error:
        if "gradient" not in str(error):
            raise
        raise Diverged(f"{where}: the loss is {value:.4g}, but its gradient is not finite; {ADVICE}") from None
    counts = dy.stats()
    recipe.training = False
    epoch.losses.append(value)
    epoch.examples += len(batch)
    epoch.nodes += counts["nodes"]
    epoch.batches += counts["batches"]
    epoch.seconds += clock() - start
    return value


def averaging(decay: float, updates: int) -> tuple[float, int]:
    """Decay and number of updates between two steps of an average that forgets as one of this decay in every update.

    A step reads and writes all weights. Ten updates are one step where they are few beside those that the average remembers and
    beside the `updates` of an epoch, at whose end it is measured.
    """
    every = max(1, min(10, round(0.01 / (1 - decay)), updates // 10))
    return decay**every, every


class _Interrupts:
    """Ctrl-C during an update waits for its end; elsewhere, or the second time, it is a KeyboardInterrupt."""

    def __init__(self, ranks: Ranks | None = None) -> None:
        self.ranks = ranks  # they stop together, after an update of which all know it
        self.busy = self.asked = False
        self.broken = False  # an update was not finished: the state is not that of any moment of the run

    @contextmanager
    def installed(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _on_signal(self, *_: Any) -> None:
        if self.ranks is not None and not self.ranks.stop:
            self.ranks.stop = True
            return
        if not self.busy or self.asked:
            raise KeyboardInterrupt
        self.asked = True

    @contextmanager
    def delayed(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        except KeyboardInterrupt:
            self.broken = True
            raise
        finally:
            self.busy = False
        if self.asked:
            raise Stopped


class Training:
    """A training run: the model, its trainer, and how far it has come."""

    def __init__(self, recipe: Recipe[Any, Any], data: Data[Any], report: Report) -> None:
        self.recipe, self.data, self.report = recipe, data, report
        self.settings: Settings = recipe.settings
        self.trainer = recipe.trainer()
        if self.settings.average:
            updates = len(data.train) // self.settings.batch
            self.trainer.exponential_moving_average(*averaging(self.settings.average, updates))
        self.base_rate = self.trainer.learning_rate
        self.epoch = Epoch(1)
        self.epoch_random: dict[str, Any] | None = None  # at the start of the epoch, before its order is drawn
        self.before_evaluation: dict[str, Any] | None = None  # random numbers to go on with, during an evaluation
        self.epochs: list[Epoch] = []  # those that are complete
        self.updates = self.halvings = 0
        self.best: dict[str, Any] | None = None  # score and epoch
        self.best_weights: Arrays | None = None
        self.ranks = ranks_of(recipe, self.trainer, data)
        self.interrupts = _Interrupts(self.ranks)
        self.closing = False  # the state is written, and the weights are those of the best epoch
        self.baseline = recipe.baseline(data.train) if isinstance(data.train, list) else None

    # ---- training ----------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Trains to the end. The exit status: 0, or 130 after Ctrl-C."""
        with self.interrupts.installed():
            try:
                if self.ranks:
                    self.ranks.start(self.updates)
                self._say_baseline("dev", self.data.dev)
                if self.epochs and self._finished():
                    s, done = self.settings, len(self.epochs)
                    self.report.say(
                        f"{done} epochs are done: nothing is left of --epochs {s.epochs}, --patience {s.patience}"
                    )
                while not self._finished():
                    self._run_epoch()
                self._close()
                return 0
            except (KeyboardInterrupt, Stopped):
                self._interrupted()
                return 130

    def _say_baseline(self, part: str, examples: list[Any]) -> None:
        """How good it is not to learn."""
        if self.baseline is not None:
            name, score = self.baseline
            self.report.say(f"baseline ({name})  {part} {score(examples).text}")

    def _finished(self) -> bool:
        s = self.settings
        if len(self.epochs) >= s.epochs:
            return True
        return bool(s.patience and self.best and len(self.epochs) - self.best["epoch"] >= s.patience)

    def _run_epoch(self) -> None:
        recipe, epoch = self.recipe, self.epoch
        recipe.epoch = epoch.number
        with self.interrupts.delayed():
            todo = self._order()
        done = len(epoch.losses)
        steps = self.settings.epochs * len(todo)
        shown = bar(todo[done:], quiet=follower(), initial=done, total=len(todo), desc=f"epoch {epoch.number}")
        pace = Pace(self.report.say, epoch.number, len(todo), done, recipe.unit, not shown.disable)
        if self.ranks:  # random numbers of a step are of that step alone
            self.before_evaluation = get_random(recipe)
        for batch in shown:
            with self.interrupts.delayed():
                s = self.settings
                share = factor(s.schedule, self.updates, steps, s.warmup, self.halvings)
                self.trainer.set_learning_rate(self.base_rate * share)
                loss = self._step(batch)
                self.updates += 1
                self.report.step(epoch.number, len(epoch.losses), self.updates, loss, self.trainer.learning_rate)
                if s.save_every and self.updates % s.save_every == 0:
                    self._save_between()
            shown.set_postfix_str(f"loss {loss:.4f}, {epoch.speed:,.0f} {recipe.unit}/s", refresh=False)
            pace.step(len(epoch.losses), loss, epoch.speed)
        self._random_as_before()
        if self.settings.average:  # the model that is measured and kept; its weights come back in _end_epoch
            with self.interrupts.delayed():
                self.trainer.swap_params_to_moving_average(bias_correction=True)
        score = self._evaluate(self.data.dev)
        if math.isnan(score.value):
            raise Diverged(f"epoch {epoch.number}: the dev score is not a number")
        with self.interrupts.delayed():
            self._end_epoch(score)

    def _step(self, batch: list[Any]) -> float:
        """An update by this process, or by all ranks together; its loss."""
        epoch = self.epoch
        if self.ranks is None:
            return train_step(self.recipe, self.trainer, parsed(batch), epoch)
        loss, wrong = self.ranks.step(batch, epoch)
        if wrong:
            raise Diverged(f"epoch {epoch.number}, mini-batch {len(epoch.losses) + 1}: {wrong}; {ADVICE}")
        self.interrupts.asked = self.ranks.stopping
        return loss

    def _order(self) -> Any:
        """The mini-batches of the epoch, also when a part of them was done before the run was resumed."""
        if self.epoch_random is None:
            self.epoch_random = get_random(self.recipe)
            return self.recipe.batches(self.data.train)
        now = get_random(self.recipe)
        set_random(self.recipe, self.epoch_random)
        order = self.recipe.batches(self.data.train)
        set_random(self.recipe, now)
        return order

    def _evaluate(self, examples: list[Any]) -> Score:
        """The score; training goes on with the same random numbers as without it."""
        self.before_evaluation = get_random(self.recipe)
        self.recipe.training = False
        try:
            return self.ranks.evaluate(examples) if self.ranks else self.recipe.evaluate(examples)
        finally:
            self._random_as_before()

    def _random_as_before(self) -> None:
        """Random numbers are those of before the evaluation. Once more if Ctrl-C came while they were set."""
        if self.before_evaluation is not None:
            set_random(self.recipe, self.before_evaluation)
            self.before_evaluation = None

    def _weights_as_before(self) -> None:
        """Weights are those of training, where an average was in their place."""
        if self.settings.average:
            self.trainer.swap_params_to_weights()

    def _end_epoch(self, score: Score) -> None:
        epoch = self.epoch
        epoch.score = score.to_json()
        better = self.best is None or score.better_than(self.best, self.recipe.lower_is_better)
        self.epochs.append(epoch)
        if self.ranks:
            self.ranks.check()
        if better:
            self.best = {**score.to_json(), "epoch": epoch.number}
            self.best_weights = get_weights(self.recipe.model)
            if self.settings.save:
                save_recipe(self.recipe, self.settings.save)
        else:
            self.halvings += 1
        self._weights_as_before()
        self.epoch, self.epoch_random = Epoch(epoch.number + 1), None
        self.report.epoch(epoch, score, self.recipe.unit)
        self._save_state()

    def _close(self) -> None:
        """Back to the best model, and what is to be said of it."""
        s, where = self.settings, f", saved to {self.settings.save}" if self.settings.save else ""
        if self.best is None:
            return
        self.closing = True
        if self.best_weights is not None:
            set_weights(self.recipe.model, self.best_weights)
        self.report.say(f"best dev {self.best['text']} after epoch {self.best['epoch']}{where}")
        test = self._evaluate(self.data.test) if self.data.test else None
        if test is not None:
            self._say_baseline("test", self.data.test)
            self.report.say(f"test {test.text}")
        self.report.end(self.epochs, self.best, test, s.plot, self.recipe.score_name)

    def _interrupted(self) -> None:
        say, s = self.report.say, self.settings
        say("\nstopped by the keyboard")
        self._random_as_before()
        self._weights_as_before()
        if s.save and self.updates:  # before the first one, files of an earlier run are worth more
            if self.best is None:  # not even one epoch: better than nothing
                save_recipe(self.recipe, s.save)
                say(f"the current model is in {s.save}")
            if not self.interrupts.broken and not self.closing:
                self._save_state()
            if Path(s.save + ".state").exists():
                say(f"go on with --resume {s.save}" + ", from the last complete epoch" * self.interrupts.broken)
        if self.best is not None:
            say(
                f"best dev {self.best['text']} after epoch {self.best['epoch']}" + f", saved to {s.save}" * bool(s.save)
            )
        self.report.end(self.epochs, self.best, None, s.plot, self.recipe.score_name)

    # ---- state -------------------------------------------------------------------------------------------------------

    def _save_state(self) -> None:
        if not self.settings.save:
            return
        config = {
            **about(self.recipe),
            "epoch_random": self.epoch_random,
            "epoch": asdict(self.epoch),
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "base_rate": self.base_rate,
            "updates": self.updates,
            "halvings": self.halvings,
            "best": self.best,
            "log_size": self.report.log_size(),
            "smoke": self.settings.smoke,
        }
        path = self.settings.save + ".state"
        dy.save_checkpoint(path, self.recipe.model, self.trainer, config=config, rng=self._generators())

    def _save_between(self) -> None:
        """In the midst of an epoch: with the random numbers that a run which is resumed there goes on with."""
        if not self.settings.save:
            return
        now, kept = get_random(self.recipe), self.before_evaluation
        self._random_as_before()
        self._save_state()
        set_random(self.recipe, now)
        self.before_evaluation = kept

    def _generators(self) -> dict[str, Any]:
        return {"recipe": self.recipe.random, "python": random, "numpy": np.random}

    def restore(self, file: dy.Checkpoint) -> None:
        """Puts the run where the state says."""
        state = file.config
        try:
            self.epoch, self.epoch_random = Epoch(**state["epoch"]), state["epoch_random"]
            self.epochs = [Epoch(**epoch) for epoch in state["epochs"]]
            self.base_rate, self.updates, self.halvings = state["base_rate"], state["updates"], state["halvings"]
            self.best = state["best"]
            self.report.cut_log(state["log_size"])
        except (KeyError, TypeError) as error:
            raise DataError(f"{file.path}: expected the state that --save wrote: {error!r}") from None
        model, save = file.path.removesuffix(".state"), self.settings.save
        moved = bool(save) and os.path.realpath(save) != os.path.realpath(model)
        if self.best is not None and Path(model).exists():
            best = read(model, type(self.recipe))
            self.best_weights = best.parameters_of(self.recipe.model)
            if moved:  # the new file, too, has the best model, also if no later epoch is better
                best.restore(self.recipe.model)
                save_recipe(self.recipe, save)
        file.restore(self.recipe.model, self.trainer, rng=self._generators())
        if moved:
            self._save_state()


def check_same(given: dict[str, Any], saved: dict[str, Any], path: str) -> None:
    """DataError if a setting that would change the curve was given another value than the run has."""
    for name, value in given.items():
        if name in saved and name not in MAY_CHANGE:
            old = tuple(saved[name]) if isinstance(saved[name], list) else saved[name]
            if value != old:
                raise DataError(
                    f"{path}: this run was started with {name} = {old!r}; it cannot be resumed with {value!r}"
                )


def train(recipe: Recipe[Any, Any], data: Data[Any], report: Report | None = None) -> int:
    """Trains a model by its settings. Returns the exit status: 0, or 130 after Ctrl-C."""
    return Training(recipe, data, report or Report(recipe.settings)).run()
