"""What recipes that mark spans in sentences share: a BiLSTM over words and letters, a conditional random field, the score.

A recipe of this kind adds its settings and says which data it has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

import dynet_lite as dy
from dynet_lite.errors import DataError
from dynet_lite.nn import LinearChainCRF, WordReader, iob_pairs
from dynet_lite.text import (
    FORMS,
    LabeledSentence,
    MostFrequent,
    SpanScore,
    Vocab,
    feature_size,
    load_nltk_chunks,
    minibatches,
    read_labeled,
    read_vectors,
    spans,
    split_tagged,
    split_words,
    to_bioes,
    to_iob1,
    to_iob2,
)

from .data import Data, corpus
from .recipe import Recipe, Score
from .settings import Settings, option

__all__ = ["SpanLabeller", "SpanSettings", "mark_spans"]

SCHEMES: dict[str, Callable[[Sequence[str]], list[str]]] = {"iob1": to_iob1, "iob2": list, "bioes": to_bioes}


@dataclass
class SpanSettings(Settings):
    """Settings that all span labellers have. Their files have columns (the label last), word|label sentences, or trees."""

    noise = ("dropout", "lstm_dropout")

    word_dim: int = option(100, "size of a word vector")
    char_dim: int = option(50, "size of a character vector")
    char_hidden: int = option(50, "size of the character LSTM, each direction; 0: do not read letters")
    char_reader: str = option(
        "lstm",
        "what reads the letters; cnn: 2 x --char-hidden filters over three letters each",
        choices=("lstm", "cnn"),
    )
    case_dim: int = option(0, "size of a vector for how a word is written: capitals, digits; 0: none")
    fold: bool = option(False, "give house and House the same word vector")
    tag_dim: int = option(0, "size of a vector for the tag in column 1 of the files; 0: tags are not read")
    hidden: int = option(128, "size of the sentence LSTM, each direction")
    layers: int = option(1, "layers of the sentence LSTM")
    vectors: str = option("", "start from the word vectors in this file (word2vec, text or binary; GloVe)")
    features: tuple[str, ...] = option(
        (), "a file with numbers for each word (.npz, .safetensors), for each file of --train, --dev, --test"
    )
    form: str = option(
        "auto",
        "format of the files; auto: recognised by their content",
        choices=[x for x in FORMS if x not in ("text", "conllu")],
    )
    scheme: str = option("iob2", "how the model marks spans; files may use any scheme", choices=("iob2", "bioes"))
    types: bool = option(False, "also print the F1 of each type of span")
    column: int = option(-1, "column of the labels in --train, --dev and --test; -1 is the last")
    write: str = option(
        "marks", "predict: [TYPE words], or word<tab>label lines in one of the schemes", choices=("marks", *SCHEMES)
    )

    learning_rate: float = option(2e-3)
    dropout: float = option(0.3, "fraction of the inputs and outputs of the sentence LSTM to drop in training")
    lstm_dropout: float = option(
        0.0, "fraction of the inputs and states of the LSTM to drop, the same at every word (variational dropout)"
    )
    word_dropout: float = option(
        0.25, "a number a: in training, a word seen n times becomes the unknown word with probability a / (a + n)"
    )


S = TypeVar("S", bound=SpanSettings)


class SpanLabeller(Recipe[S, LabeledSentence]):
    """A recipe that labels spans: words, letters and tags -> BiLSTM -> a score for each label -> conditional random
    field.

    With --tag-dim, the input of `predict` has tags, too: word_TAG.
    """

    shares_evaluation: ClassVar[bool] = True
    score_name: str = "F1"
    build_options: ClassVar[tuple[str, ...]] = ("scheme", "fold", "vectors")
    predict_options: ClassVar[tuple[str, ...]] = ("write",)
    default_data: ClassVar[str] = "ptb"  # ending of the files of data/treebank
    span_name: ClassVar[str] = "chunks"  # what a span is, for the first line of output

    # ---- data --------------------------------------------------------------------------------------------------------

    @classmethod
    def load_data(cls, s: S) -> Data[LabeledSentence]:
        def read(path: str) -> list[LabeledSentence]:
            return cls.checked(s, read_labeled(path, s.column, s.form), path)

        def nltk(name: str) -> tuple[list[LabeledSentence], ...]:
            return tuple(cls.checked(s, part, name) for part in load_nltk_chunks(name))

        def detail(train: Sequence[LabeledSentence]) -> str:
            return f"{sum(map(len, train)):,} words, {sum(len(spans(x.labels)) for x in train):,} {cls.span_name}"

        return corpus(s, read, home=inspect.getfile(cls), default=cls.default_data, nltk=nltk, detail=detail)

    @staticmethod
    def checked(s: S, sentences: list[LabeledSentence], name: str) -> list[LabeledSentence]:
        """The sentences. DataError if the model reads tags and there are none."""
        if s.tag_dim and (bare := next((x for x in sentences if not x.tags), None)):
            raise DataError(
                f"{name}: tag_dim is {s.tag_dim}, but there is no column of tags at {' '.join(bare.forms[:6])!r}"
            )
        return sentences

    @classmethod
    def build(cls, s: S, train: Sequence[LabeledSentence]) -> dict[str, Any]:
        labels = Vocab.from_words((label for x in train for label in cls.marked(s, x.labels)), unk=None)
        known = read_vectors(s.vectors) if s.vectors else None
        parts = {
            "labels": labels.to_json(),
            **WordReader.build((x.forms for x in train), known, s.fold, feature_size(train)),
        }
        if s.tag_dim:
            parts["tags"] = Vocab.from_words(tag for x in train for tag in x.tags).to_json()
        return parts

    @staticmethod
    def marked(s: S, labels: list[str]) -> list[str]:
        """Labels (IOB2) in the model's scheme."""
        return SCHEMES[s.scheme](labels)

    # ---- model -------------------------------------------------------------------------------------------------------

    def __init__(self, s: S, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.labels = Vocab.from_json(parts["labels"])
        self.reader = WordReader(
            self.model, parts, dim=s.word_dim, char_dim=s.char_dim, char_hidden=s.char_hidden, hide=s.word_dropout,
            rng=self.random, char_reader=s.char_reader, case_dim=s.case_dim,
        )  # fmt: skip
        width = self.reader.width + s.tag_dim
        self.lstm = dy.BiRNNBuilder(s.layers, width, 2 * s.hidden, self.model, dy.LSTMBuilder, name="encoder")
        self.W = self.model.add_parameters((len(self.labels), 2 * s.hidden), name="W")
        self.b = self.model.add_parameters(len(self.labels), init=0, name="b")
        self.crf = LinearChainCRF(self.model, len(self.labels))
        self.allowed = iob_pairs(self.labels.words())
        if s.tag_dim:
            self.tags = Vocab.from_json(parts["tags"])
            shape = len(self.tags), s.tag_dim
            self.tag_vectors = self.model.add_lookup_parameters(shape, init="uniform", scale=0.1, name="tags")

    def begin(self) -> None:
        if self.settings.vectors:
            self.reader.use(read_vectors(self.settings.vectors))

    def gold(self, example: LabeledSentence) -> list[str]:
        return [label for label in self.marked(self.settings, example.labels) if label != "O"]

    def known_labels(self) -> list[str]:
        return self.labels.words()

    def scores(self, forms: Sequence[str], tags: Sequence[str] = (), features: Any = None) -> list[dy.Expression]:
        """For each word a vector {labels} of scores, before neighbouring labels are taken into account."""
        s, training = self.settings, self.training
        inputs = self.reader(forms, training, features)
        if s.tag_dim:
            rows = self.tag_vectors.rows(self.tags.ids(tags))
            inputs = [dy.concatenate(pair) for pair in zip(inputs, rows, strict=True)]
        drop = s.dropout if training else 0.0
        self.lstm.set_dropout(s.lstm_dropout if training else 0.0)
        outputs = self.lstm.transduce([dy.dropout(x, drop) for x in inputs] if drop else inputs)
        return [self.score(dy.dropout(x, drop) if drop else x) for x in outputs]

    def score(self, x: dy.Expression) -> dy.Expression:
        """The scores of the labels from an output of the sentence LSTM: {labels}."""
        return dy.affine_transform([self.b, self.W, x])

    def loss(self, batch: list[LabeledSentence]) -> dy.Expression:
        """The mean of -log p(labels) per word, {1}."""
        losses = []
        for x in batch:
            labels = self.labels.ids(self.marked(self.settings, x.labels))
            losses.append(self.crf.loss(self.scores(x.forms, x.tags, x.features), labels))
        return dy.esum(losses) * (1 / sum(map(len, batch)))

    def weight(self, batch: list[LabeledSentence]) -> int:
        return sum(map(len, batch))

    def networks(self) -> dict[str, tuple[Any, dict[str, Any], list[str]]]:
        from dynet_lite import onnx

        self.lstm.disable_dropout()
        tagged = {"tags": onnx.Ids("n")} if self.settings.tag_dim else {}

        def scores(tags: Any = None, **ids: Any) -> tuple[Any, ...]:
            inputs = self.reader.symbolic(**ids)
            outputs: Any = self.lstm.transduce(inputs.joined(onnx.lookup(self.tag_vectors, tags)) if tagged else inputs)
            return outputs.map(self.score), self.crf.transitions, self.crf.start, self.crf.end

        return {"scores": (scores, {**self.reader.inputs(), **tagged}, ["scores", "transitions", "start", "end"])}

    # ---- use ---------------------------------------------------------------------------------------------------------

    def label(
        self, batch: Sequence[Sequence[str]], tags: Sequence[Sequence[str]] = (), features: Sequence[Any] = ()
    ) -> list[list[str]]:
        """The best labels (IOB2) of each sentence. No sentence may be empty.

        tags, features: for each sentence, if the model reads them
        """
        dy.renew_cg()
        given = zip(batch, tags or [()] * len(batch), features or [None] * len(batch), strict=True)
        scores = [dy.concatenate_cols(self.scores(*sentence)) for sentence in given]
        dy.forward(scores)  # all sentences at once
        emissions = [matrix.npvalue().reshape(len(self.labels), -1).T for matrix in scores]
        return [to_iob2([self.labels.word(i) for i in best]) for best in self.crf.best(emissions, self.allowed)]

    def evaluate(self, examples: Sequence[LabeledSentence]) -> Score:
        score = SpanScore()

        def label(batch: Sequence[LabeledSentence]) -> list[list[str]]:
            return self.label([x.forms for x in batch], [x.tags for x in batch], [x.features for x in batch])

        for batch, labelled in self.spread(label, minibatches(examples, 64)):
            for sentence, labels in zip(batch, labelled, strict=True):
                score.add(sentence.labels, labels)
        types = {kind: found.f1 for kind, found in sorted(score.by_type.items())}
        text = f"{score}; {score.types()}" if self.settings.types and types else str(score)
        return Score(score.f1, text, types=types, precision=score.precision, recall=score.recall)

    def baseline(self, train: Sequence[LabeledSentence]) -> tuple[str, Callable[[Sequence[LabeledSentence]], Score]]:
        guess = MostFrequent(zip(x.forms, x.labels, strict=True) for x in train)

        def score(examples: Sequence[LabeledSentence]) -> Score:
            found = SpanScore()
            for sentence in examples:
                found.add(sentence.labels, guess(sentence.forms))
            return Score(found.f1, str(found))

        return "the most frequent label of each word", score

    def read(self, lines: Sequence[str], features: Sequence[Any] = ()) -> Iterator[tuple[list[str], list[str]]]:
        """Words and labels (IOB2) of each line."""
        sentences = [self.words_of(line) for line in lines]
        numbers = features or [None] * len(lines)
        full = [(forms, tags, array) for (forms, tags), array in zip(sentences, numbers, strict=True) if forms]
        labelled = iter(self.label(*zip(*full, strict=True)) if full else [])
        for forms, _ in sentences:
            yield forms, next(labelled) if forms else []

    def words_of(self, line: str) -> tuple[list[str], list[str]]:
        """Words and tags of a line of `predict`."""
        return split_tagged(line) if self.settings.tag_dim else (split_words(line), [])

    def predict(self, lines: list[str], features: Sequence[Any] = ()) -> Iterator[str]:
        scheme = SCHEMES.get(self.settings.write)
        for forms, labels in self.read(lines, features):
            if scheme is None:
                yield mark_spans(forms, labels)
            else:
                yield "".join(f"{word}\t{label}\n" for word, label in zip(forms, scheme(labels), strict=True))

    def answers(self, lines: list[str], scores: bool = False, features: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        if scores:
            raise DataError(f"{type(self).__name__} gives no scores: a CRF finds the best sequence as a whole")
        for forms, labels in self.read(lines, features):
            found = [{"start": start, "end": end, "label": kind} for start, end, kind in spans(labels)]
            yield {"words": forms, "labels": labels, "chunks": found}


def mark_spans(forms: Sequence[str], labels: Sequence[str]) -> str:
    """[NP The dog] [VP sleeps] . from words and labels (IOB2)."""
    words = np.array([*forms, ""], dtype=object)[:-1]
    for start, end, kind in spans(labels):
        words[start] = f"[{kind} {words[start]}"
        words[end - 1] += "]"
    return " ".join(words)
