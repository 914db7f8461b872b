"""--features: files with numbers for each word, beside the files of sentences that training, evaluate and predict read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynet_lite.errors import DataError
from dynet_lite.text import WordFeatures, sentence_of

__all__ = ["Beside", "FeaturesOfLines"]


class Beside:
    """Reads files of examples one after the other, and gives each file's examples the features of the next file of features."""

    def __init__(self, read: Callable[[str], Iterable[Any]], features: Sequence[str]) -> None:
        self.read, self.features = read, tuple(features)
        self.names: list[str] = []

    def __call__(self, paths: Iterable[str]) -> list[Any]:
        """The examples of some files."""
        return [example for path in paths for example in self.with_features(list(self.read(path)), path)]

    def with_features(self, examples: list[Any], name: str) -> list[Any]:
        """The examples, those of the file or corpus `name`."""
        self.names.append(name)
        if len(self.names) <= len(self.features):
            WordFeatures(self.features[len(self.names) - 1]).attach(examples, name)
        return examples

    def finished(self) -> None:
        """DataError unless there were as many files of features as of examples, or none."""
        if self.features and len(self.features) != len(self.names):
            files = ", ".join(self.names)
            raise DataError(f"--features: expected {len(self.names)} files, for {files}; got {len(self.features)}")


class FeaturesOfLines:
    """The features of the sentences that `predict` reads, group by group."""

    def __init__(self, path: str) -> None:
        self.file, self.count = WordFeatures(path), 0

    def of(self, lines: Iterable[str]) -> list[Any]:
        """For each line, or block of CoNLL-U, its array; None where there are no words."""
        out: list[Any] = []
        for line in lines:
            forms = sentence_of(line).forms
            out.append(self.file.of(self.count, forms) if forms else None)
            self.count += bool(forms)
        return out

    def finished(self, name: str) -> None:
        self.file.finished(self.count, name)
