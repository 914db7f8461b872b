"""Scores: accuracy with an interval, span F1 (checked against seqeval and NLTK in the tests), perplexity.

Scores of dependency parses stand in dependencies.py, those of generated sequences in sequence_scores.py.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from .columns import spans

__all__ = ["Accuracy", "Perplexity", "SpanScore"]


@dataclass
class Accuracy:
    """Counts of right answers and of all answers. `value` is the share of right ones."""

    right: int = 0
    all: int = 0

    def add(self, gold: Sequence[Hashable], guess: Sequence[Hashable]) -> None:
        """Compares two sequences place by place. ValueError if their lengths differ."""
        self.right += sum(a == b for a, b in zip(gold, guess, strict=True))
        self.all += len(gold)

    @property
    def value(self) -> float:
        """The share of right answers, from 0 to 1; 0 if there are none."""
        return self.right / max(1, self.all)

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """The 95 % confidence interval of the accuracy (with z = 1.96), if examples are independent (Wilson 1927)."""
        n, p = max(1, self.all), self.value
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"accuracy {self.value:.2%} ({low:.1%} to {high:.1%})"


@dataclass
class Found:
    """Counts of what was looked for and what was found, and their precision, recall and F1."""

    found: int = 0  # by the model
    wanted: int = 0
    right: int = 0

    @property
    def precision(self) -> float:
        """The share of what was found that is right, from 0 to 1."""
        return self.right / max(1, self.found)

    @property
    def recall(self) -> float:
        """The share of what there is that was found."""
        return self.right / max(1, self.wanted)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / max(1, self.found + self.wanted)


@dataclass
class SpanScore(Found):
    """Counts of spans that were found with the right ends and the right type, as in conlleval."""

    by_type: dict[str, SpanScore] = field(default_factory=dict)

    def add(self, gold: Sequence[str], guess: Sequence[str]) -> None:
        """Compares the labels of a sentence (IOB2) with guesses."""
        if len(gold) != len(guess):
            raise ValueError(f"expected {len(gold)} labels, got {len(guess)}")
        wanted, found = set(spans(gold)), set(spans(guess))
        self.wanted += len(wanted)
        self.found += len(found)
        self.right += len(wanted & found)
        for counted, name in ((wanted, "wanted"), (found, "found"), (wanted & found, "right")):
            for _, _, kind in counted:
                score = self.by_type.setdefault(kind, SpanScore())
                setattr(score, name, getattr(score, name) + 1)

    def types(self) -> str:
        """The F1 of each type, with the number of its spans: LOC 91.20% of 310, PER 88.00% of 120."""
        return ", ".join(f"{kind} {score.f1:.2%} of {score.wanted:,}" for kind, score in sorted(self.by_type.items()))

    def __str__(self) -> str:
        return f"F1 {self.f1:.2%} (precision {self.precision:.2%}, recall {self.recall:.2%})"


@dataclass
class Perplexity:
    """exp of the mean of -log p over all tokens."""

    loss: float = 0.0  # sum of -log p, natural logarithm
    tokens: int = 0

    def add(self, loss: float, tokens: int) -> None:
        """Adds `tokens` tokens, whose -log p sum to `loss`."""
        self.loss += loss
        self.tokens += tokens

    @property
    def value(self) -> float:
        """The perplexity; infinite if it is larger than any float, NaN if the loss is."""
        mean = self.loss / max(1, self.tokens)
        return math.inf if mean >= 700 else math.exp(mean)

    def __str__(self) -> str:
        return f"perplexity {self.value:.2f}"
