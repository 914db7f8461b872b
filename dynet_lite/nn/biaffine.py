"""Biaffine: scores of pairs of vectors, as in graph-based parsers (Dozat and Manning 2017)."""

from __future__ import annotations

from typing import Any

import dynet_lite as dy
from dynet_lite.needs import part, rows

__all__ = ["Biaffine"]


@part(heads=rows("a matrix of heads", "head_dim"), dependents=rows("a matrix of dependents", "dependent_dim"))
class Biaffine:
    """Scores how well a head h {head_dim} goes with a dependent d {dependent_dim}, once or for each of several labels.

    The score of label l is h' U_l d + u_l' h + w_l' d + b_l. With one label, the last two terms are left out: they
    are the same for all heads and so do not choose between them.

        arcs = Biaffine(model, 100, 100)
        scores = arcs.all_pairs(heads, dependents)  # {100,m}, {100,n} -> {m,n}
    """

    def __init__(
        self, model: Any, head_dim: int, dependent_dim: int, labels: int = 1, *, name: str = "biaffine"
    ) -> None:
        self.head_dim, self.dependent_dim, self.labels = head_dim, dependent_dim, labels
        self._collection = model = model.add_subcollection(name)
        # U and u as one affine map of d, with the rows of label l at l, l + labels, ...
        self.U = model.add_parameters((labels * head_dim, dependent_dim), init="glorot", name="U")
        self.u = model.add_parameters(labels * head_dim, init=0, name="u")
        if labels > 1:
            self.W = model.add_parameters((labels, dependent_dim), init="glorot", name="W")
            self.b = model.add_parameters(labels, init=0, name="b")

    def all_pairs(self, heads: dy.Expression, dependents: dy.Expression) -> dy.Expression:
        """The scores of all pairs: heads {head_dim,m} and dependents {dependent_dim,n} -> {m,n}. Needs labels=1."""
        if self.labels != 1:
            raise ValueError(f"[Biaffine] all_pairs() needs one label, there are {self.labels}")
        return dy.transpose(heads) * dy.affine_transform([self.u, self.U, dependents])

    def pairs(self, heads: dy.Expression, dependents: dy.Expression) -> dy.Expression:
        """The scores of column i of one with column i of the other: heads {head_dim,n}, dependents {dependent_dim,n} ->
        {labels} X n.
        """
        shape = heads.shape
        n = shape[1] if len(shape) > 1 else 1
        by_label = dy.affine_transform([self.u, self.U, dependents])
        by_label = dy.reshape(by_label, (self.labels, self.head_dim), n)
        scores = by_label * dy.reshape(heads, (self.head_dim,), n)
        if self.labels == 1:
            return scores
        return scores + dy.reshape(dy.affine_transform([self.b, self.W, dependents]), (self.labels,), n)

    def symbolic(self, heads: Any, dependents: Any) -> Any:
        """The scores of all pairs of two sequences of unknown length, for exported networks: [dependents, heads] or
        [dependents, heads, labels].
        """
        by_label = dependents.map(lambda d: dy.affine_transform([self.u, self.U, d]))
        if self.labels == 1:
            return by_label.products(heads)
        matrices = by_label.map(lambda x: dy.reshape(x, (self.labels, self.head_dim)))
        return matrices.products(heads).plus(dependents.map(lambda d: dy.affine_transform([self.b, self.W, d])))

    def param_collection(self) -> Any:
        """The sub-collection that holds the parameters."""
        return self._collection
