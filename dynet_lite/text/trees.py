"""Trees in brackets: the Penn Treebank's, the Stanford Sentiment Treebank's, NLTK's.

    (S (NP (PRP We)) (VP (VBD left)) (. .))          (3 (2 We) (4 left))

A node has a label and either a word or children. Nothing here is recursive, so a tree may be as deep as memory allows.
Does not know the engine; what the labels mean is the caller's business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dynet_lite.errors import DataError

from .corpora import read_nltk
from .lines import numbered_lines

__all__ = ["Tree", "iter_trees", "load_nltk_trees", "parse_trees", "read_trees"]

EMPTY = "-NONE-"  # the label over traces and other empty elements in the Penn Treebank
_TOKEN = re.compile(r"[()]|[^ \t\n\v\f\r()]+")  # no-break spaces may stand inside a word


@dataclass(slots=True)
class Tree:
    """A node of a tree. A leaf has a word and no children; any other node has children, and "" as its word.

    The root may carry numbers for its words in `features` (see WordFeatures).
    """

    label: str
    word: str = ""
    children: list[Tree] = field(default_factory=list)
    features: Any = field(default=None, compare=False, repr=False)

    def nodes(self) -> list[Tree]:
        """All nodes, children before their parents, from left to right; the last one is the root."""
        out, todo = [], [self]
        while todo:
            node = todo.pop()
            out.append(node)
            todo += node.children
        out.reverse()
        return out

    def words(self) -> list[str]:
        """The words, from left to right."""
        return [node.word for node in self.nodes() if not node.children]

    def __len__(self) -> int:
        """The number of words."""
        return sum(not node.children for node in self.nodes())

    def __str__(self) -> str:
        parts: list[str] = []
        todo: list[Tree | str] = [self]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                parts.append(item)
            elif item.children:
                parts.append(f" ({item.label}")
                todo += [")", *reversed(item.children)]
            else:
                parts.append(f" ({item.label} {item.word})")
        return "".join(parts).strip()

    def _rebuilt(self, make: Any) -> Any:
        """make(node, what it made of the children), from the leaves up."""
        made: dict[int, Any] = {}
        for node in self.nodes():
            made[id(node)] = make(node, [made[id(child)] for child in node.children])
        return made[id(self)]

    def narrow(self, most: int = 2) -> Tree:
        """A copy in which no node has more than `most` children. ValueError if `most` is below 2.

        Where a node has more, its last children move to a new node with the same label, as often as needed.
        """
        if most < 2:
            raise ValueError(f"expected at least 2 children, got {most}")

        def make(node: Tree, children: list[Tree]) -> Tree:
            while len(children) > most:
                children[-most:] = [Tree(node.label, children=children[-most:])]
            return Tree(node.label, node.word, children)

        result: Tree = self._rebuilt(make)
        return result

    def without_empty(self) -> Tree | None:
        """A copy without empty elements (label -NONE-) and without nodes that hold nothing else. None if nothing
        remains.
        """

        def make(node: Tree, children: list[Tree | None]) -> Tree | None:
            kept = [child for child in children if child is not None]
            if node.children:
                return Tree(node.label, children=kept) if kept else None
            return None if node.label == EMPTY else Tree(node.label, node.word)

        result: Tree | None = self._rebuilt(make)
        return result

    @classmethod
    def from_nltk(cls, tree: Any) -> Tree:
        """A Tree from an nltk.Tree. ValueError where a node has a word beside other children, or no children."""
        made: dict[int, Tree] = {}
        for node in tree.subtrees():
            words = [child for child in node if isinstance(child, str)]
            if len(node) == 0 or (words and len(node) > 1):
                raise ValueError(f"expected one word or only trees below {node.label()!r}, got {list(node)!r}")
            made[id(node)] = cls(node.label(), words[0] if words else "")
        for node in tree.subtrees():
            made[id(node)].children = [made[id(child)] for child in node if not isinstance(child, str)]
        return made[id(tree)]

    def to_nltk(self) -> Any:
        """An nltk.Tree from this tree."""
        from nltk import Tree as NltkTree

        return self._rebuilt(lambda node, children: NltkTree(node.label, children or [node.word]))


def read_trees(path: str | os.PathLike[str]) -> list[Tree]:
    """The trees of a file in brackets, in order. A malformed file is a DataError, an unreadable one an OSError."""
    return list(iter_trees(path))


def iter_trees(path: str | os.PathLike[str]) -> Iterator[Tree]:
    """As read_trees, one tree at a time."""
    yield from parse_trees((line for _, line in numbered_lines(path)), os.fspath(path))


def parse_trees(lines: Iterable[str], name: str = "<text>") -> Iterator[Tree]:
    """Trees from lines of text. A tree may span several lines. Messages call the file `name`.

    An outer bracket without a label, as in the files of the Penn Treebank, is removed.
    """
    open_nodes: list[Tree] = []
    number = first = 0
    fresh = False  # the last token was a bracket that opens: a label may follow
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        for token in _TOKEN.findall(line):
            if token == "(":
                first = first if open_nodes else number
                open_nodes.append(Tree(""))
                fresh = True
                continue
            if not open_nodes:
                raise DataError(f"{where}: expected '(', got {token!r}")
            node = open_nodes[-1]
            if token != ")":
                if fresh:
                    node.label = token
                elif node.word or node.children:
                    raise DataError(f"{where}: expected one word or only brackets in ({node.label} ...), got {token!r}")
                else:
                    node.word = token
                fresh = False
                continue
            fresh = False
            open_nodes.pop()
            if not open_nodes:
                yield _whole(node, where)
            elif open_nodes[-1].word:
                parent = open_nodes[-1]
                raise DataError(f"{where}: expected one word or only brackets in ({parent.label} ...), got both")
            else:
                open_nodes[-1].children.append(_checked(node, where))
    if open_nodes:
        raise DataError(f"{name}:{number}: expected ')' for the tree that begins in line {first}, the text ends")


def _checked(node: Tree, where: str) -> Tree:
    if not node.label:
        raise DataError(f"{where}: expected a label after '('")
    if not node.word and not node.children:
        raise DataError(f"{where}: expected a word or brackets after ({node.label}")
    return node


def _whole(root: Tree, where: str) -> Tree:
    if not root.label and len(root.children) == 1:
        return root.children[0]
    return _checked(root, where)


def load_nltk_trees(name: str) -> list[Tree]:
    """The trees of an NLTK corpus ('treebank'), without traces. DataError if the corpus is not installed."""
    parsed = read_nltk(name, "parsed_sents", "trees; try 'treebank'")
    trees = [Tree.from_nltk(tree).without_empty() for tree in parsed]
    found = [tree for tree in trees if tree is not None]
    if not found:
        raise DataError(f"the NLTK corpus {name!r} holds no tree")
    return found
