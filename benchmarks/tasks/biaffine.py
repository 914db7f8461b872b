"""Sentence encoder with a biaffine dependency parser on top (Dozat and Manning 2017): matrices of whole sentences."""

from __future__ import annotations

from typing import Any

import made_up
from made_up import Parsed

from tasks.common import Model, Products, Shapes, Sizes, lstm_products, lstm_shapes

SIZES = {
    "base": {"words": 20_000, "emb": 100, "hidden": 128, "arc": 128, "rel": 64, "labels": 40, "batch": 64},
    "large": {"words": 20_000, "emb": 256, "hidden": 256, "arc": 512, "rel": 256, "labels": 40, "batch": 64},
}
LAYERS = ("arc_head", "arc_dependent", "rel_head", "rel_dependent")


def shapes(sizes: Sizes) -> Shapes:
    emb, hidden, arc, rel, labels = (sizes[name] for name in ("emb", "hidden", "arc", "rel", "labels"))
    return {
        "word_table": (sizes["words"], emb),
        "root": (emb,),
        **lstm_shapes("forward", emb, hidden),
        **lstm_shapes("backward", emb, hidden),
        **{f"W_{name}": (sizes[name[:3]], 2 * hidden) for name in LAYERS},
        **{f"b_{name}": (sizes[name[:3]],) for name in LAYERS},
        "U": (arc, arc),
        "u": (1, arc),
        "L_head": (labels, rel),
        "L_dependent": (labels, rel),
        "b_label": (labels,),
    }


def data(rng: Any, count: int, sizes: Sizes) -> list[Parsed]:
    return made_up.parsed(rng, count, sizes["words"], sizes["labels"])


def length(instance: Parsed) -> int:
    return len(instance.words)


def products(batch: list[Parsed], sizes: Sizes) -> Products:
    emb, hidden, arc, rel, labels = (sizes[name] for name in ("emb", "hidden", "arc", "rel", "labels"))
    lengths = [len(s.words) + 1 for s in batch]
    tokens = [sum(lengths)]
    lstm = lstm_products(emb, hidden, lengths)
    return [
        *lstm,
        *lstm,
        (2 * arc + 2 * rel, 2 * hidden, tokens),
        (arc + 1, arc, tokens),
        *[(n, arc, [n]) for n in lengths],
        (labels, 2 * rel, tokens),
    ]


class Program(Model):
    def make(self) -> None:
        self.vectors, self.root = self.table("word_table"), self.weight("root")
        self.forward, self.backward = self.lstm("forward"), self.lstm("backward")
        self.layers = [(self.weight(f"b_{name}"), self.weight(f"W_{name}")) for name in LAYERS]
        self.U, self.u = self.weight("U"), self.weight("u")
        self.L_head, self.L_dependent, self.b_label = (self.weight(x) for x in ("L_head", "L_dependent", "b_label"))

    def inputs(self, words: list[int]) -> list[Any]:
        return [self.root, *[self.vectors[word] for word in words]]

    def columns(self, fs: list[Any], bs: list[Any]) -> Any:
        dy = self.dy
        return dy.concatenate_cols([dy.concatenate([f, b]) for f, b in zip(fs, bs, strict=True)])

    def loss(self, instance: Parsed) -> Any:
        dy, heads, labels = self.dy, instance.heads, instance.labels
        n = len(heads)
        xs = self.inputs(instance.words)
        fs = self.forward.initial_state().transduce(xs)
        bs = self.backward.initial_state().transduce(xs[::-1])[::-1]
        words = self.columns(fs, bs)  # {2 hidden, 1 + n}, the root first
        arc_head, arc_dependent, rel_head, rel_dependent = [
            dy.rectify(dy.affine_transform([b, W, words])) for b, W in self.layers
        ]
        # Scores of every head for every word, {1 + n, 1 + n}: heads down, dependents across.
        scores = dy.colwise_add(dy.transpose(arc_head) * (self.U * arc_dependent), dy.transpose(self.u * arc_head))
        arcs = dy.reshape(dy.pick_range(scores, 1, n + 1, 1), (n + 1,), batch_size=n)
        label_scores = dy.affine_transform([
            self.b_label,
            self.L_head, dy.select_cols(rel_head, heads),
            self.L_dependent, dy.pick_range(rel_dependent, 1, n + 1, 1),
        ])  # fmt: skip
        kinds = dy.reshape(label_scores, (self.sizes["labels"],), batch_size=n)
        losses = dy.pickneglogsoftmax_batch(arcs, heads) + dy.pickneglogsoftmax_batch(kinds, labels)
        return dy.sum_batches(losses)


class Idiomatic(Program):
    """Rows of the table in one call, no concatenation word by word."""

    def inputs(self, words: list[int]) -> list[Any]:
        return [self.root, *self.vectors.rows(words)]

    def columns(self, fs: list[Any], bs: list[Any]) -> Any:
        dy = self.dy
        return dy.concatenate([dy.concatenate_cols(fs), dy.concatenate_cols(bs)])
