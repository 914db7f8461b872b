#!/usr/bin/env python
"""Chunks or names in sentences: a BiLSTM over words and letters, and a conditional random field over their labels.

    python recipes/bilstm_crf_chunker.py                                # chunks of the treebank that comes with the project
    python recipes/bilstm_crf_chunker.py --train eng.train --dev eng.testa --save ner.model    # IOB columns, as of CoNLL
    python recipes/bilstm_crf_chunker.py --nltk conll2000 --hidden 100 --dropout 0.5 --epochs 15
    python recipes/bilstm_crf_chunker.py predict --load ner.model -     # marks what it finds in the sentences you type
    python recipes/bilstm_crf_chunker.py --compare --batch 64           # automatic batching on and off

The sum over all labellings of a sentence is a dynamic program: dynet_lite/nn/crf.py writes it as a loop over expressions.
Its steps are alike in all sentences, so that a minibatch takes as many batches as its longest sentence has words.

Huang, Xu, Yu: Bidirectional LSTM-CRF models for sequence tagging (2015); Lample and others: Neural architectures for named
entity recognition (2016).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import dynet_lite as dy
from dynet_lite import harness
from dynet_lite.harness import option
from dynet_lite.nn import LinearChainCRF, WordReader, iob_pairs
from dynet_lite.text import (
    LabeledSentence,
    SpanScore,
    Vocab,
    has_brackets,
    load_nltk_chunks,
    minibatches,
    read_chunks_of_trees,
    read_columns,
    read_vectors,
    spans,
)

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    word_dim: int = option(100, "size of a word vector")
    char_dim: int = option(50, "size of a character vector")
    char_hidden: int = option(50, "size of the character LSTM, each direction; 0: do not read letters")
    hidden: int = option(128, "size of the sentence LSTM, each direction")
    layers: int = option(1, "layers of the sentence LSTM")
    vectors: str = option("", "begin with the word vectors of this file (text, as of word2vec or GloVe)")
    column: int = option(-1, "column of the labels in --train, --dev and --test; -1 is the last")

    epochs: int = option(25)
    learning_rate: float = option(2e-3)
    dropout: float = option(0.3, "share of the inputs and outputs of the sentence LSTM to drop in training")
    word_dropout: float = option(0.25, "a: a word seen n times is hidden with probability a / (a + n)")


class Chunker(harness.Recipe[Settings, LabeledSentence]):
    """Words and letters -> BiLSTM -> a score per label -> conditional random field."""

    score_name = "F1"
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "char_dim": 4, "char_hidden": 4, "hidden": 6}

    # --- 2. Data --------------------------------------------------------------------------------------------

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[LabeledSentence]:
        def read(path: str) -> list[LabeledSentence]:
            return read_chunks_of_trees(path) if has_brackets(path) else read_columns(path, s.column)

        def detail(train: list[LabeledSentence]) -> str:
            return f"{sum(map(len, train)):,} words, {sum(len(spans(x.labels)) for x in train):,} chunks"

        return harness.corpus(s, read, home=__file__, default="ptb", nltk=load_nltk_chunks, detail=detail)

    @classmethod
    def build(cls, s: Settings, train: list[LabeledSentence]) -> dict:
        labels = Vocab.from_words((label for x in train for label in x.labels), unk=None)
        known = read_vectors(s.vectors) if s.vectors else None
        return {"labels": labels.to_json(), **WordReader.build((x.forms for x in train), known)}

    # --- 3. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict) -> None:
        super().__init__(s, parts)
        self.labels = Vocab.from_json(parts["labels"])
        self.reader = WordReader(self.model, parts, dim=s.word_dim, char_dim=s.char_dim, char_hidden=s.char_hidden,
                                 hide=s.word_dropout, rng=self.random)  # fmt: skip
        self.lstm = dy.BiRNNBuilder(s.layers, self.reader.width, 2 * s.hidden, self.model, dy.LSTMBuilder)
        self.W = self.model.add_parameters((len(self.labels), 2 * s.hidden))
        self.b = self.model.add_parameters(len(self.labels), init=0)
        self.crf = LinearChainCRF(self.model, len(self.labels))
        self.allowed = iob_pairs(self.labels.words())

    def begin(self) -> None:
        if self.settings.vectors:
            self.reader.use(read_vectors(self.settings.vectors))

    def scores(self, forms: list[str]) -> list[dy.Expression]:
        """For each word a vector with the scores of the labels, before the neighbours have their say."""
        drop = self.settings.dropout if self.training else 0.0
        inputs = self.reader(forms, self.training)
        outputs = self.lstm.transduce([dy.dropout(x, drop) for x in inputs] if drop else inputs)
        outputs = [dy.dropout(x, drop) for x in outputs] if drop else outputs
        return [dy.affine_transform([self.b, self.W, x]) for x in outputs]

    def loss(self, batch: list[LabeledSentence]) -> dy.Expression:
        """Mean over the sentences of the minibatch of -log p(labels), per word."""
        losses = [self.crf.loss(self.scores(x.forms), self.labels.ids(x.labels)) for x in batch]
        return dy.esum(losses) * (1 / sum(map(len, batch)))

    # --- 4. Use ---------------------------------------------------------------------------------------------

    def label(self, batch: list[list[str]]) -> list[list[str]]:
        """The best labels of each sentence; no sentence may be empty."""
        dy.renew_cg()
        scores = [dy.concatenate_cols(self.scores(forms)) for forms in batch]
        dy.forward(scores)  # all sentences at once
        emissions = [matrix.npvalue().reshape(len(self.labels), -1).T for matrix in scores]
        return [[self.labels.word(i) for i in best] for best in self.crf.best(emissions, self.allowed)]

    def evaluate(self, examples: list[LabeledSentence]) -> harness.Score:
        score = SpanScore()
        for batch in minibatches(examples, 64):
            for sentence, labels in zip(batch, self.label([x.forms for x in batch]), strict=True):
                score.add(sentence.labels, labels)
        return harness.Score(score.f1, str(score), precision=score.precision, recall=score.recall)

    def predict(self, lines: list[str]) -> Iterator[str]:
        sentences = [line.split() for line in lines]
        labelled = iter(self.label([forms for forms in sentences if forms]) if any(sentences) else [])
        for forms in sentences:
            yield mark(forms, next(labelled)) if forms else ""


def mark(forms: list[str], labels: list[str]) -> str:
    """[NP The dog] [VP sleeps] ."""
    words = np.array(forms, dtype=object)
    for start, end, kind in spans(labels):
        words[start] = f"[{kind} {words[start]}"
        words[end - 1] += "]"
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(harness.main(Chunker, Settings, __doc__))
