"""Tree decoding against all trees of a few words."""

from __future__ import annotations

import itertools
import time
import tracemalloc

import numpy as np
import pytest

from dynet_lite.nn.mst import best_projective_tree, best_tree, tree_score
from dynet_lite.text.dependencies import is_projective, is_tree


def reaches_root(heads: tuple[int, ...]) -> bool:
    word = 0
    for start in range(1, len(heads) + 1):
        word = start
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            return False
    return True


ALL = {n: [h for h in itertools.product(range(n + 1), repeat=n) if reaches_root(h)] for n in range(1, 6)}


def random_scores(n: int, seed: int, ties: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(-2, 3, (n + 1, n + 1)).astype(float) if ties else rng.normal(0, 3, (n + 1, n + 1))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("one_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
def test_best_of_all_trees(projective, one_root, ties):
    decode = best_projective_tree if projective else best_tree
    for n, seed in itertools.product(range(1, 6), range(12)):
        allowed = [h for h in ALL[n] if (not one_root or is_tree(h)) and (not projective or is_projective(h))]
        scores = random_scores(n, seed, ties)
        heads = decode(scores, one_root)
        assert tuple(heads) in allowed
        assert tree_score(scores, heads) == pytest.approx(max(tree_score(scores, h) for h in allowed))


def test_forbidden_arcs_are_not_taken():
    for seed in range(20):
        scores = random_scores(4, seed, False)
        scores[np.random.default_rng(seed).random(scores.shape) < 0.3] = -np.inf
        allowed = [h for h in ALL[4] if is_tree(h) and np.isfinite(tree_score(scores, h))]
        if allowed:
            best = max(allowed, key=lambda h: tree_score(scores, h))
            assert tuple(best_tree(scores)) == best
        allowed = [h for h in allowed if is_projective(h)]
        if allowed:
            best = max(allowed, key=lambda h: tree_score(scores, h))
            assert tuple(best_projective_tree(scores)) == best


def test_long_sentences_are_trees_and_quick():
    start = time.perf_counter()
    for n in (60, 150):
        scores = random_scores(n, n, False)
        heads = best_tree(scores)
        assert is_tree(heads)
        projective = best_projective_tree(scores)
        assert is_tree(projective) and is_projective(projective)
        assert tree_score(scores, heads) >= tree_score(scores, projective)
    assert time.perf_counter() - start < 20


def test_many_words_take_memory_of_one_matrix():
    """The second matrix has cycles in cycles: the best head of a word is its neighbour."""
    n = 1200
    nested = -np.abs(np.subtract.outer(np.arange(n + 1.0), np.arange(n + 1.0)) - 0.01 * np.arange(n + 1))
    nested[0] -= 1000
    for scores in (random_scores(n, 1, False), nested):
        tracemalloc.start()
        heads = best_tree(scores)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert is_tree(heads)
        assert most < 2.5 * scores.nbytes


def by_recursion(s: np.ndarray) -> list[int]:
    """The textbook's way: contract a cycle of best heads, solve the smaller problem, open the cycle again."""
    heads = s.argmax(axis=0)
    for start in range(1, len(s)):
        walk = [start]
        while walk[-1] and heads[walk[-1]] not in walk:
            walk.append(int(heads[walk[-1]]))
        if walk[-1]:
            break
    else:
        return heads.tolist()
    cycle = walk[walk.index(heads[walk[-1]]) :]
    rest = [i for i in range(len(s)) if i not in cycle]
    entering = s[np.ix_(rest, cycle)] - s[heads[cycle], cycle]
    leaving = s[np.ix_(cycle, rest)]
    small = np.block([[s[np.ix_(rest, rest)], entering.max(axis=1)[:, None]], [leaving.max(axis=0), np.array(-np.inf)]])
    found = by_recursion(small)
    for i, word in enumerate(rest):
        heads[word] = cycle[leaving[:, i].argmax()] if found[i] == len(rest) else rest[found[i]]
    heads[cycle[entering[found[-1]].argmax()]] = rest[found[-1]]
    return heads.tolist()


@pytest.mark.parametrize("ties", [False, True])
def test_as_by_recursion(ties):
    for n, seed in itertools.product((8, 25, 60), range(8)):
        scores = random_scores(n, seed, ties)
        prepared = scores.copy()
        prepared[0] -= 1000
        np.fill_diagonal(prepared, -np.inf)
        wanted = tree_score(scores, by_recursion(prepared)[1:])
        assert tree_score(scores, best_tree(scores)) == pytest.approx(wanted)


@pytest.mark.parametrize("shape", [(3, 2), (1, 1), (3,)])
def test_refused_shapes(shape):
    with pytest.raises(ValueError, match="square matrix"):
        best_tree(np.zeros(shape))


@pytest.mark.parametrize("filler", [np.nan, np.inf, -np.inf, -1e30, float(np.finfo(np.float32).min), 1e30])
def test_what_is_not_looked_at_may_hold_anything(filler):
    for seed, one_root in itertools.product(range(5), (True, False)):
        scores = random_scores(4, seed, False)
        wanted = best_tree(scores, one_root), best_projective_tree(scores, one_root)
        np.fill_diagonal(scores, filler)
        scores[:, 0] = filler
        assert (best_tree(scores, one_root), best_projective_tree(scores, one_root)) == wanted


def test_refused_nan():
    with pytest.raises(ValueError, match="NaN"):
        best_projective_tree(np.full((3, 3), np.nan))
    scores = np.zeros((3, 3))
    scores[1, 2] = np.inf
    with pytest.raises(ValueError, match="inf"):
        best_tree(scores)
