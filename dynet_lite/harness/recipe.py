"""Recipe: what a task and its model have to offer so that the harness can train, save, resume and use it."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

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
    """How good a model is on some examples: `value` is compared, `text` is printed, the rest goes to the log.

    Score(0.935, "accuracy 93.5%", words=25_000)

    Between equal values a smaller `loss` decides, where both scores have one: Score(0.0, "BLEU 0.0%", loss=4.7). Errors and
    BLEU do not change in the first epochs of a model that learns slowly; its loss does.
    """

    def __init__(self, value: float, text: str = "", **more: Any) -> None:
        value = float(value)
        self.value = math.copysign(sys.float_info.max, value) if math.isinf(value) else value  # JSON has no infinity
        self.text = text or f"{self.value:.4f}"
        self.more = more

    def __repr__(self) -> str:
        return f"Score({self.value!r}, {self.text!r})"

    def better_than(self, other: Mapping[str, Any], lower_is_better: bool = False) -> bool:
        """Whether this is better than a score that to_json() has written."""
        if self.value != other["value"]:
            return (self.value < other["value"]) is lower_is_better
        ours, theirs = self.more.get("loss"), other.get("loss")
        return ours is not None and theirs is not None and ours < theirs

    def to_json(self) -> dict[str, Any]:
        finite = {k: v for k, v in self.more.items() if not (isinstance(v, float) and not math.isfinite(v))}
        return {"value": self.value, "text": self.text, **finite}


class Recipe(Generic[S, E]):
    """A task and its model, for examples of type E.

    A subclass has load_data, build (if it has vocabularies), __init__ (calls super().__init__(s, parts), then adds
    parameters to self.model), loss, evaluate and predict. self.training says whether dropout and the like are wanted:
    the harness sets it. self.random is a random.Random; with it and dy's own generator a resumed run gives the same
    numbers as one that was never stopped.
    """

    lower_is_better: bool = False  # of the score; of the class, or of a model
    score_name: ClassVar[str] = "score"
    label_name: ClassVar[str] = "label"  # what known_labels() are, for messages
    unit: ClassVar[str] = "sentences"  # what an example is, for the speed
    shares_evaluation: ClassVar[bool] = (
        False  # evaluate() does its work through spread(), which several processes share
    )
    blocks: ClassVar[bool] = False  # predict gets blocks of lines (up to an empty line) and not lines
    conllu: ClassVar[bool] = False  # predict gets what is CoNLL-U as blocks of lines, a sentence each
    predict_options: ClassVar[tuple[str, ...]] = ()  # settings that `predict` takes: they may change after training
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
        """The examples; `corpus` reads what --train, --nltk or the default names."""
        raise NotImplementedError

    @classmethod
    def build(cls, s: S, train: Sequence[E]) -> dict[str, Any]:
        """What the model needs to know of the training data: vocabularies and the like, as values json.dump can write."""
        return {}

    def gold(self, example: E) -> Iterable[str]:
        """The labels of an example that the model should give; none if there is no fixed set of them."""
        return ()

    def known_labels(self) -> Iterable[str]:
        """The labels that the model can give. Data with others are an error, see harness/labels.py."""
        return ()

    def baseline(self, train: Sequence[E]) -> tuple[str, Callable[[Sequence[E]], Score]] | None:
        """What the model has to be better than, and what says how good that is on some examples; None if there is nothing
        cheap. Printed beside the scores, so that a model that does not learn is seen. Draws no random numbers."""
        return None

    def begin(self) -> None:
        """Called once, before a new model is trained, and not when a saved one is loaded: pretrained vectors go here."""

    def trainer(self) -> dy.Trainer:
        """The trainer; its learning rate is then set by the schedule."""
        return dy.AdamTrainer(self.model, self.settings.learning_rate)

    def batches(self, train: Sequence[E]) -> list[list[E]] | Batches[E]:
        """The minibatches of an epoch, in the order of training. Draws from self.random, but for a stream, whose order depends on
        the seed and the epoch alone."""
        if isinstance(train, Stream):
            return train.batches(self.settings.seed, self.epoch)
        return list(minibatches(train, self.settings.batch, seed=self.random))

    def loss(self, batch: list[E]) -> dy.Expression:
        """The loss of a minibatch, a scalar. The harness renews the graph, asks for the value, goes back and updates."""
        raise NotImplementedError

    def weight(self, batch: list[E]) -> float:
        """What loss() is a mean over: how many examples, words, ... With several processes the losses of their parts of
        a minibatch are put together by it. The number of examples unless said otherwise; 1 if the loss is a sum. Of a stream
        it asks for nothing but the lengths of examples."""
        return len(batch)

    def cost(self, example: E) -> float:
        """How much work an example is, in any unit: examples are dealt to processes by it. Its length unless said otherwise."""
        return default_cost(example)

    def evaluate(self, examples: Sequence[E]) -> Score:
        """How good the model is. Renews the graph itself, as often as it likes. With several processes rank 0 alone
        evaluates; or, with shares_evaluation = True, all of them do, and each makes a part of what goes through
        spread()."""
        raise NotImplementedError

    def spread(self, function: Callable[[list[T]], R], batches: Iterable[list[T]]) -> Iterator[tuple[list[T], R]]:
        """Each batch with function(batch), in order: for evaluate(). Several processes share the batches, and each gets
        all results, which must be picklable."""
        if self.world.size == 1:
            yield from ((batch, function(batch)) for batch in batches)
            return
        every = list(batches)
        results = self.world.gather([function(batch) for batch in every[self.world.rank :: self.world.size]])
        yield from ((batch, results[k % self.world.size][k // self.world.size]) for k, batch in enumerate(every))

    def predict(self, lines: list[str]) -> Iterable[str]:
        """The answers to a group of lines (or blocks), one each, in order. Renews the graph itself."""
        raise NotImplementedError(f"{type(self).__name__} has no predict")

    def networks(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any], list[str]]]:
        """What `export` writes, by name: a function for dynet_lite.onnx.export, its inputs and the names of its outputs."""
        raise DataError(f"{type(self).__name__} has no networks() to export")

    def answers(self, lines: list[str], scores: bool = False) -> Iterable[dict[str, Any]]:
        """The answers as data that json.dumps can write, one each, in order: what programs, JSON lines and servers get.

        scores   also how sure the model is. A recipe that can tell overrides this method.
        """
        if scores:
            raise DataError(f"{type(self).__name__} gives no scores")
        for line, answer in zip(lines, self.predict(lines), strict=True):
            yield {"input": line, "output": answer}
