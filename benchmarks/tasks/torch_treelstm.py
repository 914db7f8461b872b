"""The tree LSTM in PyTorch: node by node, or all trees of a mini-batch level by level in one piece of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tasks.torch_common import Base, ids, pick_loss, place_all, zeros
from tasks.treelstm import CHILD_GATES, GATES, Tree


class Net(Base):
    COMPILED = ("leaf", "inner")

    def make(self) -> None:
        self.word_table = self.table("word_table")
        self.W = self.weight(*[f"W_{gate}" for gate in GATES])
        self.b_iou, self.b_f = self.weight(*[f"b_{gate}" for gate in GATES]), self.weight("b_f")
        children = [np.concatenate([self.arrays[f"U{k}_{gate}"] for gate in CHILD_GATES]) for k in (1, 2)]
        self.U = torch.nn.Parameter(torch.from_numpy(np.concatenate(children, axis=1)))
        self.W_out = self.weight("W_out")

    def leaf(self, x: Tensor) -> tuple[Tensor, Tensor]:
        i, o, u = F.linear(x, self.W, self.b_iou).chunk(3, -1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def inner(self, h: Tensor, c1: Tensor, c2: Tensor) -> tuple[Tensor, Tensor]:
        """h: those of both children side by side."""
        i, o, u, f1, f2 = F.linear(h, self.U, torch.cat([self.b_iou, self.b_f, self.b_f])).chunk(5, -1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
        return torch.sigmoid(o) * torch.tanh(c), c

    def one(self, instance: Tree) -> Tensor:
        hs: list[Tensor] = []
        labels: list[int] = []
        self.node(instance, hs, labels)
        return pick_loss(torch.stack(hs) @ self.W_out.T, ids(labels))

    def node(self, tree: Tree, hs: list[Tensor], labels: list[int]) -> tuple[Tensor, Tensor]:
        if len(tree) == 2:
            h, c = self.leaf(self.word_table(ids(tree[1])))
        else:
            (h1, c1), (h2, c2) = self.node(tree[1], hs, labels), self.node(tree[2], hs, labels)
            h, c = self.inner(torch.cat([h1, h2]), c1, c2)
        hs.append(h)
        labels.append(tree[0])
        return h, c

    def padded(self, batch: Sequence[Tree]) -> Tensor:
        levels: list[list[Any]] = []
        for tree in batch:
            sort_by_height(tree, levels)
        starts = np.cumsum([0, *map(len, levels)]).tolist()
        leaves = self.leaf(self.word_table(ids([word for _, word in levels[0]])))
        size = self.sizes["hidden"]
        memory_h, memory_c = zeros(starts[-1], size), zeros(starts[-1], size)
        memory_h[: starts[1]], memory_c[: starts[1]] = leaves
        children = [[[starts[height] + at for height, at in node[1:]] for node in level] for level in levels[1:]]
        rows_of = place_all([np.asarray(pairs, np.int64).reshape(-1) for pairs in children])
        for both, start, end in zip(rows_of, starts[1:], starts[2:], strict=False):
            rows = both.view(-1, 2)
            h = memory_h.index_select(0, both).view(len(rows), -1)
            new = self.inner(h, memory_c.index_select(0, rows[:, 0]), memory_c.index_select(0, rows[:, 1]))
            memory_h[start:end], memory_c[start:end] = new
        return pick_loss(memory_h @ self.W_out.T, ids([node[0] for level in levels for node in level]))


def sort_by_height(tree: Tree, levels: list[list[Any]]) -> tuple[int, int]:
    """Adds (label, word) and (label, left, right) to their levels; a child is a pair of level and place, returned."""
    children = [] if len(tree) == 2 else [sort_by_height(child, levels) for child in tree[1:]]
    height = 1 + max(height for height, _ in children) if children else 0
    if height == len(levels):
        levels.append([])
    levels[height].append((tree[0], *(children or tree[1:])))
    return height, len(levels[height]) - 1
