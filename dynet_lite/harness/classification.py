"""What recipes that give texts a class share: data, vocabulary, loss, score, predictions. They add the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

import dynet_lite as dy
from dynet_lite.errors import DataError
from dynet_lite.text import (
    Accuracy,
    BytePairs,
    ClassifiedText,
    MostFrequent,
    NgramClassifier,
    NgramEvidence,
    Vocab,
    has_brackets,
    load_nltk_classified,
    minibatches,
    read_classified,
    read_polarity_of_trees,
    read_vectors,
    split_words,
)

from .data import Data, corpus
from .recipe import Recipe, Score
from .settings import Settings, option

__all__ = ["ClassifierSettings", "TextClassifier"]


@dataclass
class ClassifierSettings(Settings):
    """Settings that all text classifiers have. Their files have two columns, class and text, or are sentiment trees in
    brackets.
    """

    word_dim: int = option(100, "size of a word vector")
    min_count: int = option(1, "words seen less often than this are unknown")
    subwords: int = option(0, "split words into pieces with this many merges of byte-pair encoding; 0: whole words")
    vectors: str = option("", "start from the word vectors in this file (word2vec, text or binary; GloVe)")
    dropout: float = option(0.5, "fraction of the network's last layer to drop in training")
    evidence: int = option(0, "add naive Bayes evidence from runs of up to this many words to the scores; 0: none")
    evidence_letters: tuple[int, ...] = option(
        (), "with --evidence: also from the first letters of longer words, such as 4 6"
    )
    linear: float = option(
        0.0,
        "with --evidence: a linear classifier also learns from the n-grams, and its scores, times this, are added to "
        "the trained network's; 0: none",
    )
    word_dropout: float = option(0.0, "fraction of the words to replace by the unknown word in training")


S = TypeVar("S", bound=ClassifierSettings)


class TextClassifier(Recipe[S, ClassifiedText]):
    """A recipe that classifies texts. A subclass only defines `scores`: how the scores of the classes come from the
    words.

    The default data are the sentences of data/treebank that are not neutral, as positive and negative.
    """

    shares_evaluation: ClassVar[bool] = True
    build_options: ClassVar[tuple[str, ...]] = (
        "min_count", "subwords", "vectors", "evidence", "evidence_letters", "linear",
    )  # fmt: skip
    score_name: str = "accuracy"
    unit: str = "texts"
    label_name: ClassVar[str] = "class"
    home: ClassVar[str] = ""  # __file__ of the recipe

    @classmethod
    def load_data(cls, s: S) -> Data[ClassifiedText]:
        def read(path: str) -> list[ClassifiedText]:
            return read_polarity_of_trees(path) if has_brackets(path) else read_classified(path)

        def detail(train: Sequence[ClassifiedText]) -> str:
            return f"{sum(map(len, train)):,} words, {len({text.label for text in train})} classes"

        return corpus(s, read, home=cls.home, default="sst", nltk=load_nltk_classified, detail=detail, unit="texts")

    @classmethod
    def build(cls, s: S, train: Sequence[ClassifiedText]) -> dict[str, Any]:
        labels = Vocab.from_words(sorted({text.label for text in train}), unk=None)
        pieces = BytePairs.learn((w for text in train for w in text.words), s.subwords) if s.subwords else None
        split = pieces.split_all if pieces else list
        words = Vocab.from_words((w for text in train for w in split(text.words)), min_count=s.min_count)
        if s.vectors:
            known = (w for w in read_vectors(s.vectors).words if w not in words)
            words = Vocab.from_words({**{w: words.count(w) for w in words}, **dict.fromkeys(known, 1)})
        parts = {"words": words.to_json(), "labels": labels.to_json(), "pieces": pieces.to_json() if pieces else None}
        if (s.evidence_letters or s.linear) and not s.evidence:
            raise DataError(f"--{'evidence-letters' if s.evidence_letters else 'linear'} goes with --evidence")
        if s.evidence:
            if len(labels) < 2:
                raise DataError(f"--evidence goes with two classes or more; all texts are {train[0].label!r}")
            texts = [(text.words, labels[text.label]) for text in train]
            ngrams = len(labels), s.evidence, [n for n in s.evidence_letters if n]
            parts["evidence"] = NgramEvidence.learn(texts, *ngrams).to_json()
            if s.linear:
                parts["linear"] = NgramClassifier.learn(texts, *ngrams).to_json()
        return parts

    def __init__(self, s: S, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.words, self.labels = Vocab.from_json(parts["words"]), Vocab.from_json(parts["labels"])
        self.pieces = BytePairs.from_json(parts["pieces"]) if parts["pieces"] else None
        self.table = self.model.add_lookup_parameters(
            (len(self.words), s.word_dim), init="uniform", scale=0.1, name="words"
        )

        self.evidence = NgramEvidence.from_json(parts["evidence"]) if parts.get("evidence") else None
        if self.evidence is not None:  # what the evidence of each kind is worth
            self.worth = self.model.add_parameters(len(self.evidence), init=0.3, name="worth")
        self.linear = NgramClassifier.from_json(parts["linear"]) if parts.get("linear") else None

    def begin(self) -> None:
        if self.settings.vectors:
            table = self.table.as_array().astype(np.float32)
            read_vectors(self.settings.vectors).fill(table, self.words)
            self.table.init_from_array(table)

    def gold(self, example: ClassifiedText) -> list[str]:
        return [example.label]

    def known_labels(self) -> list[str]:
        return self.labels.words()

    # ---- the network -------------------------------------------------------------------------------------------------

    def embed(self, words: Sequence[str]) -> list[dy.Expression]:
        """The vectors of the words (or of their pieces)."""
        ids = self.words.ids(self.pieces.split_all(words) if self.pieces else words)
        hide = self.settings.word_dropout if self.training else 0.0
        if hide:
            ids = [0 if self.random.random() < hide else i for i in ids]
        return [self.table[i] for i in ids]

    def scores(self, words: Sequence[str]) -> dy.Expression:
        """The scores of the classes, {classes}, from the vectors of at least one word. A subclass defines this."""
        raise NotImplementedError

    def all_scores(self, words: Sequence[str], own: int = -1) -> dy.Expression:
        """scores(), with the evidence added if there is any.

        own: the class of a text that is trained on, see NgramEvidence
        """
        scores = self.scores(words)
        if self.evidence is None:
            return scores
        return self.with_evidence(scores, dy.inputTensor(np.array(self.evidence_of(words, own))))

    def evidence_of(self, words: Sequence[str], own: int = -1) -> list[list[float]]:
        """A row for each class: the evidence of each kind and, except for a text that is trained on, what the linear
        classifier says if there is one. The rows are an input of the network that `export` writes.

        ValueError if the model has no evidence.
        """
        if self.evidence is None:
            raise ValueError("[evidence_of] this model was trained without --evidence")
        rows = self.evidence(words, own)
        if self.linear is None or own >= 0:
            return rows
        return [[*row, score] for row, score in zip(rows, self.linear(words), strict=True)]

    def with_evidence(self, scores: dy.Expression, evidence: dy.Expression) -> dy.Expression:
        """{classes} from scores {classes} and evidence {classes, kinds}, where the linear classifier may be the last kind."""
        worth: dy.Expression = self.worth
        if evidence.dim()[0][1] > len(self.worth):
            worth = dy.concatenate([worth, dy.inputVector([self.settings.linear])])
        return dy.affine_transform([scores, evidence, worth])

    def scores_of(self, vectors: Any) -> dy.Expression:
        """scores() for a text of unknown length, an onnx.Sequence of word vectors. For `export`."""
        raise DataError(f"{type(self).__name__} has no scores_of() to export")

    def networks(self) -> dict[str, tuple[Any, dict[str, Any], list[str]]]:
        """The network that `export` writes: from the numbers of the words (or of their pieces), and from the evidence if
        there is any, to the scores of the classes.
        """
        from dynet_lite import onnx

        def scores(words: Any, evidence: Any = None) -> dy.Expression:
            found = self.scores_of(onnx.lookup(self.table, words))
            return found if evidence is None else self.with_evidence(found, evidence)

        inputs: dict[str, Any] = {"words": onnx.Ids("n")}
        if self.evidence is not None:
            inputs["evidence"] = onnx.Input((len(self.labels), len(self.evidence) + (self.linear is not None)))
        return {"scores": (scores, inputs, ["scores"])}

    def loss(self, batch: list[ClassifiedText]) -> dy.Expression:
        """The mean of -log p(class) over the texts, {1}."""
        labels = self.labels.ids(text.label for text in batch)
        losses = [
            dy.pickneglogsoftmax(self.all_scores(text.words, i), i) for text, i in zip(batch, labels, strict=True)
        ]
        return dy.esum(losses) * (1 / len(losses))

    # ---- use ---------------------------------------------------------------------------------------------------------

    def probabilities(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray[Any, Any]]:
        """For each text the probability of each class."""
        dy.renew_cg()
        found = [dy.softmax(self.all_scores(words)) for words in batch]
        dy.forward(found)  # all texts at once
        return [p.npvalue() for p in found]

    def classify(self, batch: Sequence[Sequence[str]]) -> list[tuple[str, float]]:
        """For each text its class, and the probability of this class."""
        return [(self.labels.word(int(p.argmax())), float(p.max())) for p in self.probabilities(batch)]

    def evaluate(self, examples: Sequence[ClassifiedText]) -> Score:
        score = Accuracy()
        for batch, guesses in self.spread(
            lambda batch: self.classify([text.words for text in batch]), minibatches(examples, 64)
        ):
            score.add([text.label for text in batch], [label for label, _ in guesses])
        return Score(score.value, str(score), texts=score.all)

    def baseline(self, train: Sequence[ClassifiedText]) -> tuple[str, Callable[[Sequence[ClassifiedText]], Score]]:
        best = MostFrequent([("", text.label)] for text in train)([""])[0]

        def score(examples: Sequence[ClassifiedText]) -> Score:
            found = Accuracy(sum(text.label == best for text in examples), len(examples))
            return Score(found.value, str(found))

        return f"always {best}, the most frequent class", score

    def predict(self, lines: list[str]) -> Iterator[str]:
        texts = [split_words(line) for line in lines]
        guesses = iter(self.classify([words for words in texts if words]) if any(texts) else [])
        for words in texts:
            label, p = next(guesses) if words else ("", 0.0)
            yield f"{label}\t{p:.3f}\t{' '.join(words)}" if words else ""

    def answers(self, lines: list[str], scores: bool = False) -> Iterator[dict[str, Any]]:
        texts = [split_words(line) for line in lines]
        found = iter(self.probabilities([words for words in texts if words]) if any(texts) else [])
        for line, words in zip(lines, texts, strict=True):
            answer: dict[str, Any] = {"text": line, "label": None}
            p = next(found) if words else np.zeros(len(self.labels))
            if words:
                answer["label"] = self.labels.word(int(p.argmax()))
            if scores:
                answer["probabilities"] = {self.labels.word(i): float(p[i]) for i in range(len(self.labels))}
            yield answer
