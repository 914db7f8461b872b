"""Transition systems: gold trees are made again, and the costs of the dynamic oracle agree with a search of all parses."""

from __future__ import annotations

import itertools
import os
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynet_lite.nn.transitions import LEFT, RIGHT, SHIFT, Actions, ArcHybrid, ArcStandard, Configuration
from dynet_lite.text import read_dependencies
from dynet_lite.text.dependencies import is_projective, is_tree, projective_heads

ROOT = Path(__file__).resolve().parents[2]
CORPORA = Path(os.environ.get("DYNET_LITE_CORPORA", ROOT.parent / "shared" / "corpora"))
FILES = [ROOT / "data" / "treebank" / "train.conllu", CORPORA / "ud_english_ewt" / "en_ewt-ud-dev.conllu"]
SYSTEMS = [ArcStandard(), ArcHybrid()]


def trees(n: int) -> list[list[int]]:
    """All trees of n words with one root."""
    return [list(heads) for heads in itertools.product(range(n + 1), repeat=n) if is_tree(heads)]


@st.composite
def random_trees(draw) -> list[int]:
    """A tree of up to 30 words: each word hangs from one that comes before it in a random order."""
    order = draw(st.permutations(range(1, draw(st.integers(1, 30)) + 1)))
    heads = [0] * len(order)
    for i, word in enumerate(order[1:], 1):
        heads[word - 1] = order[draw(st.integers(0, i - 1))]
    return heads


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_all_small_trees_are_made_again(system):
    for n in range(1, 6):
        for heads in trees(n):
            if is_projective(heads):
                moves = system.moves(heads)
                assert len(moves) == 2 * n and moves.count(SHIFT) == n
            else:
                with pytest.raises(ValueError, match="projective"):
                    system.moves(heads)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
@given(heads=random_trees())
@settings(max_examples=60, deadline=None)
def test_random_trees_are_made_again(system, heads):
    heads = projective_heads(heads)
    c = system.start(len(heads))
    for move in system.moves(heads):
        assert move in system.legal(c)
        assert move in system.oracle(heads).best(c)
        system.apply(c, move)
    assert c.heads[1:] == heads and not system.legal(c)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_gold_trees_are_made_again(system, path):
    if not path.exists():
        pytest.skip("the corpus is not here")
    for sentence in read_dependencies(path):
        heads = projective_heads(sentence.heads)
        c = system.start(len(heads))
        for move in system.moves(heads):
            system.apply(c, move)
        assert c.heads[1:] == heads


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
@given(n=st.integers(1, 12), data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_legal_moves_make_a_projective_tree(system, n, data):
    c, count = system.start(n), 0
    while legal := system.legal(c):
        system.apply(c, data.draw(st.sampled_from(legal)))
        count += 1
    assert count == 2 * n
    assert is_tree(c.heads[1:]) and is_projective(c.heads[1:])


def test_dynamic_costs_against_all_parses():
    """The cost of a move is what the best parse after it has fewer gold arcs than the best one before it."""
    system = ArcHybrid()
    for n in range(1, 5):
        for heads in filter(is_projective, trees(n)):

            @lru_cache(None)
            def best(stack, front, found, heads=heads):
                c = Configuration(len(heads), stack)
                c.front, c.heads = front, list(found)
                legal = system.legal(c)
                if not legal:
                    return sum(map(int.__eq__, c.heads[1:], heads))
                gold, after = system.oracle(heads), {}
                for move in legal:
                    new = c.copy()
                    system.apply(new, move)
                    after[move] = best(tuple(new.stack), new.front, tuple(new.heads))
                most = max(after.values())
                for move in legal:
                    assert system.cost(c, move, gold) == most - after[move], (heads, c, move)
                return most

            c = system.start(n)
            assert best(tuple(c.stack), c.front, tuple(c.heads)) == n


def test_one_word_below_the_root():
    for system in SYSTEMS:
        c = system.start(2)
        for move in (SHIFT, SHIFT):
            system.apply(c, move)
        moves = system.legal(c)
        assert moves == ([LEFT, RIGHT] if system.name == "arc-standard" else [RIGHT])


def test_actions():
    actions = Actions(["nsubj", "obj", "root"])
    assert len(actions) == 7
    pairs = {(SHIFT, "")} | {(move, r) for move in (LEFT, RIGHT) for r in actions.relations}
    assert {(actions.move(i), actions.relation(i)) for i in range(7)} == pairs
    assert all(actions.number(*pair) == i for i in range(7) for pair in [(actions.move(i), actions.relation(i))])
    with pytest.raises(KeyError):
        actions.number(LEFT, "new")
