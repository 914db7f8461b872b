"""The linear classifier of n-grams, against what its definition asks of the weights."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dynet_lite.text import NgramClassifier

WORDS = "a b c d e f g h".split()


def texts(classes: int, n: int = 60) -> list[tuple[list[str], int]]:
    rng = np.random.RandomState(classes)
    made = []
    for i in range(n):
        label = i % classes
        chance = np.ones(8)
        chance[2 * label : 2 * label + 2] = 4
        made.append(([WORDS[k] for k in rng.choice(8, size=6, p=chance / chance.sum())], label))
    return made


def grams(words: list[str]) -> list[str]:
    return list(dict.fromkeys([*words, *(f"{a} {b}" for a, b in zip(words, words[1:], strict=False))]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("cost", [0.1, 2.0])
def test_the_weights_are_the_best(classes: int, cost: float) -> None:
    """The gradient of |w|^2 / 2 + cost * loss is 0 there."""
    examples = texts(classes)
    learned = NgramClassifier.learn(examples, classes, cost=cost, passes=1000)
    ids = {gram: i for i, gram in enumerate(dict.fromkeys(g for words, _ in examples for g in grams(words)))}
    for c in range(classes) if classes > 2 else [1]:
        counts = np.ones((2, len(ids)))
        for words, label in examples:
            for gram in grams(words):
                counts[int(label == c), ids[gram]] += 1
        shares = counts / counts.sum(axis=1, keepdims=True)
        scale = np.log(shares[1] / shares[0])
        told: Any = np.array([learned.weights[gram][c] for gram in ids]) * (2 if classes == 2 else 1)
        bias = learned.bias[c] * (2 if classes == 2 else 1)
        weights = np.append(told / scale, bias)
        gradient = weights.copy()
        for words, label in examples:
            at = [ids[gram] for gram in grams(words)]
            score = told[at].sum() + bias
            assert learned(words)[c] * (2 if classes == 2 else 1) == pytest.approx(score)
            sign = 1 if label == c else -1
            gradient[at] -= cost * sign / (1 + math.exp(sign * score)) * scale[at]
            gradient[-1] -= cost * sign / (1 + math.exp(sign * score))
        assert np.abs(weights).max() > 0.01
        assert np.abs(gradient).max() < 2e-3 * cost * len(examples)


@pytest.mark.parametrize("cost", [1e-4, 1e-7, 1e-10])
def test_a_small_cost_makes_small_weights(cost: float) -> None:
    """Far below 1 the shares of all texts are half of the cost, and the weights in proportion to it."""
    learned, wanted = (NgramClassifier.learn(texts(3), 3, cost=c, passes=100) for c in (cost, 1e-6))
    for gram, weights in wanted.weights.items():
        np.testing.assert_allclose(
            np.divide(learned.weights[gram], cost), np.divide(weights, 1e-6), rtol=0.05, atol=0.05
        )


def test_it_tells_classes_apart() -> None:
    learned = NgramClassifier.learn(texts(3), 3)
    right = [int(np.argmax(learned(words))) == label for words, label in texts(3)]
    assert sum(right) > 50
    assert learned(["new"]) == learned.bias and learned([]) == learned.bias


def test_the_same_seed_gives_the_same_weights() -> None:
    first, again = (NgramClassifier.learn(texts(2), 2, 1, (1,), seed=3) for _ in range(2))
    assert first.weights == again.weights


def test_as_json() -> None:
    learned = NgramClassifier.learn(texts(2), 2, 1, (1,))
    again = NgramClassifier.from_json(json.loads(json.dumps(learned.to_json())))
    for words, _ in texts(2):
        assert again([*words, "abc"]) == learned([*words, "abc"])


@pytest.mark.parametrize(("order", "classes", "cost"), [(0, 2, 0.1), (1, 1, 0.1), (1, 2, 0.0), (1, 2, math.nan)])
def test_wrong_numbers(order: int, classes: int, cost: float) -> None:
    with pytest.raises(ValueError, match="expected order 1 or more, two classes or more, and a positive cost"):
        NgramClassifier.learn([], classes, order, cost=cost)
