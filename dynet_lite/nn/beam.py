"""Beam search over states of any kind, many searches in lock-step, and the drawing of an action at random.

Does not know the engine. If `advance` only makes nodes, and `scores` asks for the values of all states at once, one step
of all hypotheses of all searches runs in few batches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

__all__ = ["Hypothesis", "beam_search", "sample"]

S = TypeVar("S")
WORST = float(np.finfo(np.float32).min)  # of scores that are allowed


@dataclass(slots=True)
class Hypothesis(Generic[S]):
    """A sequence of actions from a start, the sum of their scores, and the state they lead to."""

    score: float
    actions: tuple[int, ...]
    state: S

    def ranked_by(self, length_penalty: float) -> float:
        """The score that finished hypotheses are compared by: the sum, divided by length ** length_penalty."""
        return self.score / float(max(1, len(self.actions)) ** length_penalty)


def beam_search(
    starts: Sequence[S],
    scores: Callable[[list[S]], Iterable[Any]],
    advance: Callable[[S, int], S],
    is_final: Callable[[S], bool],
    *,
    width: int,
    limit: int | Sequence[int],
    length_penalty: float = 0.0,
) -> list[list[Hypothesis[S]]]:
    """The best finished hypotheses from each start: at most `width` for each, the best first.

    scores: a function that takes states and gives for each a vector with the scores of its actions, log probabilities
        or others; -inf forbids an action, NaN counts as the worst score
    advance: the state after an action. States must not change
    is_final: whether a state is finished and needs no more actions
    limit: the most actions of a hypothesis, one number for all or one per start. If nothing is finished by then,
        unfinished hypotheses are returned. So there is always an answer, unless no action is allowed
    length_penalty: 0 compares sums of scores, 1 their means; in general, sums are divided by length to this power

    With length_penalty 0, a search stops when no unfinished hypothesis is better than the best finished one. This is
    right if scores are at most 0, as log probabilities are. If no step has more than `width` hypotheses, the search
    is exhaustive.
    """
    if width < 1:
        raise ValueError(f"[beam_search] expected a width of at least 1, got {width}")
    limits = [limit] * len(starts) if isinstance(limit, (int, np.integer)) else list(limit)
    if len(limits) != len(starts):
        raise ValueError(f"[beam_search] expected a limit per start, {len(starts)}; got {len(limits)}")
    searches = [_Search(start, is_final, width, n, length_penalty) for start, n in zip(starts, limits, strict=True)]
    while open_ones := [search for search in searches if search.live]:
        states = [hypothesis.state for search in open_ones for hypothesis in search.live]
        rows = iter(scores(states))
        for search in open_ones:
            search.extend([next(rows) for _ in search.live], advance, is_final)
    return [search.results() for search in searches]


class _Search(Generic[S]):
    """One search: its unfinished hypotheses and its finished ones."""

    def __init__(self, start: S, is_final: Callable[[S], bool], width: int, limit: int, length_penalty: float) -> None:
        self.width, self.limit, self.length_penalty = width, limit, length_penalty
        first = Hypothesis(0.0, (), start)
        self.done: list[Hypothesis[S]] = [first] if is_final(start) else []
        self.live = [] if self.done or limit < 1 else [first]
        self.cut = [first] if limit < 1 else []  # unfinished at the limit

    def extend(self, rows: Sequence[Any], advance: Callable[[S, int], S], is_final: Callable[[S], bool]) -> None:
        """One more action: the best `width` of all that may follow."""
        totals = [h.score + np.asarray(row, dtype=np.float64).ravel() for h, row in zip(self.live, rows, strict=True)]
        parents = np.repeat(np.arange(len(totals)), [len(total) for total in totals])
        actions = np.concatenate([np.arange(len(total)) for total in totals])
        flat = np.concatenate(totals)
        flat[np.isnan(flat)] = WORST
        live: list[Hypothesis[S]] = []
        for i in np.argsort(-flat, kind="stable")[: self.width]:
            if flat[i] == -np.inf:
                break
            parent, action = self.live[parents[i]], int(actions[i])
            new = Hypothesis(float(flat[i]), (*parent.actions, action), advance(parent.state, action))
            (self.done if is_final(new.state) else live).append(new)
        self.live = live
        if live and len(live[0].actions) >= self.limit:
            self.cut, self.live = live, []
        elif self._decided():
            self.live = []

    def _decided(self) -> bool:
        if not self.live or not self.done:
            return False
        if self.length_penalty:
            return len(self.done) >= self.width
        return self.live[0].score <= max(h.score for h in self.done)

    def results(self) -> list[Hypothesis[S]]:
        ranked = sorted(self.done or self.cut, key=lambda h: -h.ranked_by(self.length_penalty))
        return ranked[: self.width]


def sample(scores: Any, temperature: float = 1.0, rng: random.Random | None = None) -> int:
    """An action drawn with probability softmax(scores / temperature). Temperature 0 takes the best one."""
    values = np.asarray(scores, dtype=np.float64).ravel()
    if temperature <= 0:
        return int(values.argmax())
    weights = np.exp((values - values.max()) / temperature)
    draw = (rng or random).random() * weights.sum()
    return int(min(np.searchsorted(np.cumsum(weights), draw, side="right"), len(values) - 1))
