"""Constituent trees as sequences of actions, from the root down (Dyer, Kuncoro, Ballesteros, Smith 2016).

    (S (NP (PRON We)) (VP (VERB left)))    S( NP( PRON ) VP( VERB ) )

An action opens a phrase, `S(`, takes the next word and gives it its tag, `PRON`, or closes the phrase opened last, `)`.
Plain Python: the engine is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dynet_lite.text import Tree

__all__ = ["CLOSE", "Progress", "TopDown"]

CLOSE = 0  # the id of the action that closes a phrase


class Progress(NamedTuple):
    """How far a tree has come: what decides which actions may be next. It never changes; see TopDown.after()."""

    left: int  # words that are not in the tree yet
    depth: int = 0  # open phrases
    run: int = 0  # phrases opened since the last word or `)`: above 0 the innermost phrase is empty
    started: bool = False

    @property
    def finished(self) -> bool:
        """Whether the tree is complete."""
        return self.started and self.depth == 0


class TopDown:
    """The actions that build a tree of phrases from the top: CLOSE, one to open each kind of phrase, and one to take a
    word with each tag.
    """

    MOST_OPENED = 8  # phrases that begin at one word

    def __init__(self, labels: Iterable[str], tags: Iterable[str]) -> None:
        self.labels, self.tags = list(labels), list(tags)
        if not self.labels or not self.tags:
            raise ValueError("[TopDown] expected at least one label and one tag")
        self._opens = {label: 1 + i for i, label in enumerate(self.labels)}
        first = 1 + len(self.labels)
        self._takes = {tag: first + i for i, tag in enumerate(self.tags)}
        self.opening, self.taking = range(1, first), range(first, first + len(self.tags))

    @classmethod
    def of_trees(cls, trees: Iterable[Tree]) -> TopDown:
        """The actions that these trees need, in alphabetical order."""
        labels: set[str] = set()
        tags: set[str] = set()
        for tree in trees:
            for node in tree.nodes():
                (labels if node.children else tags).add(node.label)
        return cls(sorted(labels), sorted(tags))

    def __len__(self) -> int:
        """The number of actions."""
        return 1 + len(self.labels) + len(self.tags)

    def takes(self, tag: str, default: int = -1) -> int:
        """The action that takes a word with this tag; the default for a tag that there is not."""
        return self._takes.get(tag, default)

    def name(self, action: int) -> str:
        """An action as text: `S(`, `PRON` or `)`."""
        if action == CLOSE:
            return ")"
        return self.labels[action - 1] + "(" if action in self.opening else self.tags[action - self.taking.start]

    def legal(self, now: Progress) -> list[int]:
        """The actions that may come next. None are left when the tree is finished."""
        if now.finished:
            return []
        out: list[int] = []
        if now.depth and not now.run and (now.depth > 1 or not now.left):
            out.append(CLOSE)
        if now.left:
            if now.run < self.MOST_OPENED:
                out += self.opening
            if now.depth:
                out += self.taking
        return out

    def after(self, now: Progress, action: int) -> Progress:
        """The progress after a legal action."""
        if action == CLOSE:
            return Progress(now.left, now.depth - 1, 0, True)
        if action in self.opening:
            return Progress(now.left, now.depth + 1, now.run + 1, True)
        return Progress(now.left - 1, now.depth, 0, True)

    def limit(self, words: int) -> int:
        """The most actions that a tree over so many words can have."""
        return words * (2 * self.MOST_OPENED + 1)

    def actions(self, tree: Tree) -> list[int]:
        """The actions that make this tree. KeyError for an unknown label, ValueError for a tree that is a single word."""
        if not tree.children:
            raise ValueError(f"[TopDown] expected a tree with a phrase, got {tree}")
        out: list[int] = []
        todo: list[Tree | None] = [tree]
        while todo:
            node = todo.pop()
            if node is None:
                out.append(CLOSE)
            elif node.children:
                out.append(self._opens[node.label])
                todo += [None, *reversed(node.children)]
            else:
                out.append(self._takes[node.label])
        return out

    def tree(self, actions: Sequence[int], words: Sequence[str]) -> Tree:
        """The tree that the actions make over the words. Phrases that are still open are closed at the end."""
        rest = iter(words)
        root = Tree("")
        path = [root]
        for action in actions:
            if action == CLOSE:
                path.pop()
            elif action in self.opening:
                path[-1].children.append(Tree(self.labels[action - 1]))
                path.append(path[-1].children[-1])
            else:
                path[-1].children.append(Tree(self.tags[action - self.taking.start], next(rest)))
        return root.children[0]
