"""How much the words of a text, and runs of them, speak for each class: naive Bayes, as an input of a network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["NgramEvidence"]


class NgramEvidence:
    """For each class and each length of n-grams the sum over the different n-grams g of a text of

        log p(g | class) - the mean of that over the classes,    p(g | class) = (texts of the class with g + 1) / (its texts + 2)

    As multinomial naive Bayes with each n-gram counted once (Wang and Manning: Baselines and bigrams, 2012), which is
    hard to beat on short texts. Of a training text its own counts are taken off first: it must not be told its class by
    a word that is in no other text. A network that gets these numbers learns what they are worth, and what they miss.
    """

    def __init__(self, counts: Mapping[str, Sequence[int]], texts: Sequence[int], order: int) -> None:
        """counts: in how many texts of each class an n-gram is, words with blanks between; texts: how many there are."""
        self.counts, self.texts, self.order = counts, list(texts), order

    @classmethod
    def learn(cls, examples: Iterable[tuple[Sequence[str], int]], classes: int, order: int = 2) -> NgramEvidence:
        """From words and the number of the class of each text. ValueError unless there are an order and two classes."""
        if order < 1 or classes < 2:
            raise ValueError(
                f"[NgramEvidence] expected order 1 or more and two classes or more; got {order} and {classes}"
            )
        counts: dict[str, list[int]] = {}
        texts: Counter[int] = Counter()
        for words, label in examples:
            texts[label] += 1
            for n in range(1, order + 1):
                for gram in _grams(words, n):
                    counts.setdefault(gram, [0] * classes)[label] += 1
        return cls(counts, [texts[i] for i in range(classes)], order)

    def __call__(self, words: Sequence[str], own: int = -1) -> list[list[float]]:
        """A row for each class, with a number for each length from 1 to order.

        own: the class of a text that was learned from, whose own counts are taken off; -1: it was not.
        """
        classes = range(len(self.texts))
        sizes = [math.log(n - (i == own and n > 0) + 2) for i, n in enumerate(self.texts)]
        out = [[0.0] * self.order for _ in classes]
        for n in range(1, self.order + 1):
            for gram in _grams(words, n):
                found = list(self.counts.get(gram, ()))
                if found and own >= 0 and found[own]:
                    found[own] -= 1
                if not any(found):
                    continue
                logs = [math.log(found[i] + 1) - sizes[i] for i in classes]
                mean = sum(logs) / len(logs)
                for i in classes:
                    out[i][n - 1] += logs[i] - mean
        return out

    def to_json(self) -> dict[str, Any]:
        """A value that json.dump can write."""
        return {
            "order": self.order,
            "texts": self.texts,
            "counts": {gram: list(found) for gram, found in self.counts.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NgramEvidence:
        """What to_json described."""
        return cls(value["counts"], value["texts"], value["order"])


def _grams(words: Sequence[str], n: int) -> list[str]:
    """The different runs of n words, in the order of the text."""
    return list(dict.fromkeys(" ".join(words[i : i + n]) for i in range(len(words) - n + 1)))
