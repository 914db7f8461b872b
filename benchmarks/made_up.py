"""Made-up data with the length and frequency profile of real corpora, for every task; seeded, numpy only.

Lengths follow a gamma distribution (mean 23 words, as in newspaper text; 19 for trees, as in film reviews), words the
law of Zipf. Labels depend on the words for the most part, so that training is training. Ids only: no text. What
a task does with the numbers is told in its own file in tasks/.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Random = np.random.RandomState
Tree = Any  # (label, word) for a leaf, (label, left, right) for a node with children

MEAN_LENGTH, MEAN_LEAVES = 23, 19
SHIFT = 0  # arc-standard actions: 0 shift, then left arcs by label, then right arcs by label


@dataclass(frozen=True)
class Parsed:
    """A sentence with a projective tree: heads (0 is the root), labels, and the arc-standard actions that build it."""

    words: list[int]
    heads: list[int]
    labels: list[int]
    actions: list[int]


def lengths(rng: Random, count: int, mean: float, longest: int = 90) -> list[int]:
    """Sentence lengths."""
    drawn = np.rint(rng.gamma(shape=4.3, scale=mean / 4.3, size=count))
    return [int(n) for n in np.clip(drawn, 2, longest)]


def zipf(rng: Random, kinds: int, count: int) -> Any:
    """`count` ids below `kinds`, the frequent ones first."""
    weights = 1 / (np.arange(kinds) + 2.7)
    return rng.choice(kinds, size=count, p=weights / weights.sum())


def labels_of(rng: Random, words: Any, kinds: int) -> Any:
    """A label for each word: mostly always the same."""
    other = rng.randint(kinds, size=len(words))
    return np.where(rng.rand(len(words)) < 0.9, words * 7919 % kinds, other)


def split(flat: Any, sizes: list[int]) -> list[list[int]]:
    """Cuts a flat array into lists of these sizes."""
    ends = np.cumsum(sizes)
    return [flat[e - n : e].tolist() for e, n in zip(ends, sizes, strict=True)]


def sentences(rng: Random, count: int, words: int) -> list[list[int]]:
    """Sentences as lists of word ids."""
    ns = lengths(rng, count, MEAN_LENGTH)
    return split(zipf(rng, words, sum(ns)), ns)


def tagged(rng: Random, count: int, words: int, tags: int) -> list[tuple[list[int], list[int]]]:
    """Pairs of word ids and tag ids."""
    ns = lengths(rng, count, MEAN_LENGTH)
    flat = zipf(rng, words, sum(ns))
    return list(zip(split(flat, ns), split(labels_of(rng, flat, tags), ns), strict=True))


def first_rare(words: int, share: float) -> int:
    """The id from which on words are rare: they make up this share of the tokens."""
    weights = 1 / (np.arange(words) + 2.7)
    return int(np.searchsorted(np.cumsum(weights) / weights.sum(), 1 - share))


def spelling(word: int, chars: int) -> list[int]:
    """The characters of a word: always the same ones, 4 to 12 of them, between two marks (id 0)."""
    rng = Random(word)
    return [0, *(1 + zipf(rng, chars - 1, rng.randint(4, 13))).tolist(), 0]


def trees(rng: Random, count: int, words: int, classes: int) -> list[Tree]:
    """Binary trees with a class at every node."""

    def tree(ids: list[int]) -> Tree:
        label = sum(ids) % classes
        if len(ids) == 1:
            return (label, ids[0])
        cut = rng.randint(1, len(ids))
        return (label, tree(ids[:cut]), tree(ids[cut:]))

    ns = lengths(rng, count, MEAN_LEAVES)
    return [tree(ids) for ids in split(zipf(rng, words, sum(ns)), ns)]


def parsed(rng: Random, count: int, words: int, labels: int) -> list[Parsed]:
    """Sentences with random projective trees."""
    ns = lengths(rng, count, MEAN_LENGTH)
    return [derivation(rng, ids, labels) for ids in split(zipf(rng, words, sum(ns)), ns)]


def derivation(rng: Random, ids: list[int], labels: int) -> Parsed:
    """A random arc-standard derivation and the tree that it builds."""
    n = len(ids)
    heads, kinds, actions, stack, shifted = [0] * n, [0] * n, [], [], 0
    while shifted < n or len(stack) > 1:
        if len(stack) < 2 or (shifted < n and rng.rand() < 0.45):
            actions.append(SHIFT)
            stack.append(shifted)
            shifted += 1
            continue
        right, left = stack.pop(), stack.pop()
        to_left = bool(rng.rand() < 0.55)
        head, dependent = (right, left) if to_left else (left, right)
        heads[dependent], kinds[dependent] = head + 1, ids[dependent] * 7919 % labels
        actions.append(1 + kinds[dependent] + (0 if to_left else labels))
        stack.append(head)
    return Parsed(ids, heads, kinds, actions)


def pairs(rng: Random, count: int, words: int) -> list[tuple[list[int], list[int]]]:
    """Source and target sentences; id 0 marks the end of a target."""
    source = lengths(rng, count, MEAN_LENGTH)
    target = [max(2, round(n * rng.uniform(0.8, 1.2))) for n in source]
    sources = split(1 + zipf(rng, words - 1, sum(source)), source)
    targets = split(1 + zipf(rng, words - 1, sum(target)), target)
    return list(zip(sources, [t + [0] for t in targets], strict=True))
