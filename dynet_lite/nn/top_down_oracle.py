"""What is best in building a tree from the top, after mistakes, too (a dynamic oracle, as Fried and Klein 2018 use one).

The cost of a tree is the number of its brackets (phrases with label and place) that are wrong and of gold brackets that it
misses. `TopDownOracle.best()` is an action after which the lowest cost that could still be had can still be had:

1. Close the innermost phrase if it ends here: where the gold phrase that it stands for ends, or, if it is wrong, as soon as it
   may be closed; or if one around it ends here.
2. Else open the outermost gold phrase that begins here and is not open yet.
3. Else take the next word.

A phrase of the parser stands for the first gold phrase with its label that begins at the same word and is not open. Gold
phrases around that one can then no longer be made, unless they end at the same word.
"""

from __future__ import annotations

from typing import NamedTuple

from dynet_lite.text import Tree

from .top_down import CLOSE, Progress, TopDown

__all__ = ["TopDownOracle"]


class Gold(NamedTuple):
    """A gold phrase: the action that opens it, and the word before which it ends."""

    action: int
    end: int


class Open(NamedTuple):
    """An open phrase: where to close it, and whether it will then be a gold phrase."""

    end: int
    right: bool


class TopDownOracle:
    """The oracle for one tree, along one path of actions: ask `best()`, then tell it the action taken with `follow()`.

    KeyError for an unknown label, ValueError for a tree that is a single word.
    """

    def __init__(self, actions: TopDown, tree: Tree) -> None:
        self.actions = actions
        self.phrases: list[list[Gold]] = []  # those that begin at each word, from the outermost
        self.takes: list[int] = []  # the action that takes each word
        begun: list[tuple[int, int, int]] = []
        for action in actions.actions(tree):
            at = len(self.takes)
            if action in actions.taking:
                self.takes.append(action)
                continue
            self.phrases += [[] for _ in range(at + 1 - len(self.phrases))]
            if action == CLOSE:
                start, k, label = begun.pop()
                self.phrases[start][k] = Gold(label, at)
            else:
                begun.append((at, len(self.phrases[at]), action))
                self.phrases[at].append(Gold(action, at))
        self.words = len(self.takes)
        self.phrases += [[] for _ in range(self.words + 1 - len(self.phrases))]
        self.now = Progress(self.words)
        self.path: list[Open] = []  # the phrases that are open, from the root
        self.here = list(self.phrases[0])  # gold phrases that begin at the next word and can still be opened

    def best(self) -> int:
        """An action of the lowest cost. ValueError when the tree is finished."""
        if self.now.finished:
            raise ValueError("[TopDownOracle] the tree is finished")
        at, legal = self.words - self.now.left, self.actions.legal(self.now)
        if CLOSE in legal and (self.path[-1].end <= at or any(x.right and x.end == at for x in self.path)):
            return CLOSE
        if self.here and self.here[0].action in legal:
            return self.here[0].action
        return self.takes[at]

    def follow(self, action: int) -> None:
        """Goes on after a legal action."""
        at = self.words - self.now.left
        self.now = self.actions.after(self.now, action)
        if action == CLOSE:
            self.path.pop()
        elif action in self.actions.opening:
            self.path.append(self.opened(action, at))
        else:
            self.here = list(self.phrases[at + 1])

    def opened(self, action: int, at: int) -> Open:
        """A phrase that begins at a word. The root ends with the sentence."""
        here, root = self.here, not self.path
        for k, gold in enumerate(here):
            if gold.action == action and (not root or gold.end == self.words):
                self.here = [x for x in here[:k] if x.end <= gold.end] + here[k + 1 :]
                return Open(gold.end, True)
        if root:
            return Open(self.words, False)
        return Open(here[0].end if here else at, False)
