"""A model of words as one of letters: its letters are its words, and every mixture is a distribution."""

import json
import math

import pytest

from dynet_lite.text import KneserNey, SpelledWords

LETTERS = "_.abcd"  # a space, the end of a sentence, and letters
TEXT = "ab_abc_a.ab_a_abc.b_abc_ab.a_ab_d."
SPACE, END = 0, 1


def ids(text):
    return [LETTERS.index(x) for x in text]


def test_the_letters_of_a_word_are_the_word():
    """The product over the letters of a sentence is the product over its words, given that they are known ones."""
    model = SpelledWords(ids(TEXT), SPACE, END)
    words = KneserNey([[*s.split("_"), "."] for s in TEXT.split(".") if s], 3, words=7)
    known = sorted({w for s in TEXT.split(".") for w in s.split("_") if w})
    text = "ab_abc_b_a.d_ab."
    wanted = 0.0
    for sentence in text.split(".")[:-1]:
        row = sentence.split("_")
        for i, word in enumerate(row):
            p = words.probability(row[:i], word) / sum(words.probability(row[:i], w) for w in known)
            ends = words.probability(row[: i + 1], ".")
            wanted += math.log(p) + math.log(ends if i + 1 == len(row) else 1 - ends)
    assert sum(map(math.log, model.probabilities(ids(text))[0])) == pytest.approx(wanted)


@pytest.mark.parametrize("text", ["", "a", "ab", "ab_", "abc_a", "ab_ab.a", "cc_a", "_", "_a"])
def test_probabilities_of_the_next_letter_sum_to_one(text):
    model = SpelledWords(ids(TEXT), SPACE, END)
    after = [model.probabilities([*ids(text), x])[0][-1] for x in range(len(LETTERS))]
    assert sum(after) == pytest.approx(1)
    other = [1 / len(LETTERS)] * (len(text) + 1)
    assert sum(model.mixed(other, [*ids(text), x], 0.7)[-1] for x in range(len(LETTERS))) == pytest.approx(1)


@pytest.mark.parametrize("text", ["abd", "cd"])
def test_what_no_known_word_spells_is_left_to_the_other_model(text):
    model, other = SpelledWords(ids(TEXT), SPACE, END), [0.125] * 3
    assert model.probabilities(ids(text))[0][-1] == 0
    assert model.mixed(other, [*ids(text + "c")][:3], 0.7)[-1] <= 0.125
    long = model.mixed([0.125] * (len(text) + 1), ids(text + "a"), 0.7)
    assert long[-1] == 0.125  # the rest of such a word


def test_weights_follow_what_each_model_has_said():
    """At the first letter the weight is the share; after a letter that the words knew better it is more."""
    model = SpelledWords(ids(TEXT), SPACE, END)
    own, firsts = model.probabilities(ids("ab_"))
    assert firsts == [True, False, False]
    first, second, _ = model.mixed([0.01, 0.01, 0.01], ids("ab_"), 0.5)
    assert first == pytest.approx(0.5 * own[0] + 0.005)
    weight = 0.8 * (0.5 * own[0] / first) + 0.2 * 0.5
    assert weight > 0.5 and second == pytest.approx(weight * own[1] + (1 - weight) * 0.01)


def test_saved_and_read():
    model = SpelledWords(ids(TEXT), SPACE, END, order=2)
    again = SpelledWords.from_json(json.loads(json.dumps(model.to_json())))
    assert again.probabilities(ids("ab_cc_b.")) == model.probabilities(ids("ab_cc_b."))
    with pytest.raises(ValueError, match=r"\[SpelledWords\] expected a text with at least one word"):
        SpelledWords(ids("_._"), SPACE, END)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_distribution_of_ngrams_is_their_probabilities(order):
    model = KneserNey([[0, 1, 2], [0, 2, 2], [1, 0, 2]], order, words=5)
    for context in ([], [0], [0, 1], [2, 2], [4]):
        wanted = [model.probability(context, token) for token in range(5)]
        assert model.distribution(context, 5) == pytest.approx(wanted)
        assert model.distribution(context, 3) == pytest.approx(wanted[:3])


def test_a_space_after_a_space_ends_no_word():
    model = SpelledWords(ids(TEXT), SPACE, END)
    one, two = (model.probabilities(ids(text))[0] for text in ("_a_ab_abc.", "__a__ab__abc."))
    assert [p for p in two if p] == one[1:] and not one[0]
