"""Recipe: what a task and its model have to offer so that the harness can train, save, resume and use it."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import dynet_lite as dy
from dynet_lite.text import minibatches

from .data import Data
from .settings import Settings

__all__ = ["Recipe", "Score"]

S = TypeVar("S", bound=Settings)
E = TypeVar("E")


class Score:
    """How good a model is on some examples: `value` is compared, `text` is printed, the rest goes to the log.

    Score(0.935, "accuracy 93.5%", words=25_000)
    """

    def __init__(self, value: float, text: str = "", **more: Any) -> None:
        value = float(value)
        self.value = math.copysign(sys.float_info.max, value) if math.isinf(value) else value  # JSON has no infinity
        self.text = text or f"{self.value:.4f}"
        self.more = more

    def __repr__(self) -> str:
        return f"Score({self.value!r}, {self.text!r})"

    def to_json(self) -> dict[str, Any]:
        finite = {k: v for k, v in self.more.items() if not (isinstance(v, float) and not math.isfinite(v))}
        return {"value": self.value, "text": self.text, **finite}


class Recipe(Generic[S, E]):
    """A task with its model, for examples of type E.

    A subclass has load_data, build (if it has vocabularies), __init__ (calls super().__init__(s, parts), then adds
    parameters to self.model), loss, evaluate and predict. self.training says whether dropout and the like are wanted:
    the harness sets it. self.random is a random.Random; with it and dy's own generator a resumed run gives the same
    numbers as one that was never stopped.
    """

    lower_is_better: ClassVar[bool] = False  # of the score
    score_name: ClassVar[str] = "score"
    unit: ClassVar[str] = "sentences"  # what an example is, for the speed
    blocks: ClassVar[bool] = False  # predict gets blocks of lines (up to an empty line) and not lines
    predict_options: ClassVar[tuple[str, ...]] = ()  # settings that `predict` takes: they may change after training
    smoke: ClassVar[dict[str, Any]] = {"epochs": 1, "batch": 4}  # settings of --smoke

    def __init__(self, s: S, parts: dict[str, Any]) -> None:
        self.settings = s
        self.parts = parts
        self.random = random.Random(s.seed)
        self.training = False
        self.epoch = 0  # the number of the epoch, the first being 1
        self.model = dy.ParameterCollection()

    @classmethod
    def load_data(cls, s: S) -> Data[E]:
        """The examples; `corpus` reads what --train, --nltk or the default names."""
        raise NotImplementedError

    @classmethod
    def build(cls, s: S, train: Sequence[E]) -> dict[str, Any]:
        """What the model needs to know of the training data: vocabularies and the like, as values json.dump can write."""
        return {}

    def begin(self) -> None:
        """Called once, before a new model is trained, and not when a saved one is loaded: pretrained vectors go here."""

    def trainer(self) -> dy.Trainer:
        """The trainer; its learning rate is then set by the schedule."""
        return dy.AdamTrainer(self.model, self.settings.learning_rate)

    def batches(self, train: Sequence[E]) -> list[list[E]]:
        """The minibatches of an epoch, in the order of training. Draws from self.random."""
        return list(minibatches(train, self.settings.batch, seed=self.random))

    def loss(self, batch: list[E]) -> dy.Expression:
        """The loss of a minibatch, a scalar. The harness renews the graph, asks for the value, goes back and updates."""
        raise NotImplementedError

    def evaluate(self, examples: Sequence[E]) -> Score:
        """How good the model is. Renews the graph itself, as often as it likes."""
        raise NotImplementedError

    def predict(self, lines: list[str]) -> Iterable[str]:
        """The answers to a group of lines (or blocks), one each, in order. Renews the graph itself."""
        raise NotImplementedError(f"{type(self).__name__} has no predict")
