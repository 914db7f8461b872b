#!/usr/bin/env python
"""Chunks or names in sentences: a BiLSTM over words and letters, and a conditional random field over their labels.

    python recipes/bilstm_crf_chunker.py                                # chunks of the treebank that comes with the project
    python recipes/bilstm_crf_chunker.py --train eng.train --dev eng.testa --save ner.model    # IOB columns, as of CoNLL
    python recipes/bilstm_crf_chunker.py --train eng.train --dev eng.testa --scheme bioes --types    # names: F1 of each type
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
    FORMS,
    LabeledSentence,
    MostFrequent,
    SpanScore,
    Vocab,
    load_nltk_chunks,
    minibatches,
    read_labeled,
    read_vectors,
    spans,
    split_words,
    to_bioes,
    to_iob2,
)

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    word_dim: int = option(100, "size of a word vector")
    char_dim: int = option(50, "size of a character vector")
    char_hidden: int = option(50, "size of the character LSTM, each direction; 0: do not read letters")
    hidden: int = option(128, "size of the sentence LSTM, each direction")
    layers: int = option(1, "layers of the sentence LSTM")
    vectors: str = option("", "begin with the word vectors of this file (word2vec, text or binary; GloVe)")
    form: str = option("auto", "what the files hold; auto: by their content", choices=[x for x in FORMS if x not in ("text", "conllu")])
    scheme: str = option("iob2", "how the model marks spans; files are read in any way", choices=("iob2", "bioes"))
    types: bool = option(False, "also print the F1 of each type of span")
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
            return read_labeled(path, s.column, s.form)

        def detail(train: list[LabeledSentence]) -> str:
            return f"{sum(map(len, train)):,} words, {sum(len(spans(x.labels)) for x in train):,} chunks"

        return harness.corpus(s, read, home=__file__, default="ptb", nltk=load_nltk_chunks, detail=detail)

    @classmethod
    def build(cls, s: Settings, train: list[LabeledSentence]) -> dict:
        labels = Vocab.from_words((label for x in train for label in cls.marked(s, x.labels)), unk=None)
        known = read_vectors(s.vectors) if s.vectors else None
        return {"labels": labels.to_json(), **WordReader.build((x.forms for x in train), known)}

    @staticmethod
    def marked(s: Settings, labels: list[str]) -> list[str]:
        """Labels (IOB2) in the scheme of the model."""
        return to_bioes(labels) if s.scheme == "bioes" else labels

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

    def gold(self, example: LabeledSentence) -> list[str]:
        return [label for label in self.marked(self.settings, example.labels) if label != "O"]

    def known_labels(self) -> list[str]:
        return self.labels.words()

    def scores(self, forms: list[str]) -> list[dy.Expression]:
        """For each word a vector with the scores of the labels, before the neighbours have their say."""
        drop = self.settings.dropout if self.training else 0.0
        inputs = self.reader(forms, self.training)
        outputs = self.lstm.transduce([dy.dropout(x, drop) for x in inputs] if drop else inputs)
        outputs = [dy.dropout(x, drop) for x in outputs] if drop else outputs
        return [self.score(x) for x in outputs]

    def score(self, x: dy.Expression) -> dy.Expression:
        """The scores of the labels from an output of the sentence LSTM."""
        return dy.affine_transform([self.b, self.W, x])

    def loss(self, batch: list[LabeledSentence]) -> dy.Expression:
        """Mean over the sentences of the minibatch of -log p(labels), per word."""
        losses = [self.crf.loss(self.scores(x.forms), self.labels.ids(self.marked(self.settings, x.labels))) for x in batch]
        return dy.esum(losses) * (1 / sum(map(len, batch)))

    def weight(self, batch: list[LabeledSentence]) -> int:
        return sum(map(len, batch))

    def networks(self) -> dict:
        def scores(**ids):
            outputs = self.lstm.transduce(self.reader.symbolic(**ids))
            return outputs.map(self.score), self.crf.transitions, self.crf.start, self.crf.end

        return {"scores": (scores, self.reader.inputs(), ["scores", "transitions", "start", "end"])}

    # --- 4. Use ---------------------------------------------------------------------------------------------

    def label(self, batch: list[list[str]]) -> list[list[str]]:
        """The best labels (IOB2) of each sentence; no sentence may be empty."""
        dy.renew_cg()
        scores = [dy.concatenate_cols(self.scores(forms)) for forms in batch]
        dy.forward(scores)  # all sentences at once
        emissions = [matrix.npvalue().reshape(len(self.labels), -1).T for matrix in scores]
        return [to_iob2([self.labels.word(i) for i in best]) for best in self.crf.best(emissions, self.allowed)]

    def evaluate(self, examples: list[LabeledSentence]) -> harness.Score:
        score = SpanScore()
        for batch in minibatches(examples, 64):
            for sentence, labels in zip(batch, self.label([x.forms for x in batch]), strict=True):
                score.add(sentence.labels, labels)
        types = {kind: found.f1 for kind, found in sorted(score.by_type.items())}
        text = f"{score}; {score.types()}" if self.settings.types else str(score)
        return harness.Score(score.f1, text, types=types, precision=score.precision, recall=score.recall)

    def baseline(self, train: list[LabeledSentence]) -> tuple:
        guess = MostFrequent(zip(x.forms, x.labels, strict=True) for x in train)

        def score(examples: list[LabeledSentence]) -> harness.Score:
            found = SpanScore()
            for sentence in examples:
                found.add(sentence.labels, guess(sentence.forms))
            return harness.Score(found.f1, str(found))

        return "the most frequent label of each word", score

    def predict(self, lines: list[str]) -> Iterator[str]:
        sentences = [split_words(line) for line in lines]
        labelled = iter(self.label([forms for forms in sentences if forms]) if any(sentences) else [])
        for forms in sentences:
            yield mark(forms, next(labelled)) if forms else ""

    def answers(self, lines: list[str], scores: bool = False) -> Iterator[dict]:
        if scores:
            raise dy.DataError("Chunker gives no scores: a CRF finds the best sequence as a whole")
        sentences = [split_words(line) for line in lines]
        labelled = iter(self.label([forms for forms in sentences if forms]) if any(sentences) else [])
        for forms in sentences:
            labels = next(labelled) if forms else []
            chunks = [{"start": start, "end": end, "label": kind} for start, end, kind in spans(labels)]
            yield {"words": forms, "labels": labels, "chunks": chunks}


def mark(forms: list[str], labels: list[str]) -> str:
    """[NP The dog] [VP sleeps] ."""
    words = np.array(forms, dtype=object)
    for start, end, kind in spans(labels):
        words[start] = f"[{kind} {words[start]}"
        words[end - 1] += "]"
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(harness.main(Chunker, Settings, __doc__))
