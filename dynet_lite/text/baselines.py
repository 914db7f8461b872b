"""Baselines that models should beat: the most frequent label of a word, the usual place of a head, right-branching trees,
word-for-word translation. Does not know the engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from .conllu import Sentence
from .trees import Tree

__all__ = ["MostFrequent", "RightBranching", "UsualHead", "WordForWord"]


class MostFrequent:
    """A baseline: each word gets its most frequent label. Unknown words get the most frequent label of words seen once.

        guess = MostFrequent(zip(sentence.forms, sentence.upos) for sentence in train)
        guess(["The", "dog"])

    pairs: for each sequence its pairs of word and label

    Of equally frequent labels the one that comes first in the text wins. ValueError without any pair.
    """

    def __init__(self, pairs: Iterable[Iterable[tuple[Hashable, str]]]) -> None:
        counts: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
        for sequence in pairs:
            for word, label in sequence:
                counts[word][label] += 1
        if not counts:
            raise ValueError("[MostFrequent] expected at least one word with a label")
        self.best = {word: labels.most_common(1)[0][0] for word, labels in counts.items()}
        rare = Counter(label for labels in counts.values() if labels.total() == 1 for label in labels)
        every: Counter[str] = sum((labels for labels in counts.values()), Counter()) if not rare else rare
        self.other = every.most_common(1)[0][0]

    def __call__(self, words: Sequence[Hashable]) -> list[str]:
        """A label for each word."""
        return [self.best.get(word, self.other) for word in words]


class UsualHead:
    """A baseline for dependencies: each word gets the head position and the relation that are most frequent for its tag.

    A position is relative, such as "the next word but one". The result need not be a tree. A head beyond the ends of
    the sentence becomes the first or last word, or the other neighbour if that is the word itself. In a sentence of
    one word it is the root.
    """

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        """From sentences with tags, heads and relations; ValueError if there are none."""
        sentences = list(sentences)
        self.places = MostFrequent(
            [(tag, f"{head - i if head else 0}") for i, (tag, head) in enumerate(zip(x.upos, x.heads, strict=True), 1)]
            for x in sentences
        )  # fmt: skip
        self.relations = MostFrequent(zip(x.upos, x.deprels, strict=True) for x in sentences)

    def __call__(self, sentence: Sentence) -> Sentence:
        """The sentence with other heads and relations; its own are not looked at."""
        n, heads = len(sentence.upos), []
        for i, place in enumerate(map(int, self.places(sentence.upos)), 1):
            head = min(max(i + place, 1), n) if place else 0
            heads.append(head if head != i else (i - 1 or 2) if n > 1 else 0)
        return replace(sentence, heads=heads, deprels=self.relations(sentence.upos))


class RightBranching:
    """A baseline for trees: each phrase is a word and the rest, (S the (NP old (NP dog (NP barks)))).

    Its labels are the most frequent ones of whole trees and of inner phrases. Its tags are those of MostFrequent.
    """

    def __init__(self, trees: Sequence[Tree]) -> None:
        """From trees with phrases; ValueError if there are none."""
        self.tags = MostFrequent(
            [(leaf.word, leaf.label) for leaf in tree.nodes() if not leaf.children] for tree in trees
        )
        self.top = MostFrequent([("", tree.label)] for tree in trees)([""])[0]
        inside = [node.label for tree in trees for node in tree.nodes()[:-1] if node.children]
        self.label = MostFrequent([[("", label) for label in inside or [self.top]]])([""])[0]

    def __call__(self, words: Sequence[str]) -> Tree:
        """A tree over at least one word."""
        leaves = [Tree(tag, word) for tag, word in zip(self.tags(words), words, strict=True)]
        below = leaves[-1:]
        for leaf in leaves[-2:0:-1]:
            below = [leaf, Tree(self.label, children=below)]
        return Tree(self.top, children=[leaves[0], *([Tree(self.label, children=below)] if len(leaves) > 1 else [])])


class WordForWord:
    """A baseline for translation: each source token becomes the target token that occurs with it most.

    The measure is Dice's coefficient, 2 n(s, t) / (n(s) + n(t)) (Dice 1945; Melamed 2000). Unseen tokens stay as they
    are.
    """

    def __init__(self, pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> None:
        """From pairs of source and target; a token counts once for each pair that it is in."""
        source: Counter[str] = Counter()
        target: Counter[str] = Counter()
        together: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for s, t in pairs:
            there = set(t)
            target.update(there)
            for token in set(s):
                source[token] += 1
                together[token].update(there)
        self.best = {
            s: max(sorted(found), key=lambda t: found[t] / (source[s] + target[t])) for s, found in together.items() if found
        }  # fmt: skip

    def __call__(self, tokens: Sequence[str]) -> list[str]:
        """As many target tokens."""
        return [self.best.get(token, token) for token in tokens]
