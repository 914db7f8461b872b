#!/usr/bin/env python
"""The sentiment of a sentence and of each of its phrases: an LSTM that runs up the tree of the sentence.

    python recipes/treelstm_sentiment.py                               # the included treebank
    python recipes/treelstm_sentiment.py --cell childsum               # children without order
    python recipes/treelstm_sentiment.py --classes binary              # negative or positive, without neutral phrases
    python recipes/treelstm_sentiment.py --train a.txt --dev b.txt     # trees in brackets: Stanford sentiment, Penn Treebank
    python recipes/treelstm_sentiment.py --nltk treebank               # learns the labels of phrases
    python recipes/treelstm_sentiment.py predict --load tree.model -   # labels the trees you type: (0 (0 bad) (0 film))
    python recipes/treelstm_sentiment.py --compare --batch 64          # automatic batching on and off

Each tree has a network of its own shape, written as a walk from the leaves to the root. dynet_lite runs
operations of the same kind together: all leaves of a mini-batch, then the nodes above them, and so on.

With classes 0 to 4 the score covers both tasks of the Stanford sentiment treebank, five classes and two, at the roots and at
all nodes. For two classes, 0 and 1 count as negative, 3 and 4 as positive; --classes binary trains for them directly.

Socher and others: Recursive deep models for semantic compositionality over a sentiment treebank (2013); Tai, Socher, Manning:
Improved semantic representations from tree-structured long short-term memory networks (2015).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import WordReader
from dynet_lite.text import (
    CLASSES,
    NEUTRAL,
    MostFrequent,
    SentimentScore,
    Tree,
    Vocab,
    binary_tree,
    load_nltk_trees,
    minibatches,
    parse_trees,
    polarity_of,
    read_trees,
    read_vectors,
)

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    classes: str = option(
        "all", "all: the labels of the files; binary: 0 to 4 as negative and positive", choices=("all", "binary")
    )
    cell: str = option("nary", "how a node combines its children", choices=("nary", "childsum"))
    most: int = option(2, "nary: most children of a node; more are put under a node of their own")
    word_dim: int = option(100, "size of a word vector")
    hidden: int = option(150, "size of the state of a node")
    vectors: str = option("", "start from the word vectors in this file (word2vec, text or binary; GloVe)")

    epochs: int = option(40)
    patience: int = option(20)
    learning_rate: float = option(5e-3)
    dropout: float = option(0.5, "fraction of the word vectors and of the states of nodes to drop in training")
    word_dropout: float = option(
        0.25, "a number a: in training, a word seen n times becomes the unknown word with probability a / (a + n)"
    )


class Sentiment(harness.Recipe[Settings, Tree]):
    """A tree LSTM; from the state of each node a linear layer gives the scores of the labels."""

    shares_evaluation = True
    score_name = "root accuracy"
    unit = "trees"
    build_options = ("classes", "vectors")
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "hidden": 6}

    # --- 2. Data --------------------------------------------------------------------------------------------

    @classmethod
    def load_data(cls, s: Settings) -> harness.Data[Tree]:
        if s.cell == "nary" and s.most < 2:
            raise dy.DataError(f"--most: a node may have at least 2 children, got {s.most}")

        def detail(train: Sequence[Tree]) -> str:
            labels = {label for tree in train for label in cls.labels_of(s, tree)}
            return f"{sum(map(len, train)):,} words, {len(labels)} labels"

        def shaped(read: Callable[[str], list[Tree]]) -> Callable[[str], list[Tree]]:
            return lambda name: [tree for tree in cls.marked(s, read(name), name) if tree.label != cls.neutral(s)]

        read, nltk = shaped(read_trees), shaped(load_nltk_trees)
        return harness.corpus(s, read, home=__file__, default="sst", nltk=nltk, detail=detail, unit="trees")

    @classmethod
    def marked(cls, s: Settings, trees: list[Tree], name: str) -> list[Tree]:
        """The trees with the labels of the task, without traces; DataError if they have none."""
        trees = [full for tree in trees if (full := tree.without_empty()) is not None]
        if s.classes == "binary":
            other = {node.label for tree in trees for node in tree.nodes()} - set(CLASSES)
            if other:
                raise dy.DataError(f"{name}: --classes binary needs trees with the classes 0 to 4, got {min(other)!r}")
            trees = [binary_tree(tree) for tree in trees]
        return [cls.shaped(s, tree) for tree in trees]

    @staticmethod
    def neutral(s: Settings) -> str | None:
        """The label that is not to be learned, if there is one."""
        return NEUTRAL if s.classes == "binary" else None

    @classmethod
    def labels_of(cls, s: Settings, tree: Tree) -> list[str]:
        """The labels that are to be learned."""
        return [node.label for node in tree.nodes() if node.label != cls.neutral(s)]

    @staticmethod
    def shaped(s: Settings, tree: Tree) -> Tree:
        """The tree as the cell can use it."""
        return tree.narrow(s.most) if s.cell == "nary" else tree

    @classmethod
    def build(cls, s: Settings, train: Sequence[Tree]) -> dict[str, Any]:
        known = read_vectors(s.vectors) if s.vectors else None
        labels = Vocab.from_words(label for tree in train for label in cls.labels_of(s, tree))
        return {"labels": labels.to_json(), **WordReader.build((tree.words() for tree in train), known)}

    # --- 3. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        self.labels = Vocab.from_json(parts["labels"])
        model = self.model
        self.reader = WordReader(model, parts, dim=s.word_dim, hide=s.word_dropout, rng=self.random)
        self.cell: dy.NaryTreeLSTMBuilder | dy.ChildSumTreeLSTMBuilder
        if s.cell == "nary":
            self.cell = dy.NaryTreeLSTMBuilder(s.most, 1, s.word_dim, s.hidden, model, name="cell")
        else:
            self.cell = dy.ChildSumTreeLSTMBuilder(1, s.word_dim, s.hidden, model, name="cell")
        self.W = model.add_parameters((len(self.labels), s.hidden), init="fan-in", name="W")
        self.b = model.add_parameters(len(self.labels), init=0, name="b")

    def begin(self) -> None:
        if self.settings.vectors:
            self.reader.use(read_vectors(self.settings.vectors))

    def gold(self, example: Tree) -> list[str]:
        return self.labels_of(self.settings, example)

    def known_labels(self) -> list[str]:
        return self.labels.words()[1:]

    def scores(self, nodes: list[Tree]) -> list[dy.Expression]:
        """For each node of a tree, children before parents, the scores of the labels."""
        drop = self.settings.dropout if self.training else 0.0
        vectors = self.reader([node.word for node in nodes if node.word], self.training)
        words = iter([dy.dropout(x, drop) for x in vectors] if drop else vectors)
        states: dict[int, Any] = {}
        for node in nodes:
            if node.children:
                state = self.cell.node(None, [states[id(child)] for child in node.children])
            else:
                state = self.cell.node(next(words))
            states[id(node)] = state
        outputs = [state.output() for state in states.values()]
        outputs = [dy.dropout(h, drop) for h in outputs] if drop else outputs
        return [self.score(h) for h in outputs]

    @dy.cell
    def score(self, h: dy.Expression) -> dy.Expression:
        """The scores of the labels from the output of a node."""
        return dy.affine_transform([self.b, self.W, h])

    def loss(self, batch: list[Tree]) -> dy.Expression:
        """Mean over the trees of the mini-batch of the sum of -log p(label) of the nodes."""
        losses, neutral = [], self.neutral(self.settings)
        for tree in batch:
            nodes = tree.nodes()
            scored = zip(nodes, self.scores(nodes), strict=True)
            losses += [dy.pickneglogsoftmax(x, self.labels[node.label]) for node, x in scored if node.label != neutral]
        return dy.esum(losses) * (1 / len(batch))

    def networks(self) -> dict[str, Any]:
        """Scores of all nodes, children before parents: words [n], -1 where a node has none, and children [n, most], -1: none."""

        def scores(words: Any, children: Any) -> Any:
            return onnx.tree(self.cell, self.reader.symbolic(words), children).map(self.score)

        most = self.settings.most if self.settings.cell == "nary" else "children"
        inputs = {"words": onnx.Ids("n", absent=True), "children": onnx.Children("n", most)}
        return {"scores": (scores, inputs, ["scores"])}

    # --- 4. Use ---------------------------------------------------------------------------------------------

    def probabilities(self, trees: list[Tree]) -> list[np.ndarray[Any, Any]]:
        """For each tree a matrix {labels, nodes}, in the order of Tree.nodes(); its first row is 0, which is no label."""
        dy.renew_cg()
        scores = [dy.concatenate_cols(self.scores(tree.nodes())) for tree in trees]
        found = [dy.softmax(matrix[1:]) for matrix in scores]
        dy.forward(found)  # all trees at once
        return [np.vstack([np.zeros((1, len(tree.nodes()))), p.npvalue().reshape(len(self.labels) - 1, -1)])
                for tree, p in zip(trees, found, strict=True)]  # fmt: skip

    def best_labels(self, trees: list[Tree]) -> list[list[str]]:
        """For each tree the best labels of its nodes, in the order of Tree.nodes()."""
        return [self.best(p) for p in self.probabilities(trees)]

    def best(self, probabilities: np.ndarray) -> list[str]:
        return [self.labels.word(int(i)) for i in probabilities.argmax(axis=0)]

    def evaluate(self, examples: Sequence[Tree]) -> harness.Score:
        score = SentimentScore(neutral=self.neutral(self.settings))
        five = set(self.known_labels()) == set(CLASSES)
        order = self.labels.ids(CLASSES)
        for batch, found in self.spread(self.probabilities, minibatches(examples, 64)):
            for tree, p in zip(batch, found, strict=True):
                gold = [node.label for node in tree.nodes()]
                score.add(gold, self.best(p), polarity_of(p[order].T) if five else ())
        return harness.Score(score.roots.value, str(score), **score.values(), trees=score.roots.all)

    def baseline(self, train: Sequence[Tree]) -> tuple[str, Any]:
        best = MostFrequent([("", tree.label)] for tree in train)([""])[0]

        def score(examples: list[Tree]) -> harness.Score:
            share = float(np.mean([tree.label == best for tree in examples]))
            return harness.Score(share, f"root accuracy {share:.2%}")

        return f"always {best}, the most frequent label of a root", score

    def predict(self, lines: list[str]) -> Iterator[str]:
        """Each line holds trees; their labels are read over and written anew."""
        trees = [[self.shaped(self.settings, tree) for tree in parse_trees([line], "input")] for line in lines]
        flat = [tree for line in trees for tree in line]
        for tree, labels in zip(flat, self.best_labels(flat) if flat else [], strict=True):
            for node, label in zip(tree.nodes(), labels, strict=True):
                node.label = label
        for line in trees:
            yield " ".join(map(str, line))


if __name__ == "__main__":
    sys.exit(harness.main(Sentiment, Settings, __doc__))
