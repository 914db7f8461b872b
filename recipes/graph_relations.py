#!/usr/bin/env python
"""Relations of dependency trees whose heads are known: a graph convolutional network over the tree.

    python recipes/graph_relations.py                              # the included treebank
    python recipes/graph_relations.py --hops 0                     # without the graph: what do neighbours contribute?
    python recipes/graph_relations.py --train a.conllu --dev b.conllu --save relations.model
    python recipes/graph_relations.py predict --load relations.model heads.conllu    # CoNLL-U in, CoNLL-U with new relations out
    python recipes/graph_relations.py --compare --batch 64         # automatic batching on and off

Words are the nodes of a graph. Edges lead from each head to its dependents, back, and to the neighbours in the sentence.
In each layer a word receives messages along its edges, so after n layers it knows of all words n edges away. Every sentence
is a graph of its own shape, and dynet_lite runs their operations of the same kind together.

Marcheggiani, Titov: Encoding sentences with graph convolutional networks for semantic role labeling (2017).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dynet_lite as dy
from dynet_lite import harness, onnx
from dynet_lite.harness import option
from dynet_lite.nn import GraphConvolution
from dynet_lite.text import MostFrequent, Sentence, attachment_scores

# --- 1. Settings: options of the command line; those about words and tags are in the base class ------------------

DOWN, UP, NEXT, BEFORE = range(4)  # kinds of edges


@dataclass
class Settings(harness.ParserSettings):
    hidden: int = option(100, "size of the vector of a word after each layer")
    hops: int = option(2, "layers of the graph network: how many edges away a word has an effect; 0: none")
    neighbours: bool = option(True, "add edges between neighbouring words")

    epochs: int = option(15)
    learning_rate: float = option(2e-3)
    dropout: float = option(0.3, "fraction of the inputs of each layer to drop in training")


class Relations(harness.ParserRecipe[Settings]):
    """Word and tag vector -> layers over the graph -> a word and its head -> a score per relation."""

    score_name = "accuracy"
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "tag_dim": 4, "hidden": 6}

    # --- 2. Model (data, vectors of words and tags: harness.ParserRecipe) ----------------------------------------

    def __init__(self, s: Settings, parts: dict[str, Any]) -> None:
        super().__init__(s, parts)
        add = self.model.add_parameters
        sizes = [self.width] + [s.hidden] * s.hops
        self.graph = [GraphConvolution(self.model, i, o, 4) for i, o in zip(sizes, sizes[1:], strict=False)]
        self.root = add(sizes[-1], init="uniform", scale=0.1, name="root")
        self.W1, self.b1 = add((s.hidden, 2 * sizes[-1]), name="W1"), add(s.hidden, init=0, name="b1")
        self.W2 = add((len(self.relations), s.hidden), init="fan-in", name="W2")
        self.b2 = add(len(self.relations), init=0, name="b2")

    def edges(self, sentence: Sentence) -> list[tuple[int, int, int]]:
        """The edges between the words, which count from 0 here."""
        pairs = [(head - 1, word) for word, head in enumerate(sentence.heads) if head]
        edges = [(head, word, DOWN) for head, word in pairs] + [(word, head, UP) for head, word in pairs]
        if self.settings.neighbours:
            beside = range(len(sentence) - 1)
            edges += [(i, i + 1, NEXT) for i in beside] + [(i + 1, i, BEFORE) for i in beside]
        return edges

    def scores(self, sentence: Sentence) -> list[dy.Expression]:
        """For each word a vector with the scores of the relations to its head."""
        drop = self.settings.dropout if self.training else 0.0
        nodes = [dy.dropout(x, drop) for x in self.inputs(sentence)]
        edges = self.edges(sentence)
        for layer in self.graph:
            nodes = [dy.dropout(x, drop) for x in layer(nodes, edges)]
        heads = [nodes[head - 1] if head else self.root for head in sentence.heads]
        return [self.score(word, head) for word, head in zip(nodes, heads, strict=True)]

    def score(self, word: dy.Expression, head: dy.Expression) -> dy.Expression:
        hidden = dy.rectify(dy.affine_transform([self.b1, self.W1, dy.concatenate([word, head])]))
        return dy.affine_transform([self.b2, self.W2, hidden])

    def networks(self) -> dict[str, Any]:
        """Scores of the relations of all words [n, relations], from the words, their heads (0 is the root) and the edges."""

        def scores(tags: Any, heads: Any, sources: Any, targets: Any, kinds: Any, **ids: Any) -> Any:
            nodes = self.reader.symbolic(**ids).joined(onnx.lookup(self.tag_vectors, tags))
            for layer in self.graph:
                nodes = layer.symbolic(nodes, sources, targets, kinds)
            return nodes.map(self.score, onnx.chosen(nodes.begun(self.root), heads))

        edges = dict.fromkeys(("sources", "targets", "kinds"), onnx.Ids("edges"))
        inputs = {**self.reader.inputs(), "tags": onnx.Ids("n"), "heads": onnx.Ids("n"), **edges}
        return {"scores": (scores, inputs, ["scores"])}

    def loss(self, batch: list[Sentence]) -> dy.Expression:
        """Mean over the words of the mini-batch of -log p(relation)."""
        losses = []
        for sentence in batch:
            gold = self.relations.ids(sentence.deprels)
            losses += [dy.pickneglogsoftmax(x, i) for x, i in zip(self.scores(sentence), gold, strict=True)]
        return dy.esum(losses) * (1 / len(losses))

    # --- 3. Use -------------------------------------------------------------------------------------------------

    def parse(self, batch: Sequence[Sentence]) -> list[Sentence]:
        """The sentences with other relations; those that they have are not looked at."""
        for sentence in batch:
            if len(sentence.heads) != len(sentence) or not all(0 <= head <= len(sentence) for head in sentence.heads):
                raise dy.DataError(
                    f"expected the head of each word, from 0 to {len(sentence)}: {' '.join(sentence.forms[:8])}"
                )
        dy.renew_cg()
        found = [dy.concatenate_cols(self.scores(sentence)) for sentence in batch]
        dy.forward(found)  # all sentences at once
        best = [scores.npvalue().reshape(len(self.relations), -1).argmax(axis=0) for scores in found]
        return [
            replace(x, deprels=[self.relations.word(int(i)) for i in ids]) for x, ids in zip(batch, best, strict=True)
        ]

    @staticmethod
    def compared(examples: Sequence[Sentence], parsed: Sequence[Sentence]) -> harness.Score:
        score = attachment_scores(examples, parsed)
        text = f"relations {score.las:.2%} (without subtypes {score.universal_las:.2%})"
        return harness.Score(score.las, text, universal=score.universal_las, words=score.words)

    def baseline(self, train: Sequence[Sentence]) -> tuple[str, Callable[..., harness.Score]]:
        guess = MostFrequent(zip(tag_pairs(x), x.deprels, strict=True) for x in train)

        def score(examples: Sequence[Sentence]) -> harness.Score:
            return self.compared(examples, [replace(x, deprels=guess(tag_pairs(x))) for x in examples])

        return "the most frequent relation of the tags of a word and its head", score


def tag_pairs(sentence: Sentence) -> list[tuple[str, str, bool]]:
    """The tags of each word and its head, and whether the head comes first."""
    tags = ["", *sentence.upos]
    return [
        (tag, tags[head], head < i) for i, (tag, head) in enumerate(zip(sentence.upos, sentence.heads, strict=True), 1)
    ]


if __name__ == "__main__":
    sys.exit(harness.main(Relations, Settings, __doc__))
