#!/usr/bin/env python
"""A language model of letters: a small transformer reads a block of text and says how likely each letter is the next.

    python recipes/transformer_lm.py                               # the included treebank
    python recipes/transformer_lm.py --train a.txt --dev b.txt     # text; also CoNLL-U, trees, tagged text
    python recipes/transformer_lm.py --nltk treebank --layers 4    # any NLTK corpus
    python recipes/transformer_lm.py --block 128 --context 64      # scores letters with at least 64 letters before them
    python recipes/transformer_lm.py --ngrams 0.5 --words 0.7      # scores a mixture with n-grams of letters and of words
    python recipes/transformer_lm.py predict --load letters.model - # continues what you type
    python recipes/transformer_lm.py --compare --batch 64          # automatic batching on and off

All blocks have one size, so the network is the same for every example. Automatic batching gains less here than in any
other recipe, but costs nothing: nothing in the program says "batch".

Vaswani and others: Attention is all you need (2017); Al-Rfou and others: Character-level language modeling with deeper
self-attention (2019). --ngrams: Mikolov and others: Recurrent neural network based language model (2010).
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
from dynet_lite.text import (
    FORMS,
    DataError,
    KneserNey,
    Perplexity,
    SpelledWords,
    Vocab,
    load_nltk_words,
    minibatches,
    read_words,
)

END = "\n"  # ends a sentence
MOST = 1_000_000  # letters to count n-grams of, for a baseline

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    block: int = option(64, "letters that the network reads at once")
    context: int = option(0, "scores: preceding letters that each block starts with; fewer than block")
    dim: int = option(64, "size of a letter's vector in every layer")
    layers: int = option(2, "layers of the transformer")
    heads: int = option(4, "attention heads")
    ngrams: float = option(
        0.0, "scores: weight of a 6-gram model in the probability of a letter, for files of up to a million letters"
    )
    words: float = option(
        0.0,
        "scores: weight of a model of three words at the first letter of each, for files of up to a million letters",
    )
    form: str = option("auto", "format of the files; auto: recognised by their content", choices=FORMS)

    epochs: int = option(80)
    patience: int = option(8)
    batch: int = option(8)
    learning_rate: float = option(2e-3)
    schedule: str = option("cosine")
    warmup: int = option(50)
    dropout: float = option(0.2, "fraction of the output of each layer to drop in training")

    temperature: float = option(0.7, "predict: below 1 favours likely letters; 0 always takes the likeliest")
    length: int = option(100, "predict: letters to write at most")


# --- 2. Data and model --------------------------------------------------------------------------------------


def joined(blocks: Iterable[str]) -> str:
    """The text that was cut into blocks, without the end mark that it begins with."""
    return "".join(block[1:] for block in blocks)


class LetterModel(harness.Recipe[Settings, str]):
    """Letter and position -> transformer in which no position sees a later one -> a score per letter."""

    shares_evaluation = True
    score_name = "perplexity"
    lower_is_better = True
    unit = "blocks"
    build_options = ("ngrams", "words")
    predict_options = ("temperature", "length", "seed", "context")
    evaluate_options = ("context",)
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
        letters = Vocab.from_words((c for text in train for c in text), min_count=2, keep=[END, " "])
        parts = {"letters": letters.to_json()}
        if s.ngrams or s.words:
            if sum(map(len, train)) > MOST:
                raise DataError(f"--ngrams, --words: expected at most {MOST:,} letters to train on")
        if s.ngrams:
            parts["ngrams"] = cls.sixgrams(letters, train).to_json()
        if s.words:
            space = letters[" "] if " " in letters else -1  # each sentence is a word
            parts["words"] = SpelledWords(letters.ids(joined(train)), space, letters[END]).to_json()
        return parts

    @staticmethod
    def sixgrams(letters: Vocab, train: Iterable[str]) -> KneserNey:
        """Over the same letters. Here they see no end of a block."""
        return KneserNey([letters.ids(joined(train))], order=6, words=len(letters))

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        if s.dim % s.heads:
            raise DataError(f"--heads: expected a number that divides --dim; got {s.heads} and {s.dim}")
        if s.context >= s.block:
            raise DataError(f"--context: expected fewer than the {s.block} letters of a block; got {s.context}")
        self.letters = Vocab.from_json(parts["letters"])
        self.ngrams = KneserNey.from_json(parts["ngrams"]) if "ngrams" in parts else None
        self.words = SpelledWords.from_json(parts["words"]) if "words" in parts else None
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

    def losses(self, text: str, read: int = 0) -> dy.Expression:
        """-log p of the letters after the first, a mini-batch; `read` more are read only."""
        *ids, last = self.letters.ids(text)
        scores = self.scores(ids)[:, read:] if read else self.scores(ids)
        scores = dy.reshape(scores, (len(self.letters),), len(ids) - read)  # positions are a mini-batch here
        return dy.pickneglogsoftmax(scores, [*ids[1 + read :], last])

    def batches(self, train: Sequence[str]) -> list[list[str]]:
        """The text is cut at other places in every epoch, so that a letter is seen with ever other ones before it."""
        s, text = self.settings, train[0][0] + joined(train)
        cuts = [0, *range(1 + self.random.randrange(s.block), len(text) - 1, s.block), len(text) - 1]
        blocks = [text[a : b + 1] for a, b in pairwise(cuts)]
        return list(minibatches(blocks, s.batch, seed=self.random))

    def loss(self, batch: list[str]) -> dy.Expression:
        """Mean over the letters of the mini-batch."""
        losses = [dy.sum_batches(self.losses(text)) for text in batch]
        return dy.esum(losses) * (1 / sum(len(text) - 1 for text in batch))

    def weight(self, batch: list[str]) -> int:
        return sum(len(text) - 1 for text in batch)

    # --- 3. Use ---------------------------------------------------------------------------------------------

    def evaluate(self, examples: Sequence[str]) -> harness.Score:
        losses: list[float] = []
        for _, found in self.spread(self.letter_losses, minibatches(self.pieces(examples), 32)):
            losses += found
        score = Perplexity()
        score.add(self.mixed_loss(losses, self.letters.ids(joined(examples))), len(losses))
        return harness.Score(score.value, self.text_of(score))

    def pieces(self, examples: Sequence[str]) -> list[tuple[str, int]]:
        """The text in blocks, with how many letters after the first are read only: those that the block before has counted."""
        s = self.settings
        text = examples[0][0] + joined(examples)
        starts = range(0, max(1, len(text) - 1 - s.context), s.block - s.context)
        return [(text[i : i + s.block + 1], s.context if i else 0) for i in starts]

    def letter_losses(self, batch: list[tuple[str, int]]) -> list[float]:
        """-log p of each letter that the pieces count."""
        dy.renew_cg()
        found = [self.losses(text, read) for text, read in batch]
        dy.forward(found)  # all pieces at once
        return [float(loss) for x in found for loss in x.npvalue().ravel()]

    def mixed_loss(self, losses: list[float], text: list[int]) -> float:
        """The sum over a text of -log p of the mixture with the n-grams, then of that one with the words."""
        s = self.settings
        if not s.ngrams and not s.words:
            return sum(losses)
        mixed = [math.exp(-loss) for loss in losses]
        if self.ngrams is not None and s.ngrams:
            both = zip(mixed, self.ngrams.probabilities(text), strict=True)
            mixed = [(1 - s.ngrams) * q + s.ngrams * p for q, p in both]
        if self.words is not None and s.words:
            mixed = self.words.mixed(mixed, text, s.words)
        return -sum(map(math.log, mixed))

    @staticmethod
    def text_of(score: Perplexity) -> str:
        return f"{score} per letter ({math.log2(score.value):.3f} bits)"

    def baseline(self, train: Sequence[str]) -> tuple[str, Any] | None:
        if sum(map(len, train)) > MOST:
            return None

        model = self.ngrams or self.sixgrams(self.letters, train)

        def score(examples: list[str]) -> harness.Score:
            text = self.letters.ids(joined(examples))
            return harness.Score((found := model.perplexity([text])).value, self.text_of(found))

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
