"""Names of the parameters of builders and of dynet_lite.nn: those that files show, and none where DyNet's have none."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import dynet_lite as dy
from dynet_lite import config, nn

Model = dy.ParameterCollection
GRU = ["Wzx", "Wzh", "bz", "Wrx", "Wrh", "br", "Whx", "Whh", "bh"]
COUPLED = ["Wxi", "Whi", "Wci", "bi", "Wxo", "Who", "Wco", "bo", "Wxc", "Whc", "bc"]
NORMS = ["norm_h_gain", "norm_h_bias", "norm_x_gain", "norm_x_bias", "norm_c_gain", "norm_c_bias"]
LSTM = ["Wx", "Wh", "b"]
WORDS = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}
PATHS = ["0 0\ta", "0 1\tb", "1\tc", "1\td", "1\te"]


def under(*folders: str) -> Callable[[list[str]], list[str]]:
    return lambda names: [f"{folder}/{name}" for folder in folders for name in names]


LAYER, LAYERS = under("layer0"), under("layer0", "layer1")
BOTH = ["layer0/forward", "layer0/backward", "layer1/forward", "layer1/backward"]
# what is made -> the name of its collection, names in it; all of them take name=
PARTS: dict[str, tuple[Callable[..., Any], str, list[str]]] = {
    "rnn": (lambda m, **k: dy.SimpleRNNBuilder(2, 2, 2, m, **k), "simple-rnn-builder", LAYERS(LSTM)),
    "gru": (lambda m, **k: dy.GRUBuilder(1, 2, 2, m, **k), "gru-builder", LAYER(GRU)),
    "lstm": (lambda m, **k: dy.LSTMBuilder(2, 2, 2, m, **k), "vanilla-lstm-builder", LAYERS(LSTM)),
    "normed": (lambda m, **k: dy.VanillaLSTMBuilder(1, 2, 2, m, True, **k), "vanilla-lstm-builder", LAYER(LSTM + NORMS)),
    "compact": (lambda m, **k: dy.CompactVanillaLSTMBuilder(1, 2, 2, m, **k), "compact-vanilla-lstm-builder", LAYER(LSTM)),
    "sparse": (lambda m, **k: dy.SparseLSTMBuilder(1, 2, 2, m, **k), "vanilla-lstm-builder",
               LAYER(["Wx", "Wh", "Wx_mask", "Wh_mask", "b"])),
    "coupled": (lambda m, **k: dy.CoupledLSTMBuilder(2, 2, 2, m, **k), "lstm-builder", LAYERS(COUPLED)),
    "fast": (lambda m, **k: dy.FastLSTMBuilder(1, 2, 2, m, **k), "fast-lstm-builder", LAYER(COUPLED)),
    "both ways": (lambda m, **k: dy.BiRNNBuilder(2, 2, 2, m, dy.LSTMBuilder, **k), "birnn", under(*BOTH)(LSTM)),
    "nary": (lambda m, **k: dy.NaryTreeLSTMBuilder(2, 1, 2, 2, m, **k), "nary-tree-lstm-builder",
             LAYER(["W", "b", "Wf", "bf", "U0", "U1"])),
    "child sum": (lambda m, **k: dy.ChildSumTreeLSTMBuilder(1, 2, 2, m, **k), "child-sum-tree-lstm-builder",
                  LAYER(["W", "b", "Wf", "bf", "U", "Uf"])),
    "tree": (lambda m, **k: dy.UnidirectionalTreeLSTMBuilder(1, 2, 2, m, **k), "unidirectional-tree-lstm-builder",
             under("vanilla-lstm-builder/layer0")(LSTM)),
    "tree both ways": (lambda m, **k: dy.BidirectionalTreeLSTMBuilder(1, 2, 2, m, **k), "bidirectional-tree-lstm-builder",
                       under("forward/layer0", "backward/layer0")(LSTM)),
    "softmax": (lambda m, **k: dy.StandardSoftmaxBuilder(2, 3, m, **k), "standard-softmax-builder", ["W", "b"]),
    "classes": (lambda m, **k: dy.ClassFactoredSoftmaxBuilder(2, ["x a", "y b", "y c"], {"a": 0, "b": 1, "c": 2}, m, **k),
                "class-factored-softmax-builder", ["W", "b", "class1/W", "class1/b"]),
    "hierarchy": (lambda m, **k: dy.HierarchicalSoftmaxBuilder(2, PATHS, WORDS, m, **k), "hsm-builder",
                  under("root", "root.0", "root.1")(["W", "b"])),
}  # fmt: skip
WORD_PARTS = nn.WordReader.build([["ab", "ab"]])
OWN: dict[str, tuple[Callable[..., Any], str, list[str]]] = {
    "mlp": (lambda m, **k: nn.MLPAttention(2, 2, 2, m, **k), "mlp-attention", ["W", "U", "v"]),
    "dot": (lambda m, **k: nn.DotAttention(2, 2, m, **k), "dot-attention", ["W"]),
    "heads": (lambda m, **k: nn.MultiHeadAttention(2, 1, m, **k), "multi-head-attention", ["Wq", "Wk", "Wv", "Wo", "bo"]),
    "norm": (lambda m, **k: nn.LayerNorm(2, m, **k), "layer-norm", ["gain", "bias"]),
    "transformer": (lambda m, **k: nn.Transformer(1, 2, 1, 2, m, **k), "transformer", [
        *under("layer0/before-attention", "layer0/before-hidden")(["gain", "bias"]),
        *under("layer0/attention")(["Wq", "Wk", "Wv", "Wo", "bo"]),
        *LAYER(["W1", "b1", "W2", "b2"]), *under("norm")(["gain", "bias"]),
    ]),
    "biaffine": (lambda m, **k: nn.Biaffine(m, 2, 2, 2, **k), "biaffine", ["U", "u", "W", "b"]),
    "crf": (lambda m, **k: nn.LinearChainCRF(m, 2, **k), "crf", ["transitions", "start", "end"]),
    "words": (
        lambda m, **k: nn.WordReader(m, WORD_PARTS, dim=2, char_dim=2, char_hidden=2, rng=random.Random(), **k), "words",
        ["words", "letters", *under("forward/layer0", "backward/layer0")(LSTM)],
    ),
    "words by filters": (
        lambda m, **k: nn.WordReader(m, WORD_PARTS, dim=2, char_dim=2, char_hidden=2, rng=random.Random(), char_reader="cnn",
                                     case_dim=1, **k), "words",
        ["words", "letters", "filters0", "filters1", "filters2", "biases", "cases"],
    ),
}  # fmt: skip


def names(m: Model) -> list[str]:
    return [p.name() for p in m._all]


@pytest.mark.parametrize("part", [*PARTS, *OWN])
def test_names(part: str) -> None:
    make, own, inside = {**PARTS, **OWN}[part]
    m = Model()
    make(m)
    make(m)
    make(m.add_subcollection("s"), name="mine")
    assert names(m) == [f"/{folder}/{name}" for folder in (own, f"{own}_1", "s/mine") for name in inside]


@pytest.mark.parametrize("part", PARTS)
def test_names_of_dynet(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standing in for DyNet: numbers alone, and only the collections that DyNet's builders make."""
    monkeypatch.setattr(config, "is_dynet", lambda: True)
    make, own, inside = PARTS[part]
    m = Model()
    make(m)
    deep = {"both ways": 12, "tree": 3, "tree both ways": 6}
    if part not in deep:
        assert names(m) == [f"/{own}/_{k}" for k in range(len(inside))]
    else:
        folders = [f"/{own}/vanilla-lstm-builder{more}" for more in ("", "_1", "_2", "_3")][: deep[part] // 3]
        assert names(m) == [f"{folder}/_{k}" for folder in folders for k in range(3)]


def test_a_factory_of_ones_own() -> None:
    """It may make what it likes in the collection that it is given: one builder has the collection, others theirs in it."""
    m = Model()

    def factory(layers: int, inputs: int, hidden: int, model: Any) -> Any:
        made = dy.SimpleRNNBuilder(layers, inputs, hidden, model)
        dy.SimpleRNNBuilder(layers, inputs, hidden, model)
        model.add_parameters(1)
        return made

    pair = dy.BiRNNBuilder(1, 2, 2, m, factory, name="r").builder_layers[0]
    assert pair[0].param_collection().name() == "/r/layer0/forward/"
    inside = [*LSTM, *under("simple-rnn-builder/layer0")(LSTM), "_0"]
    assert names(m) == [f"/r/layer0/{way}/{name}" for way in ("forward", "backward") for name in inside]
    stacked = dy.BiRNNBuilder(1, 2, 2, m, lambda _, i, h, model: dy.GRUBuilder(2, i, h, model))
    assert stacked.builder_layers[0][1].get_parameters()[1][0].name() == "/birnn/layer0/backward/layer1/Wzx"
    named = dy.BiRNNBuilder(1, 2, 2, m, lambda n, i, h, model: dy.SimpleRNNBuilder(n, i, h, model, name="x"))
    assert named.builder_layers[0][0].param_collection().name() == "/birnn_1/layer0/forward/x/"
