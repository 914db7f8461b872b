#!/usr/bin/env python
"""A language model of letters: a small transformer reads a block of text and says how likely each letter is the next.

    python recipes/transformer_lm.py                               # the treebank that comes with the project
    python recipes/transformer_lm.py --train a.txt --dev b.txt     # text; also CoNLL-U, trees, tagged text
    python recipes/transformer_lm.py --nltk treebank --layers 4    # any corpus of NLTK
    python recipes/transformer_lm.py predict --load letters.model - # goes on with what you type
    python recipes/transformer_lm.py --compare --batch 64          # automatic batching on and off

All blocks have one size, so this network is the same for every example. Automatic batching is of less use here than
anywhere else in these recipes, and does no harm: nothing in the program says "batch".

Vaswani and others: Attention is all you need (2017); Al-Rfou and others: Character-level language modeling with deeper
self-attention (2019).
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import Transformer, positions, sample
from dynet_lite.text import FORMS, KneserNey, Perplexity, Vocab, load_nltk_words, minibatches, read_words

END = "\n"  # ends a sentence
MOST = 1_000_000  # letters to count n-grams of, for a baseline

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    block: int = option(64, "letters that are read together")
    dim: int = option(64, "size of a letter's vector in every layer")
    layers: int = option(2, "layers of the transformer")
    heads: int = option(4, "heads of its attention")
    form: str = option("auto", "format of the files; auto: recognised by their content", choices=FORMS)

    epochs: int = option(80)
    patience: int = option(8)
    batch: int = option(8)
    learning_rate: float = option(2e-3)
    schedule: str = option("cosine")
    warmup: int = option(50)
    dropout: float = option(0.2, "share of the output of each layer to drop in training")

    temperature: float = option(0.7, "predict: below 1 likely letters come more often, 0 takes the likeliest")
    length: int = option(100, "predict: most letters to write")


# --- 2. Data and model --------------------------------------------------------------------------------------


class LetterModel(harness.Recipe[Settings, str]):
    """Letter and position -> transformer in which no position sees a later one -> a score per letter."""

    shares_evaluation = True
    score_name = "perplexity"
    lower_is_better = True
    unit = "blocks"
    predict_options = ("temperature", "length", "seed")
    smoke = {"epochs": 1, "batch": 4, "block": 12, "dim": 8, "heads": 2, "layers": 1}

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[str]:
        """Blocks of letters; the last letter of one is the first of the next, which is the first to be predicted."""
        data = harness.corpus(s, lambda path: read_words(path, s.form), home=__file__, nltk=load_nltk_words)

        def blocks(sentences: Iterable[list[str]]) -> list[str]:
            text = END + "".join(" ".join(words) + END for words in sentences)
            return [text[i : i + s.block + 1] for i in range(0, len(text) - 1, s.block)]

        train, dev, test = (blocks(sentences) if sentences else [] for sentences in (data.train, data.dev, data.test))
        return harness.Data(data.name, data.licence, train, dev, test, unit=f"blocks of {s.block} letters")

    @classmethod
    def build(cls, s: Settings, train: Sequence[str]) -> dict[str, Any]:
        return {"letters": Vocab.from_words((c for text in train for c in text), min_count=2).to_json()}

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.letters = Vocab.from_json(parts["letters"])
        n = len(self.letters)
        self.vectors = self.model.add_lookup_parameters((n, s.dim), init="normal", std=0.3, name="letters")
        self.transformer = Transformer(s.layers, s.dim, s.heads, 4 * s.dim, self.model)
        self.W = self.model.add_parameters((n, s.dim), init="fan-in", name="W")
        self.b = self.model.add_parameters(n, init=0, name="b")

    def scores(self, ids: list[int]) -> dy.Expression:
        """What may follow each letter, given it and those before: {letters} for each of them."""
        s, n = self.settings, len(ids)
        x = dy.reshape(dy.lookup_batch(self.vectors, ids), (s.dim, n)) + positions(s.dim, n)
        x = self.transformer(x, causal=True, dropout=s.dropout if self.training else 0.0)
        return dy.affine_transform([self.b, self.W, x])

    def networks(self) -> dict[str, Any]:
        """A whole text, which begins with the end mark; and a step, from the keys and values of the letters before."""
        layers = range(self.settings.layers)
        caches = [f"{kind}{i}" for kind in ("keys", "values") for i in layers]
        d = self.settings.dim

        def score(x: Any) -> Any:
            return dy.affine_transform([self.b, self.W, x])

        def text(letters: Any) -> Any:
            xs = onnx.lookup(self.vectors, letters)
            return self.transformer.symbolic(xs.map(lambda x, place: x + place, onnx.waves(xs, d)), causal=True).map(
                score
            )

        def step(letter: Any, **before: Any) -> Any:
            keys, values = ([before[f"{kind}{i}"] for i in layers] for kind in ("keys", "values"))
            x = onnx.lookup(self.vectors, letter) + onnx.waves(keys[0], d, after=True)
            x, keys, values = self.transformer.step(x, keys, values)
            return score(x), *keys, *values

        inputs = {"letter": onnx.Ids(), **{name: onnx.Input((d,), "t") for name in caches}}
        return {
            "text": (text, {"letters": onnx.Ids("n")}, ["scores"]),
            "step": (step, inputs, ["scores", *(f"{name}_next" for name in caches)]),
        }

    def losses(self, text: str) -> dy.Expression:
        """The sum of -log p of the letters after the first."""
        *ids, last = self.letters.ids(text)
        scores = dy.reshape(self.scores(ids), (len(self.letters),), len(ids))  # positions are a mini-batch here
        return dy.sum_batches(dy.pickneglogsoftmax(scores, [*ids[1:], last]))

    def batches(self, train: Sequence[str]) -> list[list[str]]:
        """The text is cut at other places in every epoch, so that a letter is seen with ever other ones before it."""
        s, text = self.settings, train[0][0] + "".join(block[1:] for block in train)
        cuts = [0, *range(1 + self.random.randrange(s.block), len(text) - 1, s.block), len(text) - 1]
        blocks = [text[a : b + 1] for a, b in pairwise(cuts)]
        return list(minibatches(blocks, s.batch, seed=self.random))

    def loss(self, batch: list[str]) -> dy.Expression:
        """Mean over the letters of the minibatch."""
        return dy.esum([self.losses(text) for text in batch]) * (1 / sum(len(text) - 1 for text in batch))

    def weight(self, batch: list[str]) -> int:
        return sum(len(text) - 1 for text in batch)

    # --- 3. Use ---------------------------------------------------------------------------------------------

    def evaluate(self, examples: Sequence[str]) -> harness.Score:
        score = Perplexity()
        for batch, loss in self.spread(self.whole_loss, minibatches(examples, 32)):
            score.add(loss, sum(len(text) - 1 for text in batch))
        return harness.Score(score.value, self.text_of(score))

    def whole_loss(self, batch: list[str]) -> float:
        dy.renew_cg()
        return dy.esum([self.losses(text) for text in batch]).value()

    @staticmethod
    def text_of(score: Perplexity) -> str:
        return f"{score} per letter ({math.log2(score.value):.3f} bits)"

    def baseline(self, train: Sequence[str]) -> tuple[str, Any] | None:
        """6-grams over the same letters. Here they see no end of a block."""
        if sum(map(len, train)) > MOST:
            return None

        def ids(examples: Iterable[str]) -> list[int]:
            return self.letters.ids("".join(block[1:] for block in examples))

        model = KneserNey([ids(train)], order=6, words=len(self.letters))

        def score(examples: list[str]) -> harness.Score:
            return harness.Score((found := model.perplexity([ids(examples)])).value, self.text_of(found))

        return "6-grams, Kneser-Ney", score

    def predict(self, lines: list[str]) -> Iterator[str]:
        """Goes on from each line to the end of a sentence, or until enough is written."""
        s, rng = self.settings, random.Random(self.settings.seed)
        for line in lines:
            text = END + line
            for _ in range(s.length):
                dy.renew_cg()
                values = self.scores(self.letters.ids(text[-s.block :])).npvalue().reshape(len(self.letters), -1)[:, -1]
                values[0] = float("-inf")  # the unknown letter is none to write
                text += self.letters.word(sample(values, s.temperature, rng))
                if text.endswith(END):
                    break
            yield text.strip(END)


if __name__ == "__main__":
    sys.exit(harness.main(LetterModel, Settings, __doc__))
