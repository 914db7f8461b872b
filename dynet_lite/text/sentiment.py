"""Sentiment on trees: the classes 0 (very negative) to 4 (very positive), the two of the binary task, and their scores.

Socher and others: Recursive deep models for semantic compositionality over a sentiment treebank (2013). Does not know the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .scores import Accuracy
from .trees import Tree

__all__ = ["CLASSES", "NEUTRAL", "POLARITY", "SentimentScore", "binary_tree", "polarity_of"]

CLASSES = ("0", "1", "2", "3", "4")
NEUTRAL = "neutral"
POLARITY = {"0": "negative", "1": "negative", "2": NEUTRAL, "3": "positive", "4": "positive"}


def binary_tree(tree: Tree) -> Tree:
    """A copy whose labels are "negative", "positive" and NEUTRAL; NEUTRAL is not a class of the binary task."""
    copy = tree.narrow(max(2, max(len(node.children) for node in tree.nodes())))
    for node in copy.nodes():
        node.label = POLARITY.get(node.label, node.label)
    return copy


@dataclass
class SentimentScore:
    """Accuracy at the roots and at all nodes. With five classes, also the accuracy of the binary task.

    In the binary task, nodes that are neutral (2) do not count. Otherwise an answer is right if it is on the right
    side: negative for the classes 0 and 1, positive for 3 and 4. A node with any other label has no right answer.

    neutral: the label that does not count; None, if all labels are classes
    """

    roots: Accuracy = field(default_factory=Accuracy)
    nodes: Accuracy = field(default_factory=Accuracy)
    binary_roots: Accuracy = field(default_factory=Accuracy)
    binary_nodes: Accuracy = field(default_factory=Accuracy)
    neutral: str | None = NEUTRAL

    def add(self, gold: Sequence[str], guess: Sequence[str], polarity: Sequence[str] = ()) -> None:
        """Compares the labels of a tree's nodes (the root last) with guesses.

        polarity: with five classes, "negative" or "positive" for each node: the guess of the binary task
        """
        counted = [(a, b) for a, b in zip(gold, guess, strict=True) if a != self.neutral]
        _count(self.nodes, counted)
        if gold[-1] != self.neutral:
            _count(self.roots, counted[-1:])
        if polarity:
            both = [(POLARITY.get(a, a), b) for a, b in zip(gold, polarity, strict=True) if a != "2"]
            _count(self.binary_nodes, both)
            if gold[-1] != "2":
                _count(self.binary_roots, both[-1:])

    def values(self) -> dict[str, float]:
        """The accuracies by name: `nodes`, and if they were counted `binary_roots` and `binary_nodes`."""
        found = {"nodes": self.nodes, "binary_roots": self.binary_roots, "binary_nodes": self.binary_nodes}
        return {name: accuracy.value for name, accuracy in found.items() if accuracy.all}

    def __str__(self) -> str:
        text = f"root accuracy {self.roots.value:.2%} (all nodes {self.nodes.value:.2%})"
        if self.binary_nodes.all:
            text += f"; binary: roots {self.binary_roots.value:.2%}, all nodes {self.binary_nodes.value:.2%}"
        return text


def polarity_of(probabilities: Iterable[Sequence[float]]) -> list[str]:
    """For each node "negative" or "positive", from the probabilities of the five classes: 0 and 1 together against 3 and
    4.
    """
    return ["positive" if sum(p[3:]) > sum(p[:2]) else "negative" for p in probabilities]


def _count(accuracy: Accuracy, pairs: Sequence[tuple[str, str]]) -> None:
    accuracy.add([a for a, _ in pairs], [b for _, b in pairs])
