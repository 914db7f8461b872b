"""Beam search: equal to trying everything where it is wide enough, equal to greedy choice where it is 1 wide."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from dynet_lite.nn import beam_search, sample

END, LIMIT = 0, 4


def chain(seed, actions=4):
    """Log probabilities of the next action after each history of up to LIMIT actions; some are not allowed."""
    rng = np.random.default_rng(seed)
    table = {}

    def scores(history):
        if history not in table:
            weights = rng.random(actions) * (rng.random(actions) > 0.2) + 1e-9 * (np.arange(actions) == END)
            with np.errstate(divide="ignore"):
                table[history] = np.log(weights / weights.sum())
        return table[history]

    for n in range(LIMIT):  # fixed before any search asks, in whatever order it asks
        for history in itertools.product(range(actions), repeat=n):
            scores(history)
    return scores


def search(chains, **options):
    """A state is (number of the chain, history)."""
    return beam_search(
        [(i, ()) for i in range(len(chains))],
        scores=lambda states: [chains[i](history) for i, history in states],
        advance=lambda state, action: (state[0], (*state[1], action)),
        is_final=lambda state: state[1][-1:] == (END,),
        **{"limit": LIMIT, **options},
    )


def everything(scores, length_penalty=0.0):
    """All finished histories, the best first, as (value, history)."""
    out = []
    for n in range(LIMIT):
        for history in itertools.product([a for a in range(4) if a != END], repeat=n):
            whole = (*history, END)
            total = sum(scores(whole[:k])[action] for k, action in enumerate(whole))
            if total > -math.inf:
                out.append((total / len(whole) ** length_penalty, whole))
    return sorted(out, reverse=True)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_wide_enough_is_exhaustive(seed, length_penalty):
    chains = [chain(10 * seed + k) for k in range(3)]
    found = search(chains, width=4**LIMIT, length_penalty=length_penalty)
    for scores, (best, *_) in zip(chains, found, strict=True):
        value, history = everything(scores, length_penalty)[0]
        assert best.actions == history
        assert best.ranked_by(length_penalty) == pytest.approx(value)


@pytest.mark.parametrize("seed", range(4))
def test_width_one_is_greedy(seed):
    scores = chain(seed)
    history = ()
    while history[-1:] != (END,) and len(history) < LIMIT:
        history = (*history, int(np.argmax(scores(history))))
    (best,) = search([scores], width=1)[0]
    assert best.actions == history and best.state == (0, history)


def test_searches_do_not_disturb_each_other():
    chains = [chain(seed) for seed in range(5)]
    together = search(chains, width=2)
    for scores, found in zip(chains, together, strict=True):
        (alone,) = search([scores], width=2)
        assert [(h.actions, h.score) for h in found] == [(h.actions, h.score) for h in alone]


def test_limits():
    never = lambda history: np.log([1e-30, 0.4, 0.6])  # noqa: E731
    short, long = search([never, never], width=2, limit=[1, 3])
    assert [h.actions for h in short] == [(2,), (1,)]
    assert long[0].actions == (2, 2, 2)
    none, one = search([never, never], width=2, limit=[0, 1])
    assert [(h.actions, h.score, h.state) for h in none] == [((), 0.0, (0, ()))] and one[0].actions == (2,)
    assert search([never], width=2, limit=np.int64(3))[0][0].actions == (2, 2, 2)
    with pytest.raises(ValueError, match="per start"):
        search([never], width=2, limit=[1, 2])
    with pytest.raises(ValueError, match="width"):
        search([never], width=0)


def test_scores_that_are_no_numbers_come_last():
    """A network that fails gives an answer, too: what it is worth, the score of the answers tells."""
    nothing = search([lambda history: np.full(4, math.nan)], width=2)[0]
    assert [h.actions for h in nothing] == [(END,)]
    row = np.array([-3.0, math.nan, -2.0, -math.inf])
    assert [h.actions for h in search([lambda history: row], width=9, limit=1)[0]] == [(0,)]
    assert [h.actions for h in search([lambda history: row[1:]], width=9, limit=1)[0]] == [(END,)]


def test_dead_ends_and_starts_that_are_ends():
    assert search([lambda history: np.full(3, -math.inf)], width=2) == [[]]
    found = beam_search(["x"], lambda states: 1 / 0, lambda state, action: state, lambda state: True, width=3, limit=5)
    assert [(h.actions, h.score, h.state) for h in found[0]] == [((), 0.0, "x")]


def test_sample_follows_the_distribution():
    rng, p = random.Random(1), np.array([0.1, 0.2, 0.7])
    drawn = np.bincount([sample(np.log(p), rng=rng) for _ in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(drawn, p, atol=0.03)
    assert {sample(np.log(p), temperature=0, rng=rng) for _ in range(20)} == {2}
    assert sample([0.0, 2.0, 1.0], temperature=0) == 1
    assert {sample([0.0, -math.inf], rng=rng) for _ in range(20)} == {0}
    cold = [sample(np.log(p), temperature=0.1, rng=rng) for _ in range(200)]
    assert cold.count(2) > 195
