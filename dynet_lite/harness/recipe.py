"""Recipe: what a task and its model have to offer so that the harness can train, save, resume and use it."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

import dynet_lite as dy
from dynet_lite.distributed import Alone
from dynet_lite.distributed.dealing import default_cost
from dynet_lite.errors import DataError
from dynet_lite.text import Batches, Stream, minibatches

from .data import Data
from .settings import Settings

__all__ = ["Recipe", "Score"]

S = TypeVar("S", bound=Settings)
E = TypeVar("E")
T = TypeVar("T")
R = TypeVar("R")


class Score:
    """The quality of a model on some examples: `value` is compared, `text` is printed, the rest is logged.

        Score(0.935, "accuracy 93.5%", words=25_000)

    If two values are equal and both scores have a `loss`, the smaller loss is better: Score(0.0, "BLEU 0.0%",
    loss=4.7). A model that learns slowly improves its loss long before BLEU.
    """

    def __init__(self, value: float, text: str = "", **more: Any) -> None:
        value = float(value)
        self.value = math.copysign(sys.float_info.max, value) if math.isinf(value) else value  # JSON has no infinity
        self.text = text or f"{value:.4f}"
        self.more = {k: v.tolist() if isinstance(v, (np.generic, np.ndarray)) else v for k, v in more.items()}

    def __repr__(self) -> str:
        return f"Score({self.value!r}, {self.text!r})"

    def better_than(self, other: Mapping[str, Any], lower_is_better: bool = False) -> bool:
        """Whether this score is better than one that to_json() has written."""
        if self.value != other["value"]:
            return (self.value < other["value"]) is lower_is_better
        ours, theirs = self.more.get("loss"), other.get("loss")
        return ours is not None and theirs is not None and ours < theirs

    def to_json(self) -> dict[str, Any]:
        """What is saved of the score: value, text, and of the rest what is finite."""
        finite = {k: v for k, v in self.more.items() if not (isinstance(v, float) and not math.isfinite(v))}
        return {"value": self.value, "text": self.text, **finite}


class Recipe(Generic[S, E]):
    """A task and its model, for examples of type E.

    A subclass defines load_data, loss, evaluate and predict; build, if it has vocabularies; and __init__, which calls
    super().__init__(s, parts) and then adds parameters to self.model. The harness sets self.training, which tells
    whether dropout is wanted. Draw random numbers from self.random or from dynet_lite: then a resumed run gives the
    same numbers as one that was never stopped.
    """

    # Of the class, or of a model:
    lower_is_better: bool = False  # of the score
    score_name: str = "score"
    unit: str = "sentences"  # what the examples of a mini-batch are, for the speed
    # Of the class:
    label_name: ClassVar[str] = "label"  # what known_labels() are, for messages
    shares_evaluation: ClassVar[bool] = (
        False  # evaluate() does its work through spread(), which several processes share
    )
    blocks: ClassVar[bool] = False  # predict gets blocks of lines (up to an empty line) and not lines
    conllu: ClassVar[bool] = False  # predict gets what is CoNLL-U as blocks of lines, a sentence each
    build_options: ClassVar[tuple[str, ...]] = ()  # settings that build() and begin() read: a saved model keeps them
    predict_options: ClassVar[tuple[str, ...]] = ()  # settings that `predict` takes: they may change after training
    evaluate_options: ClassVar[tuple[str, ...]] = ()  # likewise those that change a score: how answers are searched for
    smoke: ClassVar[dict[str, Any]] = {"epochs": 1, "batch": 4}  # settings of --smoke
    files: ClassVar[dict[str, Any]] = {}  # settings where --train is given: other data may want other sizes

    def __init__(self, s: S, parts: dict[str, Any]) -> None:
        self.settings = s
        self.parts = parts
        self.random = random.Random(s.seed)
        self.training = False
        self.epoch = 0  # the number of the epoch, the first being 1
        self.world = Alone()  # the processes that evaluate together; the harness sets it
        self.model = dy.ParameterCollection()

    @classmethod
    def load_data(cls, s: S) -> Data[E]:
        """The examples. `harness.corpus` reads what --train or --nltk names, or the default data."""
        raise NotImplementedError

    @classmethod
    def build(cls, s: S, train: Sequence[E]) -> dict[str, Any]:
        """What the model must know of the training data, such as vocabularies, as values that json.dump can write."""
        return {}

    def gold(self, example: E) -> Iterable[str]:
        """The labels that the model should give for an example. None, if they are not from a fixed set."""
        return ()

    def known_labels(self) -> Iterable[str]:
        """The labels that the model can give. Data with other labels are an error."""
        return ()

    def baseline(self, train: Sequence[E]) -> tuple[str, Callable[[Sequence[E]], Score]] | None:
        """The name of a simple method, and a function that scores it on some examples. None if there is no cheap one.

        Its score is printed beside the model's, so that you see if the model learns nothing. It draws no random
        numbers.
        """
        return None

    def begin(self) -> None:
        """Called once before a new model is trained, but not when a saved one is loaded. Pretrained vectors go here."""

    def trainer(self) -> dy.Trainer:
        """The trainer. The schedule sets its learning rate."""
        return dy.AdamTrainer(self.model, self.settings.learning_rate)

    def batches(self, train: Sequence[E]) -> list[list[E]] | Batches[E]:
        """The mini-batches of an epoch, in the order of training.

        The order is drawn from self.random. For a stream it depends only on the seed and the epoch.
        """
        if isinstance(train, Stream):
            return train.batches(self.settings.seed, self.epoch)
        return list(minibatches(train, self.settings.batch, seed=self.random))

    def loss(self, batch: list[E]) -> dy.Expression:
        """The loss of a mini-batch, {1}. The harness renews the graph before, and runs backward and the update after."""
        raise NotImplementedError

    def weight(self, batch: list[E]) -> float:
        """What loss() is a mean over: the number of examples (the default), of words, ... 1 if the loss is a sum.

        Several processes combine the losses of their parts of a mini-batch by it. For streams it may use only the
        lengths of examples.
        """
        return len(batch)

    def cost(self, example: E) -> float:
        """How expensive an example is, in any unit, so that several processes get equal shares. By default its length."""
        return default_cost(example)

    def evaluate(self, examples: Sequence[E]) -> Score:
        """The score of the model on some examples. It renews the graph itself, as often as needed.

        With several processes only rank 0 evaluates. With shares_evaluation = True all of them do, and share the
        calls that go through spread().
        """
        raise NotImplementedError

    def spread(self, function: Callable[[list[T]], R], batches: Iterable[list[T]]) -> Iterator[tuple[list[T], R]]:
        """Yields each batch with function(batch), in order. For evaluate(): several processes share the calls.

        Each process gets all results, which must be picklable.
        """
        if self.world.size == 1:
            yield from ((batch, function(batch)) for batch in batches)
            return
        every = list(batches)
        results = self.world.gather([function(batch) for batch in every[self.world.rank :: self.world.size]])
        yield from ((batch, results[k % self.world.size][k // self.world.size]) for k, batch in enumerate(every))

    def predict(self, lines: list[str]) -> Iterable[str]:
        """The answers to a group of lines (or blocks), one for each, in order. It renews the graph itself."""
        raise NotImplementedError(f"{type(self).__name__} has no predict")

    def networks(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any], list[str]]]:
        """What `export` writes: name -> (function for dynet_lite.onnx.export, its inputs, the names of its outputs).

        ``return {"scores": (self.symbolic_scores, {"words": onnx.Ids("n")}, ["scores"])}`` is one file; those after the
        first have their names in the endings.
        """
        raise DataError(
            f"{type(self).__name__} has no method networks(), which says what to export; see "
            "help(dynet_lite.harness.Recipe.networks)"
        )

    def answers(self, lines: list[str], scores: bool = False) -> Iterable[dict[str, Any]]:
        """The answers as data that json.dumps can write, one for each line, in order: for programs, JSON lines and
        servers.

        scores: also tell how sure the model is. Recipes that can do so override this method
        """
        if scores:
            raise DataError(f"{type(self).__name__} gives no scores")
        for line, answer in zip(lines, self.predict(lines), strict=True):
            yield {"input": line, "output": answer}
