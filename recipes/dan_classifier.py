#!/usr/bin/env python
"""Classes of texts with a deep averaging network: the mean of the word vectors, then some hidden layers.

    python recipes/dan_classifier.py                              # positive or negative: the treebank of the project
    python recipes/dan_classifier.py --nltk sentence_polarity     # or another NLTK corpus with categories
    python recipes/dan_classifier.py --train a.tsv --dev b.tsv --save dan.model     # lines CLASS<tab>TEXT
    python recipes/dan_classifier.py predict --load dan.model -   # classifies the lines you type

The smallest network that reads texts: a good first try, and the one to beat. In training some words, drawn at
random, are read as unknown.

Iyyer, Manjunatha, Boyd-Graber, Daumé: Deep unordered composition rivals syntactic methods for text classification (2015).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option

# --- 1. Settings and data: options of the command line; those of all classifiers are in the base class -------


@dataclass
class Settings(harness.ClassifierSettings):
    hidden: int = option(100, "size of a hidden layer")
    layers: int = option(2, "hidden layers")

    word_dropout: float = option(0.3)
    dropout: float = option(0.2)
    epochs: int = option(20)


class DAN(harness.TextClassifier[Settings]):
    """Word vectors -> their mean -> hidden layers -> a score per class."""

    home = __file__
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "hidden": 6}

    # --- 2. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        sizes = [s.word_dim] + [s.hidden] * s.layers + [len(self.labels)]
        add, pairs = self.model.add_parameters, list(zip(sizes, sizes[1:], strict=False))
        self.W = [add((o, i), init="fan-in", name=f"W{k}") for k, (i, o) in enumerate(pairs)]
        self.b = [add(o, init=0, name=f"b{k}") for k, (_, o) in enumerate(pairs)]

    def scores(self, words: Sequence[str]) -> dy.Expression:
        return self.above(dy.average(self.embed(words)))

    def scores_of(self, vectors: onnx.Sequence) -> dy.Expression:
        return self.above(vectors.average())

    def above(self, x: dy.Expression) -> dy.Expression:
        """The scores from the mean of the word vectors."""
        for W, b in zip(self.W[:-1], self.b[:-1], strict=True):
            x = dy.tanh(dy.affine_transform([b, W, x]))
            if self.training and self.settings.dropout:
                x = dy.dropout(x, self.settings.dropout)
        return dy.affine_transform([self.b[-1], self.W[-1], x])


if __name__ == "__main__":
    sys.exit(harness.main(DAN, Settings, __doc__))
