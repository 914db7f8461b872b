"""A linear classifier of texts by their n-grams: naive Bayes whose weights are then learned."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .evidence import kinds_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["NgramClassifier"]


class NgramClassifier:
    """Logistic regression over the n-grams of a text, each scaled by what naive Bayes says about it.

    The score of class c is  w_c . x_c, where x_c has for each different n-gram g of the text the number

        r(g, c) = log (p(g | c) / p(g | not c)),   p(g | c) ~ (texts of the class with g) + 1

    and one number that is always 1. The weights w_c minimize

        |w|^2 / 2 + cost * (sum over the texts of log(1 + exp(-y w . x))),   y = 1 in texts of class c, -1 in others

    This is "NBSVM" of Wang and Manning (Baselines and bigrams, 2012) with the logistic loss. N-grams and `beginnings` are
    those of `NgramEvidence`.
    """

    def __init__(
        self, weights: Mapping[str, Sequence[float]], bias: Sequence[float], order: int, beginnings: Sequence[int] = ()
    ) -> None:
        """weights: for each n-gram, w_c r(g, c) of each class; bias: the weight of the number that is always 1."""
        self.weights, self.bias, self.order, self.beginnings = weights, list(bias), order, tuple(beginnings)

    @classmethod
    def learn(
        cls,
        examples: Iterable[tuple[Sequence[str], int]],
        classes: int,
        order: int = 2,
        beginnings: Sequence[int] = (),
        cost: float = 0.1,
        passes: int = 20,
        seed: int = 1,
    ) -> NgramClassifier:
        """Learns from texts, given the words and the class number of each.

        cost: what a text that is classified wrongly costs; more fits the texts closer
        passes: how often the texts are gone through at most, in an order drawn by the seed

        ValueError if the order is below 1, if there are fewer than two classes, or if the cost is not positive.
        """
        if order < 1 or classes < 2 or not 0 < cost < math.inf:
            raise ValueError(
                "[NgramClassifier] expected order 1 or more, two classes or more, and a positive cost; "
                f"got {order}, {classes} and {cost}"
            )
        import numpy as np  # here, since most users of this package have no use for it

        ids: dict[str, int] = {}
        texts: list[Array] = []
        labels: list[int] = []
        for words, label in examples:
            grams = [gram for kind in kinds_of(words, order, beginnings) for gram in kind]
            texts.append(np.array([ids.setdefault(gram, len(ids)) for gram in grams], dtype=np.int64))
            labels.append(label)
        # Of two classes, the second one's scores are those of the first with the other sign.
        told = [
            _against_others(texts, [label == c for label in labels], len(ids), cost, passes, seed)
            for c in range(1 if classes == 2 else 0, classes)
        ]
        columns = np.array([-told[0] / 2, told[0] / 2] if classes == 2 else told)
        rows = [[float(f"{x:.6g}") for x in row] for row in columns.T.tolist()]  # a small cost makes small weights
        return cls(dict(zip(ids, rows, strict=False)), rows[-1], order, beginnings)

    def __call__(self, words: Sequence[str]) -> list[float]:
        """A score for each class. Between two classes, the difference of the scores is the log of their odds."""
        scores = list(self.bias)
        for kind in kinds_of(words, self.order, self.beginnings):
            for gram in kind:
                for c, weight in enumerate(self.weights.get(gram, ())):
                    scores[c] += weight
        return scores

    def to_json(self) -> dict[str, Any]:
        """A value that json.dump can write."""
        return {
            "order": self.order,
            "beginnings": list(self.beginnings),
            "bias": self.bias,
            "weights": {gram: list(weights) for gram, weights in self.weights.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NgramClassifier:
        """What to_json() has described."""
        return cls(value["weights"], value["bias"], value["order"], value["beginnings"])


def _against_others(
    texts: Sequence[Array], own: Sequence[bool], ngrams: int, cost: float, passes: int, seed: int
) -> Array:
    """w_c r(., c) of one class; the last number is the bias.

    texts: the numbers of the n-grams of each; own: is it of the class?
    """
    import numpy as np

    counts = np.ones((2, ngrams))
    for text, mine in zip(texts, own, strict=True):
        counts[int(mine), text] += 1
    logs = np.log(counts / counts.sum(axis=1, keepdims=True))
    scale = np.append(logs[1] - logs[0], 1.0)
    ids = [np.append(text, ngrams) for text in texts]
    rows = [(i, scale[i]) for i in ids]
    weights: Array = scale * _logistic(rows, np.where(own, 1.0, -1.0), ngrams + 1, cost, passes, seed)
    return weights


def _logistic(
    rows: Sequence[tuple[Array, Array]], signs: Array, size: int, cost: float, passes: int, seed: int
) -> Array:
    """The weights of logistic regression over sparse rows (places, numbers), by coordinate descent in the dual problem.

    Row i has a share a_i between 0 and cost, and w is the sum of a_i y_i x_i. One step sets one share to the best value,
    by Newton's method (Yu, Huang, Lin: Dual coordinate descent methods for logistic regression and maximum entropy
    models, 2011). A pass that changes no share by a thousandth of the cost is the last one.
    """
    import numpy as np

    weights = np.zeros(size)
    squares = [float(x @ x) for _, x in rows]
    shares = [cost / 1000] * len(rows)
    for (at, x), sign, share in zip(rows, signs, shares, strict=True):
        weights[at] += share * sign * x
    order, draw = list(range(len(rows))), random.Random(seed)
    for _ in range(passes):
        draw.shuffle(order)
        furthest = 0.0
        for i in order:
            (at, x), sign = rows[i], signs[i]
            new = _best_share(shares[i], sign * float(weights[at] @ x), squares[i], cost)
            weights[at] += (new - shares[i]) * sign * x
            furthest = max(furthest, abs(new - shares[i]))
            shares[i] = new
        if furthest < cost / 1000:
            break
    return weights


def _best_share(share: float, margin: float, square: float, cost: float) -> float:
    """The z in (0, cost) with  log(z / (cost - z)) + square (z - share) + margin = 0."""
    z = share
    for _ in range(20):
        slope = math.log(z / (cost - z)) + square * (z - share) + margin
        if abs(slope) < 1e-3:
            break
        step = z - slope / (square + cost / (z * (cost - z)))
        z = z / 10 if step <= 0 else cost - (cost - z) / 10 if step >= cost else step
    return z
