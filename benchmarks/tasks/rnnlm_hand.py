"""The language model batched by hand: sentences padded to the longest, losses behind the end masked out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks import rnnlm
from tasks.rnnlm import MARK, SIZES, data, length, products, shapes

__all__ = ["SIZES", "Idiomatic", "Program", "data", "length", "padded", "products", "shapes"]


def padded(batch: Sequence[list[int]]) -> tuple[Any, Any]:
    """Words {longest, sentences} and what counts of them, 1 or 0."""
    longest = max(len(sentence) for sentence in batch)
    words = np.full((longest, len(batch)), MARK)
    mask = np.zeros((longest, len(batch)), np.float32)
    for j, sentence in enumerate(batch):
        words[: len(sentence), j] = sentence
        mask[: len(sentence), j] = 1
    return words, mask


class Program(rnnlm.Program):
    def batch_loss(self, batch: Sequence[list[int]]) -> Any:
        dy, (words, mask) = self.dy, padded(batch)
        state, losses = self.rnn.initial_state(), []
        for now, after, counts in zip(words[:-1].tolist(), words[1:].tolist(), mask[1:], strict=True):
            state = state.add_input(self.vectors.batch(now))
            scores = dy.affine_transform([self.b, self.W, state.output()])
            loss = dy.pickneglogsoftmax_batch(scores, after)
            if not counts.all():
                loss = dy.cmult(loss, dy.inputTensor(counts[None, :], batched=True))
            losses.append(loss)
        return dy.sum_batches(dy.esum(losses))


class Idiomatic(rnnlm.Program):
    """The scores of all steps are one matrix, without those behind the ends."""

    def batch_loss(self, batch: Sequence[list[int]]) -> Any:
        dy = self.dy
        batch = sorted(batch, key=len, reverse=True)
        words, mask = padded(batch)
        going = [int(n) for n in mask[1:].sum(axis=1)]
        xs = [self.vectors.batch(row[:n]) for row, n in zip(words[:-1].tolist(), going, strict=True)]
        state, states = self.rnn.initial_state(), []
        for x, n in zip(xs, going, strict=True):
            if states and n < states[-1].dim()[1]:
                keep = list(range(n))
                state = state.set_s([dy.pick_batch_elems(part, keep) for part in state.s()])
            state = state.add_input(x)
            states.append(state.output())
        scores = dy.affine_transform([self.b, self.W, dy.concatenate_to_batch(states)])
        after = [word for row, n in zip(words[1:].tolist(), going, strict=True) for word in row[:n]]
        return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, after))
