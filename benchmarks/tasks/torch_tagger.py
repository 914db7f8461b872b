"""The tagger in PyTorch: padded LSTMs from both ends."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tasks.tagger import Instance
from tasks.torch_common import IGNORED, Base, both_ways, pad, pick_loss


class Net(Base):
    COMPILED = ("scores",)

    def make(self) -> None:
        self.word_table = self.table("word_table")
        self.forward_lstm, self.backward_lstm = self.lstm("forward"), self.lstm("backward")
        self.hidden = self.linear(["W1"], ["b1"])
        self.out = self.linear(["W2"], ["b2"])

    def one(self, instance: Instance) -> Tensor:
        return self.padded([instance])

    def inputs(self, words: Sequence[Sequence[int]]) -> Tensor:
        """The vectors of the words, {longest, sentences, emb}."""
        return self.word_table(pad(words))  # type: ignore[no-any-return]

    def scores(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.hidden(x)))  # type: ignore[no-any-return]

    def padded(self, batch: Sequence[Instance]) -> Tensor:
        words, tags = [w for w, _ in batch], [t for _, t in batch]
        x = both_ways(self.forward_lstm, self.backward_lstm, self.inputs(words), [len(w) for w in words])
        return pick_loss(self.scores(x), pad(tags, IGNORED))
