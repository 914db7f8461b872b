"""Data of a recipe: examples to train on, to choose by and to test, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from dynet_lite.errors import DataError
from dynet_lite.text import Stream

from . import catalogue
from .features import Beside
from .settings import Settings
from .streaming import Sources, stream_of, streamed

__all__ = ["Data", "corpus", "filled"]

E = TypeVar("E")


@dataclass
class Data(Generic[E]):
    """Examples, and what to say about them. If there are no dev examples, the last tenth of `train` becomes dev."""

    name: str
    licence: str  # empty: nothing is said of it
    train: list[E] | Stream[E]
    dev: list[E]
    test: list[E] = field(default_factory=list)
    unit: str = "sentences"
    detail: str = ""  # such as "3,718 words, 16 tags"; the first line of output shows it

    def __post_init__(self) -> None:
        if not self.train:
            raise DataError(f"{self.name}: expected {self.unit}, got none")
        if not self.dev and isinstance(self.train, list):
            cut = len(self.train) - max(1, len(self.train) // 10)
            self.train, self.dev = self.train[:cut], self.train[cut:]
        if not self.train or not self.dev:
            raise DataError(f"{self.name}: expected at least two {self.unit}")

    def small(self) -> Data[E]:
        """A few examples of each part, for --smoke."""
        return Data(self.name, self.licence, self.train[:12], self.dev[:4], self.test[:4], self.unit, self.detail)

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        test = f", {len(self.test):,} for test" if self.test else ""
        licence = f"; {self.licence}" if self.licence else ""
        return f"{self.name}: {len(self.train):,} {self.unit}{detail} to train on, {len(self.dev):,} for dev{test}{licence}"


def filled(files: Sequence[str], examples: list[E], unit: str = "sentences") -> list[E]:
    """The examples of some files. DataError if files are named and there is no example in them."""
    if files and not examples:
        raise DataError(f"{', '.join(files)}: expected {unit}, got none")
    return examples


def corpus(
    s: Settings,
    read: Callable[[str], Iterable[E]],
    *,
    home: str,
    default: str = "conllu",
    nltk: Callable[[str], Any] | None = None,
    detail: Callable[[Sequence[E]], str] | None = None,
    unit: str = "sentences",
    stream: Sources | None = None,
) -> Data[E]:
    """The data that --train, --dev and --test or --nltk name, or else the project's treebank.

    If the recipe has a setting `features`, each file of sentences has a file of features, in the same order.

    read: a function that reads a file
    home: __file__ of the recipe; data/treebank is looked for in the folders above it
    default: the ending of the treebank's files: conllu, ptb or sst
    nltk: a function that reads an NLTK corpus by name, and returns a list of examples or (train, dev, test), any of
        them empty
    detail: a function that says more about the training examples, for the first line of output
    stream: for recipes with StreamSettings, what a file of --train holds, as words_source() returns it
    """
    parts: list[Any]
    if s.nltk and (s.train or s.dev):  # one of them may come from a saved model
        raise DataError(f"expected either --nltk or --train/--dev, got --nltk {s.nltk} and {(s.train or s.dev)[0]}")
    bits = streamed(s, stream)
    beside = Beside(read, getattr(s, "features", ()))
    if s.nltk:
        if nltk is None:
            raise DataError("this recipe cannot read NLTK corpora")
        name, licence = f"NLTK {s.nltk}", "terms of use: see the corpus's README in nltk_data"
        found = nltk(s.nltk)
        parts = [list(part) for part in found] if isinstance(found, tuple) else [list(found), [], []]
        parts = [beside.with_features(part, name) if part else part for part in parts]
    elif s.train:
        more = f" and {len(s.train) - 3} more files" if len(s.train) > 3 else ""
        name, licence = ", ".join(s.train[:3]) + more, ""
        parts = [beside(paths) for paths in (() if bits else s.train, s.dev, ())]
        if bits and stream is not None:
            parts[0] = stream_of(s, stream)
    else:
        folder = treebank(home)
        name, licence = "the project's treebank (data/treebank)", "written for this project, Apache-2.0"
        dev = s.dev or (str(folder / f"dev.{default}"),)
        parts = [beside((str(folder / f"train.{default}"),)), beside(dev), []]
    if s.test:
        parts[2] = beside(s.test)
    beside.finished()
    train, dev_part, test = parts[0], filled(s.dev, parts[1], unit), filled(s.test, parts[2], unit)
    data = Data(name, licence, train, dev_part, test, unit)
    if isinstance(train, Stream):
        data.detail = f"{train.words:,} words, read bit by bit"
    elif detail is not None:
        data.detail = detail(data.train)
    return data


def treebank(home: str) -> Path:
    """The folder data/treebank of the project in which the file `home` lies; for a copy elsewhere, the package's own."""
    for folder in Path(home).resolve().parents:
        if (folder / "data" / "treebank").is_dir():
            return folder / "data" / "treebank"
    return catalogue.treebank()
