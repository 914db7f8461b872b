"""Sentences of a CoNLL-U file as instances of the tasks, in place of the made-up ones.

Words are numbered by frequency, 0 stands for those beyond the model's list; tags and labels alike. For the parsers the
trees are made projective. The tasks that have a corpus here are TASKS; the others keep to made-up data.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

from made_up import SHIFT, Parsed

from dynet_lite.text import read_conllu
from dynet_lite.text.dependencies import is_tree, projective_heads

TASKS = ("tagger", "tagger_char", "rnnlm", "rnnlm_hand", "parser", "biaffine")


def instances(path: str, task: str, count: int, sizes: dict[str, int], seed: int) -> list[Any]:
    """`count` instances, drawn by the seed; over and over the same ones if there are fewer."""
    sentences = [s for s in read_conllu(path) if len(s) >= 2]
    if task in ("parser", "biaffine"):
        sentences = [s for s in sentences if len(s.heads) == len(s) and is_tree(s.heads)]
    if not sentences:
        raise ValueError(f"{path} has no sentence for {task}")
    words = by_frequency((w for s in sentences for w in s.forms), sizes["words"])
    tags = by_frequency((t for s in sentences for t in s.upos), sizes.get("tags", 1))
    labels = by_frequency((d for s in sentences for d in s.deprels), sizes.get("labels", 1))
    random.Random(seed).shuffle(sentences)
    drawn = [sentences[i % len(sentences)] for i in range(count)]
    found: list[Any] = []
    for s in drawn:
        ids = [words.get(w, 0) for w in s.forms]
        if task.startswith("tagger"):
            found.append((ids, [tags.get(t, 0) for t in s.upos]))
        elif task.startswith("rnnlm"):
            found.append([0, *ids, 0])
        else:
            heads, kinds = projective_heads(s.heads), [labels.get(d, 0) for d in s.deprels]
            found.append(Parsed(ids, heads, kinds, oracle(heads, kinds, sizes["labels"])))
    return found


def by_frequency(words: Iterable[str], most: int) -> dict[str, int]:
    """The number of each word that has one: 1 for the most frequent, and so on below `most`."""
    return {word: i for i, (word, _) in enumerate(Counter(words).most_common(most - 1), 1)}


def oracle(heads: list[int], kinds: list[int], labels: int) -> list[int]:
    """The arc-standard actions that build a projective tree; see made_up.Parsed. Heads count from 1, 0 is the root."""
    missing = Counter(heads)  # dependents that a word has not got yet
    actions, stack, coming = [], [], iter(range(1, len(heads) + 1))
    while True:
        if len(stack) > 1:
            left, right = stack[-2:]
            if heads[left - 1] == right:  # left has all of its own, or right would not stand next to it
                actions.append(1 + kinds[left - 1])
                missing[right] -= 1
                del stack[-2]
                continue
            if heads[right - 1] == left and not missing[right]:
                actions.append(1 + kinds[right - 1] + labels)
                missing[left] -= 1
                del stack[-1]
                continue
        word = next(coming, None)
        if word is None:
            return actions
        actions.append(SHIFT)
        stack.append(word)
