"""What models of labels have to be better than: the most frequent label of all, or of each word. Does not know the engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

__all__ = ["MostFrequent"]


class MostFrequent:
    """The most frequent label of each word; of a word that was never seen that of all words that were seen once.

        guess = MostFrequent(zip(sentence.forms, sentence.upos) for sentence in train)
        guess(["The", "dog"])

    pairs: for each sequence its pairs of word and label. Of labels that are equally frequent the first in the text is taken.
    With the same word for everything it is the most frequent label of all. ValueError without any pair.
    """

    def __init__(self, pairs: Iterable[Iterable[tuple[Hashable, str]]]) -> None:
        counts: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
        for sequence in pairs:
            for word, label in sequence:
                counts[word][label] += 1
        if not counts:
            raise ValueError("[MostFrequent] expected at least one word with a label")
        self.best = {word: labels.most_common(1)[0][0] for word, labels in counts.items()}
        rare = Counter(label for labels in counts.values() if labels.total() == 1 for label in labels)
        every: Counter[str] = sum((labels for labels in counts.values()), Counter()) if not rare else rare
        self.other = every.most_common(1)[0][0]

    def __call__(self, words: Sequence[Hashable]) -> list[str]:
        """A label for each word."""
        return [self.best.get(word, self.other) for word in words]
