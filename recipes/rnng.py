#!/usr/bin/env python
"""A recurrent neural network grammar: a parser that builds the tree of a sentence and reads it while it grows.

    python recipes/rnng.py                                     # the included treebank
    python recipes/rnng.py --train a.ptb --dev b.ptb           # trees in brackets, one or more lines each
    python recipes/rnng.py --nltk treebank                     # trees of the Penn Treebank from NLTK
    python recipes/rnng.py --nltk treebank --tag-dim 30        # reads the tags of the words, too
    python recipes/rnng.py --oracle dynamic                    # learns what to do after a mistake, too
    python recipes/rnng.py predict --load rnng.model -         # parses the sentences you type; --beam 5
    python recipes/rnng.py --compare --batch 64                # automatic batching on and off

The parser opens phrases, takes words and closes phrases. A closed phrase becomes one vector, made of its parts, and every
decision changes what is computed next. So no two sentences have the same network, and in parsing it is not known beforehand. The
program follows one sentence; dynet_lite runs operations of the same kind together, across sentences.

Dyer, Kuncoro, Ballesteros, Smith: Recurrent neural network grammars (2016), the discriminative model. Here a BiLSTM reads
the words first, and taking a word also gives it its tag, unless tags come with the words (--tag-dim).
Fried, Klein: Policy gradient as a surrogate for dynamic oracles in constituency parsing (2018), for --oracle dynamic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import CLOSE, Progress, TopDown, TopDownOracle, WordReader, beam_search
from dynet_lite.text import (
    BracketScore,
    EvalbScore,
    RightBranching,
    Tree,
    base_labels,
    feature_size,
    load_nltk_trees,
    minibatches,
    read_trees,
    split_tagged,
    split_words,
)

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    noise = ("dropout", "lstm_dropout")

    word_dim: int = option(100, "size of a word vector")
    char_dim: int = option(20, "size of a letter vector")
    char_hidden: int = option(24, "size of the letter LSTM, each direction; 0: no letters")
    tag_dim: int = option(0, "size of a vector for the tag that comes with a word; 0: the parser finds the tags")
    hidden: int = option(128, "size of the LSTMs over words, stack, actions and the parts of a phrase")
    layers: int = option(1, "layers of the LSTM over words")
    word_dropout: float = option(
        1.0, "a number a: in training, a word seen n times becomes the unknown word with probability a / (a + n)"
    )
    features: tuple[str, ...] = option(
        (), "a file with numbers for each word (.npz, .safetensors), for each file of --train, --dev, --test"
    )
    spans: bool = option(
        False,
        "the decision also sees the top of the stack, and of the phrase that is open the label and the words at its ends",
    )
    oracle: str = option("static", "dynamic: also learn what to do after a mistake", choices=("static", "dynamic"))
    explore: float = option(
        0.2,
        "dynamic: fraction of training steps that are drawn from what the model believes instead of the right action",
    )
    beam: int = option(1, "parses that beam search keeps")

    epochs: int = option(40)
    patience: int = option(0)
    batch: int = option(8)
    learning_rate: float = option(2e-3)
    schedule: str = option("linear")
    dropout: float = option(0.4, "fraction of the words' vectors and of the summary of a state to drop in training")
    lstm_dropout: float = option(
        0.0, "fraction of the inputs and states of the word LSTM to drop, the same at every word (variational dropout)"
    )


# --- 2. Data and model --------------------------------------------------------------------------------------


SEEN = (
    "top",
    "label",
    "before",
    "first",
    "last",
)  # what --spans adds to the decision; before: the word before the phrase


UNKNOWN = 0  # the tag of a word, where training had none like it


class Item(NamedTuple):
    """Something on the stack: a word, a whole phrase, or a phrase that is open; and what lies below it."""

    vector: dy.Expression
    label: int | None  # action that opened the phrase
    summary: Any  # LSTM state: all of the stack up to here
    below: Any  # another Item; None at the bottom
    phrase: tuple[int, int] | None = (
        None  # the innermost phrase that is open: the action that opened it, its first word
    )


class State(NamedTuple):
    """A tree on its way. States never change: the beam search lets several grow out of one."""

    words: list[dy.Expression]
    progress: Progress
    stack: Item
    history: Any  # LSTM state: the actions so far
    scores: dy.Expression  # of the next action
    tags: Sequence[int]  # of the words: the actions that take them; UNKNOWN: not known. Empty: not read


class Grammar(harness.Recipe[Settings, Tree]):
    """LSTMs over the stack, the words to come and the actions -> a score per action."""

    shares_evaluation = True
    score_name = "bracket F1"
    predict_options = evaluate_options = ("beam",)
    smoke = {"epochs": 1, "batch": 4, "word_dim": 6, "char_dim": 4, "char_hidden": 4, "hidden": 8}

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[Tree]:
        def trees(read: Callable[[str], list[Tree]]) -> Callable[[str], list[Tree]]:
            def whole(name: str) -> list[Tree]:
                found = (tree.without_empty() for tree in read(name))  # without traces
                return [base_labels(tree) for tree in found if tree is not None and tree.children]

            return whole

        def detail(train: Sequence[Tree]) -> str:
            actions = TopDown.of_trees(train)
            return f"{sum(map(len, train)):,} words, {len(actions.labels)} labels, {len(actions.tags)} tags"

        read, nltk = trees(read_trees), trees(load_nltk_trees)
        return harness.corpus(s, read, home=__file__, default="ptb", nltk=nltk, detail=detail)

    @classmethod
    def build(cls, s: Settings, train: Sequence[Tree]) -> dict[str, Any]:
        actions = TopDown.of_trees(train)
        words = WordReader.build((tree.words() for tree in train), features=feature_size(train))
        return {"labels": actions.labels, "tags": actions.tags, **words}

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.actions = TopDown(parts["labels"], parts["tags"])
        model, h, n = self.model, s.hidden, len(self.actions)
        self.read = WordReader(model, parts, dim=s.word_dim, char_dim=s.char_dim, char_hidden=s.char_hidden,
                               hide=s.word_dropout, rng=self.random)  # fmt: skip
        add = model.add_parameters
        width = self.read.width + s.tag_dim
        self.reader = dy.BiRNNBuilder(s.layers, width, h, model, dy.LSTMBuilder, name="encoder")
        if s.tag_dim:
            shape = n, s.tag_dim  # a row for each action, of which those that take words are used, and UNKNOWN
            self.tag_vectors = model.add_lookup_parameters(shape, init="uniform", scale=0.1, name="tags")
        self.end = add(h, name="end")
        self.vectors = model.add_lookup_parameters((n, h), init="fan-in", name="actions")  # and of open phrases
        self.stack, self.history = (dy.LSTMBuilder(1, h, h, model, name=name) for name in ("stack", "history"))
        self.forward, self.backward = (dy.LSTMBuilder(1, h, h, model, name=name) for name in ("forward", "backward"))
        self.Wf, self.Wb, self.bc = add((h, h), name="Wf"), add((h, h), name="Wb"), add(h, name="bc")
        self.Ws, self.Ww, self.Wh = (add((h, h), name=name) for name in ("Ws", "Ww", "Wh"))
        self.Wseen = [add((h, h), name=f"W-{name}") for name in SEEN] if s.spans else []
        self.b1 = add(h, init=0, name="b1")
        self.W2, self.b2 = add((n, h), init="fan-in", name="W2"), add(n, init=0, name="b2")

    def gold(self, example: Tree) -> list[str]:
        return [node.label + "(" if node.children else node.label for node in example.nodes()]

    def known_labels(self) -> list[str]:
        return [self.actions.name(i) for i in range(1, len(self.actions))]

    def tags_of(self, tree: Tree) -> list[str]:
        """The tags of a tree's words, if the model reads them."""
        return [node.label for node in tree.nodes() if not node.children] if self.settings.tag_dim else []

    def taking(self, tags: Sequence[str]) -> list[int]:
        """The actions that take words with these tags."""
        return [self.actions.takes(tag, UNKNOWN) for tag in tags]

    def start(self, words: list[str], tags: Sequence[str] = (), features: np.ndarray | None = None) -> State:
        """Before the first action: all words are to come, nothing is on the stack."""
        drop = self.settings.dropout if self.training else 0.0
        self.reader.set_dropout(self.settings.lstm_dropout if self.training else 0.0)
        given = self.taking(tags)
        read = self.read(words, self.training, features)
        if given:
            rows = self.tag_vectors.rows(given)
            read = [dy.concatenate([x, row]) for x, row in zip(read, rows, strict=True)]
        vectors = [dy.dropout(x, drop) for x in self.reader.transduce([dy.dropout(x, drop) for x in read])]
        bottom = Item(self.end, None, self.stack.initial_state().add_input(self.end), None)
        history = self.history.initial_state().add_input(self.end)
        return self.scored(vectors, Progress(len(words)), bottom, history, given)

    def step(self, now: State, action: int) -> State:
        """What an action makes of the stack."""
        words, progress, stack, history, _, tags = now
        if action == CLOSE:
            parts = []
            while stack.label is None:
                parts.append(stack.vector)
                stack = stack.below
            label, stack = stack.label, stack.below
            stack = self.push(stack, self.composed(label, parts[::-1]))
        elif action in self.actions.opening:
            stack = self.push(stack, self.vectors[action], action, len(words) - progress.left)
        else:
            stack = self.push(stack, words[-progress.left] + self.vectors[action])
        history = history.add_input(self.vectors[action])
        return self.scored(words, self.actions.after(progress, action), stack, history, tags)

    def push(self, stack: Item, vector: dy.Expression, label: int | None = None, first: int = 0) -> Item:
        phrase = stack.phrase if label is None else (label, first)
        return Item(vector, label, stack.summary.add_input(vector), stack, phrase)

    def composed(self, label: int, parts: list[dy.Expression]) -> dy.Expression:
        """A phrase as one vector: its label and its parts, read from both ends."""
        name = self.vectors[label]
        there = self.forward.initial_state().transduce([name, *parts])[-1]
        back = self.backward.initial_state().transduce([name, *parts[::-1]])[-1]
        return self.both(there, back)

    def both(self, there: dy.Expression, back: dy.Expression) -> dy.Expression:
        return dy.tanh(dy.affine_transform([self.bc, self.Wf, there, self.Wb, back]))

    def scored(
        self, words: list[dy.Expression], progress: Progress, stack: Item, history: Any, tags: Sequence[int]
    ) -> State:
        """The state, with the scores of all actions, legal or not."""
        word = words[-progress.left] if progress.left else self.end
        seen = self.seen(words, len(words) - progress.left, stack) if self.settings.spans else []
        scores = self.decide(stack.summary.output(), word, history.output(), *seen)
        return State(words, progress, stack, history, scores, tags)

    def seen(self, words: list[dy.Expression], place: int, stack: Item) -> list[dy.Expression]:
        """The vectors of SEEN, after `place` words; the end mark where there is none. Cross and Huang (2016) tell what they say
        of a phrase."""
        if stack.phrase is None:
            return [stack.vector, *[self.end] * 4]
        label, first = stack.phrase
        at = [words[i] if 0 <= i < len(words) else self.end for i in (first - 1, first, place - 1)]
        return [stack.vector, self.vectors[label], *at]

    def decide(
        self, stack: dy.Expression, word: dy.Expression, history: dy.Expression, *more: dy.Expression
    ) -> dy.Expression:
        seen = [self.b1, self.Ws, stack, self.Ww, word, self.Wh, history]
        seen += [x for pair in zip(self.Wseen, more, strict=True) for x in pair]
        hidden = dy.dropout(dy.tanh(dy.affine_transform(seen)), self.settings.dropout if self.training else 0.0)
        return dy.affine_transform([self.b2, self.W2, hidden])

    def networks(self) -> dict[str, Any]:
        """The words of a sentence, with the end mark and the vectors of the actions; a step of each LSTM; a phrase from its label
        and its parts; the decision. Which actions there are, and what they do to the stack, is up to the program."""

        tagged = {"tags": onnx.Ids("n")} if self.settings.tag_dim else {}

        def words(tags: Any = None, **ids: Any) -> Any:
            read = self.read.symbolic(**ids)
            read = read.joined(onnx.lookup(self.tag_vectors, tags)) if tagged else read
            return self.reader.transduce(read), self.end, self.vectors.expr()

        def phrase(label: Any, parts: Any) -> Any:
            there = self.forward.initial_state().transduce(parts.begun(label))[-1]
            return self.both(there, self.backward.initial_state().transduce(parts[::-1].begun(label))[-1])

        self.reader.disable_dropout()
        h = onnx.Input((self.settings.hidden,))
        return {
            "words": (words, {**self.read.inputs(), **tagged}, ["vectors", "end", "actions"]),
            "stack": onnx.step(self.stack),
            "history": onnx.step(self.history),
            "phrase": (phrase, {"label": h, "parts": onnx.Input((self.settings.hidden,), "m")}, ["item"]),
            "decide": (
                lambda **x: self.decide(*x.values()),
                dict.fromkeys(("stack", "word", "history", *(SEEN if self.Wseen else ())), h),
                ["scores"],
            ),
        }

    def loss(self, batch: list[Tree]) -> dy.Expression:
        """Mean over the actions of -log p(action | those before it, words)."""
        losses = self.explored(batch) if self.settings.oracle == "dynamic" else self.followed(batch)
        return dy.esum(losses) * (1 / len(losses))

    def begun(self, tree: Tree) -> State:
        return self.start(tree.words(), self.tags_of(tree), tree.features)

    def followed(self, batch: list[Tree]) -> list[dy.Expression]:
        """The losses on the way to the gold trees."""
        losses = []
        for tree in batch:
            now = self.begun(tree)
            for action in self.actions.actions(tree):
                losses.append(dy.pickneglogsoftmax(now.scores, action))
                now = self.step(now, action)
        return losses

    def explored(self, batch: list[Tree]) -> list[dy.Expression]:
        """The losses where the model goes, which now and then is wrong; the oracle tells what is best there.

        The network runs when each tree has come to an action that is drawn: until then nothing needs to be known.
        """
        losses: list[dy.Expression] = []
        todo = [(self.begun(tree), TopDownOracle(self.actions, tree)) for tree in batch]
        while todo:
            led = [(self.led(now, oracle, losses), oracle) for now, oracle in todo]
            todo = []
            draws = [(now, oracle) for now, oracle in led if not oracle.now.finished]
            for (now, oracle), scores in zip(draws, self.legal_scores([now for now, _ in draws]), strict=True):
                losses.append(dy.pickneglogsoftmax(now.scores, oracle.best()))
                action = self.drawn(scores)
                oracle.follow(action)
                if not oracle.now.finished:
                    todo.append((self.step(now, action), oracle))
        return losses

    def led(self, now: State, oracle: TopDownOracle, losses: list[dy.Expression]) -> State:
        """The state after the best actions, up to a draw or the end."""
        while not oracle.now.finished and self.random.random() >= self.settings.explore:
            action = oracle.best()
            losses.append(dy.pickneglogsoftmax(now.scores, action))
            now = self.step(now, action)
            oracle.follow(action)
        return now

    def drawn(self, scores: np.ndarray) -> int:
        """A legal action, each as often as the model believes that it is right."""
        (action,) = self.random.choices(range(len(scores)), np.exp(scores - scores.max()))
        return action

    def weight(self, batch: list[Tree]) -> int:
        return sum(len(self.actions.actions(tree)) for tree in batch)

    # --- 3. Use ---------------------------------------------------------------------------------------------

    def legal_scores(self, states: list[State]) -> Iterator[np.ndarray]:
        """log p of the actions, -inf for those that are not legal. Here everything that was built so far runs."""
        for now, values in zip(states, dy.npvalues([dy.log_softmax(now.scores) for now in states]), strict=True):
            scores = np.full(len(values), -np.inf)
            legal = self.legal(now.progress, now.tags)
            scores[legal] = np.nan_to_num(values[legal])  # a network that fails says NaN
            yield scores

    def legal(self, progress: Progress, tags: Sequence[int]) -> list[int]:
        """The actions that may be next. A word whose tag is known is taken with it."""
        legal, left = self.actions.legal(progress), progress.left
        known = tags[-left] if tags and left else UNKNOWN
        return legal if known == UNKNOWN else [a for a in legal if a == known or a not in self.actions.taking]

    def parse(
        self, sentences: Sequence[list[str]], tags: Sequence[list[str]] = (), features: Sequence[Any] = ()
    ) -> list[Tree]:
        """The trees of some sentences, none of which is empty; all grow at once."""
        dy.renew_cg()
        given = zip(sentences, tags or [[]] * len(sentences), features or [None] * len(sentences), strict=True)
        found = beam_search(
            [self.start(*one) for one in given],
            self.legal_scores, self.step, lambda now: now.progress.finished,
            width=self.settings.beam, limit=[self.actions.limit(len(words)) for words in sentences],
        )  # fmt: skip
        return [self.actions.tree(best.actions, words) for (best, *_), words in zip(found, sentences, strict=True)]

    def evaluate(self, examples: Sequence[Tree]) -> harness.Score:
        def parse(batch: list[Tree]) -> list[Tree]:
            return self.parse([x.words() for x in batch], [self.tags_of(x) for x in batch], [x.features for x in batch])

        spread = self.spread(parse, minibatches(examples, 64))
        return self.compared(examples, [tree for _, trees in spread for tree in trees])

    @staticmethod
    def compared(examples: Sequence[Tree], guesses: list[Tree]) -> harness.Score:
        """How good these trees are: all brackets count, in EVALB's F1 those without punctuation."""
        score, evalb = BracketScore(), EvalbScore()
        for gold, tree in zip(examples, guesses, strict=True):
            score.add(gold, tree)
            evalb.add(gold, tree)
        return harness.Score(
            score.f1, f"{score}, {evalb}", precision=score.precision, recall=score.recall, evalb=evalb.f1
        )

    def baseline(self, train: Sequence[Tree]) -> tuple[str, Any]:
        guess = RightBranching(train)
        return "trees that branch to the right", lambda trees: self.compared(
            trees, [guess(tree.words()) for tree in trees]
        )

    def words_of(self, line: str) -> tuple[list[str], list[str]]:
        """Words and tags of a line of `predict`. Brackets in words are written as in treebanks, where they make trees."""
        words, tags = split_tagged(line) if self.settings.tag_dim else (split_words(line), [])
        return [word.replace("(", "-LRB-").replace(")", "-RRB-") for word in words], tags

    def predict(self, lines: list[str], features: Sequence[Any] = ()) -> Iterator[str]:
        sentences = [self.words_of(line) for line in lines]
        arrays = features or [None] * len(lines)
        full = [(words, tags, array) for (words, tags), array in zip(sentences, arrays, strict=True) if words]
        trees = iter(self.parse(*zip(*full, strict=True)) if full else [])
        for words, _ in sentences:
            yield str(next(trees)) if words else ""

    def answers(self, lines: list[str], scores: bool = False, features: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
        if scores:
            raise dy.DataError("Grammar gives no scores")
        for line, tree in zip(lines, self.predict(lines, features), strict=True):
            yield {"input": line, "output": tree}


if __name__ == "__main__":
    sys.exit(harness.main(Grammar, Settings, __doc__))
