"""An n-gram model with modified Kneser-Ney smoothing: what a neural language model has to be better than.

Chen and Goodman: An empirical study of smoothing techniques for language modeling (1998), section 3 and equation 26; Kneser
and Ney: Improved backing-off for m-gram language modeling (1995). Does not know the engine.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from .scores import Perplexity

__all__ = ["KneserNey"]

_START = object()  # stands before the first token of a sequence, order - 1 times

LONGEST = 1000  # of n-grams: each token is counted with the order - 1 before it, and longer ones fill the memory

Context = tuple[Any, ...]
Discounts = tuple[float, float, float]


class KneserNey:
    """An interpolated Kneser-Ney model of sequences of tokens, such as words or letters.

        model = KneserNey([["a", "b", "</s>"], ["a", "</s>"]], order=3, words=4)
        model.probability(["a"], "b")

    sequences: lists of tokens. To predict where a sequence ends, let each end with a mark of its own
    order: 3 for trigrams, in which a token depends on the two before it
    words: the size of the vocabulary, including tokens that never occur here; 0 means those that occur. Every token
        has a probability above 0, and all probabilities sum to 1

    ValueError if the order is below 1 or above 1000, or if there are no tokens.
    """

    def __init__(self, sequences: Iterable[Sequence[Hashable]], order: int = 3, words: int = 0) -> None:
        if order < 1:
            raise ValueError(f"[KneserNey] expected an order of at least 1, got {order}")
        if order > LONGEST:
            raise ValueError(f"[KneserNey] expected an order of at most {LONGEST}, got {order}")
        self.order = order
        longest: dict[Context, Counter[Any]] = defaultdict(Counter)
        for sequence in sequences:
            row = (*[_START] * (order - 1), *sequence)
            for i in range(order - 1, len(row)):
                longest[row[i - order + 1 : i]][row[i]] += 1
        self._fill(longest, words)

    def _fill(self, longest: dict[Context, Counter[Any]], words: int) -> None:
        """Everything from the counts of the longest n-grams."""
        order = self.order
        counts: list[dict[Context, Counter[Any]]] = [*(defaultdict(Counter) for _ in range(order - 1)), longest]
        # Below the highest order an n-gram counts for as many as there are different tokens before it.
        for n in range(order - 1, 0, -1):
            for context, followers in counts[n].items():
                shorter = counts[n - 1][context[1:]]
                for token in followers:
                    shorter[token] += 1
        if not counts[0]:
            raise ValueError("[KneserNey] expected at least one token")
        self.words = max(words, len(counts[0][()]))
        self.discounts = [_discounts(level.values()) for level in counts]
        self._counts = [dict(level) for level in counts]
        self._single: Any = None  # of distribution(): the probabilities without any context
        self._sums: list[dict[Context, tuple[int, float]]] = [
            {context: _sum_and_left(row, d) for context, row in level.items()}
            for level, d in zip(self._counts, self.discounts, strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """The longest n-grams with their counts, as a value that json.dump can write. The tokens must be strings or
        numbers.
        """
        rows = [
            [*(None if x is _START else x for x in context), token, count]
            for context, followers in self._counts[-1].items()
            for token, count in followers.items()
        ]
        return {"order": self.order, "words": self.words, "ngrams": rows}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> KneserNey:
        """The model that to_json() has described."""
        model = cls.__new__(cls)
        model.order = value["order"]
        longest: dict[Context, Counter[Any]] = defaultdict(Counter)
        for *context, token, count in value["ngrams"]:
            longest[tuple(_START if x is None else x for x in context)][token] = count
        model._fill(longest, value["words"])
        return model

    def probability(self, context: Sequence[Hashable], token: Hashable) -> float:
        """p(token | context). The last order - 1 tokens of the context count. A shorter context is the start of a
        sequence.
        """
        n = self.order - 1
        seen = (*[_START] * n, *context)
        return self._probability(seen[len(seen) - n :], token)

    def _probability(self, seen: Context, token: Hashable, order: int = 0) -> float:
        p = 1.0 / self.words
        for n in range(order or self.order):
            context = seen[len(seen) - n :]
            known = self._sums[n].get(context)
            if known is None:  # no longer context has been seen, either
                break
            total, left = known
            count = self._counts[n][context].get(token, 0)
            p = (count - _taken(count, self.discounts[n])) / total + left * p
        return p

    def distribution(self, context: Sequence[Hashable], tokens: int) -> Any:
        """p(token | context) of the tokens 0, 1, ..., tokens - 1, a numpy vector, for a model whose tokens are such numbers."""
        import numpy as np  # here, since most users of this package have no use for it

        n = self.order - 1
        seen = (*[_START] * n, *context)
        if self._single is None or len(self._single) < tokens:
            self._single = np.array([self._probability((), token, 1) for token in range(tokens)])
        p = self._single[:tokens].copy()
        for size in range(1, self.order):
            before = seen[len(seen) - size :]
            known = self._sums[size].get(before)
            if known is None:
                break
            total, left = known
            p *= left
            for token, count in self._counts[size][before].items():
                if token < tokens:
                    p[token] += (count - _taken(count, self.discounts[size])) / total
        return p

    def probabilities(self, sequence: Sequence[Hashable]) -> list[float]:
        """For each token of a sequence its probability, given the tokens before it."""
        n = self.order - 1
        row = (*[_START] * n, *sequence)
        return [self._probability(row[i - n : i], row[i]) for i in range(n, len(row))]

    def log_probability(self, sequence: Sequence[Hashable]) -> float:
        """The natural logarithm of the probability of a sequence, from its start."""
        return sum(map(math.log, self.probabilities(sequence)))

    def mixed_loss(self, losses: Iterable[float], sequence: Sequence[Hashable], share: float) -> float:
        """The loss of a mixture of this model with another one: the sum of -log((1 - share) q + share p) over tokens.

        p is this model's probability of a token, q the other model's. `losses` holds -log q of the last tokens of the
        sequence, one number for each; only these tokens count.

        Mikolov and others: Recurrent neural network based language model (2010).
        """
        others = list(losses)
        own = self.probabilities(sequence)[-len(others) :] if others else []
        return -sum(math.log((1 - share) * math.exp(-x) + share * p) for x, p in zip(others, own, strict=True))

    def perplexity(self, sequences: Iterable[Sequence[Hashable]]) -> Perplexity:
        """exp of the mean of -log p over all tokens of some sequences."""
        score = Perplexity()
        for sequence in sequences:
            score.add(-self.log_probability(sequence), len(sequence))
        return score


def _discounts(rows: Iterable[Counter[Any]]) -> Discounts:
    """What is taken from n-grams that were counted once, twice, and more often: from how many there are of each."""
    n = Counter(count for row in rows for count in row.values() if count <= 4)
    if not (n[1] and n[2]):
        return 0.5, 0.75, 0.75
    y = n[1] / (n[1] + 2 * n[2])
    raw = (
        1 - 2 * y * n[2] / n[1],
        2 - 3 * y * n[3] / n[2],
        3 - 4 * y * n[4] / n[3] if n[3] else 2 - 3 * y * n[3] / n[2],
    )
    # Small texts give values out of range: nothing at all, or more than there is.
    one, two, more = (min(max(d, 0.1), i - 0.1) for i, d in enumerate(raw, 1))
    return one, two, more


def _taken(count: int, discounts: Discounts) -> float:
    return discounts[min(count, 3) - 1] if count else 0.0


def _sum_and_left(row: Counter[Any], discounts: Discounts) -> tuple[int, float]:
    """The sum of the counts, and the share that the discounts leave to the lower order."""
    total = row.total()
    return total, sum(_taken(count, discounts) for count in row.values()) / total
