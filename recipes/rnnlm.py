#!/usr/bin/env python
"""A language model: an LSTM reads a sentence word by word and says how likely each word is to be the next.

    python recipes/rnnlm.py                                    # the included treebank
    python recipes/rnnlm.py --train a.txt --dev b.txt          # a sentence a line; also CoNLL-U, trees, tagged text
    python recipes/rnnlm.py --nltk treebank --hidden 200       # any NLTK corpus
    python recipes/rnnlm.py --tie --word-dim 200 --hidden 200 --weight-drop 0.2 --average 0.998     # for small corpora
    python recipes/rnnlm.py --context 3                        # reads the three sentences before each one, as in running text
    python recipes/rnnlm.py predict --load words.model -       # continues the sentences you type
    python recipes/rnnlm.py --compare --batch 64               # automatic batching on and off

Sentences keep their own length: no text is cut into blocks, and nothing is padded. dynet_lite runs the n-th steps of all
sentences of a mini-batch together, and then the scores of all their words.

Mikolov and others: Recurrent neural network based language model (2010); Sundermeyer, Schlüter, Ney: LSTM neural networks
for language modeling (2012). --tie: Press, Wolf: Using the output embedding to improve language models (2017); --lstm-dropout:
Gal, Ghahramani: A theoretically grounded application of dropout in recurrent neural networks (2016); --weight-drop: Merity,
Keskar, Socher: Regularizing and optimizing LSTM language models (2018); --ngrams: as in the first of these papers.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import sample
from dynet_lite.text import (
    FORMS,
    DataError,
    KneserNey,
    Perplexity,
    Stream,
    Vocab,
    load_nltk_words,
    minibatches,
    read_words,
    split_words,
    words_source,
)

END = "</s>"  # ends a sentence, and stands before its first word
MOST = 1_000_000  # words to count n-grams of, for a baseline
Sentence = list[str]

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.StreamSettings):
    noise = ("dropout", "lstm_dropout", "weight_drop")

    word_dim: int = option(128, "size of a word vector")
    hidden: int = option(128, "size of the LSTM")
    layers: int = option(1, "layers of the LSTM")
    tie: bool = option(False, "share one table between input and output words; needs --word-dim equal to --hidden")
    context: int = option(0, "how many preceding sentences to read before each sentence")
    ngrams: float = option(
        0.0, "scores: weight of a trigram model in the probability of a word, for files of up to a million words"
    )
    min_count: int = option(2, "words seen less often than this are unknown")
    form: str = option("auto", "format of the files; auto: recognised by their content", choices=FORMS)

    epochs: int = option(30)
    learning_rate: float = option(3e-3)
    schedule: str = option("halve")
    dropout: float = option(0.4, "fraction of the inputs and outputs of the LSTM to drop in training")
    lstm_dropout: float = option(
        0.0, "fraction of the inputs and states of the LSTM to drop, the same at every word (variational dropout)"
    )
    weight_drop: float = option(0.0, "fraction of the state-to-state weights to drop, the same in a whole mini-batch")

    temperature: float = option(0.8, "predict: below 1 favours likely words; 0 always takes the likeliest")
    length: int = option(30, "predict: words to write at most")


# --- 2. Data and model --------------------------------------------------------------------------------------


class LanguageModel(harness.Recipe[Settings, Sentence]):
    """Word vector -> LSTM -> a score per word that may come next."""

    score_name = "perplexity"
    shares_evaluation = True
    lower_is_better = True
    build_options = ("min_count", "ngrams")
    predict_options = ("temperature", "length", "seed")
    smoke = {"epochs": 1, "batch": 4, "word_dim": 6, "hidden": 6}

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[Sentence]:
        def detail(train: Sequence[Sentence]) -> str:
            return f"{sum(map(len, train)):,} words, vocabulary of {len(cls.vocabulary(s, train)):,}"

        return harness.corpus(s, lambda path: read_words(path, s.form), home=__file__, nltk=load_nltk_words, detail=detail,
                              stream=lambda path: words_source(path, s.form))  # fmt: skip

    @staticmethod
    def vocabulary(s: Settings, train: Sequence[Sentence]) -> Vocab:
        tokens = (word for words in train for word in [*words, END])
        return Vocab.from_words(tokens, min_count=s.min_count, keep=[END])

    @classmethod
    def build(cls, s: Settings, train: Sequence[Sentence]) -> dict[str, Any]:
        words = cls.vocabulary(s, train)
        parts = {"words": words.to_json()}
        if s.ngrams:
            if sum(map(len, train)) > MOST:
                raise DataError(f"--ngrams: expected at most {MOST:,} words to train on")
            parts["ngrams"] = cls.trigrams(words, train).to_json()
        return parts

    @staticmethod
    def trigrams(words: Vocab, train: Iterable[Sentence]) -> KneserNey:
        """Over the same vocabulary, which unknown words belong to."""
        return KneserNey((words.ids([*sentence, END]) for sentence in train), order=3, words=len(words))

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.words = Vocab.from_json(parts["words"])
        self.end = self.words[END]
        self.unit = "runs of sentences" if s.context else "sentences"  # see batches()
        self.ngrams = KneserNey.from_json(parts["ngrams"]) if "ngrams" in parts else None
        n = len(self.words)
        self.vectors = self.model.add_lookup_parameters((n, s.word_dim), init="uniform", scale=0.1, name="words")
        self.lstm = dy.LSTMBuilder(s.layers, s.word_dim, s.hidden, self.model, name="lstm")
        if s.tie and s.word_dim != s.hidden:
            raise DataError(f"--tie: expected --word-dim and --hidden to be the same; got {s.word_dim} and {s.hidden}")
        self.W = None if s.tie else self.model.add_parameters((n, s.hidden), init="fan-in", name="W")
        self.b = self.model.add_parameters(n, init=0, name="b")

    def table(self) -> Any:
        """{words, hidden}: a row for each word that may come."""
        return dy.transpose(self.vectors.expr(True)) if self.W is None else self.W

    def losses(self, words: Sentence, table: Any, before: Sequence[Sentence] = ()) -> list[dy.Expression]:
        """-log p of each word, given those before it, and of the end; `before`, the sentences before, are read only."""
        s, training = self.settings, self.training
        read = [self.end, *(i for sentence in before for i in [*self.words.ids(sentence), self.end])]
        ids = self.words.ids(words)
        drop = s.dropout if training else 0.0
        self.lstm.set_dropout(s.lstm_dropout if training else 0.0)
        self.lstm.set_weight_dropout(s.weight_drop if training else 0.0)
        inputs = [dy.dropout(x, drop) for x in self.vectors.rows([*read, *ids])]
        outputs = self.lstm.initial_state().transduce(inputs)[len(read) - 1 :]
        scores = [dy.affine_transform([self.b, table, dy.dropout(h, drop)]) for h in outputs]
        return [dy.pickneglogsoftmax(x, i) for x, i in zip(scores, [*ids, self.end], strict=True)]

    def batches(self, train: Any) -> Any:
        """With --context runs of sentences, cut at other places in every epoch; the end mark stands between them."""
        n = self.settings.context + 1
        if n == 1:
            return super().batches(train)
        if isinstance(train, Stream):
            raise DataError("--context: the sentences of a stream come in no order; choose --stream off")
        cuts = [0, *range(self.random.randrange(1, n + 1), len(train), n), len(train)]
        runs = [[word for words in train[a:b] for word in (*words, END)][:-1] for a, b in pairwise(cuts)]
        return list(minibatches(runs, max(1, self.settings.batch // n), seed=self.random))

    def loss(self, batch: list[Sentence]) -> dy.Expression:
        """Mean over the words of the mini-batch."""
        table = self.table()
        losses = [loss for words in batch for loss in self.losses(words, table)]
        return dy.esum(losses) * (1 / len(losses))

    def weight(self, batch: list[Sentence]) -> int:
        return sum(len(words) + 1 for words in batch)

    def networks(self) -> dict[str, Any]:
        """A whole sentence, which begins with the end mark; and a step from the states of the LSTM to the next ones."""
        layers = range(self.settings.layers)
        states = [f"{kind}{i}" for kind in "ch" for i in layers]
        self.lstm.disable_dropout()

        def score(x: Any) -> Any:
            return dy.affine_transform([self.b, self.table(), x])

        def sentence(words: Any) -> Any:
            outputs: Any = self.lstm.initial_state().transduce(onnx.lookup(self.vectors, words))
            return outputs.map(score)

        def step(word: Any, **before: Any) -> Any:
            after = self.lstm.initial_state([before[name] for name in states]).add_input(
                onnx.lookup(self.vectors, word)
            )
            return score(after.output()), *after.s()

        inputs = {"word": onnx.Ids(), **{name: onnx.Input((self.settings.hidden,)) for name in states}}
        return {
            "sentence": (sentence, {"words": onnx.Ids("n")}, ["scores"]),
            "step": (step, inputs, ["scores", *(f"{name}_next" for name in states)]),
        }

    # --- 3. Use ---------------------------------------------------------------------------------------------

    def evaluate(self, examples: Sequence[Sentence]) -> harness.Score:
        score, unknown = Perplexity(), [word not in self.words for words in examples for word in words]
        n = self.settings.context
        runs = [examples[max(0, i - n) : i + 1] for i in range(len(examples))]
        for _, (loss, count) in self.spread(self.loss_and_count, minibatches(runs, 64)):
            score.add(loss, count)
        return harness.Score(
            score.value, f"{score} ({sum(unknown) / max(1, len(unknown)):.1%} unknown words)", loss=score.loss
        )

    def loss_and_count(self, batch: list[Sequence[Sentence]]) -> tuple[float, int]:
        """Of the last sentence of each run."""
        dy.renew_cg()
        table, share = self.table(), self.settings.ngrams
        found = [dy.concatenate(self.losses(words, table, before)) for *before, words in batch]
        dy.forward(found)  # all sentences at once
        rows = [x.npvalue().ravel() for x in found]
        tokens = sum(map(len, rows))
        if self.ngrams is None or not share:
            return float(sum(row.sum() for row in rows)), tokens
        ids = (self.words.ids([*words, END]) for *_, words in batch)
        return sum(self.ngrams.mixed_loss(row, x, share) for row, x in zip(rows, ids, strict=True)), tokens

    def baseline(self, train: Sequence[Sentence]) -> tuple[str, Any] | None:
        if sum(map(len, train)) > MOST:
            return None

        model = self.ngrams or self.trigrams(self.words, train)

        def score(examples: list[Sentence]) -> harness.Score:
            found = model.perplexity(self.words.ids([*words, END]) for words in examples)
            return harness.Score(found.value, str(found))

        return "trigrams, Kneser-Ney", score

    def predict(self, lines: list[str]) -> Iterator[str]:
        """Goes on from each line, all lines at once, until a sentence ends or is long enough."""
        s, rng = self.settings, random.Random(self.settings.seed)
        self.lstm.disable_dropout()
        dy.renew_cg()
        sentences = [split_words(line) for line in lines]
        going = {}  # number of the sentence: state
        for i, words in enumerate(sentences):
            going[i] = self.lstm.initial_state().add_inputs(self.vectors.rows([self.end, *self.words.ids(words)]))[-1]
        table = self.table()
        for _ in range(s.length):
            scores = dy.npvalues([dy.affine_transform([self.b, table, state.output()]) for state in going.values()])
            for i, values in zip(list(going), scores, strict=True):
                values[0] = float("-inf")  # the unknown word is none to write
                word = sample(values, s.temperature, rng)
                if word == self.end:
                    del going[i]
                else:
                    sentences[i].append(self.words.word(word))
                    going[i] = going[i].add_input(self.vectors[word])
            if not going:
                break
        yield from map(" ".join, sentences)


if __name__ == "__main__":
    sys.exit(harness.main(LanguageModel, Settings, __doc__))
