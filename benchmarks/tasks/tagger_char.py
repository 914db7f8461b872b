"""BiLSTM tagger whose rare words (8 % of the tokens) get their vectors from a BiLSTM over their characters."""

from __future__ import annotations

from functools import cache
from typing import Any

import made_up

from tasks import tagger
from tasks.common import Products, Shapes, Sizes, lstm_products, lstm_shapes
from tasks.tagger import Instance, data, length

__all__ = ["SIZES", "Idiomatic", "Program", "characters", "data", "length", "products", "shapes"]

RARE_SHARE = 0.08
SIZES = {
    "base": tagger.SIZES["base"] | {"chars": 60, "char_emb": 20, "char_hidden": 64},
    "large": tagger.SIZES["large"] | {"chars": 60, "char_emb": 64, "char_hidden": 128},
}


def shapes(sizes: Sizes) -> Shapes:
    emb, hidden = sizes["char_emb"], sizes["char_hidden"]
    return {
        **tagger.shapes(sizes),
        "char_table": (sizes["chars"], emb),
        **lstm_shapes("char_forward", emb, hidden),
        **lstm_shapes("char_backward", emb, hidden),
    }


@cache
def characters(word: int, words: int, chars: int) -> tuple[int, ...]:
    """The characters of a rare word; empty for the others."""
    return tuple(made_up.spelling(word, chars)) if word >= made_up.first_rare(words, RARE_SHARE) else ()


def products(batch: list[Instance], sizes: Sizes) -> Products:
    spelt = [characters(word, sizes["words"], sizes["chars"]) for words, _ in batch for word in words]
    lengths = [len(chars) for chars in spelt if chars]
    lstm = lstm_products(sizes["char_emb"], sizes["char_hidden"], lengths) if lengths else []
    return [*lstm, *lstm, *tagger.products(batch, sizes)]


class Program(tagger.Program):
    def make(self) -> None:
        super().make()
        self.char_vectors = self.table("char_table")
        self.char_forward, self.char_backward = self.lstm("char_forward"), self.lstm("char_backward")
        words, chars = self.sizes["words"], self.sizes["chars"]
        self.spellings = [characters(word, words, chars) for word in range(words)]

    def inputs(self, words: list[int]) -> list[Any]:
        vectors, spellings = self.vectors, self.spellings
        return [self.from_characters(spellings[word]) if spellings[word] else vectors[word] for word in words]

    def from_characters(self, chars: tuple[int, ...]) -> Any:
        xs = [self.char_vectors[c] for c in chars]
        forward = self.char_forward.initial_state().transduce(xs)[-1]
        backward = self.char_backward.initial_state().transduce(xs[::-1])[-1]
        return self.dy.concatenate([forward, backward])


class Idiomatic(Program):
    """Rows of the tables in one call; after the LSTMs the words of all sentences are one matrix, with one loss."""

    batch_loss = tagger.Idiomatic.batch_loss

    def inputs(self, words: list[int]) -> list[Any]:
        spellings = self.spellings
        common = iter(self.vectors.rows([word for word in words if not spellings[word]]))
        return [self.from_characters(spellings[word]) if spellings[word] else next(common) for word in words]

    def from_characters(self, chars: tuple[int, ...]) -> Any:
        xs = self.char_vectors.rows(chars)
        forward = self.char_forward.initial_state().transduce(xs)[-1]
        backward = self.char_backward.initial_state().transduce(xs[::-1])[-1]
        return self.dy.concatenate([forward, backward])
