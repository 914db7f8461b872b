"""Naive Bayes' evidence, against its formula and with a text left out."""

from __future__ import annotations

import json
import math

import pytest

from dynet_lite.text import NgramEvidence

TEXTS = [("good good film", 1), ("bad film", 0), ("not good", 0), ("very good film", 1), ("very very bad", 0)]


def learned(order: int = 2, left_out: int = -1) -> NgramEvidence:
    return NgramEvidence.learn(((t.split(), c) for i, (t, c) in enumerate(TEXTS) if i != left_out), 2, order)


def test_by_hand():
    # good is in 1 of 3 texts of class 0 and in both of class 1; "good film" in none and in both; the rest is new
    rows = learned()("a good film".split())
    good = math.log(3 / 4) - math.log(2 / 5)
    film = math.log(3 / 4) - math.log(2 / 5)
    pair = math.log(3 / 4) - math.log(1 / 5)
    assert rows[1] == pytest.approx([(good + film) / 2, pair / 2]) and rows[0] == pytest.approx(
        [-(good + film) / 2, -pair / 2]
    )
    assert learned(1)(["new"]) == [[0.0], [0.0]]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_text_to_learn_from_is_left_out(order):
    for i, (text, label) in enumerate(TEXTS):
        ours, wanted = learned(order)(text.split(), label), learned(order, left_out=i)(text.split())
        assert [x for row in ours for x in row] == pytest.approx([x for row in wanted for x in row])


def test_beginnings_by_hand():
    # "goods" and "goody" begin as "good" does, which is as long as the beginning and is none; each text counts once
    texts = [("goods goody", 1), ("good bad", 0), ("badly", 0)]
    evidence = NgramEvidence.learn(((t.split(), c) for t, c in texts), 2, 1, (4,))
    assert len(evidence) == 2
    rows = evidence("goodish".split())
    share = (math.log(2 / 3) - math.log(1 / 4)) / 2  # in the one text of class 1, in none of the two of class 0
    assert rows[1] == pytest.approx([0, share]) and rows[0] == pytest.approx([0, -share])
    assert evidence("goodish".split(), own=1)[1] == [0, 0]  # no other text has it
    again = NgramEvidence.from_json(json.loads(json.dumps(evidence.to_json())))
    assert again("badly goods".split()) == evidence("badly goods".split())
    with pytest.raises(ValueError, match="beginnings of 1 letter or more"):
        NgramEvidence.learn([], 2, 1, (0,))


def test_a_text_of_other_data_takes_nothing_off():
    assert learned()("not film".split(), 1)[1] != [0, 0]  # "not" is in no text of class 1


def test_as_json():
    evidence = learned()
    again = NgramEvidence.from_json(json.loads(json.dumps(evidence.to_json())))
    assert again("very bad".split()) == evidence("very bad".split())
    with pytest.raises(ValueError, match="got 0 and 2"):
        NgramEvidence.learn([], 2, 0)
