"""The oracle of top-down parsing: on the gold path it is the gold path, and after any mistake nothing is better."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from dynet_lite.nn import CLOSE, Progress, TopDown, TopDownOracle
from dynet_lite.text import parse_trees

TREES = [
    "(S (NP (PRON We)) (VP (VERB left)) (PUNCT .))",
    "(S (S (VP (VERB go))))",
    "(NP (NP (DET the) (NOUN end)) (PP (ADP of) (NP (DET the) (NOUN road))))",
]


class Short(TopDown):
    """So few phrases at one word that all trees can be tried."""

    MOST_OPENED = 2


def brackets(system, actions):
    """The phrases that actions close: (label, first word, end)."""
    out, path, at = [], [], 0
    for action in actions:
        if action == CLOSE:
            out.append((*path.pop(), at))
        elif action in system.opening:
            path.append((action, at))
        else:
            at += 1
    return out


def cost(found, gold):
    found, gold = Counter(found), Counter(gold)
    return (found - gold).total() + (gold - found).total()


def completed(system, actions, now, oracle):
    """The actions, and then those of the oracle."""
    out = list(actions)
    while not now.finished:
        action = oracle.best()
        assert action in system.legal(now)
        out.append(action)
        oracle.follow(action)
        now = system.after(now, action)
    return out


def least(system, now, path, at, made, gold, known):
    """The lowest cost of all trees that begin with the brackets that were made and those that are open."""
    if now.finished:
        return cost(made, gold)
    key = now, path, made
    if key not in known:
        known[key] = 1 << 30
        for action in system.legal(now):
            if action in system.taking[1:]:
                continue  # the tag does not matter here
            then = system.after(now, action)
            if action == CLOSE:
                step = path[:-1], at, tuple(sorted((*made, (*path[-1], at))))
            elif action in system.opening:
                step = (*path, (action, at)), at, made
            else:
                step = path, at + 1, made
            known[key] = min(known[key], least(system, then, *step, gold, known))
    return known[key]


def random_actions(system, words, rng, stop=1000):
    now, out = Progress(words), []
    while not now.finished and len(out) < stop:
        out.append(rng.choice(system.legal(now)))
        now = system.after(now, out[-1])
    return out


@pytest.mark.parametrize("text", TREES)
def test_without_mistakes_it_is_the_gold_tree(text):
    system = TopDown.of_trees(parse_trees(TREES))
    (tree,) = parse_trees([text])
    assert completed(system, [], Progress(len(tree)), TopDownOracle(system, tree)) == system.actions(tree)


@pytest.mark.parametrize("seed", range(150))
def test_after_mistakes_nothing_is_better(seed):
    rng = random.Random(seed)
    system = Short(["A", "B"], ["t"])
    words = rng.randint(1, 3)
    gold_actions = random_actions(system, words, rng)
    tree = system.tree(gold_actions, ["w"] * words)
    gold = brackets(system, gold_actions)
    done = random_actions(system, words, rng, stop=rng.randint(0, 6))
    oracle, now, path, at, made = TopDownOracle(system, tree), Progress(words), (), 0, ()
    for action in done:
        oracle.follow(action)
        now = system.after(now, action)
        if action == CLOSE:
            path, made = path[:-1], tuple(sorted((*made, (*path[-1], at))))
        elif action in system.opening:
            path = (*path, (action, at))
        else:
            at += 1
    best = least(system, now, path, at, made, gold, {})
    assert cost(brackets(system, completed(system, done, now, oracle)), gold) == best


def test_a_wrong_label_ends_where_the_right_one_would():
    system = TopDown.of_trees(parse_trees(TREES))
    (tree,) = parse_trees(TREES[:1])
    labels = {system.name(action): action for action in range(len(system))}
    start = [labels[name] for name in ("S(", "VP(", "NP(", "PRON")]
    oracle, now = TopDownOracle(system, tree), Progress(len(tree))
    for action in start:
        oracle.follow(action)
        now = system.after(now, action)
    rest = completed(system, start, now, oracle)
    assert " ".join(map(system.name, rest)) == "S( VP( NP( PRON ) ) VP( VERB ) PUNCT )"


def test_a_finished_tree_has_no_next_action():
    system = TopDown.of_trees(parse_trees(TREES))
    (tree,) = parse_trees(TREES[1:2])
    oracle = TopDownOracle(system, tree)
    for action in system.actions(tree):
        oracle.follow(action)
    with pytest.raises(ValueError, match="finished"):
        oracle.best()


def test_trees_that_the_actions_cannot_make():
    system = TopDown.of_trees(parse_trees(TREES))
    with pytest.raises(KeyError):
        TopDownOracle(system, next(parse_trees(["(XP (NOUN end))"])))
    with pytest.raises(ValueError, match="a phrase"):
        TopDownOracle(system, next(parse_trees(["(NOUN end)"])))
