"""BiLSTM tagger: word vectors, an LSTM in each direction, a hidden layer, a softmax over the tags at every word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import made_up

from tasks.common import Model, Products, Shapes, Sizes, lstm_products, lstm_shapes

SIZES = {
    "base": {"words": 20_000, "emb": 128, "hidden": 50, "mlp": 32, "tags": 45, "batch": 64},
    "large": {"words": 20_000, "emb": 256, "hidden": 256, "mlp": 256, "tags": 45, "batch": 64},
}
Instance = tuple[list[int], list[int]]  # words, tags


def shapes(sizes: Sizes) -> Shapes:
    emb, hidden, mlp, tags = (sizes[name] for name in ("emb", "hidden", "mlp", "tags"))
    return {
        "word_table": (sizes["words"], emb),
        **lstm_shapes("forward", emb, hidden),
        **lstm_shapes("backward", emb, hidden),
        "W1": (mlp, 2 * hidden),
        "b1": (mlp,),
        "W2": (tags, mlp),
        "b2": (tags,),
    }


def data(rng: Any, count: int, sizes: Sizes) -> list[Instance]:
    return made_up.tagged(rng, count, sizes["words"], sizes["tags"])


def length(instance: Instance) -> int:
    return len(instance[0])


def products(batch: list[Instance], sizes: Sizes) -> Products:
    lengths = [len(words) for words, _ in batch]
    lstm = lstm_products(sizes["emb"], sizes["hidden"], lengths)
    tokens = [sum(lengths)]
    return [*lstm, *lstm, (sizes["mlp"], 2 * sizes["hidden"], tokens), (sizes["tags"], sizes["mlp"], tokens)]


class Program(Model):
    def make(self) -> None:
        self.vectors = self.table("word_table")
        self.forward, self.backward = self.lstm("forward"), self.lstm("backward")
        self.W1, self.b1, self.W2, self.b2 = (self.weight(name) for name in ("W1", "b1", "W2", "b2"))

    def inputs(self, words: list[int]) -> list[Any]:
        vectors = self.vectors
        return [vectors[word] for word in words]

    def loss(self, instance: Instance) -> Any:
        dy, (words, tags) = self.dy, instance
        xs = self.inputs(words)
        fs = self.forward.initial_state().transduce(xs)
        bs = self.backward.initial_state().transduce(xs[::-1])[::-1]
        losses = []
        for f, b, tag in zip(fs, bs, tags, strict=True):
            hidden = dy.tanh(dy.affine_transform([self.b1, self.W1, dy.concatenate([f, b])]))
            scores = dy.affine_transform([self.b2, self.W2, hidden])
            losses.append(dy.pickneglogsoftmax(scores, tag))
        return dy.esum(losses)


class Idiomatic(Program):
    """Rows of the table in one call; after the LSTMs the words of all sentences are one matrix, with one loss."""

    def inputs(self, words: list[int]) -> list[Any]:
        return self.vectors.rows(words)  # type: ignore[no-any-return]

    def batch_loss(self, batch: Sequence[Instance]) -> Any:
        dy = self.dy
        fs: list[Any] = []
        bs: list[Any] = []
        for words, _ in batch:
            xs = self.inputs(words)
            fs += self.forward.initial_state().transduce(xs)
            bs += self.backward.initial_state().transduce(xs[::-1])[::-1]
        both = dy.concatenate([dy.concatenate_to_batch(fs), dy.concatenate_to_batch(bs)])
        hidden = dy.tanh(dy.affine_transform([self.b1, self.W1, both]))
        scores = dy.affine_transform([self.b2, self.W2, hidden])
        return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, [tag for _, tags in batch for tag in tags]))
