"""Dict: the two-way table of words and ids that DyNet has in C++, and lines of text as lists of ids.

dynet_lite.text.Vocab is the richer one, with counts and files. Does not know the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, overload

from dynet_lite.whitespace import split_words

__all__ = ["Dict", "read_sentence", "read_sentence_pair"]


class Dict:
    """Words and their ids from 0. A new word gets the next id until freeze().

    After freeze() a new word is a RuntimeError (a KeyError too), or has the id of the word given to set_unk().
    ``d[word]``, ``word in d``, ``len(d)`` and iteration work as for {word: id}.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._words: list[str] = []
        self._ids: dict[str, int] = {}
        self._frozen = False
        self._unk: int | None = None
        for word in words:
            self.convert(word)

    @overload
    def convert(self, word: str) -> int: ...
    @overload
    def convert(self, word: int) -> str: ...
    def convert(self, word: Any) -> Any:
        """The id of a word, or the word of an id. ValueError (an IndexError too) when there is no such id."""
        if isinstance(word, str):
            found = self._ids.get(word)
            return self._new(word) if found is None else found
        if not hasattr(word, "__index__"):
            raise TypeError(f"[Dict] a word or the id of one is needed; got {word!r}")
        number = word.__index__()
        if not 0 <= number < len(self._words):
            raise NoSuchId(f"[Dict] word number {number} of {len(self._words)}")
        return self._words[number]

    def _new(self, word: str) -> int:
        if self._frozen:
            if self._unk is None:
                raise UnknownWordError(f"[Dict] {word!r} is not in the dictionary, which is frozen; see set_unk()")
            return self._unk
        self._words.append(word)
        self._ids[word] = len(self._words) - 1
        return len(self._words) - 1

    def freeze(self) -> None:
        """No new words from now on."""
        self._frozen = True

    def is_frozen(self) -> bool:
        """Was freeze() called?"""
        return self._frozen

    def set_unk(self, word: str) -> None:
        """Once, after freeze(): this word, which is added if need be, stands for all that are not there."""
        if not self._frozen:
            raise RuntimeError("[Dict] call freeze() before set_unk()")
        if self._unk is not None:
            raise RuntimeError(f"[Dict] set_unk() was called before, with {self._words[self._unk]!r}")
        self._frozen = False
        self._unk = self.convert(word)
        self._frozen = True

    def get_unk_id(self) -> int:
        """The id that set_unk() chose; -1 before."""
        return -1 if self._unk is None else self._unk

    def get_words(self) -> list[str]:
        """All words, by id."""
        return list(self._words)

    def size(self) -> int:
        """How many words there are."""
        return len(self._words)

    def contains(self, word: str) -> bool:
        """Is the word there?"""
        return word in self._ids

    def clear(self) -> None:
        """Forget all words, the one of set_unk() too; frozen stays frozen."""
        self._words.clear()
        self._ids.clear()
        self._unk = None

    def __getitem__(self, word: str) -> int:
        return self.convert(word)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self.get_words())

    def __len__(self) -> int:
        return len(self._words)

    def __repr__(self) -> str:
        return f"<Dict of {len(self._words)} words{', frozen' if self._frozen else ''}>"


class UnknownWordError(RuntimeError, KeyError):
    """A frozen Dict was asked for the id of a word that it does not have."""

    __str__ = Exception.__str__  # KeyError's shows the text in quotes


class NoSuchId(ValueError, IndexError):
    """A Dict was asked for the word of an id that it does not have."""


def read_sentence(line: str, d: Dict) -> list[int]:
    """The ids of the words of a line, which blanks separate."""
    return [d.convert(word) for word in split_words(line)]


def read_sentence_pair(line: str, sd: Dict, td: Dict) -> tuple[list[int], list[int]]:
    """The ids of ``source words ||| target words``, each by its own Dict."""
    source: list[int] = []
    target: list[int] = []
    d, out = sd, source
    for word in split_words(line):
        if word == "|||":
            d, out = td, target
        else:
            out.append(d.convert(word))
    return source, target
