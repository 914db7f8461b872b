"""Negative sampling: the loss of skip-gram, and the words that it draws. Who may import: recipes and programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.needs import part, rows, whole

__all__ = ["NegativeSampling"]


@part(x=rows("a vector", lambda self: self.table.shape[1]), words=whole("words"), negative=whole("negative"))
class NegativeSampling:
    """A loss that tells words that occur with a vector from words that were drawn at random.

    model: the collection to which a table {words,dim} of output vectors is added, zeros at first
    counts: how often each word occurs in the training text, by its number
    samples: words drawn for each real one
    power: a word is drawn with probability in proportion to count ** power

        sampling = nn.NegativeSampling(model, dim, counts)
        losses = [sampling.loss(E[word], around) for word, around in pairs]  # around: the numbers of the word's neighbours

    Mikolov and others: Distributed representations of words and phrases and their compositionality (2013).
    """

    def __init__(
        self, model: dy.ParameterCollection, dim: int, counts: Iterable[float], samples: int = 5, power: float = 0.75,
        seed: int | np.random.Generator = 1, *, name: str = "negative-sampling",
    ) -> None:  # fmt: skip
        weights = np.asarray(list(counts), dtype=np.float64)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
            raise ValueError("[NegativeSampling] counts >= 0 are needed, one for each word, and not all 0")
        if samples < 1:
            raise ValueError(f"[NegativeSampling] at least one sample is needed; got {samples}")
        self.samples = samples
        seen = weights > 0
        weights[seen] **= power  # 0 ** 0 is 1, and 0 ** -1 infinite
        if not 0 < weights.sum() < np.inf:
            raise ValueError(f"[NegativeSampling] power={power}: a count is too large or too small for it")
        self._ends = np.cumsum(weights / weights.sum())
        self._last = int(np.flatnonzero(weights)[-1])
        self.random = np.random.default_rng(seed)
        self.table = model.add_subcollection(name).add_lookup_parameters((len(weights), dim), init=0, name="output")

    @property
    def probabilities(self) -> Any:
        """The probability with which each word is drawn: an array (words,)."""
        return np.diff(self._ends, prepend=0.0)

    def draw(self, n: int) -> list[int]:
        """The numbers of n words, drawn with replacement."""
        found = np.searchsorted(self._ends, self.random.random(n), side="right")
        return [int(k) for k in np.minimum(found, self._last)]

    def loss(
        self, x: dy.Expression, words: int | Sequence[int], negative: Sequence[int] | None = None
    ) -> dy.Expression:
        """The sum over the words w of -log sigmoid(u_w' x) - sum over k of log sigmoid(-u_k' x), with `samples` drawn
        words k for each: {1}.

        x: a vector {dim}
        words: the number of a word that occurs with it, or several numbers
        negative: the words k, the same for each word w; None draws them

        A drawn word that is the word itself does not count, as in word2vec. IndexError for a number that no word has.
        """
        near = [words] if isinstance(words, (int, np.integer)) else list(words)
        if not near:
            raise ValueError("[NegativeSampling] at least one word is needed")
        if wrong := [word for word in near if not 0 <= word < len(self._ends)]:
            raise IndexError(f"[NegativeSampling] word {wrong[0]}: there are {len(self._ends)}")
        if isinstance(x, dy.Expression) and x.batch_size > 1:  # the scores of the words are one
            raise ValueError(f"[NegativeSampling] x is one vector, not a mini-batch of {x.batch_size}")
        losses = [self._one(x, word, self.draw(self.samples) if negative is None else list(negative)) for word in near]
        return losses[0] if len(losses) == 1 else dy.esum(losses)

    def _one(self, x: dy.Expression, word: int, far: list[int]) -> dy.Expression:
        """The loss of one word: its scores are a mini-batch, of one size whatever was drawn."""
        counts = np.array([1.0, *(float(other != word) for other in far)])
        signs = np.array([1.0, *[-1.0] * len(far)])
        vectors = self.table.batch([word, *far])
        scores = dy.dot_product(vectors, x)
        told = dy.log_sigmoid(dy.cmult(scores, dy.inputTensor(signs[None], batched=True)))
        return -dy.sum_batches(dy.cmult(told, dy.inputTensor(counts[None], batched=True)))
