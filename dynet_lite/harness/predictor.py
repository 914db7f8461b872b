"""A trained recipe in a program of one's own: texts in, answers out, one at a time or as a stream.

    tagger = dy.load_recipe("tagger.model")
    tagger.predict(["The dog sleeps ."])

It knows nothing of training or of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from dynet_lite import _core
from dynet_lite.errors import DataError
from dynet_lite.text import split_words

from .find import find_recipe, settings_of
from .recipe import Recipe
from .state import load_recipe, read_any

__all__ = ["Predictor", "load"]

Text = str | Sequence[str]
Answer = dict[str, Any]


class Predictor:
    """A trained recipe that is ready to answer. Made by `dy.load_recipe`. Several threads may share one.

        tagger = dy.load_recipe("tagger.model")
        tagger.predict("The dog sleeps .")  # {'words': [...], 'tags': [...]}

    recipe: the model and its parts, if you need more than answers
    settings: the settings that it was trained with
    """

    def __init__(self, recipe: Recipe[Any, Any]) -> None:
        self.recipe = recipe
        self.settings = recipe.settings

    def __repr__(self) -> str:
        return f"Predictor({type(self.recipe).__name__})"

    def predict(
        self, texts: Text | Sequence[Text], scores: bool = False, features: Any = None
    ) -> Answer | list[Answer]:
        """The answers to some texts, in order; for a single string, its answer alone.

        texts: strings as `predict` reads them on the command line, or lists of words
        scores: add probabilities, if the recipe has any
        features: for each text (or for the single one) an array (words, numbers), if the model was trained with
            features

        An answer is a dict that json.dumps can write: a tagger's has "words" and "tags", a classifier's "label", and
        so on.
        """
        if isinstance(texts, str):
            return next(iter(self._answers([texts], scores, None if features is None else [features])))
        return list(self._answers([_line(text) for text in texts], scores, features))

    def pipe(
        self, texts: Iterable[Text], batch: int = 64, scores: bool = False, features: Iterable[Any] | None = None
    ) -> Iterator[Answer]:
        """Yields the answers to a stream of texts, in order. `batch` texts are answered together.

        It never reads beyond the batch that is being answered, so the stream may be endless.
        """
        if batch < 1:
            raise ValueError(f"[pipe] expected a batch of at least 1; got {batch}")
        stream = (_line(text) for text in texts)
        arrays = None if features is None else iter(features)
        while group := list(islice(stream, batch)):
            yield from self._answers(group, scores, None if arrays is None else list(islice(arrays, len(group))))

    def _answers(self, lines: list[str], scores: bool, features: Sequence[Any] | None = None) -> list[Answer]:
        if features is not None and not hasattr(self.settings, "features"):
            raise DataError(f"{type(self.recipe).__name__} reads no features")
        if features is not None and len(features) != len(lines):
            raise ValueError(f"[predict] expected features for {len(lines)} texts; got {len(features)}")
        answers = list(self.recipe.answers(lines, scores, **({} if features is None else {"features": features})))
        if len(answers) != len(lines):
            name = type(self.recipe).__name__
            raise RuntimeError(f"[predict] {name} gave {len(answers)} answers to {len(lines)} texts")
        return answers


def _line(text: Text) -> str:
    if isinstance(text, str):
        return text
    words = list(text)
    for word in words:
        if not isinstance(word, str) or split_words(word) != [word]:
            raise ValueError(f"[predict] expected words without blanks; got {word!r}")
    return " ".join(words)


@contextmanager
def _same_random() -> Iterator[None]:
    """Loading a model draws first weights: the program's own random numbers go on as if it had not."""
    before = _core.get_seed_state()
    try:
        yield
    finally:
        _core.set_seed_state(before)


def load(path: str | Path, *, source: str | Path | None = None, **settings: Any) -> Predictor:
    """See dy.load_recipe."""
    path = str(path)
    file = read_any(path)
    name = file.config["recipe"]
    try:
        kind = find_recipe(name, source)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    wrong = sorted(set(settings) - set(kind.predict_options))
    if wrong:
        known = ", ".join(kind.predict_options) or "none that can"
        raise DataError(f"{path}: {wrong[0]!r} cannot be changed after training; there are {known}")
    with _same_random():
        return Predictor(load_recipe(kind, settings_of(kind), path, settings))
