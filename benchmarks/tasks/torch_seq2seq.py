"""Translation with attention in PyTorch: padded sources and targets, the decoder step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tasks.common import alive
from tasks.seq2seq import Instance
from tasks.torch_common import Base, both_ways, ids, pad, pick_loss, place, zeros


class Net(Base):
    COMPILED = ("attend",)

    def make(self) -> None:
        self.source_table, self.target_table = self.table("source_table"), self.table("target_table")
        self.forward_lstm, self.backward_lstm = self.lstm("forward"), self.lstm("backward")
        self.decoder = self.cell("decoder")
        self.keys, self.query = self.linear(["W_keys"], []), self.linear(["W_query"], [])
        self.v = self.weight("v")
        self.out = self.linear(["W_out"], ["b_out"])

    def one(self, instance: Instance) -> Tensor:
        return self.padded([instance])

    def attend(self, source: Tensor, keys: Tensor, absent: Tensor, state: Tensor) -> Tensor:
        """The contexts of the decoder's states; source, keys {sentences, words, hidden}, absent {sentences, words}."""
        scores = torch.tanh(keys + self.query(state)[:, None]) @ self.v[0]
        weights = torch.softmax(scores + absent, -1)
        return (weights[:, None] @ source)[:, 0]

    def padded(self, batch: Sequence[Instance]) -> Tensor:
        batch = sorted(batch, key=lambda pair: -len(pair[1]))
        lengths = [len(words) for words, _ in batch]
        x = self.source_table(pad([words for words, _ in batch]))
        source = both_ways(self.forward_lstm, self.backward_lstm, x, lengths).transpose(0, 1).contiguous()
        keys = self.keys(source)
        absent = place(np.where(np.arange(max(lengths)) < np.array(lengths)[:, None], 0, -1e30).astype(np.float32))
        targets = self.target_table(pad([[0, *words[:-1]] for _, words in batch]))
        state = cell = zeros(len(batch), self.sizes["hidden"])
        outputs = []
        going = alive([len(words) for _, words in batch])
        for x_t, n in zip(targets, going, strict=True):
            context = self.attend(source[:n], keys[:n], absent[:n], state[:n])
            state, cell = self.decoder(torch.cat([x_t[:n], context], -1), (state[:n], cell[:n]))
            outputs.append(state)
        golden = [words[t] for t, n in enumerate(going) for _, words in batch[:n]]
        return pick_loss(self.out(torch.cat(outputs)), ids(golden))
