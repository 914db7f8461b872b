"""Brackets of trees and their score."""

from __future__ import annotations

import pytest

from dynet_lite.text import BracketScore, EvalbScore, base_labels, brackets, parse_trees


def tree(text):
    return next(parse_trees([text]))


def test_brackets_are_phrases_with_their_ends():
    found = brackets(tree("(S (NP (DET the) (NOUN end)) (S (S (VERB is))) (PUNCT .))"))
    assert found == {("S", 0, 4): 1, ("NP", 0, 2): 1, ("S", 2, 3): 2}
    assert not brackets(tree("(NOUN end)"))


def test_counts_by_hand():
    score = BracketScore()
    gold = tree("(S (NP (PRON I)) (VP (VERB saw) (NP (NP (DET a) (NOUN man)) (PP (ADP with) (NP (NOUN eyes))))))")
    guess = tree("(S (NP (PRON I)) (VP (VERB saw) (NP (DET a) (NOUN man)) (PP (ADP with) (NP (ADJ eyes)))))")
    score.add(gold, guess)  # wanted 7, found 6, all of which are right
    assert (score.right, score.found, score.wanted) == (6, 6, 7)
    assert score.precision == 1 and score.recall == pytest.approx(6 / 7) and score.f1 == pytest.approx(12 / 13)
    score.add(gold, gold)
    assert (score.whole, score.trees, score.tags, score.words) == (1, 2, 11, 12)
    assert str(score) == "bracket F1 96.30% (whole trees 50.0%, tags 91.7%)"


def test_a_unary_chain_counts_once_each():
    score = BracketScore()
    score.add(tree("(S (S (VERB go)))"), tree("(S (VERB go))"))
    assert (score.right, score.found, score.wanted) == (1, 1, 2)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="go"):
        BracketScore().add(tree("(S (VERB go))"), tree("(S (VERB come))"))


def test_base_labels():
    text = "(S (NP-SBJ-1 (-LRB- -LCB-) (NN x)) (VP=2 (VBZ is)) (ADVP|PRT (RB so)))"
    assert str(base_labels(tree(text))) == "(S (NP (-LRB- -LCB-) (NN x)) (VP (VBZ is)) (ADVP|PRT (RB so)))"
    assert str(base_labels(tree("(X (= =) (== ==))"))) == "(X (= =) (== ==))"  # tags that are signs


def evalb(gold, guess):
    score = EvalbScore()
    score.add(tree(gold), tree(guess))
    return score.right, score.found, score.wanted, score.tags, score.words


def test_evalb_takes_punctuation_out_by_the_tags_of_the_right_tree():
    gold = "(TOP (S (NP (PRP I)) (, ,) (VP (VBP go)) (. .)))"
    assert evalb(gold, "(TOP (S (S (NP (PRP I)) (, ,)) (VP (VBP go) (. .))))") == (
        3,
        4,
        3,
        2,
        2,
    )  # only S over I is wrong
    assert evalb(gold, "(TOP (S (NP (PRP I)) (X (NN ,)) (VP (VBP go)) (. .)))") == (
        3,
        3,
        3,
        2,
        2,
    )  # X holds no word that counts
    assert evalb(gold, "(S (NP (PRP I)) (, ,) (VP (VBP go)) (. .))") == (3, 3, 3, 2, 2)  # TOP does not count
    all_words = BracketScore()
    all_words.add(tree(gold), tree("(TOP (S (S (NP (PRP I)) (, ,)) (VP (VBP go) (. .))))"))
    assert (all_words.right, all_words.found, all_words.wanted, all_words.words) == (3, 5, 4, 4)


def test_evalb_holds_particles_for_adverbs_and_brackets_for_words():
    gold = "(S (VP (VB give) (PRT (RP up))) (-LRB- -LCB-))"
    assert evalb(gold, "(S (VP (VB give) (ADVP (RP up))) (-LRB- -LCB-))") == (3, 3, 3, 3, 3)
    assert evalb(gold, "(S (VP (VB give) (NP (NN up)) (-LRB- -LCB-)))") == (1, 3, 3, 2, 3)


def test_evalb_counts_a_label_as_often_as_it_comes():
    assert evalb("(S (NP (NP (NN a))))", "(S (NP (NP (NP (NN a)))))") == (3, 4, 3, 1, 1)
