#!/usr/bin/env python
"""A part-of-speech tagger: a BiLSTM over the words of a sentence, each seen as a whole and letter by letter.

    python recipes/bilstm_tagger.py                               # the included treebank
    python recipes/bilstm_tagger.py --train a.conllu --dev b.conllu --save tagger.model
    python recipes/bilstm_tagger.py --train a.txt --dev b.txt.gz  # also word_tag, word|tag, word<tab>tag; --form, --column
    python recipes/bilstm_tagger.py --nltk treebank               # any tagged NLTK corpus
    python recipes/bilstm_tagger.py predict --load tagger.model - # tags the sentences you type
    python recipes/bilstm_tagger.py --compare --batch 64          # automatic batching on and off

The network is written for one sentence, with plain loops. Nothing runs until you ask for the loss of the whole mini-batch.
Then dynet_lite finds operations of the same kind in all sentences and runs them together.

Plank, Søgaard, Goldberg: Multilingual part-of-speech tagging with bidirectional long short-term memory models and
auxiliary loss (2016).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import harness
from dynet_lite.harness import option
from dynet_lite.nn import WordReader
from dynet_lite.text import (
    FORMS,
    Accuracy,
    MostFrequent,
    Sentence,
    Vocab,
    annotated_conllu,
    feature_size,
    is_conllu,
    load_nltk_tagged,
    minibatches,
    read_tagged,
    read_vectors,
    sentence_of,
    tagged_source,
)

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.StreamSettings):
    noise = ("dropout", "lstm_dropout")

    word_dim: int = option(100, "size of a word vector")
    fold: bool = option(False, "give house and House the same word vector")
    case_dim: int = option(0, "size of a vector for how a word is written: capitals, digits; 0: none")
    chars: bool = option(True, "also read each word letter by letter")
    char_dim: int = option(50, "size of a character vector")
    char_hidden: int = option(50, "size of the character LSTM, each direction")
    char_reader: str = option(
        "lstm",
        "what reads the letters; cnn: 2 x --char-hidden filters over three letters each",
        choices=("lstm", "cnn"),
    )
    hidden: int = option(128, "size of the sentence LSTM, each direction")
    layers: int = option(1, "layers of the sentence LSTM")
    mlp: int = option(32, "size of the hidden layer before the tags")
    features: tuple[str, ...] = option(
        (), "a file with numbers for each word (.npz, .safetensors), for each file of --train, --dev, --test"
    )
    form: str = option(
        "auto", "format of the files; auto: recognised by their content", choices=[x for x in FORMS if x != "text"]
    )
    column: int = option(
        0,
        "in files with columns: the column with the tags (the word is column 0, -1 is the last); 0: found by content",
    )
    vectors: str = option("", "start from the word vectors in this file (word2vec, text or binary; GloVe)")

    epochs: int = option(30)
    learning_rate: float = option(2e-3)
    dropout: float = option(0.3, "fraction of the inputs and outputs of the sentence LSTM to drop in training")
    lstm_dropout: float = option(
        0.0, "fraction of the inputs and states of the LSTM to drop, the same at every word (variational dropout)"
    )
    word_dropout: float = option(
        0.25, "a number a: in training, a word seen n times becomes the unknown word with probability a / (a + n)"
    )
    columns: bool = option(False, "predict: write word<tab>tag lines instead of word_tag sentences")
    conllu: bool = option(False, "predict: write CoNLL-U for any input")


class Tagger(harness.Recipe[Settings, Sentence]):
    """Word vector and character BiLSTM -> BiLSTM over the sentence -> hidden layer -> a score per tag."""

    score_name = "accuracy"
    shares_evaluation = True
    label_name = "tag"
    build_options = ("fold", "vectors")
    predict_options = ("columns", "conllu")
    conllu = True
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "char_dim": 4, "char_hidden": 4, "hidden": 6, "mlp": 6}

    # --- 2. Data --------------------------------------------------------------------------------------------

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[Sentence]:
        def detail(train: Sequence[Sentence]) -> str:
            return f"{sum(map(len, train)):,} words, {len({tag for x in train for tag in x.upos})} tags"

        return harness.corpus(s, lambda path: read_tagged(path, s.column, s.form), home=__file__, nltk=load_nltk_tagged,
                              detail=detail, stream=lambda path: (tagged_source(path, s.form), None))  # fmt: skip

    @classmethod
    def build(cls, s: Settings, train: Sequence[Sentence]) -> dict[str, Any]:
        tags = Vocab.from_words((tag for sentence in train for tag in sentence.upos), unk=None)
        known = read_vectors(s.vectors) if s.vectors else None
        return {
            "tags": tags.to_json(),
            **WordReader.build((sentence.forms for sentence in train), known, s.fold, feature_size(train)),
        }

    # --- 3. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.tags = Vocab.from_json(parts["tags"])
        model = self.model
        self.reader = WordReader(model, parts, dim=s.word_dim, char_dim=s.char_dim, char_hidden=s.char_hidden if s.chars else 0,
                                 hide=s.word_dropout, rng=self.random, char_reader=s.char_reader, case_dim=s.case_dim)  # fmt: skip
        self.lstm = dy.BiRNNBuilder(s.layers, self.reader.width, 2 * s.hidden, model, dy.LSTMBuilder, name="encoder")
        self.W1 = model.add_parameters((s.mlp, 2 * s.hidden), name="W1")
        self.b1 = model.add_parameters(s.mlp, init=0, name="b1")
        self.W2 = model.add_parameters((len(self.tags), s.mlp), init="fan-in", name="W2")
        self.b2 = model.add_parameters(len(self.tags), init=0, name="b2")

    def begin(self) -> None:
        if self.settings.vectors:
            self.reader.use(read_vectors(self.settings.vectors))

    def gold(self, example: Sentence) -> list[str]:
        return example.upos

    def known_labels(self) -> list[str]:
        return self.tags.words()

    def scores(self, forms: list[str], features: np.ndarray | None = None) -> list[dy.Expression]:
        """For each word a vector with the scores of the tags. features: numbers of the words, where the model reads them."""
        inputs = self.reader(forms, self.training, features)
        drop = self.settings.dropout if self.training else 0.0
        self.lstm.set_dropout(self.settings.lstm_dropout if self.training else 0.0)
        if drop:
            inputs = [dy.dropout(x, drop) for x in inputs]
        outputs = self.lstm.transduce(inputs)
        if drop:
            outputs = [dy.dropout(x, drop) for x in outputs]
        return [self.score(x) for x in outputs]

    def score(self, x: dy.Expression) -> dy.Expression:
        """The scores of the tags from an output of the sentence LSTM."""
        return dy.affine_transform([self.b2, self.W2, dy.tanh(dy.affine_transform([self.b1, self.W1, x]))])

    def loss(self, batch: list[Sentence]) -> dy.Expression:
        """Mean over the words of the mini-batch of -log p(tag)."""
        losses = []
        for sentence in batch:
            tags = self.tags.ids(sentence.upos)
            losses += [
                dy.pickneglogsoftmax(x, i)
                for x, i in zip(self.scores(sentence.forms, sentence.features), tags, strict=True)
            ]
        return dy.esum(losses) * (1 / len(losses))

    def weight(self, batch: list[Sentence]) -> int:
        return sum(map(len, batch))

    def networks(self) -> dict[str, Any]:
        self.lstm.disable_dropout()

        def scores(**ids: Any) -> Any:
            outputs: Any = self.lstm.transduce(self.reader.symbolic(**ids))
            return outputs.map(self.score)

        return {"scores": (scores, self.reader.inputs(), ["scores"])}

    # --- 4. Use ---------------------------------------------------------------------------------------------

    def probabilities(self, batch: list[list[str]], features: Sequence[Any] = ()) -> list[np.ndarray[Any, Any]]:
        """For each sentence a matrix, words x tags; no sentence may be empty."""
        dy.renew_cg()
        given = zip(batch, features or [None] * len(batch), strict=True)
        found = [dy.softmax(dy.concatenate_cols(self.scores(*sentence))) for sentence in given]
        dy.forward(found)  # all sentences at once
        return [matrix.npvalue().reshape(len(self.tags), -1).T for matrix in found]

    def tag(self, batch: list[list[str]], features: Sequence[Any] = ()) -> list[list[str]]:
        """The best tag of each word of each sentence; no sentence may be empty."""
        return [[self.tags.word(i) for i in matrix.argmax(axis=1)] for matrix in self.probabilities(batch, features)]

    def evaluate(self, examples: Sequence[Sentence]) -> harness.Score:
        score = Accuracy()
        for batch, found in self.spread(
            lambda x: self.tag([s.forms for s in x], [s.features for s in x]), minibatches(examples, 64)
        ):
            for sentence, tags in zip(batch, found, strict=True):
                score.add(sentence.upos, tags)
        return harness.Score(score.value, str(score), words=score.all)

    def baseline(self, train: Sequence[Sentence]) -> tuple[str, Any]:
        guess = MostFrequent(zip(x.forms, x.upos, strict=True) for x in train)

        def score(examples: list[Sentence]) -> harness.Score:
            found = Accuracy()
            for sentence in examples:
                found.add(sentence.upos, guess(sentence.forms))
            return harness.Score(found.value, str(found))

        return "the most frequent tag of each word", score

    def read(self, lines: list[str], features: Sequence[Any] = ()) -> Iterator[tuple[Sentence, np.ndarray[Any, Any]]]:
        """The sentence of each line, or of each block of CoNLL-U, and its probabilities."""
        sentences = [sentence_of(*pair) for pair in zip(lines, features or [None] * len(lines), strict=True)]
        full = [x for x in sentences if x.forms]
        found = iter(self.probabilities([x.forms for x in full], [x.features for x in full]) if full else [])
        for x in sentences:
            table = next(found) if x.forms else np.zeros((0, len(self.tags)))
            yield replace(x, upos=[self.tags.word(i) for i in table.argmax(axis=1)]), table

    def predict(self, lines: list[str], features: Sequence[Any] = ()) -> Iterator[str]:
        """As CoNLL-U where the line is CoNLL-U or --conllu is said."""
        for line, (x, _) in zip(lines, self.read(lines, features), strict=True):
            if is_conllu(line) is not False or (self.settings.conllu and x.forms):
                yield "\n".join(annotated_conllu(line, x))
            elif self.settings.columns:
                yield "".join(f"{word}\t{tag}\n" for word, tag in zip(x.forms, x.upos, strict=True))
            else:
                yield " ".join(f"{word}_{tag}" for word, tag in zip(x.forms, x.upos, strict=True))

    def answers(self, lines: list[str], scores: bool = False, features: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        for x, table in self.read(lines, features):
            sure = {"probabilities": [float(p) for p in table.max(axis=1)] if x.forms else []} if scores else {}
            yield {"words": x.forms, "tags": x.upos, **sure}


if __name__ == "__main__":
    sys.exit(harness.main(Tagger, Settings, __doc__))
