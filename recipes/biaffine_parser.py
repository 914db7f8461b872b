#!/usr/bin/env python
"""A dependency parser that scores every pair of words as head and dependent, and takes the best tree.

    python recipes/biaffine_parser.py                                # the treebank that comes with the project
    python recipes/biaffine_parser.py --train a.conllu --dev b.conllu --save parser.model
    python recipes/biaffine_parser.py --nltk dependency_treebank
    python recipes/biaffine_parser.py predict --load parser.model tagged.conllu    # heads and relations anew
    python recipes/biaffine_parser.py --compare --batch 64           # automatic batching on and off

A BiLSTM reads the words and their gold tags. The scores of a sentence are a matrix of its own size; a maximum spanning tree of
it is the parse. Attachment scores count all tokens, with punctuation, and whole relations (nsubj:pass is not nsubj).

Dozat, Manning: Deep biaffine attention for neural dependency parsing (2017).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import dynet_lite as dy
from dynet_lite import harness
from dynet_lite.harness import option
from dynet_lite.nn import Biaffine, WordReader, best_projective_tree, best_tree
from dynet_lite.text import (
    Sentence,
    Vocab,
    attachment_scores,
    format_conllu,
    load_nltk_dependencies,
    minibatches,
    parse_conllu,
    read_dependencies,
    read_vectors,
)

# --- 1. Settings: each field is an option of the command line -----------------------------------------------


@dataclass
class Settings(harness.Settings):
    word_dim: int = option(100, "size of a word vector")
    tag_dim: int = option(40, "size of the vector of a tag")
    char_dim: int = option(25, "size of a character vector")
    char_hidden: int = option(0, "size of the character LSTM, each direction; 0: words are not read letter by letter")
    vectors: str = option("", "begin with the word vectors of this file (text, as of word2vec or GloVe)")
    hidden: int = option(150, "size of the LSTM, each direction")
    layers: int = option(2, "layers of the LSTM")
    arc_dim: int = option(150, "size of the vectors that an arc joins")
    label_dim: int = option(50, "size of the vectors that a relation joins")
    projective: bool = option(False, "only trees without crossing arcs")

    epochs: int = option(20)
    learning_rate: float = option(2e-3)
    dropout: float = option(0.33, "share of the inputs of each layer to drop in training")
    word_dropout: float = option(0.25, "a: a word seen n times is hidden with probability a / (a + n)")


class Parser(harness.Recipe[Settings, Sentence]):
    """Word and tag vector -> BiLSTM -> for each word a vector as head and one as dependent -> scores of arcs; relations too."""

    score_name = "LAS"
    blocks = True
    predict_options = ("projective",)
    smoke = {"epochs": 1, "batch": 4, "word_dim": 8, "tag_dim": 4, "hidden": 6, "arc_dim": 6, "label_dim": 4}

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
        return {"tags": tags.to_json(), "relations": relations.to_json(), **words}

    # --- 3. Model -------------------------------------------------------------------------------------------

    def __init__(self, s: Settings, parts: dict) -> None:
        super().__init__(s, parts)
        self.tags, self.relations = Vocab.from_json(parts["tags"]), Vocab.from_json(parts["relations"])
        model = self.model
        self.reader = WordReader(model, parts, dim=s.word_dim, char_dim=s.char_dim, char_hidden=s.char_hidden,
                                 hide=s.word_dropout, rng=self.random)  # fmt: skip
        self.tag_vectors = model.add_lookup_parameters((len(self.tags), s.tag_dim), init="uniform", scale=0.1)
        width = self.reader.width + s.tag_dim
        self.root = model.add_parameters(width, init="uniform", scale=0.1)
        self.lstm = dy.BiRNNBuilder(s.layers, width, 2 * s.hidden, model, dy.LSTMBuilder)
        sizes = s.arc_dim, s.arc_dim, s.label_dim, s.label_dim
        self.views = [(model.add_parameters(n, init=0), model.add_parameters((n, 2 * s.hidden))) for n in sizes]
        self.arcs = Biaffine(model, s.arc_dim, s.arc_dim)
        self.labels = Biaffine(model, s.label_dim, s.label_dim, len(self.relations))

    def begin(self) -> None:
        if self.settings.vectors:
            self.reader.use(read_vectors(self.settings.vectors))

    def read(self, sentence: Sentence) -> list[dy.Expression]:
        """Matrices with a column per word, the root being word 0: words as heads and as dependents of arcs; and of relations."""
        drop = self.settings.dropout if self.training else 0.0
        words = self.reader(sentence.forms, self.training)
        tags = [self.tag_vectors[i] for i in self.tags.ids(sentence.upos)]
        inputs = [dy.concatenate(pair) for pair in zip(words, tags, strict=True)]
        self.lstm.set_dropout(drop)
        outputs = dy.concatenate_cols(self.lstm.transduce([self.root, *inputs]))
        return [dy.dropout(dy.rectify(dy.affine_transform([b, W, outputs])), drop) for b, W in self.views]

    def loss(self, batch: list[Sentence]) -> dy.Expression:
        """Mean over the words of the minibatch of -log p(head) - log p(relation | head)."""
        losses = []
        for sentence in batch:
            n = len(sentence)
            head, dependent, label_head, label_dependent = self.read(sentence)
            arcs = self.arcs.all_pairs(head, dependent[:, 1:])
            losses.append(dy.pickneglogsoftmax(dy.reshape(arcs, (n + 1,), n), sentence.heads))
            labels = self.labels.pairs(label_head[:, sentence.heads], label_dependent[:, 1:])
            losses.append(dy.pickneglogsoftmax(labels, self.relations.ids(sentence.deprels)))
        return dy.esum([dy.sum_batches(x) for x in losses]) * (1 / sum(map(len, batch)))

    # --- 4. Use ---------------------------------------------------------------------------------------------

    def parse(self, batch: list[Sentence]) -> list[Sentence]:
        """The sentences with the heads and relations of the best tree; their own are not looked at."""
        dy.renew_cg()
        views = [self.read(sentence) for sentence in batch]
        arcs = [self.arcs.all_pairs(head, dependent) for head, dependent, _, _ in views]
        dy.forward(arcs)  # all sentences at once
        decode = best_projective_tree if self.settings.projective else best_tree
        trees = [decode(scores.npvalue()) for scores in arcs]
        labels = [self.labels.pairs(h[:, tree], d[:, 1:]) for (_, _, h, d), tree in zip(views, trees, strict=True)]
        dy.forward(labels)
        parsed = []
        for sentence, tree, scores in zip(batch, trees, labels, strict=True):
            best = scores.npvalue().reshape(len(self.relations), -1).argmax(axis=0)
            parsed.append(replace(sentence, heads=tree, deprels=[self.relations.word(int(i)) for i in best]))
        return parsed

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
