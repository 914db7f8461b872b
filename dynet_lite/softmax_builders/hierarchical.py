"""HierarchicalSoftmaxBuilder: words are leaves of a tree, with a softmax at each node on the way down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynet_lite import _core, ops
from dynet_lite._core import Parameters
from dynet_lite.builders.part import add_weight, folder
from dynet_lite.errors import DataError
from dynet_lite.softmax_builders.base import (
    SoftmaxBuilder,
    batch_size,
    draw,
    elements,
    groups,
    one_or_all,
    without,
    word_in,
)
from dynet_lite.softmax_builders.clusters import read_paths, word_ids


class _Node:
    """A node of the tree: its children, or else its words; a softmax over them, unless there is one only."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}  # symbol: number of the child
        self.children: list[_Node] = []
        self.words: list[int] = []
        self.w: Parameters | None = None
        self.b: Parameters | None = None

    def child(self, symbol: str) -> _Node:
        if symbol not in self.number:
            self.number[symbol] = len(self.children)
            self.children.append(_Node())
        return self.children[self.number[symbol]]

    def size(self) -> int:
        return len(self.children) or len(self.words)

    def add_parameters(self, collection: Any, input_dim: int, init: Any = None, name: str = "root") -> None:
        """In DyNet's order: a node's own, then its children's. Of two outcomes one has a score, the other 0.

        name: the way to the node by numbers of children: root, root.0, root.0.1, ...
        """
        rows = {1: 0, 2: 1}.get(self.size(), self.size())
        if rows:
            here = folder(collection, name)
            self.w = add_weight(here, "W", (rows, input_dim), init)
            self.b = add_weight(here, "b", (rows,), 0)
        for k, child in enumerate(self.children):
            child.add_parameters(collection, input_dim, init, f"{name}.{k}")


class HierarchicalSoftmaxBuilder(SoftmaxBuilder):
    """p(word | x) is the product of the choices on the way from the root of a tree to the word (Morin and Bengio 2005).

    ``HierarchicalSoftmaxBuilder(input_dim, cluster_file, dic, pc, init=None)``. cluster_file: a file (or a list of lines)
    ``SYMBOL SYMBOL ...<TAB>WORD [COUNT]``, the symbols naming the nodes from the root to the one that holds the word;
    dic: {word: id}, ids from 0. Parameters of a node with n > 2 children or words: W {n,input_dim}, b {n}; with two: W
    {1,input_dim}, b {1} (root/W, root.0/W, root.0.1/W, ... by numbers of children). init is that of the matrices, as
    for ClassFactoredSoftmaxBuilder. Of C++ only in DyNet. Exceptions as for that one, too.
    """

    collection_name = "hsm-builder"

    def __init__(
        self, input_dim: int, cluster_file: Any, dic: Any, pc: Any, init: Any = None, *, name: str | None = None
    ) -> None:
        who = type(self).__name__
        self._begin(input_dim, read_paths(cluster_file, word_ids(dic, who), who), pc, init, name)

    def _begin(
        self,
        input_dim: int,
        paths: Sequence[tuple[Sequence[str], int]],
        pc: Any,
        init: Any = None,
        name: str | None = None,
    ) -> None:
        root = _Node()
        ways: dict[int, list[tuple[_Node, int]]] = {}
        for path, word in paths:
            node, way = root, []
            for symbol in path:
                child = node.child(symbol)
                way.append((node, node.number[symbol]))
                node = child
            ways[word] = [*way, (node, len(node.words))]
            node.words.append(word)
        for word, way in ways.items():
            if way[-1][0].children:
                raise DataError(f"[{type(self).__name__}] the node of word {word} has children, too; words are leaves")
        super().__init__(input_dim, pc, name)
        self._paths = [(list(path), word) for path, word in paths]
        self._root = root
        # Nodes where there is nothing to choose are left out.
        self._way: list[list[tuple[_Node, int]] | None] = [None] * (1 + max(ways))
        for word, way in ways.items():
            self._way[word] = [(node, k) for node, k in way if node.size() > 1]
        root.add_parameters(self._collection, self.input_dim, init)

    # ---- losses --------------------------------------------------------------------------------------------------------

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x), c the id of a word: x {input_dim} -> {1}. IndexError when the word is not in the tree."""
        way = word_in(self._way, c, self)
        if not way:
            return _core.zeros(1, batch_size=batch_size(x))
        losses = [self._choice(node, k, x, update) for node, k in way]
        return losses[0] if len(losses) == 1 else _core.esum(losses)

    def _choice(self, node: _Node, k: int, x: Any, update: bool) -> Any:
        """-log of the probability of child k. The sign is a number of the node's, so that both outcomes are one batch."""
        scores = self._node_scores(node, x, update)
        if node.size() == 2:
            return -_core.log_sigmoid(scores * (1.0 if k == 0 else -1.0))
        return _core.pickneglogsoftmax(scores, k)

    def _node_scores(self, node: _Node, x: Any, update: bool) -> Any:
        assert node.w is not None
        return self._scores(node.w, node.b, x, update)

    # ---- distributions -------------------------------------------------------------------------------------------------

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """The same as full_log_distribution(), log-probabilities being scores."""
        return self.full_log_distribution(x, update)

    def full_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p(word | x) of all words by id: x {input_dim} -> {highest id + 1}; -10000 for a word not in the tree."""
        words: list[int] = []
        parts: list[Any] = []
        self._descend(self._root, None, x, update, words, parts)
        where = {word: i for i, word in enumerate(words)}
        out = ops.select_rows(_core.concatenate(parts), [where.get(word, 0) for word in range(len(self._way))])
        return without(out, [place is None for place in self._way])

    def _descend(self, node: _Node, above: Any, x: Any, update: bool, words: list[int], parts: list[Any]) -> None:
        """Adds words and their log-probabilities, in the order of the tree. above: log-probability of the node, {1}; None: 0."""
        if node.size() == 1:
            here = None
        elif node.size() == 2:
            score = self._node_scores(node, x, update)
            here = _core.log_sigmoid(_core.concatenate([score, -score]))
        else:
            here = _core.log_softmax(self._node_scores(node, x, update))
        if here is None:
            here = above
        elif above is not None:
            here = here + above
        if node.children:
            for k, child in enumerate(node.children):
                self._descend(child, here if node.size() == 1 else ops.pick(here, k), x, update, words, parts)
        else:
            words += node.words
            parts.append(_core.zeros(1, batch_size=batch_size(x)) if here is None else here)

    def sample(self, x: Any) -> Any:
        """The id of a word drawn from p(. | x); a list of them when x has a mini-batch."""
        words = [0] * batch_size(x)
        self._draw(self._root, x, list(range(len(words))), words)
        return one_or_all(words, x)

    def _draw(self, node: _Node, x: Any, members: list[int], words: list[int]) -> None:
        """Draws for these members of the mini-batch, whose inputs are x, from node down."""
        drawn = [0] * len(members)
        if node.size() == 2:
            score = self._node_scores(node, x, True)
            drawn = draw(_core.concatenate([score, _core.zeros(1)]))
        elif node.size() > 2:
            drawn = draw(self._node_scores(node, x, True))
        for k, mine in groups(drawn).items():
            if node.children:
                self._draw(node.children[k], elements(x, mine), [members[i] for i in mine], words)
            else:
                for i in mine:
                    words[members[i]] = node.words[k]

    # ---- the rest ------------------------------------------------------------------------------------------------------

    @property
    def spec(self) -> tuple[Any, ...]:
        """What makes such a builder again, without file and collection: input_dim, (symbols, id) of the words."""
        return (self.input_dim, [(list(path), word) for path, word in self._paths])

    @classmethod
    def from_spec(cls, spec: Any, model: Any) -> HierarchicalSoftmaxBuilder:
        """A builder from its spec, with new parameters in a sub-collection of model."""
        input_dim, paths = spec
        builder = cls.__new__(cls)
        builder._begin(input_dim, paths, model)
        return builder

    def __repr__(self) -> str:
        return f"<{self.whoami()}: {self.input_dim} to {len(self._paths)} words>"
