#!/usr/bin/env python
"""Classes of texts with a convolutional network: filters look at every 3, 4 and 5 consecutive words, and the strongest answer counts.

    python recipes/text_cnn.py                                    # positive or negative: the treebank of the project
    python recipes/text_cnn.py --nltk sentence_polarity           # or another NLTK corpus with categories
    python recipes/text_cnn.py --train a.tsv --dev b.tsv --save cnn.model     # lines CLASS<tab>TEXT
    python recipes/text_cnn.py --train a.tsv --vectors glove.6B.100d.txt --subwords 2000
    python recipes/text_cnn.py predict --load cnn.model reviews.txt

The program loops over the words of one text. Whatever their lengths, all positions of all texts of a mini-batch become one
batch.

Kim: Convolutional neural networks for sentence classification (2014).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option

# --- 1. Settings and data: options of the command line; those of all classifiers are in the base class -------


@dataclass
class Settings(harness.ClassifierSettings):
    widths: tuple[int, ...] = option((3, 4, 5), "how many words the filters look at")
    filters: int = option(100, "filters of each width")

    epochs: int = option(15)
    batch: int = option(32)


class TextCNN(harness.TextClassifier[Settings]):
    """Word vectors -> filters over runs of words -> the largest value of each filter -> a score per class."""

    home = __file__
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "filters": 6}

    # --- 2. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        add = self.model.add_parameters
        shape = s.filters, s.word_dim  # of one matrix per word
        self.filters = [[add(shape, name=f"filters{width}-{k}") for k in range(width)] for width in s.widths]
        self.biases = [add(s.filters, init=0, name=f"biases{width}") for width in s.widths]
        self.W = add((len(self.labels), s.filters * len(s.widths)), init="fan-in", name="W")
        self.b = add(len(self.labels), init=0, name="b")

    def scores(self, words: Sequence[str]) -> dy.Expression:
        vectors = self.embed(words)
        padding = dy.zeros(self.settings.word_dim)
        features = []
        for matrices, bias in zip(self.filters, self.biases, strict=True):
            around = [padding] * (len(matrices) - 1)
            row = [*around, *vectors, *around]
            runs = [row[i : i + len(matrices)] for i in range(len(row) - len(around))]
            features.append(dy.rectify(dy.emax([self.answer(matrices, bias, *run) for run in runs])))
        return self.above(features)

    def scores_of(self, vectors: onnx.Sequence) -> dy.Expression:
        features = []
        for matrices, bias in zip(self.filters, self.biases, strict=True):
            first, *rest = vectors.windows(len(matrices), padding=len(matrices) - 1)
            features.append(dy.rectify(first.map(partial(self.answer, matrices, bias), *rest).max()))
        return self.above(features)

    @staticmethod
    def answer(matrices: list[dy.Parameters], bias: dy.Parameters, *run: dy.Expression) -> dy.Expression:
        """What the filters of one width say of a run of words."""
        return dy.affine_transform([bias, *(item for pair in zip(matrices, run, strict=True) for item in pair)])

    def above(self, features: list[dy.Expression]) -> dy.Expression:
        """The scores from the strongest answers of the filters of each width."""
        joined = dy.concatenate(features)
        if self.training and self.settings.dropout:
            joined = dy.dropout(joined, self.settings.dropout)
        return dy.affine_transform([self.b, self.W, joined])


if __name__ == "__main__":
    sys.exit(harness.main(TextCNN, Settings, __doc__))
