"""Vectors of words: a row of a table for the word, and what two LSTMs read from its letters."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dynet_lite as dy
from dynet_lite.text import Vocab, WordVectors

__all__ = ["WordReader"]


class WordReader:
    """Word vectors for sentences. Ling and others: Finding function in form (2015).

    Rare words are hidden in training, so that the model learns what to do with unknown ones: a word that was seen n times
    becomes the unknown word with probability hide / (hide + n), as in Kiperwasser and Goldberg (2016).
    """

    LONGEST = 24  # letters; of a longer word the first and the last 12 are read

    def __init__(
        self, model: dy.ParameterCollection, parts: Mapping[str, Any], *, dim: int, char_dim: int = 0, char_hidden: int = 0,
        hide: float = 0.0, rng: random.Random,
    ) -> None:  # fmt: skip
        """parts: what build() gave. char_hidden: size of the letter LSTM, each direction; 0: letters are not read."""
        self.words, self.letters = Vocab.from_json(parts["words"]), Vocab.from_json(parts["letters"])
        self.hide, self.random = hide, rng
        self.table = model.add_lookup_parameters((len(self.words), dim), init="uniform", scale=0.1)
        self.width = dim + 2 * char_hidden  # numbers of a vector
        self.chars = char_hidden > 0
        if self.chars:
            self.char_table = model.add_lookup_parameters((len(self.letters), char_dim), init="uniform", scale=0.1)
            self.forward = dy.LSTMBuilder(1, char_dim, char_hidden, model)
            self.backward = dy.LSTMBuilder(1, char_dim, char_hidden, model)
        self._spelled: dict[str, dy.Expression] = {}
        self._graph = -1

    @staticmethod
    def build(sentences: Iterable[Sequence[str]], known: WordVectors | None = None) -> dict[str, Any]:
        """The vocabularies of training sentences, as values json.dump can write; with `known` vectors also their words."""
        words = Vocab()
        letters: dict[str, int] = {}
        for sentence in sentences:
            for word in sentence:
                words.add(word)
                for letter in word:
                    letters[letter] = letters.get(letter, 0) + 1
        for word in known.words if known is not None else ():
            words[word]  # known, though never seen: the count stays 0
        return {"words": words.freeze().to_json(), "letters": Vocab.from_words(letters, min_count=2).to_json()}

    def use(self, known: WordVectors) -> int:
        """Begins with pretrained vectors; how many words have one."""
        table = self.table.as_array().astype("float32")
        found = known.fill(table, self.words)
        self.table.init_from_array(table)
        return found

    def __call__(self, forms: Sequence[str], training: bool = False) -> list[dy.Expression]:
        """For each word a vector {width}."""
        if self._graph != dy.cg_version():
            self._graph, self._spelled = dy.cg_version(), {}
        vectors = [self.table[self._index(word, training)] for word in forms]
        if not self.chars:
            return vectors
        return [dy.concatenate([v, self._spell(word)]) for v, word in zip(vectors, forms, strict=True)]

    # ---- for files: dynet_lite/onnx ----------------------------------------------------------------------------------

    def inputs(self) -> dict[str, Any]:
        """The inputs that symbolic() takes: numbers of the words and, of each, numbers of the letters that are read."""
        from dynet_lite import onnx

        return {"words": onnx.Ids("n"), **({"letters": onnx.Ids("n", "letters")} if self.chars else {})}

    def symbolic(self, words: Any, letters: Any = None) -> Any:
        """What __call__ gives, as a sequence of a length that is not known, from inputs of a function that is exported."""
        from dynet_lite import onnx

        vectors = onnx.lookup(self.table, words)
        if not self.chars:
            return vectors
        spelled = onnx.lookup(self.char_table, letters)
        there: Any = self.forward.initial_state().transduce(spelled)[-1]
        back = self.backward.initial_state().transduce(spelled[::-1])[-1]
        return vectors.joined(there.joined(back))

    def _index(self, word: str, training: bool) -> int:
        if training and self.hide and self.random.random() < self.hide / (self.hide + self.words.count(word)):
            return 0
        return self.words[word]

    def _spell(self, word: str) -> dy.Expression:
        """What the letters say. A word that comes again in the same graph is read once."""
        if word not in self._spelled:
            half = self.LONGEST // 2
            text = word if len(word) <= self.LONGEST else word[:half] + word[-half:]
            letters = [self.char_table[i] for i in self.letters.ids(text)]
            there = self.forward.initial_state().transduce(letters)[-1]
            back = self.backward.initial_state().transduce(letters[::-1])[-1]
            self._spelled[word] = dy.concatenate([there, back])
        return self._spelled[word]
