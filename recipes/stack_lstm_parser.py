#!/usr/bin/env python
"""A dependency parser that reads from left to right and decides at each step: shift the next word, or join two words.

    python recipes/stack_lstm_parser.py                                # the included treebank
    python recipes/stack_lstm_parser.py --system arc-hybrid --oracle dynamic
    python recipes/stack_lstm_parser.py --encoder 1 --beam 4           # a BiLSTM reads first; a wider search
    python recipes/stack_lstm_parser.py --train a.conllu --dev b.conllu --save parser.model
    python recipes/stack_lstm_parser.py --nltk dependency_treebank
    python recipes/stack_lstm_parser.py predict --load parser.model tagged.conllu    # finds heads and relations anew
    python recipes/stack_lstm_parser.py --compare --batch 64           # automatic batching on and off

Stack LSTMs summarise the stack, the buffer and the actions so far. When two words are joined, a new vector stands for both. The
next step depends on what the network decides, and still the sentences of a mini-batch are parsed together, step by step. Words
come with their gold tags. Crossing arcs in training trees are lifted until none is left; evaluation uses the original trees.
Attachment scores count all tokens, punctuation included, and full relations (nsubj:pass is not nsubj).

Dyer, Ballesteros, Ling, Matthews, Smith: Transition-based dependency parsing with stack long short-term memory (2015).
Ballesteros, Goldberg, Dyer, Smith: Training with exploration improves a greedy stack LSTM parser (2016).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import LEFT, SHIFT, Actions, ArcHybrid, ArcStandard, Configuration, StackLSTM, beam_search
from dynet_lite.text import DataError, Sentence, minibatches, projective_heads

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.ParserSettings):
    system: str = option("arc-standard", "the transition system", choices=("arc-standard", "arc-hybrid"))
    oracle: str = option(
        "static", "dynamic (arc-hybrid only): also learn what to do after a mistake", choices=("static", "dynamic")
    )
    explore: float = option(
        0.1, "dynamic: fraction of training steps that follow the model instead of the right answer"
    )

    item_dim: int = option(100, "size of the vector of a word, or of joined words, on the stack and in the buffer")
    action_dim: int = option(30, "size of the vector of an action with its relation")
    hidden: int = option(150, "size of the LSTMs and of the layer that decides")
    layers: int = option(1, "layers of the LSTMs")
    encoder: int = option(0, "layers of a BiLSTM that reads the sentence before it is parsed; 0: words are read alone")
    tops: int = option(
        0,
        "items at the top of the stack that the decision sees by themselves, with the first of the buffer; 0: only the LSTMs' outputs",
    )
    beam: int = option(1, "parses of a sentence that the search keeps at a time")

    epochs: int = option(15)
    learning_rate: float = option(3e-3)
    dropout: float = option(0.3, "fraction of the word vectors and of the last layer to drop in training")


class Parse:
    """A sentence on its way: the configuration, and the networks that sum it up."""

    def __init__(
        self, sentence: Sentence, c: Configuration, stack: StackLSTM, buffer: StackLSTM, history: dy.RNNState
    ) -> None:
        self.sentence, self.configuration = sentence, c
        self.stack, self.buffer, self.history = stack, buffer, history
        self.relations = [""] * len(sentence)

    def copy(self) -> Parse:
        """One that goes on by itself, for a search that tries several actions."""
        new = Parse(self.sentence, self.configuration.copy(), self.stack.copy(), self.buffer.copy(), self.history)
        new.relations = self.relations[:]
        return new


class StackParser(harness.ParserRecipe[Settings]):
    predict_options = evaluate_options = ("beam",)
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "tag_dim": 4, "item_dim": 6, "action_dim": 4, "hidden": 6}

    # --- 2. Model (data, vectors of words and tags, scores: harness.ParserRecipe) ----------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.system = ArcStandard() if s.system == "arc-standard" else ArcHybrid()
        if s.oracle == "dynamic" and not self.system.dynamic:
            raise DataError("--oracle dynamic goes with --system arc-hybrid")
        self.actions = Actions(self.relations.words())
        self.moves = np.array([self.actions.move(i) for i in range(len(self.actions))])
        self.gold_moves = lru_cache(None)(lambda heads: self.system.moves(projective_heads(heads)))
        add = self.model.add_parameters
        self.encoder = None
        width = self.width
        if s.encoder:
            width = 2 * s.hidden
            self.encoder = dy.BiRNNBuilder(s.encoder, self.width, width, self.model, dy.LSTMBuilder, name="encoder")
        # A word with its tag; the root, and what lies below everything on a stack.
        self.W_word, self.b_word = add((s.item_dim, width), name="W_word"), add(s.item_dim, init=0, name="b_word")
        self.root, self.bottom = (add(s.item_dim, init="uniform", scale=0.1, name=name) for name in ("root", "bottom"))
        # Actions; an action that joins two items; what has been done so far.
        shape = len(self.actions), s.action_dim
        self.action_vectors = self.model.add_lookup_parameters(shape, init="uniform", scale=0.1, name="actions")
        self.no_action = add(s.action_dim, init="uniform", scale=0.1, name="no_action")
        self.W_join = add((s.item_dim, 2 * s.item_dim + s.action_dim), name="W_join")
        self.b_join = add(s.item_dim, init=0, name="b_join")
        sizes = {"stack": s.item_dim, "buffer": s.item_dim, "history": s.action_dim}
        self.stack, self.buffer, self.history = (
            dy.LSTMBuilder(s.layers, n, s.hidden, self.model, name=name) for name, n in sizes.items()
        )
        # The decision.
        seen = s.tops + 1 if s.tops else 0
        self.W_hidden = add((s.hidden, 3 * s.hidden + seen * s.item_dim), name="W_hidden")
        self.b_hidden = add(s.hidden, init=0, name="b_hidden")
        self.W_action = add((len(self.actions), s.hidden), init="fan-in", name="W_action")
        self.b_action = add(len(self.actions), init=0, name="b_action")

    @property
    def drop(self) -> float:
        return self.settings.dropout if self.training else 0.0

    def encoded(self, words: Any) -> Any:
        """The words as they stand in the sentence, where there is a BiLSTM to read it."""
        if self.encoder is None:
            return words
        self.encoder.set_dropout(self.drop)
        return self.encoder.transduce(words)

    @dy.cell
    def item(self, x: dy.Expression) -> dy.Expression:
        """What the stack and the buffer hold of a word with its tag."""
        return dy.rectify(dy.affine_transform([self.b_word, self.W_word, x]))

    @dy.cell
    def join(self, head: dy.Expression, dependent: dy.Expression, action: dy.Expression) -> dy.Expression:
        """What they hold of two items that an action joins."""
        return dy.tanh(dy.affine_transform([self.b_join, self.W_join, dy.concatenate([head, dependent, action])]))

    def start(self, sentence: Sentence) -> Parse:
        items = [self.item(x) for x in self.encoded(self.inputs(sentence, self.drop))]
        stack, buffer = (StackLSTM(lstm.initial_state().add_input(self.bottom)) for lstm in (self.stack, self.buffer))
        (stack if self.system.name == "arc-standard" else buffer).push(self.root)
        buffer.extend(reversed(items))
        history = self.history.initial_state().add_input(self.no_action)
        return Parse(sentence, self.system.start(len(sentence)), stack, buffer, history)

    def scores(self, p: Parse) -> dy.Expression:
        """{actions}: how much the network would like each to be the next."""
        return self.decide(p.stack.output(), p.buffer.output(), p.history.output(), *self.seen(p))

    def seen(self, p: Parse) -> list[dy.Expression]:
        """The items on top of the stack, and the first of the buffer; where there is none, what lies below everything."""
        n = self.settings.tops
        if not n:
            return []
        tops = [p.stack[-1 - i] if i < len(p.stack) else self.bottom for i in range(n)]
        return [*tops, p.buffer[-1] if len(p.buffer) else self.bottom]

    def decide(self, *outputs: dy.Expression) -> dy.Expression:
        x = dy.concatenate(outputs)
        hidden = dy.rectify(dy.affine_transform([self.b_hidden, self.W_hidden, x]))
        return dy.affine_transform([self.b_action, self.W_action, dy.dropout(hidden, self.drop)])

    def advance(self, p: Parse, action: int) -> None:
        """Takes an action: in the configuration, and with the vectors."""
        move, c, vector = self.actions.move(action), p.configuration, self.action_vectors[action]
        if move == SHIFT:
            p.stack.push(p.buffer.pop())
        else:
            p.relations[self.system.arc(c, move)[1] - 1] = self.actions.relation(action)
            last = p.stack.pop()
            if move == LEFT and self.system.name == "arc-hybrid":
                head, dependent, place = p.buffer.pop(), last, p.buffer
            elif move == LEFT:
                head, dependent, place = last, p.stack.pop(), p.stack
            else:
                head, dependent, place = p.stack.pop(), last, p.stack
            place.push(self.join(head, dependent, vector))
        self.system.apply(c, move)
        p.history = p.history.add_input(vector)

    def networks(self) -> dict[str, Any]:
        """The items of a sentence, with what a parse begins with and the vectors of the actions; a step of each LSTM; two items
        joined; the decision. Which moves there are, and what they do to the stack and the buffer, is up to the program."""

        def items(tags: Any, **ids: Any) -> Any:
            words = self.reader.symbolic(**ids).joined(onnx.lookup(self.tag_vectors, tags))
            return (
                self.encoded(words).map(self.item),
                self.root,
                self.bottom,
                self.no_action,
                self.action_vectors.expr(),
            )

        s = self.settings
        item, action, h = onnx.Input((s.item_dim,)), onnx.Input((s.action_dim,)), onnx.Input((s.hidden,))
        tops = [f"top{i + 1}" for i in range(s.tops)]
        seen = dict.fromkeys([*tops, "first"] if tops else [], item)
        outputs = ["items", "root", "bottom", "no_action", "actions"]
        return {
            "items": (items, {**self.reader.inputs(), "tags": onnx.Ids("n")}, outputs),
            "stack": onnx.step(self.stack),
            "buffer": onnx.step(self.buffer),
            "history": onnx.step(self.history),
            "join": (self.join, {"head": item, "dependent": item, "action": action}, ["item"]),
            "decide": (
                lambda **x: self.decide(*x.values()),
                {**dict.fromkeys(("stack", "buffer", "history"), h), **seen},
                ["scores"],
            ),
        }

    def batches(self, train: Sequence[Sentence]) -> list[list[Sentence]]:
        """With the dynamic oracle, sentences of like length together: they are parsed in lock-step."""
        key = len if self.settings.oracle == "dynamic" else None
        return list(minibatches(train, self.settings.batch, seed=self.random, key=key))

    def loss(self, batch: list[Sentence]) -> dy.Expression:
        """Mean over the moves of the mini-batch of -log p(move)."""
        losses = self.explored(batch) if self.settings.oracle == "dynamic" else self.followed(batch)
        return dy.esum(losses) * (1 / len(losses))

    def followed(self, batch: list[Sentence]) -> list[dy.Expression]:
        """The losses on the way to the gold trees."""
        losses = []
        for sentence in batch:
            p = self.start(sentence)
            for move in self.gold_moves(tuple(sentence.heads)):
                action = self.gold_action(p, move)
                losses.append(dy.pickneglogsoftmax(self.scores(p), action))
                self.advance(p, action)
        return losses

    def gold_action(self, p: Parse, move: int) -> int:
        """The move with the gold relation of the word that gets a head."""
        if move == SHIFT:
            return self.actions.number(SHIFT, "")
        _, dependent = self.system.arc(p.configuration, move)
        return self.actions.number(move, p.sentence.deprels[dependent - 1])

    def explored(self, batch: list[Sentence]) -> list[dy.Expression]:
        """The losses where the model goes, which now and then is wrong; the oracle tells what is best there."""
        losses, s = [], self.settings
        todo = [(self.start(x), self.system.oracle(projective_heads(x.heads))) for x in batch]
        while todo:
            scores = [self.scores(p) for p, _ in todo]
            for (p, oracle), x, values in zip(todo, scores, dy.npvalues(scores), strict=True):  # all sentences at once
                good = [self.gold_action(p, move) for move in oracle.best(p.configuration)]
                action = max(good, key=values.__getitem__)
                losses.append(dy.pickneglogsoftmax(x, action))
                self.advance(p, self.best_action(p, values) if self.random.random() < s.explore else action)
            todo = [(p, oracle) for p, oracle in todo if self.system.legal(p.configuration)]
        return losses

    # --- 3. Parsing ---------------------------------------------------------------------------------------------

    def legal(self, p: Parse) -> np.ndarray:
        """The actions that may be next."""
        moves = np.zeros(3, dtype=bool)
        moves[self.system.legal(p.configuration)] = True
        return np.flatnonzero(moves[self.moves])

    def best_action(self, p: Parse, values: np.ndarray) -> int:
        """The legal action with the highest score; a legal one also where a network that fails says NaN."""
        legal = self.legal(p)
        return int(legal[values[legal].argmax()])

    def parse(self, batch: list[Sentence]) -> list[Sentence]:
        """The sentences with heads and relations as the model chooses them, step by step; their own are not looked at."""
        dy.renew_cg()
        todo = parses = [self.start(sentence) for sentence in batch]
        if self.settings.beam > 1:
            todo, parses = [], self.searched(parses)
        while todo:
            values = dy.npvalues([self.scores(p) for p in todo])  # all sentences at once
            for p, x in zip(todo, values, strict=True):
                self.advance(p, self.best_action(p, x))
            todo = [p for p in todo if self.system.legal(p.configuration)]
        return [replace(p.sentence, heads=p.configuration.heads[1:], deprels=p.relations) for p in parses]

    def searched(self, starts: list[Parse]) -> list[Parse]:
        """The parses whose actions together are the most probable, as far as a beam search finds them."""

        def scores(parses: list[Parse]) -> Iterator[np.ndarray]:
            found = dy.npvalues([dy.log_softmax(self.scores(p)) for p in parses])  # all of all sentences at once
            for p, x in zip(parses, found, strict=True):
                row, legal = np.full(len(x), -np.inf), self.legal(p)
                row[legal] = np.nan_to_num(x[legal])
                yield row

        def advance(p: Parse, action: int) -> Parse:
            new = p.copy()
            self.advance(new, action)
            return new

        found = beam_search(
            starts, scores, advance, lambda p: not self.system.legal(p.configuration), width=self.settings.beam,
            limit=[2 * len(p.sentence) for p in starts],
        )  # fmt: skip
        return [best.state for best, *_ in found]


if __name__ == "__main__":
    sys.exit(harness.main(StackParser, Settings, __doc__))
