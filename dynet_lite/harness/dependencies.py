"""What parsers of dependency trees have in common: data, vectors of words and tags, scores, files to parse.

A recipe on ParserRecipe has settings on ParserSettings, its network, loss() and parse().
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import dynet_lite as dy
from dynet_lite.errors import DataError
from dynet_lite.nn import WordReader
from dynet_lite.text import (
    Sentence,
    UsualHead,
    Vocab,
    annotated_conllu,
    attachment_scores,
    feature_size,
    load_nltk_dependencies,
    minibatches,
    read_dependencies,
    read_vectors,
    sentence_of,
    shown_words,
)

from .data import Data, corpus
from .recipe import Recipe, Score
from .settings import Settings, option

__all__ = ["ParserRecipe", "ParserSettings"]


@dataclass
class ParserSettings(Settings):
    """Settings about words and tags that all parsers have."""

    word_dim: int = option(100, "size of a word vector")
    tags: str = option(
        "upos",
        "which tags the parser reads: universal, those of the language (XPOS), or both",
        choices=("upos", "xpos", "both"),
    )
    tag_dim: int = option(30, "size of the vector of a tag")
    char_dim: int = option(25, "size of a character vector")
    char_hidden: int = option(0, "size of the character LSTM, each direction; 0: words are not read letter by letter")
    char_reader: str = option(
        "lstm",
        "what reads the letters; cnn: 2 x --char-hidden filters over three letters each",
        choices=("lstm", "cnn"),
    )
    case_dim: int = option(0, "size of a vector for how a word is written: capitals, digits; 0: none")
    fold: bool = option(False, "give house and House the same word vector")
    vectors: str = option("", "start from the word vectors in this file (word2vec, text or binary; GloVe)")
    features: tuple[str, ...] = option(
        (), "a file with numbers for each word (.npz, .safetensors), for each file of --train, --dev, --test"
    )
    word_dropout: float = option(
        0.25, "a number a: in training, a word seen n times becomes the unknown word with probability a / (a + n)"
    )


S = TypeVar("S", bound=ParserSettings)


def tags_of(sentence: Sentence, kind: str) -> list[str]:
    """The tags that a parser reads: "upos", "xpos", or "both", which makes one tag of the two. DataError without XPOS."""
    if kind == "upos":
        return sentence.upos
    if not sentence.xpos and sentence.forms:
        raise DataError(f"--tags {kind} needs the column XPOS, which is empty in {' '.join(sentence.forms[:8])!r}")
    return sentence.xpos if kind == "xpos" else list(map("{} {}".format, sentence.upos, sentence.xpos))


class ParserRecipe(Recipe[S, Sentence]):
    """A recipe that parses dependencies: trees for sentences with gold tags, from CoNLL-U files or NLTK.

    Attachment scores count all tokens, with punctuation, and compare whole relations (nsubj:pass is not nsubj). The
    score without subtypes is printed as well. `predict` reads CoNLL-U and replaces heads and relations; other
    columns, comments, multiword ranges and empty nodes stay.
    """

    shares_evaluation = True
    build_options: ClassVar[tuple[str, ...]] = ("tags", "fold", "vectors")
    score_name = "LAS"
    label_name = "relation"
    blocks = True

    @classmethod
    def load_data(cls, s: S) -> Data[Sentence]:
        def detail(train: Sequence[Sentence]) -> str:
            return f"{sum(map(len, train)):,} words, {len({r for x in train for r in x.deprels})} relations"

        home = inspect.getfile(cls)
        return corpus(s, read_dependencies, home=home, nltk=load_nltk_dependencies, detail=detail)

    @classmethod
    def build(cls, s: S, train: Sequence[Sentence]) -> dict[str, Any]:
        known = read_vectors(s.vectors) if s.vectors else None
        words = WordReader.build((sentence.forms for sentence in train), known, s.fold, feature_size(train))
        tags = Vocab.from_words(tag for sentence in train for tag in tags_of(sentence, s.tags))
        relations = Vocab.from_words((r for sentence in train for r in sentence.deprels), unk=None)
        return {"tags": tags.to_json(), "relations": relations.to_json(), **words}

    def __init__(self, s: S, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.tags, self.relations = Vocab.from_json(parts["tags"]), Vocab.from_json(parts["relations"])
        self.reader = WordReader(
            self.model, parts, dim=s.word_dim, char_dim=s.char_dim, char_hidden=s.char_hidden, hide=s.word_dropout,
            rng=self.random, char_reader=s.char_reader, case_dim=s.case_dim,
        )  # fmt: skip
        shape = len(self.tags), s.tag_dim
        self.tag_vectors = self.model.add_lookup_parameters(shape, init="uniform", scale=0.1, name="tags")
        self.width = self.reader.width + s.tag_dim  # of inputs()

    def begin(self) -> None:
        if self.settings.vectors:
            self.reader.use(read_vectors(self.settings.vectors))

    def gold(self, example: Sentence) -> list[str]:
        return example.deprels

    def known_labels(self) -> list[str]:
        return self.relations.words()

    def inputs(self, sentence: Sentence, drop: float = 0.0) -> list[dy.Expression]:
        """For each word its vector, with dropout, above the vector of its tag: {width}."""
        words = [dy.dropout(x, drop) for x in self.reader(sentence.forms, self.training, sentence.features)]
        tags = self.tag_vectors.rows(self.tags.ids(tags_of(sentence, self.settings.tags)))
        return [dy.concatenate(pair) for pair in zip(words, tags, strict=True)]

    def parse(self, batch: list[Sentence]) -> list[Sentence]:
        """The sentences with predicted heads and relations, whatever they had before. It renews the graph itself."""
        raise NotImplementedError(f"{type(self).__name__} has no parse")

    def weight(self, batch: list[Sentence]) -> float:
        """The number of words. It also serves for losses over moves, because every word has the same number of moves."""
        return sum(map(len, batch))

    def evaluate(self, examples: Sequence[Sentence]) -> Score:
        spread = self.spread(self.parse, minibatches(examples, 64))
        return self.compared(examples, [tree for _, trees in spread for tree in trees])

    @staticmethod
    def compared(examples: Sequence[Sentence], parsed: Sequence[Sentence]) -> Score:
        """The scores of these parses against the gold ones."""
        score = attachment_scores(examples, parsed)
        return Score(score.las, str(score), uas=score.uas, universal_las=score.universal_las, words=score.words)

    def baseline(self, train: Sequence[Sentence]) -> tuple[str, Callable[[Sequence[Sentence]], Score]]:
        guess = UsualHead(train)
        return "the usual head of each tag", lambda examples: self.compared(examples, [guess(x) for x in examples])

    def predict(self, blocks: list[str], features: Sequence[Any] = ()) -> Iterator[str]:
        for block, sentence in zip(blocks, self._parsed(blocks, features), strict=True):
            yield "\n".join(annotated_conllu(block, sentence))

    def answers(self, lines: list[str], scores: bool = False, features: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        if scores:
            raise DataError(f"{type(self).__name__} gives no scores")
        for x in self._parsed(lines, features):
            yield {"words": x.forms, "upos": x.upos, "heads": x.heads, "deprels": x.deprels}

    def _parsed(self, blocks: list[str], features: Sequence[Any]) -> Iterator[Sentence]:
        """The parse of the sentence in each block; of a block of comments nothing."""
        sentences = [sentence_of(*pair) for pair in zip(blocks, features or [None] * len(blocks), strict=True)]
        for sentence in sentences:
            if not sentence.upos and sentence.forms:
                raise DataError(
                    f"input: expected CoNLL-U, for the tags of the words; got {' '.join(sentence.forms[:8])!r}"
                )
            if self.settings.tags == "upos" and set(sentence.upos) == {"_"} and "_" not in self.tags:
                raise DataError(
                    f"input: expected tags in the column UPOS, which is empty in {shown_words(sentence.forms)}"
                )
        full = [sentence for sentence in sentences if sentence.forms]
        parsed = iter(self.parse(full) if full else [])
        for sentence in sentences:
            yield next(parsed) if sentence.forms else sentence
