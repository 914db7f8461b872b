"""Scores of sentiment on trees, against cases counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dynet_lite.text import SentimentScore, Tree, binary_tree, parse_trees, polarity_of


def tree(text: str) -> Tree:
    return next(parse_trees([text]))


def labels(text: str) -> list[str]:
    return [node.label for node in tree(text).nodes()]


def test_binary_trees_keep_their_shape():
    one = tree("(3 (2 a) (4 good) (1 (0 bad) (2 film)))")
    assert str(binary_tree(one)) == "(positive (neutral a) (positive good) (negative (negative bad) (neutral film)))"
    assert str(one) == "(3 (2 a) (4 good) (1 (0 bad) (2 film)))"
    assert str(binary_tree(tree("(2 a)"))) == "(neutral a)"


def test_five_classes_counted_by_hand():
    score = SentimentScore()
    #     order of nodes: a, good, root
    score.add(labels("(3 (2 a) (4 good))"), ["2", "3", "3"], ["negative", "positive", "positive"])
    score.add(labels("(2 (2 a) (1 film))"), ["1", "1", "0"], ["negative", "positive", "negative"])
    assert (score.roots.right, score.roots.all) == (1, 2)
    assert (score.nodes.right, score.nodes.all) == (3, 6)
    assert (score.binary_roots.right, score.binary_roots.all) == (1, 1)  # the other root is neutral
    assert (score.binary_nodes.right, score.binary_nodes.all) == (2, 3)
    assert str(score) == "root accuracy 50.00% (all nodes 50.00%); binary: roots 100.00%, all nodes 66.67%"
    assert score.values() == {"nodes": 0.5, "binary_roots": 1, "binary_nodes": pytest.approx(2 / 3)}


def test_two_classes_leave_out_what_is_neutral():
    score = SentimentScore()
    score.add(["neutral", "negative", "positive"], ["positive", "negative", "negative"])
    score.add(["positive", "neutral"], ["positive", "positive"])
    assert (score.roots.right, score.roots.all, score.nodes.right, score.nodes.all) == (0, 1, 2, 3)
    assert str(score) == "root accuracy 0.00% (all nodes 66.67%)" and score.values() == {"nodes": pytest.approx(2 / 3)}


def test_other_labels_are_never_right():
    score = SentimentScore()
    score.add(["7", "0", "4"], ["0", "0", "4"], ["negative", "negative", "positive"])
    score.add(["neutral", "x"], ["0", "0"], ["negative", "negative"])
    assert (score.nodes.right, score.nodes.all, score.binary_nodes.right, score.binary_nodes.all) == (2, 4, 2, 5)


def test_neutral_as_a_class():
    score = SentimentScore(neutral=None)
    score.add(["neutral", "negative", "neutral"], ["neutral", "negative", "positive"])
    assert (score.roots.right, score.roots.all, score.nodes.right, score.nodes.all) == (0, 1, 2, 3)


def test_two_classes_of_five_probabilities():
    p = np.array([[0.3, 0.0], [0.0, 0.1], [0.4, 0.6], [0.15, 0.1], [0.16, 0.2]])
    assert polarity_of(p.T) == ["positive", "positive"] and polarity_of(p[::-1].T) == ["negative", "negative"]
