"""Pieces of words, for words that were never seen: byte-pair encoding and character n-grams.

Sennrich, Haddow, Birch: Neural machine translation of rare words with subword units (2016); Bojanowski and others:
Enriching word vectors with subword information (2017).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from .lines import split_words

__all__ = ["BytePairs", "char_ngrams"]

END = "</w>"  # closes the last piece of a word
KEPT = 100_000  # words whose pieces are remembered, at most: a server meets new ones as long as it runs

Piece = tuple[str, str]


class BytePairs:
    """Byte-pair encoding over letters: `merges` lists the pairs that are joined, in the order in which they were
    learned.

        pairs = BytePairs.learn(["low", "lower", "lowest"], 10)
        pairs.split("lowly")  # a list of pieces; the last one ends in </w>
    """

    def __init__(self, merges: Iterable[Piece]) -> None:
        self.merges = [(a, b) for a, b in merges]
        self._rank = {pair: i for i, pair in enumerate(self.merges)}
        self._known: dict[str, list[str]] = {}

    @classmethod
    def learn(cls, words: Iterable[str] | Mapping[str, int], merges: int) -> BytePairs:
        """Learns at most `merges` joins from words (a list of tokens, or a mapping from word to count).

        The most frequent pair comes first; of equally frequent ones the first in the alphabet. Pairs that occur once
        are not joined.
        """
        counts = words if isinstance(words, Mapping) else Counter(words)
        pieces = {word: [*word[:-1], word[-1] + END] for word in counts if word}
        pairs: Counter[Piece] = Counter()
        where: defaultdict[Piece, set[str]] = defaultdict(set)
        for word, parts in pieces.items():
            for pair in zip(parts, parts[1:], strict=False):
                pairs[pair] += counts[word]
                where[pair].add(word)
        heap = [(-count, pair) for pair, count in pairs.items()]  # counts that have changed since are skipped
        heapify(heap)
        learned: list[Piece] = []
        while heap and len(learned) < merges:
            count, best = heappop(heap)
            if pairs[best] != -count:
                continue
            if -count < 2:
                break
            learned.append(best)
            changed: set[Piece] = set()
            for word in where.pop(best):
                parts, joined = pieces[word], _join(pieces[word], best)
                for pair in zip(parts, parts[1:], strict=False):
                    pairs[pair] -= counts[word]
                    changed.add(pair)
                for pair in zip(joined, joined[1:], strict=False):
                    pairs[pair] += counts[word]
                    where[pair].add(word)
                    changed.add(pair)
                pieces[word] = joined
            for pair in changed:
                heappush(heap, (-pairs[pair], pair))
        return cls(learned)

    def split(self, word: str) -> list[str]:
        """The pieces of a word. The last one ends in </w>."""
        if not word:
            return []
        parts = self._known.get(word)
        if parts is None:
            parts = [*word[:-1], word[-1] + END]
            while len(parts) > 1:
                best = min(zip(parts, parts[1:], strict=False), key=lambda pair: self._rank.get(pair, len(self._rank)))
                if best not in self._rank:
                    break
                parts = _join(parts, best)
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[word] = parts
        return list(parts)

    def split_all(self, words: Iterable[str]) -> list[str]:
        """The pieces of several words, in one list."""
        return [piece for word in words for piece in self.split(word)]

    @staticmethod
    def join(pieces: Iterable[str]) -> list[str]:
        """The words that the pieces make."""
        return split_words("".join(pieces).replace(END, " "))

    def to_json(self) -> Any:
        """A value that json.dump can write."""
        return [list(pair) for pair in self.merges]

    @classmethod
    def from_json(cls, value: Any) -> BytePairs:
        """The encoding that to_json() has described."""
        return cls((a, b) for a, b in value)


def _join(parts: list[str], pair: Piece) -> list[str]:
    out: list[str] = []
    i = 0
    while i < len(parts):
        if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
            out.append(parts[i] + parts[i + 1])
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return out


def char_ngrams(word: str, shortest: int = 3, longest: int = 5) -> list[str]:
    """The runs of `shortest` to `longest` letters of a word, written with < at its start and > at its end."""
    text = f"<{word}>"
    return [text[i : i + n] for n in range(shortest, longest + 1) for i in range(len(text) - n + 1)]
