"""The biaffine parser in PyTorch: padded sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from made_up import Parsed
from torch import Tensor

from tasks.biaffine import LAYERS
from tasks.torch_common import IGNORED, Base, both_ways, pad, pick_loss, place


class Net(Base):
    COMPILED = ("scores",)

    def make(self) -> None:
        self.word_table, self.root = self.table("word_table"), self.weight("root")
        self.forward_lstm, self.backward_lstm = self.lstm("forward"), self.lstm("backward")
        self.layers = self.linear([f"W_{name}" for name in LAYERS], [f"b_{name}" for name in LAYERS])
        self.U, self.u = self.weight("U"), self.weight("u")
        self.label = self.beside(["L_head", "L_dependent"], "b_label")

    def one(self, instance: Parsed) -> Tensor:
        return self.padded([instance])

    def scores(self, x: Tensor, absent: Tensor, heads: Tensor) -> tuple[Tensor, Tensor]:
        """x {sentences, 1 + longest, 2 hidden}: scores of the heads and, with the gold heads, of the labels."""
        arc, rel = self.sizes["arc"], self.sizes["rel"]
        arc_head, arc_dependent, rel_head, rel_dependent = torch.relu(self.layers(x)).split([arc, arc, rel, rel], -1)
        arcs = (arc_dependent[:, 1:] @ self.U.T) @ arc_head.transpose(1, 2) + (arc_head @ self.u[0])[:, None]
        head = rel_head.gather(1, heads[:, :, None].expand(-1, -1, rel))
        return arcs + absent, self.label(torch.cat([head, rel_dependent[:, 1:]], -1))

    def padded(self, batch: Sequence[Parsed]) -> Tensor:
        lengths = [1 + len(s.words) for s in batch]
        words = self.word_table(pad([s.words for s in batch]))
        x = torch.cat([self.root.expand(1, len(batch), -1), words])
        x = both_ways(self.forward_lstm, self.backward_lstm, x, lengths).transpose(0, 1).contiguous()
        absent = np.where(np.arange(max(lengths)) < np.array(lengths)[:, None], 0, -1e30).astype(np.float32)
        heads = pad([s.heads for s in batch], IGNORED).T.contiguous()
        arcs, labels = self.scores(x, place(absent)[:, None], heads.clamp(min=0))
        golden = pad([s.labels for s in batch], IGNORED).T
        return pick_loss(arcs, heads) + pick_loss(labels, golden)
