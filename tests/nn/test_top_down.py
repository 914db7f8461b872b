"""Constituent trees as actions and back; only actions that lead to a tree are legal."""

from __future__ import annotations

import random

import pytest

from dynet_lite.nn import CLOSE, Progress, TopDown
from dynet_lite.text import parse_trees

TREES = [
    "(S (NP (PRON We)) (VP (VERB left)) (PUNCT .))",
    "(S (S (VP (VERB go))))",
    "(NP (NP (DET the) (NOUN end)) (PP (ADP of) (NP (DET the) (NOUN road))))",
]


@pytest.fixture
def system():
    return TopDown.of_trees(parse_trees(TREES))


def test_actions_are_those_of_the_paper(system):
    (tree,) = parse_trees(TREES[:1])
    names = [system.name(action) for action in system.actions(tree)]
    assert " ".join(names) == "S( NP( PRON ) VP( VERB ) PUNCT )"
    assert len(system) == 1 + 4 + 6


@pytest.mark.parametrize("text", TREES)
def test_there_and_back(text, system):
    (tree,) = parse_trees([text])
    actions, now = system.actions(tree), Progress(len(tree))
    for action in actions:
        assert action in system.legal(now)
        now = system.after(now, action)
    assert now.finished and not system.legal(now)
    assert str(system.tree(actions, tree.words())) == text


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_legal_leads_to_a_tree(seed, system):
    rng = random.Random(seed)
    words = ["w"] * rng.randint(1, 6)
    now, actions = Progress(len(words)), []
    while not now.finished:
        actions.append(rng.choice(system.legal(now)))
        now = system.after(now, actions[-1])
    assert len(actions) <= system.limit(len(words))
    tree = system.tree(actions, words)
    assert tree.words() == words
    assert system.actions(tree) == actions


def test_the_longest_way(system):
    """Phrases as often as possible: as many actions as `limit` says."""
    now, count = Progress(3), 0
    while not now.finished:
        legal = system.legal(now)
        action = next((a for a in (*system.opening, CLOSE) if a in legal), legal[-1])
        now, count = system.after(now, action), count + 1
    assert count == system.limit(3)


def test_unfinished_trees_are_closed(system):
    (tree,) = parse_trees(TREES[:1])
    actions = system.actions(tree)
    assert str(system.tree(actions[:-3], tree.words())) == "(S (NP (PRON We)) (VP (VERB left)))"


def test_what_cannot_be_made(system):
    with pytest.raises(ValueError, match="a phrase"):
        system.actions(next(parse_trees(["(NOUN end)"])))
    with pytest.raises(KeyError):
        system.actions(next(parse_trees(["(XP (NOUN end))"])))
    with pytest.raises(ValueError, match="at least one"):
        TopDown([], ["NOUN"])
