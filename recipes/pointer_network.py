#!/usr/bin/env python
"""Sequences of places in the input: a pointer network finds convex hulls, or sorts.

    python recipes/pointer_network.py                              # convex hulls of random points
    python recipes/pointer_network.py --task sort                  # the order of numbers
    python recipes/pointer_network.py --train a.txt --test b.txt   # x y x y ... output 1 4 2 1, the format of the authors' data
    python recipes/pointer_network.py predict --load hull.model -  # x y x y ... -> output 1 4 2 1
    python recipes/pointer_network.py --compare --batch 64         # automatic batching on and off

The possible answers depend on the input: there are as many classes as points. So the answer of a step is the attention
itself, a distribution over the points and the end. Written for one input, this needs neither padding nor masks.

Vinyals, Fortunato, Jaitly: Pointer networks (2015).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import MLPAttention
from dynet_lite.text import minibatches, numbered_lines

# --- 1. Settings: each field is an option of the command line ------------------------------------------------


@dataclass
class Settings(harness.Settings):
    unused = ("nltk",)

    task: str = option("hull", "the data to draw: convex hulls of points, or numbers to sort", choices=("hull", "sort"))
    least: int = option(4, "points of the smallest input")
    most: int = option(8, "points of the largest input")
    examples: int = option(12000, "number of training examples to draw; dev gets a tenth as many")
    hidden: int = option(64, "size of the LSTMs")

    epochs: int = option(15)
    batch: int = option(32)
    learning_rate: float = option(4e-3)
    schedule: str = option("linear")


# --- 2. Data -------------------------------------------------------------------------------------------------


@dataclass
class Puzzle:
    """Points, each a list of numbers, and the places of those that are the answer, from 0."""

    points: list[list[float]]
    answer: list[int]

    def __len__(self) -> int:
        return len(self.points)


def convex_hull(points: Sequence[Sequence[float]]) -> list[int]:
    """The places of the corners, counter-clockwise from the one that comes first in the input (Andrew 1979)."""

    def chain(order: Iterable[int]) -> list[int]:
        out: list[int] = []
        for i in order:
            while len(out) > 1 and turn(points[out[-2]], points[out[-1]], points[i]) <= 0:
                out.pop()
            out.append(i)
        return out[:-1]

    order = sorted(range(len(points)), key=lambda i: tuple(points[i]))
    corners = chain(order) + chain(reversed(order)) or order  # a point alone is its own hull
    first = corners.index(min(corners))
    return corners[first:] + corners[:first]


def turn(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> float:
    """More than 0 if the way from a over b to c turns left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def drawn(s: Settings, count: int, rng: random.Random) -> list[Puzzle]:
    """Puzzles with points between 0 and 1."""
    out = []
    for _ in range(count):
        n = rng.randint(s.least, max(s.least, s.most))
        points = [[rng.random() for _ in range(2 if s.task == "hull" else 1)] for _ in range(n)]
        answer = convex_hull(points) if s.task == "hull" else sorted(range(n), key=lambda i: tuple(points[i]))
        out.append(Puzzle(points, answer))
    return out


def numbers_of(text: str) -> list[float]:
    """The numbers of a line. ValueError if something is none, or is infinite."""
    numbers = [float(x) for x in text.split()]
    if not np.isfinite(np.array(numbers, dtype=np.float32)).all():
        raise ValueError
    return numbers


def read_puzzle(line: str, where: str) -> Puzzle:
    """x y x y ... output 1 4 2 1: points, then places from 1; the last may repeat the first. Without `output`: no answer."""
    given, _, answer = line.partition("output")
    try:
        numbers, places = numbers_of(given), [int(x) - 1 for x in answer.split()]
    except ValueError:
        raise dy.DataError(f"{where}: expected numbers, 'output' and places, got {line[:60]!r}") from None
    points = [numbers[i : i + 2] for i in range(0, len(numbers), 2)]
    places = places[:-1] if len(places) > 1 and places[0] == places[-1] else places
    if not points or len(numbers) % 2 or any(not 0 <= i < len(points) for i in places):
        raise dy.DataError(f"{where}: expected pairs of numbers and places from 1 to their number, got {line[:60]!r}")
    return Puzzle(points, places)


def read_puzzles(path: str) -> list[Puzzle]:
    found = [read_puzzle(line, f"{path}:{number}") for number, line in numbered_lines(path) if line.strip()]
    if any(not puzzle.answer for puzzle in found):
        raise dy.DataError(f"{path}: expected an answer in each line: x y x y ... output 1 4 2 1")
    return found


class PointerNetwork(harness.Recipe[Settings, Puzzle]):
    """Points -> BiLSTM; an LSTM whose attention to them, or to the end, is the answer of each step."""

    shares_evaluation = True
    score_name = "all right"
    unit = "inputs"
    smoke = {"epochs": 1, "batch": 4, "hidden": 6, "examples": 40}

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[Puzzle]:
        if s.train:
            parts = ((paths, [x for path in paths for x in read_puzzles(path)]) for paths in (s.train, s.dev, s.test))
            train, dev, test = (harness.filled(paths, puzzles, "inputs") for paths, puzzles in parts)
            return harness.Data(", ".join(s.train), "", train, dev, test, unit="inputs")
        if s.dev or s.test:
            raise dy.DataError("--dev and --test need --train FILE: drawn data have their own")
        rng = random.Random(1)  # not the seed: all runs have the same data
        name = {"hull": "convex hulls of random points", "sort": "random numbers to be sorted"}[s.task]
        train, dev = (drawn(s, count, rng) for count in (s.examples, s.examples // 10 + 1))
        detail = f"{s.least} to {max(s.least, s.most)} points"
        return harness.Data(name, "drawn by the recipe, no licence needed", train, dev, unit="inputs", detail=detail)

    @classmethod
    def build(cls, s: Settings, train: Sequence[Puzzle]) -> dict[str, Any]:
        return {"dim": len(train[0].points[0])}

    # --- 3. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        model, h = self.model, s.hidden
        self.W, self.b = model.add_parameters((h, parts["dim"]), name="W"), model.add_parameters(h, init=0, name="b")
        self.encoder = dy.BiRNNBuilder(1, h, 2 * h, model, dy.LSTMBuilder, name="encoder")
        self.decoder = dy.LSTMBuilder(1, 2 * h, h, model, name="decoder")
        self.start, self.end = (
            model.add_parameters(2 * h, init="uniform", scale=0.1, name=name) for name in ("start", "end")
        )
        self.attention = MLPAttention(h, 2 * h, h, model)

    def encode(self, points: Sequence[Sequence[float]]) -> list[dy.Expression]:
        """The end, and then a vector for each point: what can be pointed at."""
        if wrong := next((point for point in points if len(point) != self.parts["dim"]), None):
            raise dy.DataError(
                f"expected points of {self.parts['dim']} numbers, as in training; got one of {len(wrong)}"
            )
        inputs = [self.read(dy.inputVector(point)) for point in points]
        return [self.end, *self.encoder.transduce(inputs)]

    @dy.cell
    def read(self, point: dy.Expression) -> dy.Expression:
        """What the encoder gets of a point."""
        return dy.tanh(dy.affine_transform([self.b, self.W, point]))

    def first(self, vectors: list[dy.Expression]) -> dy.Expression:
        """What the decoder reads before the first step."""
        return self.start + dy.average(vectors[1:])

    def loss(self, batch: list[Puzzle]) -> dy.Expression:
        """Mean over the steps of the mini-batch of -log p(place)."""
        losses = []
        for puzzle in batch:
            vectors = self.encode(puzzle.points)
            memory = self.attention.remember(vectors)
            state = self.decoder.initial_state()
            before = self.first(vectors)
            for place in [*(i + 1 for i in puzzle.answer), 0]:  # 0 is the end
                state = state.add_input(before)
                losses.append(dy.pickneglogsoftmax(self.attention.logits(state.output(), memory), place))
                before = vectors[place]
        return dy.esum(losses) * (1 / len(losses))

    def networks(self) -> dict[str, Any]:
        """The encoder: what can be pointed at, of which the end is the first; and a step of the decoder."""

        def encoder(points: Any) -> Any:
            read: Any = self.encoder.transduce(points.map(self.read))
            vectors = read.begun(self.end)
            return vectors, vectors.map(self.attention.key), self.start + read.average()

        def step(x: Any, keys: Any, c: Any, h: Any) -> Any:
            lstm = self.decoder.initial_state([c, h]).add_input(x)
            return self.attention.symbolic_logits(lstm.output(), keys), *lstm.s()

        h, two = (self.settings.hidden,), (2 * self.settings.hidden,)
        inputs = {"x": onnx.Input(two), "keys": onnx.Input(h, "places"), "c": onnx.Input(h), "h": onnx.Input(h)}
        return {
            "encoder": (encoder, {"points": onnx.Input((self.parts["dim"],), "n")}, ["vectors", "keys", "first"]),
            "step": (step, inputs, ["scores", "c_next", "h_next"]),
        }

    def weight(self, batch: list[Puzzle]) -> int:
        return sum(len(puzzle.answer) + 1 for puzzle in batch)

    # --- 4. Use ---------------------------------------------------------------------------------------------

    def solve(self, batch: Sequence[Sequence[Sequence[float]]]) -> list[list[int]]:
        """The places for each list of points: the most probable one at each step that was not there before, up to the end."""
        dy.renew_cg()
        vectors = [self.encode(points) for points in batch]
        memories = [self.attention.remember(x) for x in vectors]
        states = [self.decoder.initial_state().add_input(self.first(x)) for x in vectors]
        answers: list[list[int]] = [[] for _ in batch]
        going = list(range(len(batch)))
        while going:
            logits = dy.npvalues([self.attention.logits(states[i].output(), memories[i]) for i in going])
            still = []
            for i, values in zip(going, logits, strict=True):
                values[[place + 1 for place in answers[i]]] = -np.inf
                values[0] = values[0] if answers[i] else -np.inf  # not empty
                place = int(values.argmax())
                if place:
                    answers[i].append(place - 1)
                    states[i] = states[i].add_input(vectors[i][place])
                    still.append(i)
            going = still
        return answers

    def evaluate(self, examples: Sequence[Puzzle]) -> harness.Score:
        spread = self.spread(lambda batch: self.solve([puzzle.points for puzzle in batch]), minibatches(examples, 64))
        return self.compared(examples, [answer for _, answers in spread for answer in answers])

    @staticmethod
    def compared(examples: Sequence[Puzzle], answers: Sequence[Sequence[int]]) -> harness.Score:
        pairs = [(puzzle.answer, list(answer)) for puzzle, answer in zip(examples, answers, strict=True)]
        right = float(np.mean([a == b for a, b in pairs]))
        same = float(np.mean([set(a) == set(b) for a, b in pairs]))
        return harness.Score(right, f"all right {right:.2%} (the right points {same:.2%})", points=same)

    def baseline(self, train: Sequence[Puzzle]) -> tuple[str, Callable[..., harness.Score]]:
        return "all points as they come", lambda examples: self.compared(examples, [range(len(x)) for x in examples])

    def predict(self, lines: list[str]) -> Iterator[str]:
        dim = self.parts["dim"]
        texts = [line.partition("output")[0] for line in lines]
        puzzles = []
        for text in texts:
            try:
                numbers = numbers_of(text)
            except ValueError:
                raise dy.DataError(f"input: expected numbers, got {text.strip()[:60]!r}") from None
            if len(numbers) % dim:
                raise dy.DataError(f"input: expected {dim} numbers for each point, got {len(numbers)} in all")
            puzzles.append([numbers[i : i + dim] for i in range(0, len(numbers), dim)])
        answers = iter(self.solve([points for points in puzzles if points]) if any(puzzles) else [])
        for points in puzzles:
            answer = next(answers) if points else []
            yield (
                f"output {' '.join(str(i + 1) for i in [*answer, *(answer[:1] if dim == 2 else [])])}" if points else ""
            )


if __name__ == "__main__":
    sys.exit(harness.main(PointerNetwork, Settings, __doc__))
