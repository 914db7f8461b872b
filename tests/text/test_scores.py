"""Scores against counts by hand, and against seqeval and NLTK."""

from __future__ import annotations

import math
import random

import pytest

from dynet_lite.text import Accuracy, Perplexity, SpanScore


def random_labels(rng: random.Random, n: int) -> list[str]:
    return [rng.choice(["O", "O", "B-A", "I-A", "B-B", "I-B"]) for _ in range(n)]


def corpora(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    rng = random.Random(seed)
    lengths = [rng.randint(1, 12) for _ in range(40)]
    return [random_labels(rng, n) for n in lengths], [random_labels(rng, n) for n in lengths]


def our_score(gold: list[list[str]], guess: list[list[str]]) -> SpanScore:
    score = SpanScore()
    for a, b in zip(gold, guess, strict=True):
        score.add(a, b)
    return score


@pytest.mark.parametrize("seed", range(5))
def test_span_score_is_that_of_seqeval(seed):
    metrics = pytest.importorskip("seqeval.metrics")
    gold, guess = corpora(seed)
    ours = our_score(gold, guess)
    assert ours.f1 == pytest.approx(metrics.f1_score(gold, guess))
    assert ours.precision == pytest.approx(metrics.precision_score(gold, guess))
    report = metrics.classification_report(gold, guess, output_dict=True)
    assert ours.by_type["A"].f1 == pytest.approx(report["A"]["f1-score"])


@pytest.mark.parametrize("seed", range(5))
def test_span_score_is_that_of_nltk(seed):
    chunk = pytest.importorskip("nltk.chunk.util")
    gold, guess = corpora(seed)
    theirs = chunk.ChunkScore()
    for a, b in zip(gold, guess, strict=True):
        trees = [chunk.conlltags2tree([(str(i), "X", x) for i, x in enumerate(labels)]) for labels in (a, b)]
        theirs.score(*trees)
    ours = our_score(gold, guess)
    assert ours.f1 == pytest.approx(theirs.f_measure())
    assert (ours.precision, ours.recall) == pytest.approx((theirs.precision(), theirs.recall()))


def test_accuracy():
    score = Accuracy()
    score.add("abcd", "abce")
    score.add("ab", "ab")
    assert (score.right, score.all) == (5, 6)
    low, high = Accuracy(80, 100).interval()
    assert low == pytest.approx(0.7112, abs=1e-4) and high == pytest.approx(0.8666, abs=1e-4)  # Wilson's interval
    assert Accuracy(0, 0).value == 0.0
    with pytest.raises(ValueError):
        score.add("ab", "a")


def test_perplexity():
    score = Perplexity()
    score.add(3 * math.log(8), 3)
    score.add(math.log(8), 1)
    assert score.value == pytest.approx(8)
    assert Perplexity(1e9, 1).value == math.inf
