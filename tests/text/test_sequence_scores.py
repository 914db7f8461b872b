"""Edit distance, error rate and BLEU, checked against NLTK."""

from __future__ import annotations

import random

import pytest

from dynet_lite.text import bleu, edit_distance, error_rate


def sequences(n, seed):
    rng = random.Random(seed)
    return [[rng.choice("abcd") for _ in range(rng.randint(4, 9))] for _ in range(n)]


def test_edit_distance_is_that_of_nltk():
    from nltk.metrics.distance import edit_distance as reference

    for a, b in zip(sequences(50, 1), sequences(50, 2), strict=True):
        assert edit_distance(a, b) == reference(a, b)
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    assert edit_distance([], []) == 0


def test_bleu_is_that_of_nltk():
    from nltk.translate.bleu_score import corpus_bleu

    for seed in range(5):
        answers = sequences(30, seed)
        references = [list(pair) for pair in zip(sequences(30, seed + 50), sequences(30, seed + 90), strict=True)]
        assert bleu(answers, references) == pytest.approx(corpus_bleu(references, answers))
    assert bleu([list("abcde")], [[list("abcde")]]) == 1
    assert bleu([list("xyz")], [[list("abc")]]) == bleu([[]], [[["a"]]]) == 0


def test_error_rate_takes_the_nearest_reference():
    assert error_rate(["ab", "xy"], [["ab", "cd"], ["xyz"]]) == pytest.approx(1 / 5)
    assert error_rate([""], [["abcd"]]) == 1
    assert error_rate([], []) == 0
