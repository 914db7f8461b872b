"""Word vectors: a table row for the word, a vector read from its letters, and one for how it is written."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite.errors import DataError
from dynet_lite.kept import Kept
from dynet_lite.needs import part
from dynet_lite.text import Vocab, WordVectors, shown_words

from .letters import LetterCNN, LetterLSTM

__all__ = ["CASES", "WordReader", "case_of"]

CASES = ("lower", "first", "upper", "mixed", "number", "digits", "other")


def case_of(word: str) -> str:
    """How a word is written, one of CASES, for instance of house, House, HOUSE or H, McDonald, 1,990.5, 1990s, --
    (Collobert and others 2011).
    """
    if any(c.isdigit() for c in word):
        return "digits" if any(c.isalpha() for c in word) else "number"
    letters = [c for c in word if c.isalpha()]
    large = sum(c.isupper() for c in letters)
    if not letters:
        return "other"
    if large == len(letters):
        return "upper"
    if not large:
        return "lower"
    return "first" if large == 1 and word[0].isupper() else "mixed"


@part()
class WordReader:
    """Vectors for the words of a sentence, put together from several parts.

    The parts are: `dim` numbers from a table of words; `2 char_hidden` numbers from the letters, by an LSTM in each
    direction or by filters; `case_dim` numbers from a table of how a word is written (CASES); and the numbers that
    come with the sentence, if build() was given `features`. With build(fold=True), House and house are one word in
    the table of words.

    In training, rare words are hidden, so that the model learns what to do with unknown ones: a word that was seen n
    times becomes the unknown word with probability hide / (hide + n) (Kiperwasser and Goldberg 2016).
    """

    LONGEST = 24  # letters; of a longer word the first and the last 12 are read

    def __init__(
        self, model: dy.ParameterCollection, parts: Mapping[str, Any], *, dim: int, char_dim: int = 0, char_hidden: int = 0,
        hide: float = 0.0, rng: random.Random, char_reader: str = "lstm", case_dim: int = 0,
        name: str = "words",
    ) -> None:  # fmt: skip
        """parts: what build() gave. char_hidden: size of the letter LSTM, each direction; 0: letters are not read.

        char_reader     "lstm" or "cnn": 2 char_hidden filters over runs of three letters
        case_dim        size of the vector of how a word is written; 0: none
        hide            see above; rng draws which words are hidden
        name            of the collection that holds the parameters
        """
        if char_reader not in ("lstm", "cnn"):
            raise ValueError(f"[WordReader] char_reader must be lstm or cnn; got {char_reader!r}")
        self.words, self.letters = Vocab.from_json(parts["words"]), Vocab.from_json(parts["letters"])
        self.folded = bool(parts.get("folded"))
        self.hide, self.random = hide, rng
        add = (collection := model.add_subcollection(name)).add_lookup_parameters
        self.table = add((len(self.words), dim), init="uniform", scale=0.1, name="words")
        self.features: int = parts.get("features", 0)
        self.width = dim + 2 * char_hidden + case_dim + self.features  # numbers of a vector
        self.chars = char_hidden > 0
        if self.chars:
            self.char_table = add((len(self.letters), char_dim), init="uniform", scale=0.1, name="letters")
            self.char_reader: LetterLSTM | LetterCNN = (
                LetterLSTM(collection, char_dim, char_hidden)
                if char_reader == "lstm"
                else LetterCNN(collection, char_dim, 2 * char_hidden)
            )
        self.case_table = None
        if case_dim:
            self.case_table = add((len(CASES), case_dim), init="uniform", scale=0.1, name="cases")
        self._spelled = Kept()  # what the letters of words say

    @staticmethod
    def build(
        sentences: Iterable[Sequence[str]], known: WordVectors | None = None, fold: bool = False, features: int = 0
    ) -> dict[str, Any]:
        """The vocabularies of training sentences, as values that json.dump can write.

        known: pretrained vectors, whose words are added
        fold: words that differ only in capitals are one word; their letters stay as they are
        features: how many numbers come with each word of a sentence
        """
        words = Vocab()
        letters: dict[str, int] = {}
        for sentence in sentences:
            for word in sentence:
                words.add(word.lower() if fold else word)
                for letter in word:
                    letters[letter] = letters.get(letter, 0) + 1
        for word in known.words if known is not None else ():
            words[word.lower() if fold else word]  # known, though never seen: the count stays 0
        kept = {"words": words.freeze().to_json(), "letters": Vocab.from_words(letters, min_count=2).to_json()}
        return {**kept, **({"folded": True} if fold else {}), **({"features": features} if features else {})}

    def use(self, known: WordVectors) -> int:
        """Starts from pretrained vectors. Returns how many words have one."""
        table = self.table.as_array().astype("float32")
        found = known.fill(table, self.words)
        self.table.init_from_array(table)
        return found

    def __call__(self, forms: Sequence[str], training: bool = False, features: Any = None) -> list[dy.Expression]:
        """For each word a vector {width}. features: an array (words, numbers), where build() was told of one; DataError, which
        names the sentence, if it does not fit."""
        vectors = [self.table[self._index(word, training)] for word in forms]
        given = self._given(forms, features)
        if not self.chars and self.case_table is None and not self.features:
            return vectors
        return [
            dy.concatenate([v, *self._written(word), *more])
            for v, word, more in zip(vectors, forms, given, strict=True)
        ]

    # ---- for files: dynet_lite/onnx ----------------------------------------------------------------------------------

    def inputs(self) -> dict[str, Any]:
        """The inputs that symbolic() takes: the numbers of the words, and for each word the numbers of its letters."""
        from dynet_lite import onnx

        inputs: dict[str, Any] = {"words": onnx.Ids("n")}
        if self.chars:
            inputs["letters"] = onnx.Ids("n", "letters")
        if self.case_table is not None:
            inputs["cases"] = onnx.Ids("n")
        if self.features:
            inputs["features"] = onnx.Input((self.features,), "n")
        return inputs

    def symbolic(self, words: Any, letters: Any = None, cases: Any = None, features: Any = None) -> Any:
        """__call__ for a sequence of unknown length, in exported networks."""
        from dynet_lite import onnx

        vectors = onnx.lookup(self.table, words)
        if self.chars:
            vectors = vectors.joined(self.char_reader.symbolic(onnx.lookup(self.char_table, letters)))
        if self.case_table is not None:
            vectors = vectors.joined(onnx.lookup(self.case_table, cases))
        return vectors.joined(features) if self.features else vectors

    def _given(self, forms: Sequence[str], features: Any) -> list[list[dy.Expression]]:
        """For each word what comes with the sentence, if anything does."""
        if features is None and not self.features:
            return [[]] * len(forms)
        if features is None:
            raise DataError(f"the model reads {self.features} numbers a word beside the words: --features; there are none for "
                            f"{shown_words(forms)}")  # fmt: skip
        if not self.features:
            raise DataError(f"the model was trained without features; there are some for {shown_words(forms)}")
        matrix = np.asarray(features, dtype=np.float32)
        if matrix.shape != (len(forms), self.features):
            raise DataError(
                f"expected features ({len(forms)}, {self.features}) for {shown_words(forms)}, got {matrix.shape}"
            )
        return [[dy.inputVector(row)] for row in matrix]

    def _index(self, word: str, training: bool) -> int:
        word = word.lower() if self.folded else word
        if training and self.hide and self.random.random() < self.hide / (self.hide + self.words.count(word)):
            return 0
        return self.words[word]

    def _written(self, word: str) -> list[dy.Expression]:
        """What follows the vector of the word: its letters, its case."""
        letters = [self._spell(word)] if self.chars else []
        return letters if self.case_table is None else [*letters, self.case_table[CASES.index(case_of(word))]]

    def _spell(self, word: str) -> dy.Expression:
        """What the letters say. A word that comes again in the same graph is read once."""

        def read() -> dy.Expression:
            half = self.LONGEST // 2
            text = word if len(word) <= self.LONGEST else word[:half] + word[-half:]
            return self.char_reader([self.char_table[i] for i in self.letters.ids(text)])

        return self._spelled.get(word, read)
