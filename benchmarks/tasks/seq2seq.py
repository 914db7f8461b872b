"""Translation with attention: a BiLSTM reads the source; each step of the decoder attends to it and reads the context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import made_up

from tasks.common import Model, Products, Shapes, Sizes, alive, lstm_products, lstm_shapes

SIZES = {
    "base": {"words": 2_000, "emb": 256, "hidden": 256, "batch": 32},
    "large": {"words": 2_000, "emb": 512, "hidden": 512, "batch": 32},
}
Instance = tuple[list[int], list[int]]  # source, target; id 0 ends the target and stands before it


def shapes(sizes: Sizes) -> Shapes:
    words, emb, hidden = sizes["words"], sizes["emb"], sizes["hidden"]
    half = hidden // 2  # each direction of the encoder
    return {
        "source_table": (words, emb),
        "target_table": (words, emb),
        **lstm_shapes("forward", emb, half),
        **lstm_shapes("backward", emb, half),
        **lstm_shapes("decoder", emb + hidden, hidden),
        "W_keys": (hidden, hidden),
        "W_query": (hidden, hidden),
        "v": (1, hidden),
        "W_out": (words, hidden),
        "b_out": (words,),
    }


def data(rng: Any, count: int, sizes: Sizes) -> list[Instance]:
    return made_up.pairs(rng, count, sizes["words"])


def length(instance: Instance) -> int:
    return len(instance[0])


def products(batch: list[Instance], sizes: Sizes) -> Products:
    emb, hidden = sizes["emb"], sizes["hidden"]
    source, target = [len(s) for s, _ in batch], [len(t) for _, t in batch]
    encoder = lstm_products(emb, hidden // 2, source)
    steps = alive(target)
    return [
        *encoder,
        *encoder,
        (hidden, hidden, [sum(source)]),  # keys
        (4 * hidden, emb, [sum(target)]),
        (4 * hidden, 2 * hidden, steps),
        (hidden, hidden, steps),  # queries
        # Scores and contexts: a vector by the source's matrix, sentence by sentence.
        *[(hidden, n, [1] * m) for n, m in zip(source, target, strict=True)],
        *[(n, hidden, [1] * m) for n, m in zip(source, target, strict=True)],
        (sizes["words"], hidden, [sum(target)]),
    ]


class Program(Model):
    def make(self) -> None:
        self.source_vectors, self.target_vectors = self.table("source_table"), self.table("target_table")
        self.forward, self.backward, self.decoder = self.lstm("forward"), self.lstm("backward"), self.lstm("decoder")
        self.W_keys, self.W_query, self.v = self.weight("W_keys"), self.weight("W_query"), self.weight("v")
        self.W_out, self.b_out = self.weight("W_out"), self.weight("b_out")

    def encode(self, xs: list[Any]) -> Any:
        """The source's words as columns, {hidden, words}."""
        dy = self.dy
        fs = self.forward.initial_state().transduce(xs)
        bs = self.backward.initial_state().transduce(xs[::-1])[::-1]
        return dy.concatenate_cols([dy.concatenate([f, b]) for f, b in zip(fs, bs, strict=True)])

    def attend(self, source: Any, keys: Any, query: Any) -> Any:
        """The context of a decoder's state, {hidden}."""
        dy = self.dy
        scores = self.v * dy.tanh(dy.colwise_add(keys, self.W_query * query))
        return source * dy.softmax(dy.transpose(scores))

    def loss(self, instance: Instance) -> Any:
        dy = self.dy
        source = self.encode([self.source_vectors[word] for word in instance[0]])
        keys = self.W_keys * source
        state, query = self.decoder.initial_state(), dy.zeros((self.sizes["hidden"],))
        losses = []
        for before, word in zip([0, *instance[1]], instance[1], strict=False):
            context = self.attend(source, keys, query)
            state = state.add_input(dy.concatenate([self.target_vectors[before], context]))
            query = state.output()
            scores = dy.affine_transform([self.b_out, self.W_out, query])
            losses.append(dy.pickneglogsoftmax(scores, word))
        return dy.esum(losses)


class Idiomatic(Program):
    """Rows of the tables in one call; the scores of all words are one matrix."""

    def batch_loss(self, batch: Sequence[Instance]) -> Any:
        dy = self.dy
        outputs = [output for words, targets in batch for output in self.decode(words, targets)]
        scores = dy.affine_transform([self.b_out, self.W_out, dy.concatenate_to_batch(outputs)])
        return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, [word for _, targets in batch for word in targets]))

    def decode(self, words: list[int], targets: list[int]) -> list[Any]:
        """The decoder's outputs, {hidden} each."""
        dy = self.dy
        fs = self.forward.initial_state().transduce(xs := self.source_vectors.rows(words))
        bs = self.backward.initial_state().transduce(xs[::-1])[::-1]
        source = dy.concatenate([dy.concatenate_cols(fs), dy.concatenate_cols(bs)])
        keys = self.W_keys * source
        state, query = self.decoder.initial_state(), dy.zeros((self.sizes["hidden"],))
        outputs = []
        for x in self.target_vectors.rows([0, *targets[:-1]]):
            state = state.add_input(dy.concatenate([x, self.attend(source, keys, query)]))
            query = state.output()
            outputs.append(query)
        return outputs
