#!/usr/bin/env python
"""A part-of-speech tagger: a BiLSTM over the words of a sentence, each seen as a whole and letter by letter.

    python recipes/bilstm_tagger.py                               # the treebank that comes with the project
    python recipes/bilstm_tagger.py --train a.conllu --dev b.conllu --save tagger.model
    python recipes/bilstm_tagger.py --nltk treebank               # any tagged corpus of NLTK
    python recipes/bilstm_tagger.py --load tagger.model --tag -   # tags the sentences you type
    python recipes/bilstm_tagger.py --compare                     # automatic batching on and off

The network is written for one sentence, with plain loops. Nothing runs until the loss of the whole minibatch
is asked for; then dynet_lite finds the steps that are alike, in all sentences, and runs them together.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

import dynet_lite as dy
from dynet_lite.text import DataError, Sentence, Vocab, load_nltk_tagged, minibatches, read_conllu

TREEBANK = Path(__file__).resolve().parent.parent / "data" / "treebank"

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


def option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass
class Settings:
    train: str = option("", "training sentences, a CoNLL-U file (default: data/treebank of the project)")
    dev: str = option("", "sentences to measure accuracy on, CoNLL-U (default: the last tenth of --train)")
    nltk: str = option("", "train on this tagged NLTK corpus; its last tenth is dev")

    word_dim: int = option(100, "size of a word vector")
    chars: bool = option(True, "also read each word letter by letter")
    char_dim: int = option(25, "size of a character vector")
    char_hidden: int = option(25, "size of the character LSTM, each direction")
    hidden: int = option(50, "size of the sentence LSTM, each direction")
    layers: int = option(1, "layers of the sentence LSTM")
    mlp: int = option(32, "size of the hidden layer before the tags")

    epochs: int = option(30, "stop after so many passes over the training sentences")
    patience: int = option(4, "stop when dev accuracy has not risen for so many epochs")
    batch: int = option(16, "sentences per update")
    learning_rate: float = option(2e-3, "step size of Adam")
    dropout: float = option(0.3, "share of the inputs and outputs of the sentence LSTM to drop in training")
    word_dropout: float = option(0.25, "a: a word seen n times is hidden with probability a / (a + n)")
    seed: int = option(1, "start of all random numbers")
    autobatch: bool = option(True, "automatic batching")
    threads: int = option(1, "threads that share the sentences of a minibatch")

    compare: bool = option(False, "train with automatic batching on and off, print the ratio of the speeds")
    smoke: bool = option(False, "a tiny run that only shows that everything works")
    save: str = option("", "write the best model to this file, its vocabularies to FILE.json")
    load: str = option("", "read a saved model instead of training; needs --tag")
    tag: str = option("", "tag this file, one sentence of words and blanks per line; - is standard input")
    columns: bool = option(False, "write word<tab>tag lines instead of word_tag sentences")


def parse_settings(argv: list[str] | None = None) -> Settings:
    summary = (__doc__ or "").split("\n", 1)[0]
    parser = argparse.ArgumentParser(description=summary)
    for f in fields(Settings):
        name, about = "--" + f.name.replace("_", "-"), f.metadata["help"]
        if isinstance(f.default, bool):
            kind: dict[str, Any] = {"action": argparse.BooleanOptionalAction if f.default else "store_true"}
        else:
            kind = {"type": type(f.default), "metavar": "NAME" if f.default == "" else "N"}
        about += "" if f.default in ("", False) else f" (default: {'on' if f.default is True else f.default})"
        parser.add_argument(name, default=f.default, help=about, **kind)
    s = Settings(**vars(parser.parse_args(argv)))
    if s.nltk and (s.train or s.dev):
        parser.error("--nltk and --train/--dev exclude each other")
    if bool(s.load) != bool(s.tag):
        parser.error("--load and --tag go together")
    if s.smoke:
        s = replace(s, epochs=1, batch=4, word_dim=8, char_dim=4, char_hidden=4, hidden=6, mlp=6)
    return s


# --- 2. Data ------------------------------------------------------------------------------------------------


def load_data(s: Settings) -> tuple[list[Sentence], list[Sentence]]:
    """Training and dev sentences. Prints where they come from: the first line of the output."""
    if s.nltk:
        name, source = f"NLTK {s.nltk}", "terms of use: see the corpus's README in nltk_data"
        train, dev = load_nltk_tagged(s.nltk), []
    elif s.train:
        name, source = s.train, "terms of use: as its publisher says"
        train, dev = read_conllu(s.train), read_conllu(s.dev) if s.dev else []
    else:
        name, source = "the project's treebank (data/treebank)", "written for this project, Apache-2.0"
        train, dev = read_conllu(TREEBANK / "train.conllu"), read_conllu(s.dev or TREEBANK / "dev.conllu")
    if not dev:
        cut = len(train) - max(1, len(train) // 10)
        train, dev = train[:cut], train[cut:]
    if s.smoke:
        train, dev = train[:12], dev[:4]
    if not train or not dev:
        raise DataError(f"{name}: expected at least two sentences")
    words, tags = sum(map(len, train)), {tag for sentence in train for tag in sentence.upos}
    print(
        f"{name}: {len(train):,} sentences ({words:,} words, {len(tags)} tags) to train on, "
        f"{len(dev):,} for dev; {source}"
    )
    return train, dev


# --- 3. Model -----------------------------------------------------------------------------------------------


class Tagger:
    """Word vector and character BiLSTM -> BiLSTM over the sentence -> hidden layer -> a score per tag."""

    def __init__(self, s: Settings, words: Vocab, letters: Vocab, tags: Vocab) -> None:
        dy.reset_random_seed(s.seed)
        self.settings, self.words, self.letters, self.tags = s, words, letters, tags
        self.random = random.Random(s.seed)
        self.model = model = dy.ParameterCollection()
        self.word_vectors = model.add_lookup_parameters((len(words), s.word_dim), init="uniform", scale=0.1)
        width = s.word_dim
        if s.chars:
            shape = len(letters), s.char_dim
            self.char_vectors = model.add_lookup_parameters(shape, init="uniform", scale=0.1)
            self.char_forward = dy.LSTMBuilder(1, s.char_dim, s.char_hidden, model)
            self.char_backward = dy.LSTMBuilder(1, s.char_dim, s.char_hidden, model)
            width += 2 * s.char_hidden
        self.lstm = dy.BiRNNBuilder(s.layers, width, 2 * s.hidden, model, dy.LSTMBuilder)
        self.W1 = model.add_parameters((s.mlp, 2 * s.hidden))
        self.b1 = model.add_parameters(s.mlp, init=0)
        self.W2 = model.add_parameters((len(tags), s.mlp))
        self.b2 = model.add_parameters(len(tags), init=0)

    @classmethod
    def for_data(cls, s: Settings, train: list[Sentence]) -> Tagger:
        words = Vocab.from_words(word for sentence in train for word in sentence.forms)
        letters = Vocab.from_words((c for s in train for word in s.forms for c in word), min_count=2)
        tags = Vocab.from_words((tag for sentence in train for tag in sentence.upos), unk=None)
        return cls(s, words, letters, tags)

    def spell(self, word: str, seen: dict[str, Any]) -> Any:
        """What the letters say about a word. A word that comes again in the minibatch is read once."""
        if word not in seen:
            text = word if len(word) <= 24 else word[:12] + word[-12:]
            letters = [self.char_vectors[i] for i in self.letters.ids(text)]
            forward = self.char_forward.initial_state().transduce(letters)[-1]
            backward = self.char_backward.initial_state().transduce(letters[::-1])[-1]
            seen[word] = dy.concatenate([forward, backward])
        return seen[word]

    def scores(self, forms: list[str], seen: dict[str, Any], training: bool = False) -> list[Any]:
        """For each word a vector with the scores of the tags. `seen` is a dict for the whole minibatch."""
        s = self.settings
        inputs = []
        for word in forms:
            index = self.words[word]
            if training and self.random.random() < s.word_dropout / (s.word_dropout + self.words.count(word)):
                index = 0  # the unknown word: this is how the model learns what to do with one
            vector = self.word_vectors[index]
            inputs.append(dy.concatenate([vector, self.spell(word, seen)]) if s.chars else vector)
        drop = s.dropout if training else 0.0
        if drop:
            inputs = [dy.dropout(x, drop) for x in inputs]
        outputs = self.lstm.transduce(inputs)
        if drop:
            outputs = [dy.dropout(x, drop) for x in outputs]
        hidden = [dy.tanh(dy.affine_transform([self.b1, self.W1, x])) for x in outputs]
        return [dy.affine_transform([self.b2, self.W2, h]) for h in hidden]

    def loss(self, batch: list[Sentence]) -> Any:
        """Mean over the words of the minibatch of -log p(tag)."""
        seen: dict[str, Any] = {}
        losses = []
        for sentence in batch:
            scores = self.scores(sentence.forms, seen, training=True)
            tags = self.tags.ids(sentence.upos)
            losses += [dy.pickneglogsoftmax(x, i) for x, i in zip(scores, tags, strict=True)]
        return dy.esum(losses) * (1 / len(losses))

    def predict(self, batch: list[list[str]]) -> list[list[str]]:
        """The best tag of each word of each sentence; no sentence may be empty."""
        dy.renew_cg(autobatching=self.settings.autobatch)
        seen: dict[str, Any] = {}
        scores = [dy.concatenate_cols(self.scores(forms, seen)) for forms in batch]
        dy.forward(scores)  # all sentences at once
        best = [matrix.npvalue().reshape(len(self.tags), -1).argmax(axis=0) for matrix in scores]
        return [[self.tags.word(i) for i in sentence] for sentence in best]

    def save(self, path: str) -> None:
        """Writes the weights in DyNet's text format and the rest beside them; each file is replaced whole."""
        about = {"settings": asdict(self.settings)}
        for name in ("words", "letters", "tags"):
            about[name] = getattr(self, name).to_json()
        self.model.save(path + ".tmp")
        Path(path + ".json.tmp").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
        os.replace(path + ".tmp", path)
        os.replace(path + ".json.tmp", path + ".json")

    @classmethod
    def load(cls, path: str) -> Tagger:
        try:
            about = json.loads(Path(path + ".json").read_text(encoding="utf-8"))
            settings = Settings(**about["settings"])
            parts = [Vocab.from_json(about[name]) for name in ("words", "letters", "tags")]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}.json: expected what --save wrote: {error}") from None
        tagger = cls(settings, *parts)
        try:
            tagger.model.populate(path)
        except (ValueError, RuntimeError) as error:
            raise DataError(f"{path}: expected the weights that --save wrote: {error}") from None
        return tagger


# --- 4. Training --------------------------------------------------------------------------------------------


def engine_counts() -> tuple[int, int]:
    """Nodes of the current graph that have run, and the batches they were run in."""
    counts = dy.stats()
    return counts["nodes"], counts["batches"]


@dataclass
class Epoch:
    """What one pass over the training sentences gave."""

    losses: list[float]  # of each minibatch
    seconds: float
    mean_batch: float  # nodes that ran together

    @property
    def loss(self) -> float:
        return sum(self.losses) / len(self.losses)


def run_epoch(tagger: Tagger, trainer: Any, train: list[Sentence], title: str) -> Epoch:
    s = tagger.settings
    start, losses, nodes, batches = time.perf_counter(), [], 0, 0
    todo = list(minibatches(train, s.batch, seed=tagger.random))
    for batch in tqdm(todo, desc=title, leave=False, disable=None):  # None: a bar on a terminal only
        dy.renew_cg(autobatching=s.autobatch)
        loss = tagger.loss(batch)
        losses.append(loss.value())
        loss.backward()
        trainer.update()
        counts = engine_counts()
        nodes, batches = nodes + counts[0], batches + counts[1]
    seconds = time.perf_counter() - start
    return Epoch(losses, seconds, nodes / max(1, batches))


def accuracy(tagger: Tagger, sentences: list[Sentence]) -> float:
    right = words = 0
    for batch in minibatches(sentences, 64):
        for sentence, tags in zip(batch, tagger.predict([s.forms for s in batch]), strict=True):
            right += sum(map(str.__eq__, sentence.upos, tags))
            words += len(tags)
    return right / words


def train_tagger(s: Settings, train: list[Sentence], dev: list[Sentence]) -> int:
    tagger = Tagger.for_data(s, train)
    trainer = dy.AdamTrainer(tagger.model, s.learning_rate)
    best, best_epoch = -1.0, 0
    try:
        for number in range(1, s.epochs + 1):
            epoch = run_epoch(tagger, trainer, train, f"epoch {number}")
            score = accuracy(tagger, dev)
            print(
                f"epoch {number:2}  loss {epoch.loss:.4f}  dev accuracy {score:.2%}  "
                f"{len(train) / epoch.seconds:,.0f} sentences/s  mean batch {epoch.mean_batch:.1f}",
                flush=True,
            )
            if score > best:
                best, best_epoch = score, number
                if s.save:
                    tagger.save(s.save)
            elif number - best_epoch >= s.patience:
                break
    except KeyboardInterrupt:
        print("\nstopped by the keyboard", flush=True)
        if s.save and not best_epoch:  # not even one epoch: better than nothing
            tagger.save(s.save)
            print(f"the model as it is now is in {s.save}")
        status = 130
    else:
        status = 0
    if best_epoch:
        where = f", saved to {s.save}" if s.save else ""
        print(f"best dev accuracy {best:.2%} after epoch {best_epoch}{where}")
    return status


def compare(s: Settings, train: list[Sentence]) -> int:
    """The same training twice, in turns, with automatic batching on and off."""
    print("both runs start from the same weights and see the same minibatches; dropout is off")
    runs = {}
    for autobatch in (True, False):
        tagger = Tagger.for_data(replace(s, autobatch=autobatch, dropout=0.0), train)
        runs["on " if autobatch else "off"] = tagger, dy.AdamTrainer(tagger.model, s.learning_rate)
    seconds = dict.fromkeys(runs, 0.0)
    losses: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(1, min(s.epochs, 3) + 1):
        for name, (tagger, trainer) in runs.items():
            epoch = run_epoch(tagger, trainer, train, f"{name} {number}")
            seconds[name] += epoch.seconds
            losses[name] += epoch.losses
            print(
                f"autobatch {name}  epoch {number}  loss {epoch.loss:.6f}  "
                f"{len(train) / epoch.seconds:,.0f} sentences/s  mean batch {epoch.mean_batch:.1f}",
                flush=True,
            )
    on, off = losses.values()
    differences = [abs(a - b) / abs(b) for a, b in zip(on, off, strict=True)]
    print(
        f"automatic batching is {seconds['off'] / seconds['on ']:.2f} times as fast; losses differ by "
        f"{differences[0]:.1e} in the first minibatch, by {max(differences):.1e} at most (relative)"
    )
    return 0


# --- 5. Tagging ---------------------------------------------------------------------------------------------


def read_lines(path: str) -> Iterator[list[list[str]]]:
    """Groups of tokenised sentences: 64 at a time, or one by one from somebody who types."""
    with open(0 if path == "-" else path, encoding="utf-8") as lines:
        size = 1 if lines.isatty() else 64
        while group := [line.split() for line in islice(lines, size)]:
            yield group


def tag_text(s: Settings) -> int:
    tagger = Tagger.load(s.load)
    for group in read_lines(s.tag):
        sentences = [forms for forms in group if forms]
        tags = iter(tagger.predict(sentences) if sentences else [])
        for forms in group:
            pairs = list(zip(forms, next(tags), strict=True)) if forms else []
            if s.columns:
                print("".join(f"{word}\t{tag}\n" for word, tag in pairs))
            else:
                print(" ".join(f"{word}_{tag}" for word, tag in pairs))
        sys.stdout.flush()
    return 0


def main(argv: list[str] | None = None) -> int:
    s = parse_settings(argv)
    try:
        dy.configure(threads=s.threads)
        if s.load:
            return tag_text(s)
        train, dev = load_data(s)
        return compare(s, train) if s.compare else train_tagger(s, train, dev)
    except (DataError, OSError, UnicodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
