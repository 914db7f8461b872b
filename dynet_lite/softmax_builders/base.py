"""What the softmax builders share: their face, their parameters as constants, drawing, groups of a mini-batch.

A builder owns the parameters of an output layer and makes the nodes of its losses. It keeps no state of a graph but the
constants that stand for its parameters where update=False; it may be used before the first renew_cg().
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from dynet_lite import _core, ops
from dynet_lite._core import Expression, Parameters
from dynet_lite.builders.base import positive
from dynet_lite.builders.part import Part
from dynet_lite.errors import OutOfRangeError
from dynet_lite.kept import Kept
from dynet_lite.needs import vector, whole

NEVER = -10000.0  # log-probability of a word that is in no class, as DyNet has it


class SoftmaxBuilder(Part):
    """Base of the softmax builders; not for direct use.

    With update=False what is computed gives the builder's parameters no gradient; it may differ from call to call. x may
    have a mini-batch wherever DyNet allows one item only. name: that of the builder's collection, for those who read its files.
    """

    of_graph = ("_constants",)
    needs: ClassVar = {"x": vector("an input", "input_dim"), "c": whole("classes")}

    def __init__(self, input_dim: int, pc: Any, name: str | None = None) -> None:
        if type(self) is SoftmaxBuilder:
            raise TypeError("[SoftmaxBuilder] is a base class; use StandardSoftmaxBuilder or another one")
        self.input_dim = positive(input_dim, "input_dim")
        self._begin_collection(pc, name)
        self._forget_graph()

    def _forget_graph(self) -> None:
        self._constants = Kept()

    # ---- for builders to fill in ---------------------------------------------------------------------------------------

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x): x {input_dim} -> {1}. IndexError (a ValueError too) when there is no class c."""
        raise NotImplementedError

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """Scores of all classes whose softmax is their distribution: x {input_dim} -> {classes}."""
        raise NotImplementedError

    def sample(self, x: Any) -> Any:
        """A class drawn from p(. | x), a number; a list of them when x has a mini-batch."""
        raise NotImplementedError

    # ---- for users -----------------------------------------------------------------------------------------------------

    def neg_log_softmax_batch(self, x: Any, c: Iterable[int], update: bool = True) -> Any:
        """-log p(c[i] | x[i]) of every batch element: x {input_dim} X b, b classes -> {1} X b.

        ValueError when their numbers differ.
        """
        labels = self._labels(x, c)
        return _core.concatenate_to_batch(
            [self.neg_log_softmax(ops.pick_batch_elems(x, [i]), k, update) for i, k in enumerate(labels)]
        )

    def full_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p(. | x) of all classes: x {input_dim} -> {classes}. Slow where there are many."""
        return _core.log_softmax(self.full_logits(x, update))

    def get_parameters(self) -> list[Parameters]:
        """The parameters, in the order of making."""
        return list(self._collection.parameters_list())

    # ---- for builders to use -------------------------------------------------------------------------------------------

    def _scores(self, w: Parameters, b: Parameters | None, x: Any, update: bool) -> Any:
        """w x + b, with the parameters as constants unless update."""
        weight: Any = w if update else self._constant(w)
        x = x if isinstance(x, Expression) else _core.inputTensor(x)
        if b is None:
            return weight * x
        return _core.affine_transform([b if update else self._constant(b), weight, x])

    def _constant(self, p: Parameters) -> Expression:
        """One node for p in the current graph, so that all of its uses can be one batch."""
        return self._constants.get(id(p), lambda: _core.nobackprop(p))

    def _labels(self, x: Any, c: Iterable[int]) -> list[int]:
        """One class per batch element of x, or ValueError."""
        labels, size = list(c), batch_size(x)
        if len(labels) != size:
            raise ValueError(f"[{self.whoami()}] one class per batch element is needed; got {len(labels)} classes for a "
                             f"batch of {size}")  # fmt: skip
        return labels


def batch_size(x: Any) -> int:
    return x.dim()[1] if isinstance(x, Expression) else 1


def draw(scores: Expression) -> list[int]:
    """One index for each batch element of {n} X b, drawn from the softmax of its scores."""
    return _core.draw_indices(_core.softmax(scores))


def one_or_all(drawn: list[int], x: Any) -> Any:
    """What sample() gives: a number, or a list for a mini-batch."""
    return drawn if batch_size(x) > 1 else drawn[0]


def groups(keys: Sequence[int]) -> dict[int, list[int]]:
    """The positions of each key."""
    out: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        out.setdefault(key, []).append(i)
    return out


def elements(x: Any, positions: list[int]) -> Any:
    """These elements of a mini-batch; x itself when they are all of it."""
    return x if len(positions) == batch_size(x) else ops.pick_batch_elems(x, positions)


def without(log_p: Any, absent: Sequence[bool]) -> Any:
    """A distribution {words} in which these words have log-probability NEVER."""
    if not any(absent):
        return log_p
    gone = np.array(absent, dtype=np.float32)
    return _core.cmult(log_p, _core.inputVector(1 - gone)) + _core.inputVector(NEVER * gone)


def word_in(table: Sequence[Any], word: int, builder: SoftmaxBuilder) -> Any:
    """table[word], or IndexError when the word is in no class."""
    number = word.__index__()
    if not 0 <= number < len(table) or table[number] is None:
        raise OutOfRangeError(f"[{builder.whoami()}] word {word} is in no class of the cluster file")
    return table[number]
