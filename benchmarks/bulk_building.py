#!/usr/bin/env python
"""Cells and bulk calls against the programs that they replace: time to build a mini-batch, and time of a training step.

    python benchmarks/bulk_building.py
    python benchmarks/bulk_building.py --rounds 41 --batch 16

Two models of tasks/. The tagger: as it stands; with a cell mapped over the words in place of the loop; with one call of each
kind for all sentences; with its words as one matrix after the LSTMs. The tree LSTM with gates by hand: as it stands; with the
gates in cells that are called node by node; with `recurse`; the same with one loss for all trees; with the builder, which has one
loss, too. The programs take turns in one process on the same mini-batch; medians, and ratios to the first. Losses must agree to
1e-4.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from side_by_side import machine, table
from tasks import tagger, treelstm
from tasks.common import initial_weights

import dynet_lite as dy


class MappedTagger(tagger.Program):
    """A cell for what follows the LSTMs, mapped over the words of a sentence."""

    def make(self) -> None:
        super().make()
        W1, b1, W2, b2 = self.W1, self.b1, self.W2, self.b2

        @dy.cell
        def word_loss(f: Any, b: Any, tag: dy.Index) -> Any:
            hidden = dy.tanh(dy.affine_transform([b1, W1, dy.concatenate([f, b])]))
            return dy.pickneglogsoftmax(dy.affine_transform([b2, W2, hidden]), tag)

        self.word_loss = word_loss

    def loss(self, instance: tagger.Instance) -> Any:
        words, tags = instance
        xs = self.vectors.rows(words)
        fs = self.forward.initial_state().transduce(xs)
        bs = self.backward.initial_state().transduce(xs[::-1])[::-1]
        return dy.esum(dy.map(self.word_loss, fs, bs, tags))


class BulkTagger(MappedTagger):
    """All sentences in one call of each kind."""

    def batch_loss(self, batch: Sequence[tagger.Instance]) -> Any:
        words: list[int] = []
        tags: list[int] = []
        for sentence, those in batch:
            words += sentence
            tags += those
        lengths = [len(sentence) for sentence, _ in batch]
        xs = self.vectors.rows(words)
        fs = self.forward.initial_state().transduce(xs, lengths=lengths)
        bs = self.backward.initial_state().transduce(xs, lengths=lengths, reverse=True)
        return dy.esum(dy.map(self.word_loss, fs, bs, tags))


class CellTree(treelstm.Program):
    """The gates in cells, called where the program made them node by node."""

    def make(self) -> None:
        super().make()
        leaf, inner, W_out = super().leaf, super().inner, self.W_out
        self.leaf_cell = dy.cell(lambda word: leaf(word))
        self.inner_cell = dy.cell(lambda left, right: inner(left, right))
        self.loss_cell = dy.cell(lambda h, label: dy.pickneglogsoftmax(W_out * h, label))

    def node(self, tree: treelstm.Tree, losses: list[Any]) -> tuple[Any, Any]:
        if len(tree) == 2:
            h, c = self.leaf_cell(tree[1])
        else:
            h, c = self.inner_cell(self.node(tree[1], losses), self.node(tree[2], losses))
        losses.append(self.loss_cell(h, tree[0]))
        return h, c


class RecursiveTree(CellTree):
    """The structure of a tree in one call."""

    def make(self) -> None:
        super().make()
        leaf, inner, W_out = self.leaf, self.inner, self.W_out

        @dy.cell
        def compose(given: Any, left: Any = None, right: Any = None) -> Any:
            word, label = given
            h, c = leaf(word) if left is None else inner(left[:2], right[:2])
            return h, c, dy.pickneglogsoftmax(W_out * h, label)

        self.compose = compose

    def loss(self, instance: treelstm.Tree) -> Any:
        inputs: list[Any] = []
        children: list[tuple[int, ...]] = []
        number_nodes(instance, inputs, children)
        return dy.esum([loss for _, _, loss in dy.recurse(self.compose, inputs, children)])


class RecursiveTreeOneLoss(CellTree):
    """The structure of a tree in one call, and one loss for the nodes of all trees, as the builder's program has it."""

    def make(self) -> None:
        super().make()
        leaf, inner = self.leaf, self.inner
        self.compose = dy.cell(lambda word, left=None, right=None: leaf(word) if left is None else inner(left, right))

    def batch_loss(self, batch: Sequence[treelstm.Tree]) -> Any:
        outputs: list[Any] = []
        labels: list[int] = []
        for tree in batch:
            inputs: list[Any] = []
            children: list[tuple[int, ...]] = []
            number_nodes(tree, inputs, children)
            outputs += [h for h, _ in dy.recurse(self.compose, [word for word, _ in inputs], children)]
            labels += [label for _, label in inputs]
        scores = self.W_out * dy.concatenate_to_batch(outputs)
        return dy.sum_batches(dy.pickneglogsoftmax_batch(scores, labels))


def number_nodes(tree: treelstm.Tree, inputs: list[Any], children: list[tuple[int, ...]]) -> int:
    """Adds the nodes of a tree, children first; the number of its own."""
    if len(tree) == 2:
        inputs.append((tree[1], tree[0]))
        children.append(())
    else:
        below = number_nodes(tree[1], inputs, children), number_nodes(tree[2], inputs, children)
        inputs.append((None, tree[0]))
        children.append(below)
    return len(inputs) - 1


TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tagger": (
        tagger,
        {
            "as it stands": tagger.Program,
            "a cell, mapped": MappedTagger,
            "in bulk": BulkTagger,
            "idiomatic": tagger.Idiomatic,
        },
    ),  # fmt: skip
    "tree LSTM": (
        treelstm,
        {
            "as it stands": treelstm.Program,
            "cells": CellTree,
            "recurse": RecursiveTree,
            "recurse, one loss": RecursiveTreeOneLoss,
            "builder": treelstm.Idiomatic,
        },
    ),
}


class Timed:
    """One program with its trainer: seconds of building and of a whole step, round by round."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.program = make()
        self.trainer = dy.SimpleSGDTrainer(self.program.model)
        self.trainer.learning_rate = 0.0  # the same step each time
        self.built: list[float] = []
        self.whole: list[float] = []

    def step(self, batch: Sequence[Any]) -> float:
        dy.renew_cg()
        start = time.process_time()
        loss = self.program.batch_loss(batch)
        built = time.process_time()
        value = float(loss.value())
        loss.backward()
        self.trainer.update()
        self.built.append(built - start)
        self.whole.append(time.process_time() - start)
        return value


def compare(module: Any, programs: dict[str, Any], args: argparse.Namespace) -> list[list[str]]:
    sizes = {**module.SIZES["base"], "batch": args.batch}
    weights = initial_weights(module.shapes(sizes), 2)
    batch = module.data(np.random.RandomState(1), args.batch, sizes)
    timed = {name: Timed(lambda kind=kind: kind(dy, sizes, weights)) for name, kind in programs.items()}
    for _ in range(args.rounds):
        losses = [one.step(batch) for one in timed.values()]
        if max(losses) - min(losses) > 1e-4 * abs(losses[0]):
            raise SystemExit(f"the losses differ: {losses}")
    rows = []
    for name, one in timed.items():
        row = [name]
        for what in ("built", "whole"):
            times = getattr(one, what)
            first = getattr(next(iter(timed.values())), what)
            row += [
                f"{1e3 * statistics.median(times):.2f}",
                f"{statistics.median(times) / statistics.median(first):.2f}",
            ]
        rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--batch", type=int, default=64, help="sentences of a mini-batch")
    parser.add_argument("--tasks", default=",".join(TASKS))
    args = parser.parse_args()
    where = machine()
    print(f"median of {args.rounds} rounds; {where['cpu']}, load {where['load']}")
    for name in args.tasks.split(","):
        module, programs = TASKS[name]
        print(f"\n## {name}, {args.batch} sentences\n")
        print(table(["program", "build, ms", "ratio", "step, ms", "ratio"], compare(module, programs, args)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
