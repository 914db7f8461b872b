"""Scores of constituent trees: labelled brackets, all of them or by EVALB's rules. Does not know the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from .scores import Found
from .trees import Tree

__all__ = ["BracketScore", "EvalbScore", "base_labels", "brackets"]

PUNCTUATION = frozenset(
    [",", ":", "``", "''", ".", "PUNCT"]
)  # tags of words that EVALB leaves out; PUNCT is the universal one
TOP = frozenset(["TOP", "ROOT", "S1", ""])  # labels that EVALB leaves out


def brackets(tree: Tree, left_out: Collection[int] = ()) -> Counter[tuple[str, int, int]]:
    """The phrases of a tree as (label, first word, end), counted. Tags of single words are not phrases.

    left_out: numbers of words, from 0, that do not count. A phrase of nothing else is left out
    """
    out: Counter[tuple[str, int, int]] = Counter()
    where: dict[int, tuple[int, int]] = {}
    number = words = 0
    for node in tree.nodes():  # children first, from left to right
        if node.children:
            start, end = where[id(node.children[0])][0], where[id(node.children[-1])][1]
            out[node.label, start, end] += start < end
        else:
            start, end = words, words + (number not in left_out)
            number, words = number + 1, end
        where[id(node)] = start, end
    return +out


def base_labels(tree: Tree) -> Tree:
    """A copy with plain categories of the Penn Treebank: NP-SBJ-1 and NP=2 become NP; -LRB- and = stay."""
    copies: dict[int, Tree] = {}
    for node in tree.nodes():
        label = node.label if node.label[0] in "-=" else node.label.split("-")[0].split("=")[0]
        copies[id(node)] = Tree(label, node.word, [copies[id(child)] for child in node.children])
    return copies[id(tree)]


@dataclass
class BracketScore(Found):
    """Counts of phrases that were found with the right label and ends. Punctuation counts like any word."""

    whole: int = 0  # trees without a mistake in their brackets
    trees: int = 0
    tags: int = 0  # right ones
    words: int = 0

    def add(self, gold: Tree, guess: Tree) -> None:
        """Compares two trees over the same words. ValueError if the words differ."""
        if gold.words() != guess.words():
            raise ValueError(f"expected a tree over {' '.join(gold.words())!r}, got {' '.join(guess.words())!r}")
        left_out = self.left_out(gold)
        wanted, found = (self.counted(brackets(tree, left_out)) for tree in (gold, guess))
        self.wanted += wanted.total()
        self.found += found.total()
        self.right += (wanted & found).total()
        self.whole += wanted == found
        self.trees += 1
        pairs = enumerate(zip(_leaves(gold), _leaves(guess), strict=True))
        kept = [a.label == b.label for i, (a, b) in pairs if i not in left_out]
        self.tags += sum(kept)
        self.words += len(kept)

    def left_out(self, gold: Tree) -> Collection[int]:
        """The numbers of the words that do not count."""
        return ()

    def counted(self, found: Counter[tuple[str, int, int]]) -> Counter[tuple[str, int, int]]:
        """The phrases of a tree that count."""
        return found

    def __str__(self) -> str:
        whole, tags = self.whole / max(1, self.trees), self.tags / max(1, self.words)
        return f"bracket F1 {self.f1:.2%} (whole trees {whole:.1%}, tags {tags:.1%})"


@dataclass
class EvalbScore(BracketScore):
    """Bracket scores as EVALB computes them with the parameters of Collins (1997), the usual ones in papers.

    Words that are punctuation in the right tree are removed from both trees, and with them phrases that hold nothing
    else. The outermost label (TOP, ROOT, S1) does not count. ADVP and PRT are the same label. Labels must be plain:
    see base_labels(). Sekine and Collins 1997.
    """

    def left_out(self, gold: Tree) -> Collection[int]:
        return {i for i, leaf in enumerate(_leaves(gold)) if leaf.label in PUNCTUATION}

    def counted(self, found: Counter[tuple[str, int, int]]) -> Counter[tuple[str, int, int]]:
        out: Counter[tuple[str, int, int]] = Counter()
        for (label, start, end), n in found.items():
            if label not in TOP:
                out["ADVP" if label == "PRT" else label, start, end] += n
        return out

    def __str__(self) -> str:
        return f"EVALB F1 {self.f1:.2%}"


def _leaves(tree: Tree) -> list[Tree]:
    return [node for node in tree.nodes() if not node.children]
