"""The language model in PyTorch: padded; the softmax only for words that count."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tasks.torch_common import IGNORED, Base, pad, pick_loss


class Net(Base):
    def make(self) -> None:
        self.word_table, self.rnn = self.table("word_table"), self.lstm("lstm")
        self.out = self.linear(["W"], ["b"])

    def one(self, instance: list[int]) -> Tensor:
        return self.padded([instance])

    def padded(self, batch: Sequence[list[int]]) -> Tensor:
        labels = pad([sentence[1:] for sentence in batch], IGNORED)
        states = self.rnn(self.word_table(pad([sentence[:-1] for sentence in batch])))[0]
        counts = labels != IGNORED
        return pick_loss(self.out(states[counts]), labels[counts])
