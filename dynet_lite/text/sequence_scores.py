"""Scores of sequences against right answers: edit distance, error rate (of words: WER, of phonemes: PER), BLEU.

Sees only the standard library.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

__all__ = ["bleu", "edit_distance", "error_rate"]

Tokens = Sequence[Any]


def edit_distance(a: Tokens, b: Tokens) -> int:
    """The fewest insertions, deletions and substitutions that turn a into b (Levenshtein 1966)."""
    before = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
        before = row
    return before[-1]


def error_rate(answers: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> float:
    """Edits per token of the references. If an answer has several references, the nearest one counts."""
    edits = tokens = 0
    for answer, candidates in zip(answers, references, strict=True):
        nearest = min(candidates, key=lambda reference: edit_distance(answer, reference))
        edits += edit_distance(answer, nearest)
        tokens += len(nearest)
    return edits / max(1, tokens)


def bleu(answers: Sequence[Tokens], references: Sequence[Sequence[Tokens]], order: int = 4) -> float:
    """BLEU of a whole corpus, from 0 to 1, without smoothing (Papineni et al. 2002). It is 0 if some order has no match.

    answers: a list of tokens for each sentence
    references: for each sentence, a list of references
    """
    matches, totals = [0] * order, [0] * order
    length = reference_length = 0
    for answer, candidates in zip(answers, references, strict=True):
        length += len(answer)
        reference_length += min((abs(len(r) - len(answer)), len(r)) for r in candidates)[1]
        for n in range(1, order + 1):
            counts = _ngrams(answer, n)
            most: Counter[tuple[Any, ...]] = Counter()
            for reference in candidates:
                most |= _ngrams(reference, n)
            matches[n - 1] += sum((counts & most).values())
            totals[n - 1] += max(0, len(answer) - n + 1)
    if not all(matches):
        return 0.0
    precision = sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / order
    return math.exp(precision + min(0.0, 1 - reference_length / length))


def _ngrams(tokens: Tokens, n: int) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
