"""What a model of words says of the letters that spell them: for mixtures of a model of letters with one of words.

A model of letters has to learn to spell each word; one of words knows no word but those that it has seen. Together they are
better than either. Herbster and Warmuth: Tracking the best expert (1998), for the weights of the mixture. Knows numpy, not
the engine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from .ngrams import KneserNey

__all__ = ["SpelledWords"]

Letters = tuple[int, ...]
_BACK = 0.2  # the part of the weights that goes back to the first ones after each letter


class SpelledWords:
    """An n-gram model of words as a model of letters: p(letter | letters of its word so far, words before).

        model = SpelledWords(text, space=0, end=1)
        model.mixed(others, text, 0.7)

    A letter is as likely as the known words that go on with it, among those that begin as this word has begun. A space or the
    end of the sentence is as likely as that the word is complete. In a word that is not known all letters have probability 0
    from where no known word spells it, so the model is of use in a mixture only.

    text: letters as numbers, also those of the other text that the model reads. Words stand between spaces and ends
    space, end: the numbers that end a word, and a word and its sentence
    order: 3 for trigrams of words

    ValueError if the text has no words.
    """

    def __init__(self, text: Sequence[int], space: int, end: int, order: int = 3) -> None:
        sentences = _sentences(text, space, end)
        self.space, self.end = space, end
        self._words = sorted({word for words in sentences for word in words})
        if not self._words:
            raise ValueError("[SpelledWords] expected a text with at least one word")
        number = {word: i for i, word in enumerate(self._words)}
        last = len(number)  # the end of a sentence; the next number is any other word
        rows = [[*(number[word] for word in words), last] for words in sentences if words]
        self._model = KneserNey(rows, order, words=last + 2)

    def to_json(self) -> dict[str, Any]:
        """The words and their model, as a value that json.dump can write."""
        return {"space": self.space, "end": self.end, "words": self._words, "model": self._model.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SpelledWords:
        """The model that to_json() has described."""
        self = cls.__new__(cls)
        self.space, self.end = value["space"], value["end"]
        self._words = [tuple(word) for word in value["words"]]
        self._model = KneserNey.from_json(value["model"])
        return self

    def probabilities(self, text: Sequence[int]) -> tuple[list[float], list[bool]]:
        """For each letter of a text its probability, given those before it, and whether it is the first of a word. The text
        begins with a sentence.
        """
        found: list[float] = []
        firsts: list[bool] = []
        before: list[int] = []  # words of this sentence
        total, low, high, n = self._next(before), 0, len(self._words), 0  # known words that begin with these n letters
        prefix: Letters = ()
        for letter in text:
            firsts.append(n == 0)
            mass = total[high] - total[low]
            if letter not in (self.space, self.end):
                old, prefix, n = mass, (*prefix, letter), n + 1
                low = bisect_left(self._words, prefix, low, high)
                high = bisect_left(self._words, (*prefix[:-1], letter + 1), low, high)
                found.append((total[high] - total[low]) / old if old > 0 else 0.0)
                continue
            complete = low < high and self._words[low] == prefix  # of words that begin alike the shortest comes first
            p = (total[low + 1] - total[low]) / mass if complete and mass > 0 else 0.0
            if n:  # else a space after a space, which ends no word
                before.append(low if complete else len(self._words) + 1)
            ends = self._model.probability(before, len(self._words))
            found.append(p * (ends if letter == self.end else 1 - ends))
            if letter == self.end:
                before = []
            total, low, high, n, prefix = self._next(before), 0, len(self._words), 0, ()
        return found, firsts

    def _next(self, before: Sequence[int]) -> Any:
        """Of the known words, one after the other, the sums of how likely each is the next one."""
        import numpy as np  # here, since most users of this package have no use for it

        return np.concatenate(([0.0], np.cumsum(self._model.distribution(before, len(self._words)))))

    def mixed(self, others: Sequence[float], text: Sequence[int], share: float) -> list[float]:
        """The probabilities of the letters of a text in a mixture of another model with this one.

        others: what the other model says of each letter of the text
        share: this model's weight in the first letter of a word. From letter to letter the weights follow what each model has
            said of the word so far (Bayes), but for a fifth, which stays as it was at first
        """
        mixed, weight = [], share
        for other, (own, first) in zip(others, zip(*self.probabilities(text), strict=True), strict=True):
            weight = share if first else weight
            p = weight * own + (1 - weight) * other
            mixed.append(p)
            now = weight * own / p if p > 0 else 0.0
            weight = (1 - _BACK) * now + _BACK * share if now > 0 else 0.0  # no known word is spelled like this
        return mixed


def _sentences(text: Sequence[int], space: int, end: int) -> list[list[Letters]]:
    """The words of each sentence."""
    sentences: list[list[Letters]] = [[]]
    word: list[int] = []
    for letter in (*text, end):
        if letter not in (space, end):
            word.append(letter)
            continue
        if word:
            sentences[-1].append(tuple(word))
        word = []
        if letter == end:
            sentences.append([])
    return sentences
