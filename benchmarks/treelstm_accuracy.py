#!/usr/bin/env python
"""Root accuracy of recipes/treelstm_sentiment.py beside the same model written for DyNet, seed by seed.

    python benchmarks/treelstm_accuracy.py                 # the project's treebank, five seeds
    python benchmarks/treelstm_accuracy.py --seeds 10

The DyNet program has the recipe's settings, data, stopping rule, equations (the binary cell), initial weights, order of
mini-batches and hidden words; its gates are written out, since DyNet's Python has no such builder. First both train without
dropout, and their losses are compared. With it the masks differ, and so it is the means over the seeds that compare. Prints a
Markdown table and a line of JSON. Needs dyNET38.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "recipes"))

import dynet_config
import treelstm_sentiment as recipe

from dynet_lite import harness
from dynet_lite.harness.loop import Epoch, Training, train_step
from dynet_lite.harness.report import Report
from dynet_lite.text import Tree, minibatches


class DyNetSentiment:
    """The recipe's model over DyNet's functions, with the weights of a new recipe."""

    def __init__(self, dn: Any, ours: recipe.Sentiment) -> None:
        s = ours.settings
        dn.reset_random_seed(s.seed)
        self.dn, self.s, self.random = dn, s, random.Random(s.seed)
        self.words, self.labels = ours.reader.words, ours.labels
        self.model = dn.ParameterCollection()
        (layer,) = ours.cell.get_parameters()
        W_iog, b_iog, _, b_f, *U = map(self.copy, layer)  # leaves have no children to forget
        self.W_iog, self.b_iog, self.b_f, self.U = W_iog, b_iog, b_f, U
        self.W, self.b = self.copy(ours.W), self.copy(ours.b)
        table = ours.reader.table.as_array()
        self.word_vectors = self.model.add_lookup_parameters(table.shape)
        self.word_vectors.init_from_array(table)
        self.trainer = dn.AdamTrainer(self.model, s.learning_rate)

    def copy(self, parameter: Any) -> Any:
        values = parameter.as_array()
        return self.model.add_parameters(values.shape, init=self.dn.NumpyInitializer(values))

    def scores(self, nodes: list[Tree], training: bool) -> list[Any]:
        dn, n = self.dn, self.s.hidden
        drop = self.s.dropout if training else 0.0
        states: dict[int, tuple[Any, Any]] = {}
        for node in nodes:
            children = [states[id(child)] for child in node.children]
            if children:
                terms = [x for U, (h, _) in zip(self.U, children, strict=False) for x in (U, h)]
                z = dn.affine_transform([dn.concatenate([self.b_iog, self.b_f, self.b_f]), *terms])
            else:
                hide, count = self.s.word_dropout, self.words.count(node.word)
                hidden = training and self.random.random() < hide / (hide + count)
                x = self.word_vectors[0 if hidden else self.words[node.word]]
                z = dn.affine_transform([self.b_iog, self.W_iog, dn.dropout(x, drop) if drop else x])
            i, o = dn.logistic(z[:n]), dn.logistic(z[n : 2 * n])
            c = dn.cmult(i, dn.tanh(z[2 * n : 3 * n]))
            for k, (_, cell) in enumerate(children):
                c = c + dn.cmult(dn.logistic(z[(3 + k) * n : (4 + k) * n]), cell)
            states[id(node)] = dn.cmult(o, dn.tanh(c)), c
        outputs = [dn.dropout(h, drop) if drop else h for h, _ in states.values()]
        return [dn.affine_transform([self.b, self.W, h]) for h in outputs]

    def train_epoch(self, train: list[Tree]) -> list[float]:
        """The loss of each mini-batch."""
        values = []
        for batch in list(minibatches(train, self.s.batch, seed=self.random)):
            self.dn.renew_cg()
            losses = []
            for tree in batch:
                nodes = tree.nodes()
                for x, node in zip(self.scores(nodes, True), nodes, strict=True):
                    losses.append(self.dn.pickneglogsoftmax(x, self.labels[node.label]))
            loss = self.dn.esum(losses) * (1 / len(batch))
            values.append(loss.value())
            loss.backward()
            self.trainer.update()
        return values

    def accuracy(self, trees: list[Tree]) -> float:
        right = 0
        for batch in minibatches(trees, 64):
            self.dn.renew_cg()
            roots = self.dn.concatenate_cols([self.scores(tree.nodes(), False)[-1] for tree in batch])
            best = roots.npvalue().reshape(len(self.labels), -1)[1:].argmax(axis=0) + 1
            right += sum(self.labels.word(int(i)) == tree.label for i, tree in zip(best, batch, strict=True))
        return right / len(trees)


def train_dynet(dn: Any, s: recipe.Settings, parts: dict[str, Any], data: Any) -> float:
    """The best accuracy on dev, with the harness's stopping rule."""
    program = DyNetSentiment(dn, harness.make_recipe(recipe.Sentiment, s, parts))
    best, at = -1.0, 0
    for epoch in range(1, s.epochs + 1):
        program.train_epoch(data.train)
        accuracy = program.accuracy(data.dev)
        if accuracy > best:
            best, at = accuracy, epoch
        elif s.patience and epoch - at >= s.patience:
            break
    return best


def train_recipe(s: recipe.Settings, parts: dict[str, Any], data: Any) -> float:
    training = Training(harness.make_recipe(recipe.Sentiment, s, parts), data, Report(s))
    with contextlib.redirect_stdout(io.StringIO()):
        training.run()
    assert training.best is not None
    return float(training.best["value"])


def loss_difference(dn: Any, s: recipe.Settings) -> float:
    """The largest relative difference between the losses of an epoch without dropout."""
    s = replace(s, dropout=0.0)
    data = recipe.Sentiment.load_data(s)
    ours = harness.make_recipe(recipe.Sentiment, s, recipe.Sentiment.build(s, data.train))
    theirs = DyNetSentiment(dn, ours).train_epoch(data.train)
    trainer, epoch = ours.trainer(), Epoch(1)
    for batch in ours.batches(data.train):
        train_step(ours, trainer, batch, epoch)
    return max(abs(a - b) / b for a, b in zip(epoch.losses, theirs, strict=True))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--seeds", type=int, default=5, help="0: only the losses without dropout")
    options.add_argument("--epochs", type=int, default=recipe.Settings().epochs)
    options.add_argument("--dropout", type=float, default=recipe.Settings().dropout, help="0: both do the same")
    given = options.parse_args()
    dynet_config.set(mem="512", autobatch=1, random_seed=1)
    import dynet as dn

    print(
        f"losses of an epoch without dropout differ by {loss_difference(dn, recipe.Settings()):.1e} at most (relative)"
    )
    rows = []
    if not given.seeds:
        return
    print("\n| seed | recipe | DyNet | recipe s | DyNet s |\n|---:|---:|---:|---:|---:|")
    for seed in range(1, given.seeds + 1):
        s = recipe.Settings(seed=seed, epochs=given.epochs, dropout=given.dropout)
        data = recipe.Sentiment.load_data(s)
        parts = recipe.Sentiment.build(s, data.train)
        start = time.perf_counter()
        ours = train_recipe(s, parts, data)
        middle = time.perf_counter()
        theirs = train_dynet(dn, s, parts, data)
        rows.append((ours, theirs))
        print(
            f"| {seed} | {ours:.2%} | {theirs:.2%} | {middle - start:.1f} | {time.perf_counter() - middle:.1f} |",
            flush=True,
        )
    means = [statistics.mean(column) for column in zip(*rows, strict=True)]
    print(f"| mean | {means[0]:.2%} | {means[1]:.2%} | | |")
    print(json.dumps({"seeds": given.seeds, "recipe": [a for a, _ in rows], "dynet": [b for _, b in rows]}))


if __name__ == "__main__":
    main()
