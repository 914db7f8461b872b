#!/usr/bin/env python
"""A dependency parser that scores every pair of words as head and dependent, and takes the best tree.

    python recipes/biaffine_parser.py                                # the included treebank
    python recipes/biaffine_parser.py --train a.conllu --dev b.conllu --save parser.model
    python recipes/biaffine_parser.py --nltk dependency_treebank
    python recipes/biaffine_parser.py predict --load parser.model tagged.conllu    # finds heads and relations anew
    python recipes/biaffine_parser.py --compare --batch 64           # automatic batching on and off

A BiLSTM reads the words and their gold tags. The scores of a sentence are a matrix of its own size, and its maximum
spanning tree is the parse. Attachment scores count all tokens, punctuation included, and full
relations (nsubj:pass is not nsubj).

Dozat, Manning: Deep biaffine attention for neural dependency parsing (2017).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import Biaffine, best_projective_tree, best_tree
from dynet_lite.text import Sentence

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.ParserSettings):
    hidden: int = option(150, "size of the LSTM, each direction")
    layers: int = option(2, "layers of the LSTM")
    arc_dim: int = option(150, "size of the vectors that an arc joins")
    label_dim: int = option(50, "size of the vectors that a relation joins")
    projective: bool = option(False, "only trees without crossing arcs")

    epochs: int = option(20)
    learning_rate: float = option(2e-3)
    dropout: float = option(0.33, "fraction of the inputs of each layer to drop in training")


class BiaffineParser(harness.ParserRecipe[Settings]):
    """Word and tag vector -> BiLSTM -> for each word a vector as head and one as dependent -> scores of arcs; relations too."""

    predict_options = evaluate_options = ("projective",)
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "tag_dim": 4, "hidden": 6, "arc_dim": 6, "label_dim": 4}

    # --- 2. Model (data, vectors of words and tags, scores: harness.ParserRecipe) ----------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        model = self.model
        self.root = model.add_parameters(self.width, init="uniform", scale=0.1, name="root")
        self.lstm = dy.BiRNNBuilder(s.layers, self.width, 2 * s.hidden, model, dy.LSTMBuilder, name="encoder")
        add = model.add_parameters
        sizes = {
            "arc-head": s.arc_dim,
            "arc-dependent": s.arc_dim,
            "label-head": s.label_dim,
            "label-dependent": s.label_dim,
        }
        self.views = [
            (add(n, init=0, name=f"b-{view}"), add((n, 2 * s.hidden), name=f"W-{view}")) for view, n in sizes.items()
        ]
        self.arcs = Biaffine(model, s.arc_dim, s.arc_dim, name="arcs")
        self.labels = Biaffine(model, s.label_dim, s.label_dim, len(self.relations), name="labels")

    def read(self, sentence: Sentence) -> list[dy.Expression]:
        """Matrices with a column per word, the root being word 0: words as heads and as dependents of arcs; and of relations."""
        drop = self.settings.dropout if self.training else 0.0
        self.lstm.set_dropout(drop)
        outputs = dy.concatenate_cols(self.lstm.transduce([self.root, *self.inputs(sentence)]))
        return [dy.dropout(dy.rectify(dy.affine_transform([b, W, outputs])), drop) for b, W in self.views]

    def loss(self, batch: list[Sentence]) -> dy.Expression:
        """Mean over the words of the mini-batch of -log p(head) - log p(relation | head)."""
        losses = []
        for sentence in batch:
            n = len(sentence)
            head, dependent, label_head, label_dependent = self.read(sentence)
            arcs = self.arcs.all_pairs(head, dependent[:, 1:])
            losses.append(dy.pickneglogsoftmax(dy.reshape(arcs, (n + 1,), n), sentence.heads))
            labels = self.labels.pairs(label_head[:, sentence.heads], label_dependent[:, 1:])
            losses.append(dy.pickneglogsoftmax(labels, self.relations.ids(sentence.deprels)))
        return dy.esum([dy.sum_batches(x) for x in losses]) * (1 / sum(map(len, batch)))

    def networks(self) -> dict[str, Any]:
        """Scores of arcs [dependent, head] and of relations [dependent, head, relation]; the root is word 0."""

        def scores(tags: Any, **ids: Any) -> Any:
            words = self.reader.symbolic(**ids).joined(onnx.lookup(self.tag_vectors, tags))
            outputs: Any = self.lstm.transduce(words.begun(self.root))
            views = [outputs.map(lambda x, b=b, W=W: dy.rectify(dy.affine_transform([b, W, x]))) for b, W in self.views]
            head, dependent, label_head, label_dependent = views
            return self.arcs.symbolic(head, dependent), self.labels.symbolic(label_head, label_dependent)

        self.lstm.disable_dropout()
        return {"scores": (scores, {**self.reader.inputs(), "tags": onnx.Ids("n")}, ["arcs", "relations"])}

    # --- 3. Parsing ---------------------------------------------------------------------------------------------

    def parse(self, batch: list[Sentence]) -> list[Sentence]:
        """The sentences with the heads and relations of the best tree; their own are not looked at."""
        dy.renew_cg()
        views = [self.read(sentence) for sentence in batch]
        arcs = [self.arcs.all_pairs(head, dependent) for head, dependent, _, _ in views]
        dy.forward(arcs)  # all sentences at once
        decode = best_projective_tree if self.settings.projective else best_tree
        trees = [decode(np.nan_to_num(scores.npvalue())) for scores in arcs]  # a network that fails says NaN
        labels = [self.labels.pairs(h[:, tree], d[:, 1:]) for (_, _, h, d), tree in zip(views, trees, strict=True)]
        dy.forward(labels)
        parsed = []
        for sentence, tree, scores in zip(batch, trees, labels, strict=True):
            best = scores.npvalue().reshape(len(self.relations), -1).argmax(axis=0)
            parsed.append(replace(sentence, heads=tree, deprels=[self.relations.word(int(i)) for i in best]))
        return parsed


if __name__ == "__main__":
    sys.exit(harness.main(BiaffineParser, Settings, __doc__))
