"""Language model: an LSTM over the words, a softmax over all words at each; one sentence at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import made_up

from tasks.common import Model, Products, Shapes, Sizes, lstm_products, lstm_shapes

SIZES = {
    "base": {"words": 10_000, "emb": 256, "hidden": 256, "batch": 64},
    "large": {"words": 10_000, "emb": 512, "hidden": 512, "batch": 64},
}
MARK = 0  # before the first word and after the last


def shapes(sizes: Sizes) -> Shapes:
    words, emb, hidden = sizes["words"], sizes["emb"], sizes["hidden"]
    return {
        "word_table": (words, emb),
        **lstm_shapes("lstm", emb, hidden),
        "W": (words, hidden),
        "b": (words,),
    }


def data(rng: Any, count: int, sizes: Sizes) -> list[list[int]]:
    return [[MARK, *sentence, MARK] for sentence in made_up.sentences(rng, count, sizes["words"])]


def length(instance: list[int]) -> int:
    return len(instance) - 1


def products(batch: list[list[int]], sizes: Sizes) -> Products:
    lengths = [length(sentence) for sentence in batch]
    return [
        *lstm_products(sizes["emb"], sizes["hidden"], lengths),
        (sizes["words"], sizes["hidden"], [sum(lengths)]),
    ]


class Program(Model):
    def make(self) -> None:
        self.vectors, self.rnn = self.table("word_table"), self.lstm("lstm")
        self.W, self.b = self.weight("W"), self.weight("b")

    def loss(self, instance: list[int]) -> Any:
        dy = self.dy
        states = self.rnn.initial_state().transduce([self.vectors[word] for word in instance[:-1]])
        losses = []
        for state, word in zip(states, instance[1:], strict=True):
            scores = dy.affine_transform([self.b, self.W, state])
            losses.append(dy.pickneglogsoftmax(scores, word))
        return dy.esum(losses)


class Idiomatic(Program):
    """The scores of all words are one matrix."""

    def batch_loss(self, batch: Sequence[list[int]]) -> Any:
        dy = self.dy
        states: list[Any] = []
        for sentence in batch:
            states += self.rnn.initial_state().transduce(self.vectors.rows(sentence[:-1]))
        scores = dy.affine_transform([self.b, self.W, dy.concatenate_to_batch(states)])
        return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, [word for s in batch for word in s[1:]]))
