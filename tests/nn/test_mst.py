"""Tree decoding against all trees of a few words."""

from __future__ import annotations

import itertools
import time

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


@pytest.mark.parametrize("shape", [(3, 2), (1, 1), (3,)])
def test_refused_shapes(shape):
    with pytest.raises(ValueError, match="square matrix"):
        best_tree(np.zeros(shape))


def test_refused_nan():
    with pytest.raises(ValueError, match="NaN"):
        best_projective_tree(np.full((3, 3), np.nan))
