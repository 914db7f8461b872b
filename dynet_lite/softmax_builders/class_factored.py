"""ClassFactoredSoftmaxBuilder: first the class of a word, then the word in its class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dynet_lite import _core, ops
from dynet_lite._core import Expression, Parameters, affine_transform, pickneglogsoftmax
from dynet_lite.builders.part import add_weight, folder
from dynet_lite.errors import OutOfRangeError
from dynet_lite.softmax_builders.base import (
    SoftmaxBuilder,
    batch_size,
    draw,
    elements,
    groups,
    without,
    word_in,
)
from dynet_lite.softmax_builders.clusters import read_classes, word_ids

Pair = tuple[Parameters, "Parameters | None"]


class ClassFactoredSoftmaxBuilder(SoftmaxBuilder):
    """p(word | x) = p(class of word | x) p(word | class, x), each a softmax (Goodman 2001).

    ``ClassFactoredSoftmaxBuilder(input_dim, cluster_file, dic, pc, bias=True, init=None)``. cluster_file: a file (or a list of
    lines) ``CLASS WORD [COUNT]``; dic: {word: id}, ids from 0. Parameters: W {classes,input_dim}, b {classes}, then for
    each class of more than one word W {words,input_dim}, b {words} (class0/W, ...); no b with bias=False. init is that
    of the matrices: None is DyNet's, whose range shrinks with their rows, "fan-in" one that does not
    (FanInInitializer). DataError (a ValueError) when a line is malformed or a word comes twice; ValueError and
    RuntimeError when it is not in dic.
    """

    collection_name = "class-factored-softmax-builder"

    def __init__(
        self, input_dim: int, cluster_file: Any, dic: Any, pc: Any, bias: bool = True, init: Any = None, *,
        name: str | None = None,
    ) -> None:  # fmt: skip
        who = type(self).__name__
        self._begin(input_dim, read_classes(cluster_file, word_ids(dic, who), who), pc, bias, init, name)

    def _begin(
        self,
        input_dim: int,
        classes: Sequence[Sequence[int]],
        pc: Any,
        bias: bool,
        init: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(input_dim, pc, name)
        self._bias, self._init = bool(bias), init
        self._classes = [list(words) for words in classes]
        self._place: list[tuple[int, int] | None] = [None] * (1 + max(max(words) for words in self._classes))
        for k, words in enumerate(self._classes):
            for row, word in enumerate(words):
                self._place[word] = (k, row)
        self._top = self._add(self._collection, len(self._classes))
        self._inside: list[Pair | None] = [
            self._add(folder(self._collection, f"class{k}"), len(words)) if len(words) > 1 else None
            for k, words in enumerate(self._classes)
        ]

    def _add(self, collection: Any, rows: int) -> Pair:
        weight = add_weight(collection, "W", (rows, self.input_dim), self._init)
        return weight, add_weight(collection, "b", (rows,), 0) if self._bias else None

    # ---- losses --------------------------------------------------------------------------------------------------------

    def neg_log_softmax(self, x: Any, c: int, update: bool = True) -> Any:
        """-log p(c | x), c the id of a word: x {input_dim} -> {1}. IndexError when the word is in no class."""
        # not by way of class_logits() and subclass_logits(): public methods look after their arguments, once is enough
        place = self._place[c] if type(c) is int and 0 <= c < len(self._place) else None
        k, row = place or word_in(self._place, c, self)
        inside = self._inside[k]
        if self._bias and update and isinstance(x, Expression):  # as a rule: programs call it for each word
            b: Any
            w, b = self._top
            loss = pickneglogsoftmax(affine_transform([b, w, x]), k)
            if inside is None:
                return loss
            w, b = inside
            return loss + pickneglogsoftmax(affine_transform([b, w, x]), row)
        loss = pickneglogsoftmax(self._scores(*self._top, x, update), k)
        return loss if inside is None else loss + pickneglogsoftmax(self._scores(*inside, x, update), row)

    def neg_log_softmax_batch(self, x: Any, c: Iterable[int], update: bool = True) -> Any:
        places = [word_in(self._place, word, self) for word in self._labels(x, c)]
        loss = _core.pickneglogsoftmax(self.class_logits(x, update), [k for k, _ in places])
        parts, order = [], []
        for k, members in groups([k for k, _ in places]).items():
            order += members
            if self._inside[k] is None:
                parts.append(_core.zeros(1, batch_size=len(members)))
            else:
                scores = self.subclass_logits(elements(x, members), k, update)
                parts.append(_core.pickneglogsoftmax(scores, [places[i][1] for i in members]))
        inside = parts[0] if len(parts) == 1 else _core.concatenate_to_batch(parts)
        if order != sorted(order):
            back = sorted(range(len(order)), key=order.__getitem__)
            inside = ops.pick_batch_elems(inside, back)
        return loss + inside

    # ---- scores and distributions --------------------------------------------------------------------------------------

    def class_logits(self, x: Any, update: bool = True) -> Any:
        """Scores of the classes: x {input_dim} -> {classes}."""
        return self._scores(*self._top, x, update)

    def class_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p(class | x): x {input_dim} -> {classes}."""
        return _core.log_softmax(self.class_logits(x, update))

    def subclass_logits(self, x: Any, classid: int, update: bool = True) -> Any:
        """Scores of the words of class number classid: x {input_dim} -> {words}; {1} of 0 where there is one word."""
        if not 0 <= classid < len(self._classes):
            raise OutOfRangeError(f"[{self.whoami()}] class {classid} of {len(self._classes)}")
        inside = self._inside[classid]
        if inside is None:
            return _core.zeros(1, batch_size=batch_size(x))
        return self._scores(*inside, x, update)

    def subclass_log_distribution(self, x: Any, classid: int, update: bool = True) -> Any:
        """log p(word | class number classid, x): x {input_dim} -> {words}."""
        return _core.log_softmax(self.subclass_logits(x, classid, update))

    def full_logits(self, x: Any, update: bool = True) -> Any:
        """The same as full_log_distribution(), log-probabilities being scores. (DyNet adds a probability to a logarithm.)"""
        return self.full_log_distribution(x, update)

    def full_log_distribution(self, x: Any, update: bool = True) -> Any:
        """log p(word | x) of all words by id: x {input_dim} -> {highest id + 1}; -10000 for a word in no class."""
        parts = [
            _core.zeros(1) if inside is None else self.subclass_log_distribution(x, k, update)
            for k, inside in enumerate(self._inside)
        ]
        where = {word: i for i, word in enumerate(word for words in self._classes for word in words)}
        classes = [0 if place is None else place[0] for place in self._place]
        inside = ops.select_rows(_core.concatenate(parts), [where.get(word, 0) for word in range(len(self._place))])
        out = inside + ops.select_rows(self.class_log_distribution(x, update), classes)
        return without(out, [place is None for place in self._place])

    def sample(self, x: Any) -> Any:
        """The id of a word drawn from p(. | x); a list of them when x has a mini-batch."""
        classes = draw(self._scores(*self._top, x, True))
        if len(classes) == 1:
            (k,) = classes
            inside = self._inside[k]
            return self._classes[k][0 if inside is None else draw(self._scores(inside[0], inside[1], x, True))[0]]
        words = [0] * len(classes)
        for k, members in groups(classes).items():
            rows = draw(self.subclass_logits(elements(x, members), k))
            for i, row in zip(members, rows, strict=True):
                words[i] = self._classes[k][row]
        return words

    # ---- the rest ------------------------------------------------------------------------------------------------------

    @property
    def spec(self) -> tuple[Any, ...]:
        """What makes such a builder again, without file and collection: input_dim, ids of the words by class, bias."""
        return (self.input_dim, [list(words) for words in self._classes], self._bias)

    @classmethod
    def from_spec(cls, spec: Any, model: Any) -> ClassFactoredSoftmaxBuilder:
        """A builder from its spec, with new parameters in a sub-collection of model."""
        input_dim, classes, bias = spec
        builder = cls.__new__(cls)
        builder._begin(input_dim, classes, model, bias)
        return builder

    def __repr__(self) -> str:
        return f"<{self.whoami()}: {self.input_dim} to {sum(map(len, self._classes))} words in {len(self._classes)} classes>"
