"""Trained recipes from Python: load_recipe(). The work is the harness's, which is imported at the first call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynet_lite.harness import Predictor

__all__ = ["load_recipe"]


def load_recipe(path: str | Path, *, source: str | Path | None = None, **settings: Any) -> Predictor:
    """A model that a recipe wrote with --save, ready to answer.

        tagger = dy.load_recipe("tagger.model")
        tagger.predict("The dog sleeps .")                          # one text: its answer
        tagger.predict(["The dog sleeps .", ["So", "do", "I"]])     # many: a list
        for answer in tagger.pipe(open("large.txt"), batch=64): ... # a stream, read as it is needed

    path        the file
    source      the program of your own recipe; not needed for included recipes or imported classes
    settings    settings that may change after training, such as beam=5; the recipe's `predict --help` lists them

    Several threads may share the result. Raises DataError for a file that no recipe wrote, an unknown recipe, or a setting
    that cannot be changed; ModelFileError for a damaged file.
    """
    from dynet_lite.harness import predictor

    return predictor.load(path, source=source, **settings)
