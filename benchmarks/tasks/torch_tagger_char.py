"""The tagger with characters in PyTorch: the rare words of a mini-batch are one padded batch of spellings."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tasks import torch_tagger
from tasks.tagger_char import characters
from tasks.torch_common import both_ways, ids, pad


class Net(torch_tagger.Net):
    def make(self) -> None:
        super().make()
        self.char_table = self.table("char_table")
        self.char_forward, self.char_backward = self.lstm("char_forward"), self.lstm("char_backward")
        words, chars = self.sizes["words"], self.sizes["chars"]
        self.spellings = [characters(word, words, chars) for word in range(words)]

    def inputs(self, words: Sequence[Sequence[int]]) -> Tensor:
        spellings, count = self.spellings, len(words)
        rare = [(t * count + j, spellings[word]) for j, row in enumerate(words) for t, word in enumerate(row)]
        rare = [(row, spelling) for row, spelling in rare if spelling]
        x = super().inputs([[0 if spellings[word] else word for word in row] for row in words])
        if not rare:
            return x
        lengths = [len(spelling) for _, spelling in rare]
        h = both_ways(self.char_forward, self.char_backward, self.char_table(pad([s for _, s in rare])), lengths)
        half = h.shape[-1] // 2
        last = h[ids(lengths) - 1, ids(list(range(len(rare)))), :half]
        vectors = torch.cat([last, h[0, :, half:]], -1)
        rows = ids([row for row, _ in rare])
        return x.reshape(-1, x.shape[-1]).index_copy(0, rows, vectors).view(x.shape)
