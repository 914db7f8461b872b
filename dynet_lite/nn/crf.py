"""A conditional random field over a chain of labels, as dynamic programming over expressions.

Lafferty, McCallum, Pereira: Conditional random fields (2001); over the scores of an LSTM: Huang, Xu, Yu: Bidirectional
LSTM-CRF models for sequence tagging (2015). Written for one sentence; in a mini-batch the steps of all sentences are batched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.needs import Told, many, part, shown, whole

__all__ = ["LinearChainCRF", "iob_pairs", "viterbi"]

Array = np.ndarray[Any, Any]


def _sentences(crf: Any, given: Any) -> Told | None:
    """What is wrong with the emissions of best()."""
    if not isinstance(given, (list, tuple, np.ndarray)):
        return TypeError, f"a list of arrays (words, {crf.labels}) is needed; got {shown(given)}"
    for matrix in given:
        if np.ndim(matrix) != 2 or len(matrix) < 1 or np.shape(matrix)[1] != crf.labels:
            return ValueError, f"emissions of a sentence are an array (words, {crf.labels}); got {np.shape(matrix)}"
    return None


@part(
    emissions=many("emissions", "labels"), best__emissions=_sentences, score__labels=whole("labels"),
    loss__labels=whole("labels"),
)  # fmt: skip
class LinearChainCRF:
    """A conditional random field: scores of neighbouring labels, on top of a network's scores of each word's labels.

    The score of a labelling y of n words is

        start[y_1] + sum over t of emissions[t][y_t] + sum over t > 1 of transitions[y_t, y_{t-1}] + end[y_n]

    and its probability is exp(score), divided by the sum of exp(score) over all labellings. `emissions` are n >= 1
    vectors {labels}.
    """

    def __init__(self, model: dy.ParameterCollection, labels: int, *, name: str = "crf") -> None:
        self.labels = labels
        collection = model.add_subcollection(name)
        self.transitions = collection.add_parameters((labels, labels), init=0, name="transitions")  # [to, from]
        self.start = collection.add_parameters(labels, init=0, name="start")
        self.end = collection.add_parameters(labels, init=0, name="end")

    def log_partition(self, emissions: Sequence[dy.Expression]) -> dy.Expression:
        """The logarithm of the sum of exp(score) over all labellings, {1}, by the forward algorithm."""
        if not emissions:
            raise ValueError("[LinearChainCRF] at least one word is needed")
        alpha = self.start + emissions[0]  # log of the sum over all labellings that end in each label, {labels}
        for emission in emissions[1:]:
            ways = self.transitions + dy.reshape(alpha, (1, self.labels))  # {to, from}
            alpha = dy.logsumexp_dim(ways, d=1) + emission
        return dy.logsumexp_dim(alpha + self.end, d=0)

    def score(self, emissions: Sequence[dy.Expression], labels: Sequence[int]) -> dy.Expression:
        """The score of a labelling: {1}."""
        if len(labels) != len(emissions):
            raise ValueError(
                f"[LinearChainCRF] a label for each word is needed; got {len(labels)} for {len(emissions)}"
            )
        if wrong := [label for label in labels if not 0 <= label < self.labels]:
            raise IndexError(f"[LinearChainCRF] label {wrong[0]}: there are {self.labels}")
        pairs = np.zeros((self.labels, self.labels))  # how often each pair of labels comes
        np.add.at(pairs, (np.array(labels[1:], dtype=int), np.array(labels[:-1], dtype=int)), 1)
        single = [dy.pick(emission, label) for emission, label in zip(emissions, labels, strict=True)]
        ends = [dy.pick(self.start, labels[0]), dy.pick(self.end, labels[-1])]
        return dy.esum([*single, *ends, dy.sum_elems(dy.cmult(self.transitions, dy.inputTensor(pairs)))])

    def loss(self, emissions: Sequence[dy.Expression], labels: Sequence[int]) -> dy.Expression:
        """-log p(labels): {1}."""
        return self.log_partition(emissions) - self.score(emissions, labels)

    def best(self, emissions: Sequence[Array], allowed: Array | None = None) -> list[list[int]]:
        """The most probable labels of each sentence, by the Viterbi algorithm. `emissions` are arrays (words, labels).

        allowed: an array of bool (labels + 1, labels + 1) with axes [to, from]; the last row and column stand for the
            ends of the sentence
        """
        pairs, start, end = (np.asarray(p.as_array()) for p in (self.transitions, self.start, self.end))
        if allowed is not None:
            pairs = np.where(allowed[:-1, :-1], pairs, -np.inf)
            start, end = np.where(allowed[:-1, -1], start, -np.inf), np.where(allowed[-1, :-1], end, -np.inf)
        return [viterbi(matrix, pairs, start, end) for matrix in emissions]


def viterbi(emissions: Array, transitions: Array, start: Array, end: Array) -> list[int]:
    """The labels of the highest score. emissions (words, labels), transitions (to, from), start and end (labels)."""
    best = start + emissions[0]
    came_from = []
    for emission in emissions[1:]:
        ways = transitions + best  # (to, from)
        came_from.append(ways.argmax(axis=1))
        best = ways.max(axis=1) + emission
    labels = [int((best + end).argmax())]
    for previous in reversed(came_from):
        labels.append(int(previous[labels[-1]]))
    return labels[::-1]


def iob_pairs(labels: Sequence[str]) -> Array:
    """Which labels may follow which, for LinearChainCRF.best(): in IOB2, or in BIOES if there are labels E-X or S-X.

    I-X may only follow B-X or I-X. In BIOES, this holds for E-X, too; B-X and I-X must be followed by one of the two,
    and cannot end a sentence.
    """
    n = len(labels)
    allowed = np.ones((n + 1, n + 1), dtype=bool)
    bioes = any(label[:2] in ("E-", "S-") for label in labels)
    for to, label in enumerate([*labels, ""]):  # the last row is the end, the last column the start
        for before, last in enumerate([*labels, ""]):
            inside, was_open = label[:2] in ("I-", "E-"), last[:2] in ("B-", "I-")
            if inside or (bioes and was_open):
                allowed[to, before] = inside and was_open and label[2:] == last[2:]
    return allowed
