#!/usr/bin/env python
"""A dependency parser that reads from left to right and decides at each step: shift the next word, or join two words.

    python recipes/stack_lstm_parser.py                                # the treebank that comes with the project
    python recipes/stack_lstm_parser.py --system arc-hybrid --oracle dynamic
    python recipes/stack_lstm_parser.py --train a.conllu --dev b.conllu --save parser.model
    python recipes/stack_lstm_parser.py --nltk dependency_treebank
    python recipes/stack_lstm_parser.py predict --load parser.model tagged.conllu    # heads and relations anew
    python recipes/stack_lstm_parser.py --compare --batch 64           # automatic batching on and off

Stack LSTMs sum up the stack, the buffer and the moves so far; when two words are joined, a new vector stands for both. What
happens next depends on what the network says, and yet the sentences of a minibatch are parsed together, step by step. Words
come with their gold tags. Crossing arcs of training trees are lifted until none is left; the trees to score against stay as
they are. Attachment scores count all tokens, with punctuation, and whole relations (nsubj:pass is not nsubj).

Dyer, Ballesteros, Ling, Matthews, Smith: Transition-based dependency parsing with stack long short-term memory (2015).
Ballesteros, Goldberg, Dyer, Smith: Training with exploration improves a greedy stack LSTM parser (2016).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

import dynet_lite as dy
from dynet_lite import harness
from dynet_lite.harness import option
from dynet_lite.nn import Actions, ArcHybrid, ArcStandard, StackLSTM, WordReader
from dynet_lite.nn.transitions import LEFT, SHIFT
from dynet_lite.text import (
    DataError,
    Sentence,
    Vocab,
    attachment_scores,
    format_conllu,
    load_nltk_dependencies,
    minibatches,
    parse_conllu,
    projective_heads,
    read_dependencies,
    read_vectors,
)

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    system: str = option("arc-standard", "the moves there are", choices=("arc-standard", "arc-hybrid"))
    oracle: str = option("static", "dynamic (arc-hybrid): also learn what to do after mistakes", choices=("static", "dynamic"))
    explore: float = option(0.1, "dynamic: how often training goes where the model wants and not where it should")

    word_dim: int = option(100, "size of a word vector")
    tag_dim: int = option(30, "size of the vector of a tag")
    char_dim: int = option(25, "size of a character vector")
    char_hidden: int = option(0, "size of the character LSTM, each direction; 0: words are not read letter by letter")
    vectors: str = option("", "begin with the word vectors of this file (text, as of word2vec or GloVe)")
    item_dim: int = option(100, "size of the vector of a word, or of joined words, on the stack and in the buffer")
    action_dim: int = option(30, "size of the vector of a move with its relation")
    hidden: int = option(100, "size of the LSTMs and of the layer that decides")
    layers: int = option(2, "layers of the LSTMs")

    epochs: int = option(15)
    learning_rate: float = option(2e-3)
    dropout: float = option(0.3, "share of the word vectors and of the last layer to drop in training")
    word_dropout: float = option(0.25, "a: a word seen n times is hidden with probability a / (a + n)")


class Parse:
    """A sentence on its way: the configuration, and the networks that sum it up."""

    def __init__(self, sentence: Sentence, c, stack: StackLSTM, buffer: StackLSTM, history) -> None:
        self.sentence, self.configuration = sentence, c
        self.stack, self.buffer, self.history = stack, buffer, history
        self.relations = [""] * len(sentence)


class Parser(harness.Recipe[Settings, Sentence]):
    score_name = "LAS"
    blocks = True
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "tag_dim": 4, "item_dim": 6, "action_dim": 4, "hidden": 6}

    # --- 2. Data --------------------------------------------------------------------------------------------

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[Sentence]:
        def detail(train):
            return f"{sum(map(len, train)):,} words, {len({r for x in train for r in x.deprels})} relations"

        return harness.corpus(s, read_dependencies, home=__file__, nltk=load_nltk_dependencies, detail=detail)

    @classmethod
    def build(cls, s: Settings, train: list[Sentence]) -> dict:
        known = read_vectors(s.vectors) if s.vectors else None
        words = WordReader.build((sentence.forms for sentence in train), known)
        tags = Vocab.from_words(tag for sentence in train for tag in sentence.upos)
        relations = Vocab.from_words((r for sentence in train for r in sentence.deprels), unk=None)
        return {"tags": tags.to_json(), "relations": relations.words(), **words}

    # --- 3. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict) -> None:
        super().__init__(s, parts)
        self.system = ArcStandard() if s.system == "arc-standard" else ArcHybrid()
        if s.oracle == "dynamic" and not self.system.dynamic:
            raise DataError("--oracle dynamic goes with --system arc-hybrid")
        self.actions = Actions(parts["relations"])
        self.moves = np.array([self.actions.move(i) for i in range(len(self.actions))])
        self.gold_moves = lru_cache(None)(lambda heads: self.system.moves(projective_heads(heads)))
        self.tags = Vocab.from_json(parts["tags"])
        model = self.model
        self.reader = WordReader(model, parts, dim=s.word_dim, char_dim=s.char_dim, char_hidden=s.char_hidden,
                                 hide=s.word_dropout, rng=self.random)  # fmt: skip
        self.tag_vectors = model.add_lookup_parameters((len(self.tags), s.tag_dim), init="uniform", scale=0.1)
        self.action_vectors = model.add_lookup_parameters((len(self.actions), s.action_dim), init="uniform", scale=0.1)
        self.W_word = model.add_parameters((s.item_dim, self.reader.width))
        self.W_tag = model.add_parameters((s.item_dim, s.tag_dim))
        self.b_word = model.add_parameters(s.item_dim, init=0)
        self.root = model.add_parameters(s.item_dim, init="uniform", scale=0.1)
        self.nothing = model.add_parameters(s.item_dim, init="uniform", scale=0.1)
        self.no_action = model.add_parameters(s.action_dim, init="uniform", scale=0.1)
        # The LSTMs of the stack, the buffer and the history.
        self.lstms = [dy.LSTMBuilder(s.layers, n, s.hidden, model) for n in (s.item_dim, s.item_dim, s.action_dim)]
        self.W_head = model.add_parameters((s.item_dim, s.item_dim))
        self.W_dependent = model.add_parameters((s.item_dim, s.item_dim))
        self.W_relation = model.add_parameters((s.item_dim, s.action_dim))
        self.b_joined = model.add_parameters(s.item_dim, init=0)
        self.W_stack, self.W_buffer, self.W_history = (model.add_parameters((s.hidden, s.hidden)) for _ in range(3))
        self.b_hidden = model.add_parameters(s.hidden, init=0)
        self.W_action = model.add_parameters((len(self.actions), s.hidden))
        self.b_action = model.add_parameters(len(self.actions), init=0)

    def begin(self) -> None:
        if self.settings.vectors:
            self.reader.use(read_vectors(self.settings.vectors))

    @property
    def drop(self) -> float:
        return self.settings.dropout if self.training else 0.0

    def start(self, sentence: Sentence) -> Parse:
        words = self.reader(sentence.forms, self.training)
        tags = [self.tag_vectors[i] for i in self.tags.ids(sentence.upos)]
        items = []
        for word, tag in zip(words, tags, strict=True):
            word = dy.dropout(word, self.drop)
            items.append(dy.rectify(dy.affine_transform([self.b_word, self.W_word, word, self.W_tag, tag])))
        stack, buffer = (StackLSTM(lstm.initial_state().add_input(self.nothing)) for lstm in self.lstms[:2])
        if self.system.name == "arc-standard":
            stack.push(self.root)
        else:
            buffer.push(self.root)
        buffer.extend(reversed(items))
        history = self.lstms[2].initial_state().add_input(self.no_action)
        return Parse(sentence, self.system.start(len(sentence)), stack, buffer, history)

    def scores(self, p: Parse) -> dy.Expression:
        """{actions}: how much the network would like each to be the next."""
        parts = [self.b_hidden, self.W_stack, p.stack.output(), self.W_buffer, p.buffer.output()]
        hidden = dy.rectify(dy.affine_transform([*parts, self.W_history, p.history.output()]))
        return dy.affine_transform([self.b_action, self.W_action, dy.dropout(hidden, self.drop)])

    def advance(self, p: Parse, action: int) -> None:
        """Makes a move: in the configuration, and with the vectors."""
        move, c, vector = self.actions.move(action), p.configuration, self.action_vectors[action]
        if move == SHIFT:
            p.stack.push(p.buffer.pop())
        else:
            _, dependent = self.system.arc(c, move)
            p.relations[dependent - 1] = self.actions.relation(action)
            last = p.stack.pop()
            heads = p.buffer if move == LEFT and self.system.name == "arc-hybrid" else p.stack
            pair = heads.pop(), last
            head, below = pair if heads is p.buffer or move != LEFT else pair[::-1]
            joined = [self.b_joined, self.W_head, head, self.W_dependent, below, self.W_relation, vector]
            heads.push(dy.tanh(dy.affine_transform(joined)))
        self.system.apply(c, move)
        p.history = p.history.add_input(vector)

    def batches(self, train: list[Sentence]) -> list[list[Sentence]]:
        """With the dynamic oracle, sentences of like length together: they are parsed in lock-step."""
        key = len if self.settings.oracle == "dynamic" else None
        return list(minibatches(train, self.settings.batch, seed=self.random, key=key))

    def loss(self, batch: list[Sentence]) -> dy.Expression:
        """Mean over the moves of the minibatch of -log p(move)."""
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

    # --- 4. Use ---------------------------------------------------------------------------------------------

    def best_action(self, p: Parse, values: np.ndarray) -> int:
        """The legal action with the highest score."""
        penalty = np.full(3, -np.inf)
        penalty[self.system.legal(p.configuration)] = 0
        return int((values + penalty[self.moves]).argmax())

    def parse(self, batch: list[Sentence]) -> list[Sentence]:
        """The sentences with heads and relations as the model chooses them, step by step; their own are not looked at."""
        dy.renew_cg()
        todo = parses = [self.start(sentence) for sentence in batch]
        while todo:
            values = dy.npvalues([self.scores(p) for p in todo])  # all sentences at once
            for p, x in zip(todo, values, strict=True):
                self.advance(p, self.best_action(p, x))
            todo = [p for p in todo if self.system.legal(p.configuration)]
        return [replace(p.sentence, heads=p.configuration.heads[1:], deprels=p.relations) for p in parses]

    def evaluate(self, examples: list[Sentence]) -> harness.Score:
        parsed = [tree for batch in minibatches(examples, 64) for tree in self.parse(batch)]
        score = attachment_scores(examples, parsed)
        return harness.Score(score.las, str(score), uas=score.uas, words=score.words)

    def predict(self, blocks: list[str]) -> Iterator[str]:
        """Each block is a sentence in CoNLL-U."""
        sentences = [x for block in blocks for x in parse_conllu(block.split("\n"), "input")]
        for sentence in self.parse(sentences) if sentences else []:
            yield "\n".join(format_conllu(sentence))


if __name__ == "__main__":
    sys.exit(harness.main(Parser, Settings, __doc__))
