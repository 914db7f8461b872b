"""Binary tree LSTM with a class, and a loss, at every node (sentiment); gates written by hand, node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import made_up
import numpy as np

from tasks.common import Model, Products, Shapes, Sizes

SIZES = {
    "base": {"words": 18_000, "emb": 300, "hidden": 150, "classes": 5, "batch": 64},
    "large": {"words": 18_000, "emb": 256, "hidden": 256, "classes": 5, "batch": 64},
}
GATES = ("i", "o", "u")
CHILD_GATES = (*GATES, "f1", "f2")  # a forget gate for each child
Tree = made_up.Tree


def shapes(sizes: Sizes) -> Shapes:
    emb, hidden = sizes["emb"], sizes["hidden"]
    return {
        "word_table": (sizes["words"], emb),
        **{f"W_{gate}": (hidden, emb) for gate in GATES},
        **{f"U{child}_{gate}": (hidden, hidden) for gate in CHILD_GATES for child in (1, 2)},
        **{f"b_{gate}": (hidden,) for gate in (*GATES, "f")},
        "W_out": (sizes["classes"], hidden),
    }


def data(rng: Any, count: int, sizes: Sizes) -> list[Tree]:
    return made_up.trees(rng, count, sizes["words"], sizes["classes"])


def length(tree: Tree) -> int:
    return 1 if len(tree) == 2 else length(tree[1]) + length(tree[2])


def count_heights(tree: Tree, counts: Counter[int]) -> int:
    """Adds the nodes of a tree by height; returns the tree's own."""
    height = 0 if len(tree) == 2 else 1 + max(count_heights(child, counts) for child in tree[1:])
    counts[height] += 1
    return height


def products(batch: list[Tree], sizes: Sizes) -> Products:
    counts: Counter[int] = Counter()
    for tree in batch:
        count_heights(tree, counts)
    emb, hidden = sizes["emb"], sizes["hidden"]
    levels = [counts[height] for height in range(1, max(counts) + 1)]
    return [
        (3 * hidden, emb, [counts[0]]),
        (5 * hidden, 2 * hidden, levels),
        (sizes["classes"], hidden, [sum(counts.values())]),
    ]


class Program(Model):
    def make(self) -> None:
        self.vectors = self.table("word_table")
        self.W = [self.weight(f"W_{gate}") for gate in GATES]
        self.U = [[self.weight(f"U{child}_{gate}") for child in (1, 2)] for gate in CHILD_GATES]
        self.b = [self.weight(f"b_{gate}") for gate in (*GATES, "f")]
        self.W_out = self.weight("W_out")

    def loss(self, instance: Tree) -> Any:
        losses: list[Any] = []
        self.node(instance, losses)
        return self.dy.esum(losses)

    def node(self, tree: Tree, losses: list[Any]) -> tuple[Any, Any]:
        """h and c of a node; adds the losses of the node and of all under it."""
        dy = self.dy
        h, c = (
            self.leaf(tree[1]) if len(tree) == 2 else self.inner(self.node(tree[1], losses), self.node(tree[2], losses))
        )
        losses.append(dy.pickneglogsoftmax(self.W_out * h, tree[0]))
        return h, c

    def leaf(self, word: int) -> tuple[Any, Any]:
        dy, (Wi, Wo, Wu), (bi, bo, bu, _) = self.dy, self.W, self.b
        x = self.vectors[word]
        i = dy.logistic(dy.affine_transform([bi, Wi, x]))
        o = dy.logistic(dy.affine_transform([bo, Wo, x]))
        u = dy.tanh(dy.affine_transform([bu, Wu, x]))
        c = dy.cmult(i, u)
        return dy.cmult(o, dy.tanh(c)), c

    def inner(self, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
        dy, (bi, bo, bu, bf) = self.dy, self.b
        (h1, c1), (h2, c2) = left, right
        (Ui1, Ui2), (Uo1, Uo2), (Uu1, Uu2), (Uf11, Uf12), (Uf21, Uf22) = self.U
        i = dy.logistic(dy.affine_transform([bi, Ui1, h1, Ui2, h2]))
        f1 = dy.logistic(dy.affine_transform([bf, Uf11, h1, Uf12, h2]))
        f2 = dy.logistic(dy.affine_transform([bf, Uf21, h1, Uf22, h2]))
        o = dy.logistic(dy.affine_transform([bo, Uo1, h1, Uo2, h2]))
        u = dy.tanh(dy.affine_transform([bu, Uu1, h1, Uu2, h2]))
        c = dy.cmult(i, u) + dy.cmult(f1, c1) + dy.cmult(f2, c2)
        return dy.cmult(o, dy.tanh(c)), c


class Idiomatic(Model):
    """The gates are a cell of the builder's; leaves are looked up in one call, there is one loss for all nodes of all trees."""

    def make(self) -> None:
        dy, sizes, w = self.dy, self.sizes, self.weights
        self.vectors = self.table("word_table")
        self.cell = dy.NaryTreeLSTMBuilder(2, 1, sizes["emb"], sizes["hidden"], self.model)
        W, b, Wf, bf, U1, U2 = self.cell.get_parameters()[0]
        W.set_value(np.concatenate([w[f"W_{gate}"] for gate in GATES]))
        b.set_value(np.concatenate([w[f"b_{gate}"] for gate in GATES]))
        bf.set_value(w["b_f"])
        for child, U in ((1, U1), (2, U2)):
            U.set_value(np.concatenate([w[f"U{child}_{gate}"] for gate in CHILD_GATES]))
        Wf.set_updated(False)  # only leaves have inputs here, and they forget nothing
        self.W_out = self.weight("W_out")

    def batch_loss(self, batch: Sequence[Tree]) -> Any:
        dy = self.dy
        outputs: list[Any] = []
        labels: list[int] = []
        for tree in batch:
            words: list[int] = []
            flatten(tree, words)
            self.node(tree, iter(self.vectors.rows(words)), outputs, labels)
        scores = self.W_out * dy.concatenate_to_batch(outputs)
        return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, labels))

    def node(self, tree: Tree, leaves: Any, outputs: list[Any], labels: list[int]) -> Any:
        if len(tree) == 2:
            node = self.cell.node(next(leaves))
        else:
            left = self.node(tree[1], leaves, outputs, labels)
            node = self.cell.node(None, [left, self.node(tree[2], leaves, outputs, labels)])
        outputs.append(node.output())
        labels.append(tree[0])
        return node


def flatten(tree: Tree, words: list[int]) -> None:
    """Adds the words of a tree from left to right."""
    if len(tree) == 2:
        words.append(tree[1])
    else:
        flatten(tree[1], words)
        flatten(tree[2], words)
