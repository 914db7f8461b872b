"""Numbers for each word of each sentence, as a model from elsewhere makes them, in files: an array (words, numbers) a sentence.

A file is a NumPy archive, as `numpy.savez(path, *arrays)` writes it, or safetensors. The name of an array ends in the number of
its sentence, counted from 0. Does not know the engine.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dynet_lite.errors import DataError

__all__ = ["WordFeatures", "feature_size", "shown_words"]

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def shown_words(forms: Sequence[str]) -> str:
    """The beginning of a sentence, for use in messages."""
    return repr(" ".join(forms[:8]) + (" ..." if len(forms) > 8 else ""))


def feature_size(sentences: Sequence[Any]) -> int:
    """How many numbers each word of these sentences has in `features`; 0 if there are none."""
    first = sentences[0].features if sentences else None
    return 0 if first is None else int(first.shape[1])


class WordFeatures:
    """The arrays of a file of word features, one for each sentence.

    An array is checked when its sentence is known. If it does not fit, a DataError names both.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self.size = 0  # numbers of a word, when the first array has been looked at
        self._arrays = self._numbered(_read(self.name))

    def __len__(self) -> int:
        return len(self._arrays)

    def _numbered(self, arrays: dict[str, Array]) -> dict[int, Array]:
        out: dict[int, Array] = {}
        for key, array in arrays.items():
            found = re.search(r"(\d+)$", key)
            if not found:
                raise DataError(
                    f"{self.name}: expected names that end in the number of a sentence, such as arr_0, got {key!r}"
                )
            if int(found[1]) in out:
                raise DataError(
                    f"{self.name}: expected one array for sentence {int(found[1])}, got two, one named {key!r}"
                )
            out[int(found[1])] = array
        return out

    def of(self, number: int, forms: Sequence[str]) -> Array:
        """The array of sentence `number`, counted from 0, which has these words."""
        import numpy as np

        where = f"sentence {number}, {shown_words(forms)}"
        array = self._arrays.get(number)
        if array is None:
            raise DataError(f"{self.name}: expected an array for {where}; there is none")
        if array.ndim != 2 or not np.issubdtype(array.dtype, np.floating):
            raise DataError(f"{self.name}: expected a matrix of floats for {where}, got {array.dtype} {array.shape}")
        if len(array) != len(forms):
            raise DataError(f"{self.name}: expected {len(forms)} rows, one a word, for {where}, got {len(array)}")
        self.size = self.size or array.shape[1]
        if array.shape[1] != self.size or not self.size:
            raise DataError(
                f"{self.name}: expected {self.size or 'some'} numbers a word for {where}, got {array.shape[1]}"
            )
        if not np.isfinite(array).all():
            raise DataError(f"{self.name}: expected finite numbers for {where}")
        return array

    def attach(self, sentences: Iterable[Any], name: str) -> None:
        """Gives each sentence or tree of the file `name` its array as `features`."""
        count = 0
        for count, sentence in enumerate(sentences, 1):
            forms = sentence.words() if hasattr(sentence, "words") else sentence.forms
            sentence.features = self.of(count - 1, forms)
        self.finished(count, name)

    def finished(self, sentences: int, name: str) -> None:
        """DataError unless the file has as many arrays as there were sentences."""
        if sentences != len(self):
            raise DataError(
                f"{self.name}: expected arrays for the {sentences:,} sentences of {name}, got {len(self):,}"
            )


def _read(name: str) -> dict[str, Array]:
    if name.endswith(".safetensors"):
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            return load_file(name)
        except (SafetensorError, TypeError, KeyError, AttributeError) as error:  # a dtype that NumPy has not
            raise DataError(f"{name}: expected a safetensors file of float16 or float32: {error}") from None
    import numpy as np

    if not name.endswith(".npz"):
        raise DataError(f"{name}: expected a file of features, .npz or .safetensors")
    try:
        with np.load(name, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise DataError(f"{name}: expected a NumPy archive of numbers: {error}") from None
