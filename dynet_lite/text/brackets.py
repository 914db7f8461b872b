"""Scores of constituent trees: labelled brackets, as EVALB counts them. Does not know the engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .scores import Found
from .trees import Tree

__all__ = ["BracketScore", "base_labels", "brackets"]


def brackets(tree: Tree) -> Counter[tuple[str, int, int]]:
    """(label, first word, end) of each phrase, counted; the tags over single words are none."""
    out: Counter[tuple[str, int, int]] = Counter()
    where: dict[int, tuple[int, int]] = {}
    words = 0
    for node in tree.nodes():  # children first, from left to right
        if node.children:
            start, end = where[id(node.children[0])][0], where[id(node.children[-1])][1]
            out[node.label, start, end] += 1
        else:
            start, end, words = words, words + 1, words + 1
        where[id(node)] = start, end
    return out


def base_labels(tree: Tree) -> Tree:
    """A copy with the categories of the Penn Treebank alone: NP-SBJ-1 and NP=2 become NP; -LRB- stays."""
    copies: dict[int, Tree] = {}
    for node in tree.nodes():
        label = node.label if node.label[0] == "-" else node.label.split("-")[0].split("=")[0]
        copies[id(node)] = Tree(label, node.word, [copies[id(child)] for child in node.children])
    return copies[id(tree)]


@dataclass
class BracketScore(Found):
    """Brackets that were found with the right label and ends; punctuation counts like any word."""

    whole: int = 0  # trees without a mistake in their brackets
    trees: int = 0
    tags: int = 0  # right ones
    words: int = 0

    def add(self, gold: Tree, guess: Tree) -> None:
        """Counts a tree. ValueError if the words differ."""
        if gold.words() != guess.words():
            raise ValueError(f"expected a tree over {' '.join(gold.words())!r}, got {' '.join(guess.words())!r}")
        wanted, found = brackets(gold), brackets(guess)
        self.wanted += wanted.total()
        self.found += found.total()
        self.right += (wanted & found).total()
        self.whole += wanted == found
        self.trees += 1
        pairs = zip(_leaves(gold), _leaves(guess), strict=True)
        self.tags += sum(a.label == b.label for a, b in pairs)
        self.words += len(gold)

    def __str__(self) -> str:
        whole, tags = self.whole / max(1, self.trees), self.tags / max(1, self.words)
        return f"bracket F1 {self.f1:.2%} (whole trees {whole:.1%}, tags {tags:.1%})"


def _leaves(tree: Tree) -> list[Tree]:
    return [node for node in tree.nodes() if not node.children]
