"""The n-gram model against its formula, and the most frequent labels."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import pytest

from dynet_lite.text import KneserNey, MostFrequent, RightBranching, Sentence, UsualHead, WordForWord, parse_trees

TEXT = [list(line) + ["$"] for line in ("abracadabra", "abba", "cab", "a", "")]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one(order):
    model = KneserNey(TEXT, order, words=8)
    vocabulary = [*"abcdr$", "never", "nor this"]
    for context in ([], ["a"], ["b", "r"], ["never"], ["a", "never"], list("abrac"), ["$", "z", "a"]):
        p = [model.probability(context, token) for token in vocabulary]
        assert sum(p) == pytest.approx(1) and min(p) > 0


def test_orders_that_fill_the_memory():
    for order in (1001, 2**31 - 1):
        with pytest.raises(ValueError, match=rf"\[KneserNey\] expected an order of at most 1000, got {order}"):
            KneserNey(TEXT, order)
    assert KneserNey(TEXT[:2], 1000).order == 1000


def test_bigrams_by_hand():
    """c("a b") = 3 of the 8 a's; unigrams by the number of different tokens that come before them."""
    model = KneserNey(TEXT, 2)
    pairs = Counter(p for row in TEXT for p in zip(["^", *row], row, strict=False))
    before = {w: len({a for a, b in pairs if b == w}) for w in "abcdr$"}
    kinds = sum(before.values())
    once, twice, more = model.discounts[0]

    def taken(count: int, d: tuple[float, float, float]) -> float:
        return 0 if count == 0 else d[min(count, 3) - 1]

    left = sum(taken(c, model.discounts[0]) for c in before.values()) / kinds
    unigram = {w: (c - taken(c, (once, twice, more))) / kinds + left / 6 for w, c in before.items()}
    assert sum(unigram.values()) == pytest.approx(1)
    row = {b: c for (a, b), c in pairs.items() if a == "a"}
    total = sum(row.values())
    left = sum(taken(c, model.discounts[1]) for c in row.values()) / total
    for w in "abcdr$":
        wanted = (row.get(w, 0) - taken(row.get(w, 0), model.discounts[1])) / total + left * unigram[w]
        assert model.probability(["a"], w) == pytest.approx(wanted)
    assert model.probability(["z"], "b") == pytest.approx(unigram["b"])


def test_discounts_are_those_of_chen_and_goodman():
    rng = random.Random(1)
    text = [[int(rng.paretovariate(1)) for _ in range(5000)]]
    counts = Counter(zip(text[0], text[0][1:], strict=False))
    n = Counter(counts.values())
    n[1] += 1  # the first token after the start
    y = n[1] / (n[1] + 2 * n[2])
    wanted = [1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]]
    assert KneserNey(text, 2).discounts[1] == pytest.approx(wanted)


def test_higher_orders_know_more_and_perplexity_is_the_mean():
    rng = random.Random(0)
    rows = [[*"".join(rng.choice(["the", "then", "that", "cat"]) + " " for _ in range(8)), "$"] for _ in range(60)]
    values = [KneserNey(rows[:50], order).perplexity(rows[50:]).value for order in (1, 2, 3)]
    assert values == sorted(values, reverse=True) and values[-1] < 2.5
    model = KneserNey(rows[:50], 3)
    score = model.perplexity(rows[50:])
    assert score.tokens == sum(map(len, rows[50:]))
    by_hand = -sum(math.log(model.probability(row[:i], row[i])) for row in rows[50:] for i in range(len(row)))
    assert score.loss == pytest.approx(by_hand)


@pytest.mark.parametrize("order", [1, 3])
def test_as_json(order):
    model = KneserNey(TEXT, order, words=9)
    again = KneserNey.from_json(json.loads(json.dumps(model.to_json())))
    for row in TEXT:
        assert again.probabilities(row) == model.probabilities(row)
        assert model.probabilities(row) == [model.probability(row[:i], row[i]) for i in range(len(row))]


def test_a_mixture_with_another_model():
    model, row = KneserNey(TEXT, 2), list("cab$")
    p = model.probabilities(row)
    other = [0.5, 0.25, 0.1]  # of the last three tokens
    wanted = -sum(math.log(0.7 * x + 0.3 * y) for x, y in zip(other, p[1:], strict=True))
    assert model.mixed_loss([-math.log(x) for x in other], row, 0.3) == pytest.approx(wanted)
    assert model.mixed_loss([7.0] * 4, row, 1.0) == pytest.approx(-model.log_probability(row))
    assert model.mixed_loss([], row, 0.5) == 0


def test_what_is_refused():
    with pytest.raises(ValueError, match="order of at least 1, got 0"):
        KneserNey(TEXT, 0)
    for nothing in ([], [[]]):
        with pytest.raises(ValueError, match="at least one token"):
            KneserNey(nothing, 2)
    with pytest.raises(ValueError, match="at least one word"):
        MostFrequent([[]])


def test_most_frequent():
    guess = MostFrequent([[("a", "X"), ("b", "Y")], [("a", "Y"), ("a", "X"), ("c", "Z"), ("d", "Z")]])
    assert guess(["a", "b", "new"]) == ["X", "Y", "Z"]
    assert MostFrequent([[("", "pos"), ("", "neg"), ("", "neg")]])(["", ""]) == ["neg", "neg"]
    assert MostFrequent([[("a", "X"), ("a", "X")]])(["b"]) == ["X"]


def conllu(rows: str) -> Sentence:
    """word tag head relation, separated by commas."""
    cells = [row.split() for row in rows.split(",")]
    words, tags, heads, relations = (list(column) for column in zip(*cells, strict=True))
    return Sentence(words, tags, [], [int(head) for head in heads], relations)


def test_the_usual_head_of_each_tag():
    guess = UsualHead(
        [
            conllu("the D 2 det, dog N 3 subj, barks V 0 root"),
            conllu("a D 3 det, big A 3 mod, cat N 0 root, here R 3 adv"),
        ]
    )
    found = guess(conllu("big A 0 x, the D 0 x, cat N 0 x, runs V 0 x, now Q 0 x"))
    # A: the next word; D: +1 and +2 are equally frequent, the first is taken; N: +1 comes first; V: the root
    assert found.heads[:4] == [2, 3, 4, 0] and found.deprels[:4] == ["mod", "det", "subj", "root"]
    assert found.forms == ["big", "the", "cat", "runs", "now"]
    assert guess(conllu("the D 0 x")).heads == [0]  # nothing but the root is left
    assert guess(conllu("barks V 0 x, the D 0 x")).heads == [0, 1]  # the next word is beyond the end
    back = UsualHead(iter([conllu("x V 0 root, y R 1 adv")]))
    assert back(conllu("y R 0 x, x V 0 x")).heads == [2, 0]  # the word before is beyond the start


def test_right_branching_trees():
    trees = [
        next(parse_trees([text]))
        for text in ("(S (NP (D a) (N dog)) (V runs))", "(S (NP (D a) (N cat)) (VP (V is) (NP (N one))))")
    ]
    guess = RightBranching(trees)
    assert str(guess(["a", "cat", "is", "runs"])) == "(S (D a) (NP (N cat) (NP (V is) (NP (V runs)))))"
    assert str(guess(["a"])) == "(S (D a))"
    assert guess("a b c d e f".split()).words() == "a b c d e f".split()
    assert len(RightBranching(trees)(["a"] * 3000)) == 3000  # not recursive


def test_word_for_word():
    pairs = [("the dog", "le chien"), ("the cat", "le chat"), ("a dog", "un chien"), ("dog dog", "chien chien")]
    guess = WordForWord((s.split(), t.split()) for s, t in pairs)
    assert guess("the cat saw a dog".split()) == "le chat saw un chien".split()
