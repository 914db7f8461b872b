"""Scores against counts by hand, and against seqeval, sacrebleu and NLTK."""

from __future__ import annotations

import math
import random

import pytest

from dynet_lite.text import Accuracy, Perplexity, SpanScore, bleu, edit_distance, to_bioes, to_iob1, to_iob2


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
def test_span_score_is_that_of_seqeval_in_every_scheme(seed):
    """What IOB1, IOB2 and BIOES say is the same: seqeval reads each by its own rules."""
    metrics = pytest.importorskip("seqeval.metrics")
    schemes = pytest.importorskip("seqeval.scheme")
    gold, guess = ([to_iob2(labels) for labels in part] for part in corpora(seed))
    ours = our_score(gold, guess)
    for write, scheme in ((to_iob1, schemes.IOB1), (list, schemes.IOB2), (to_bioes, schemes.IOBES)):
        written = [[write(labels) for labels in part] for part in (gold, guess)]
        assert ours.f1 == pytest.approx(metrics.f1_score(*written, mode="strict", scheme=scheme))
        for kind in "AB":
            report = metrics.classification_report(*written, mode="strict", scheme=scheme, output_dict=True)
            assert ours.by_type[kind].f1 == pytest.approx(report[kind]["f1-score"])


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
    assert math.isnan(Perplexity(math.nan, 1).value)  # so that a training stops


def translations(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    rng = random.Random(seed)
    references = [[rng.choice("abcdefgh") for _ in range(rng.randint(5, 15))] for _ in range(20)]
    answers = [[w if rng.random() < 0.8 else "x" for w in words if rng.random() < 0.9] for words in references]
    return answers, references


@pytest.mark.parametrize("seed", range(3))
def test_bleu_is_that_of_sacrebleu(seed):
    sacrebleu = pytest.importorskip("sacrebleu")
    answers, references = translations(seed)
    lines = [[" ".join(words) for words in texts] for texts in (answers, references)]
    theirs = sacrebleu.corpus_bleu(lines[0], [lines[1]], tokenize="none", smooth_method="none").score
    assert 100 * bleu(answers, [[r] for r in references]) == pytest.approx(theirs)
    both = sacrebleu.corpus_bleu(lines[0], [lines[1], lines[1][::-1]], tokenize="none", smooth_method="none").score
    assert 100 * bleu(answers, list(zip(references, references[::-1], strict=True))) == pytest.approx(both)


@pytest.mark.parametrize("seed", range(3))
def test_bleu_and_edit_distance_are_those_of_nltk(seed):
    from nltk.metrics.distance import edit_distance as theirs
    from nltk.translate.bleu_score import corpus_bleu

    answers, references = translations(seed)
    assert bleu(answers, [[r] for r in references]) == pytest.approx(corpus_bleu([[r] for r in references], answers))
    for a, b in zip(answers, references, strict=True):
        assert edit_distance(a, b) == theirs(a, b)
