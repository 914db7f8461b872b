"""Vocab: words to ids and back. Can be written as JSON and sees only the standard library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["Vocab"]

UNK = "<unk>"


class Vocab:
    """A list of words with ids from 0 and their counts.

    While it is open, asking for the id of a new word adds the word. After `freeze()` a new word gets the id
    of `unk`, or raises KeyError if the vocabulary was made with `unk=None`. `unk`, if any, has id 0.
    """

    __slots__ = ("_counts", "_frozen", "_ids", "_unk", "_words")

    def __init__(self, words: Iterable[str] = (), *, unk: str | None = UNK) -> None:
        self._words: list[str] = []
        self._ids: dict[str, int] = {}
        self._counts: list[int] = []
        self._unk = unk
        self._frozen = False
        if unk is not None:
            self._add(unk)
        for word in words:
            self.add(word)

    @classmethod
    def from_words(
        cls, words: Iterable[str], *, min_count: int = 1, unk: str | None = UNK, keep: Container[str] = ()
    ) -> Vocab:
        """A frozen vocabulary of the words seen at least `min_count` times, the most frequent first.

        `words` are the tokens of a text, or a mapping from word to count. Words of equal count keep the order
        in which they were first seen. Counts of the words left out go to `unk`. Words in `keep`, such as the mark that
        ends a sentence, are not left out however rare they are.
        """
        counts = words if isinstance(words, Mapping) else Counter(words)
        vocab = cls(unk=unk)
        for word in sorted(counts, key=lambda w: -counts[w]):  # the sort is stable
            if word == unk or (counts[word] < min_count and word not in keep):
                if unk is not None:
                    vocab._counts[0] += counts[word]
            else:
                vocab._add(word, counts[word])
        return vocab.freeze()

    def _add(self, word: str, count: int = 0) -> int:
        self._ids[word] = index = len(self._words)
        self._words.append(word)
        self._counts.append(count)
        return index

    def add(self, word: str) -> int:
        """Counts `word` once more, adding it if it is new; returns its id. The vocabulary must be open."""
        if self._frozen:
            raise RuntimeError("expected an open vocabulary, this one is frozen")
        index = self._ids.get(word)
        if index is None:
            index = self._add(word)
        self._counts[index] += 1
        return index

    def freeze(self) -> Vocab:
        """No word is added from now on. Returns the vocabulary itself."""
        self._frozen = True
        return self

    @property
    def frozen(self) -> bool:
        """Whether freeze() was called: no new words."""
        return self._frozen

    @property
    def unk(self) -> str | None:
        """The word that stands for unknown ones, or None."""
        return self._unk

    def __getitem__(self, word: str) -> int:
        index = self._ids.get(word)
        if index is not None:
            return index
        if not self._frozen:
            return self._add(word)
        if self._unk is None:
            raise KeyError(word)
        return 0

    def ids(self, words: Iterable[str]) -> list[int]:
        """The ids of several words."""
        return [self[word] for word in words]

    def word(self, index: int) -> str:
        """The word with this id; IndexError if there is none."""
        if not 0 <= index < len(self._words):
            raise IndexError(f"expected an id from 0 to {len(self._words) - 1}, got {index}")
        return self._words[index]

    def words(self) -> list[str]:
        """All words, by id."""
        return list(self._words)

    def count(self, word: str) -> int:
        """How often the word was seen, 0 if it is not in the vocabulary."""
        index = self._ids.get(word)
        return 0 if index is None else self._counts[index]

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __repr__(self) -> str:
        return f"Vocab({len(self)} words, {'frozen' if self._frozen else 'open'})"

    def to_json(self) -> dict[str, Any]:
        """A value that json.dump can write."""
        return {"unk": self._unk, "frozen": self._frozen, "words": self._words[:], "counts": self._counts[:]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Vocab:
        """The vocabulary that `to_json` described; ValueError if the value is not one."""
        try:
            words, counts, unk, frozen = value["words"], value["counts"], value["unk"], value["frozen"]
        except (KeyError, TypeError):
            raise ValueError("expected a vocabulary with 'words', 'counts', 'unk' and 'frozen'") from None
        if not isinstance(words, list) or not isinstance(counts, list) or len(words) != len(counts):
            raise ValueError("expected a vocabulary with as many counts as words")
        if {*map(type, words)} - {str} or {*map(type, counts)} - {int}:
            raise ValueError("expected a vocabulary of strings with whole counts")
        if len(set(words)) != len(words):
            raise ValueError("expected a vocabulary in which each word stands once")
        if unk is not None and (not words or words[0] != unk):
            raise ValueError(f"expected a vocabulary that begins with {unk!r}")
        vocab = cls(unk=None)
        vocab._unk = unk
        for word, count in zip(words, counts, strict=True):
            vocab._add(word, count)
        vocab._frozen = bool(frozen)
        return vocab
