"""How much the words of a text, and runs of them, speak for each class: naive Bayes, as an input of a network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["NgramEvidence"]


class NgramEvidence:
    """What naive Bayes says about a text: one number for each class and each length of n-grams.

    The number is the sum, over the different n-grams g of the text, of

        log p(g | class) - the mean of that over the classes,    p(g | class) = (texts of the class with g + 1) / (its texts + 2)

    This is multinomial naive Bayes with each n-gram counted once (Wang and Manning: Baselines and bigrams, 2012),
    which is hard to beat on short texts. A network that gets these numbers as input learns what they are worth and
    what they miss. For a training text, its own counts are subtracted first. Otherwise words that occur in no other
    text would give its class away.

    Rare or new words are often forms of known ones. With `beginnings` (4, 6), the first 4 and the first 6 letters of
    longer words count like n-grams, each length separately.
    """

    def __init__(
        self, counts: Mapping[str, Sequence[int]], texts: Sequence[int], order: int, beginnings: Sequence[int] = ()
    ) -> None:
        """counts: in how many texts of each class an n-gram is, words with blanks between; texts: how many there are."""
        self.counts, self.texts, self.order, self.beginnings = counts, list(texts), order, tuple(beginnings)

    def __len__(self) -> int:
        """How many numbers there are for a class: of n-grams of each length, then of beginnings of each length."""
        return self.order + len(self.beginnings)

    @classmethod
    def learn(
        cls,
        examples: Iterable[tuple[Sequence[str], int]],
        classes: int,
        order: int = 2,
        beginnings: Sequence[int] = (),
    ) -> NgramEvidence:
        """Counts n-grams in texts, given the words and the class number of each.

        ValueError if the order is below 1, if there are fewer than two classes, or if a beginning has no letters.
        """
        if any(n < 1 for n in beginnings):
            raise ValueError(f"[NgramEvidence] expected beginnings of 1 letter or more; got {tuple(beginnings)}")
        if order < 1 or classes < 2:
            raise ValueError(
                f"[NgramEvidence] expected order 1 or more and two classes or more; got {order} and {classes}"
            )
        counts: dict[str, list[int]] = {}
        texts: Counter[int] = Counter()
        for words, label in examples:
            texts[label] += 1
            for grams in kinds_of(words, order, beginnings):
                for gram in grams:
                    counts.setdefault(gram, [0] * classes)[label] += 1
        return cls(counts, [texts[i] for i in range(classes)], order, beginnings)

    def __call__(self, words: Sequence[str], own: int = -1) -> list[list[float]]:
        """A row for each class, with len(self) numbers: for each length from 1 to order, then for each length of beginnings.

        own: the class of a text that was learned from, whose own counts are taken off; -1: it was not.
        """
        classes = range(len(self.texts))
        sizes = [math.log(n - (i == own and n > 0) + 2) for i, n in enumerate(self.texts)]
        out = [[0.0] * len(self) for _ in classes]
        for kind, grams in enumerate(kinds_of(words, self.order, self.beginnings)):
            for gram in grams:
                found = list(self.counts.get(gram, ()))
                if found and own >= 0 and found[own]:
                    found[own] -= 1
                if not any(found):
                    continue
                logs = [math.log(found[i] + 1) - sizes[i] for i in classes]
                mean = sum(logs) / len(logs)
                for i in classes:
                    out[i][kind] += logs[i] - mean
        return out

    def to_json(self) -> dict[str, Any]:
        """A value that json.dump can write."""
        return {
            "order": self.order,
            "texts": self.texts,
            "beginnings": list(self.beginnings),
            "counts": {gram: list(found) for gram, found in self.counts.items()},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NgramEvidence:
        """What to_json() has described."""
        return cls(value["counts"], value["texts"], value["order"], value.get("beginnings", ()))


def kinds_of(words: Sequence[str], order: int, beginnings: Sequence[int]) -> list[list[str]]:
    """The different n-grams of each length, then the different beginnings of each; a blank before keeps the latter apart."""
    grams = [_grams(words, n) for n in range(1, order + 1)]
    return grams + [list(dict.fromkeys(f" {n} {word[:n]}" for word in words if len(word) > n)) for n in beginnings]


def _grams(words: Sequence[str], n: int) -> list[str]:
    """The different runs of n words, in the order of the text."""
    return list(dict.fromkeys(" ".join(words[i : i + n]) for i in range(len(words) - n + 1)))
