"""Tree LSTMs over trees that the file gets, attention and places in sequences of any length: our values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exporting import filled, near

import dynet_lite as dy
from dynet_lite import onnx
from dynet_lite.nn import MultiHeadAttention, Transformer, positions

rng = np.random.default_rng(7)

# Children by node: a chain, a single node, a binary tree, a tree whose nodes share a child.
TREES = [[[], [0], [1], [2]], [[]], [[], [], [0, 1], [], [2, 3]], [[], [0], [0, 1]]]

BUILDERS = {
    "n-ary": (2, lambda m: dy.NaryTreeLSTMBuilder(2, 1, 4, 3, m)),
    "n-ary of three, two layers": (3, lambda m: dy.NaryTreeLSTMBuilder(3, 2, 4, 3, m, forget_bias=0.5)),
    "child-sum": ("k", lambda m: dy.ChildSumTreeLSTMBuilder(1, 4, 3, m)),
    "child-sum, two layers": ("k", lambda m: dy.ChildSumTreeLSTMBuilder(2, 4, 3, m, forget_bias=0.5)),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_trees(name: str, runtime: Any, tmp_path: Any) -> None:
    most, make = BUILDERS[name]
    model = dy.ParameterCollection()
    builder = make(model)
    table, W = model.add_lookup_parameters((6, 4)), model.add_parameters((2, 3))
    filled(model, rng)

    def network(words: Any, children: Any) -> Any:
        return onnx.tree(builder, onnx.lookup(table, words), children).map(lambda h: W * h)

    inputs = {"words": onnx.Ids("n", absent=True), "children": onnx.Children("n", most)}
    path = onnx.export(network, tmp_path / "x.onnx", inputs)
    for tree in TREES:
        words = rng.integers(-1, 6, len(tree))
        width = most if isinstance(most, int) else max(1, *map(len, tree), 1)
        children = np.full((len(tree), width), -1)
        for row, ids in zip(children, tree, strict=True):
            row[: len(ids)] = ids
        (found,) = runtime(path, {"words": words, "children": children})
        dy.renew_cg()
        nodes: list[Any] = []
        for word, ids in zip(words, tree, strict=True):
            nodes.append(builder.node(table[int(word)] if word >= 0 else None, [nodes[i] for i in ids]))
        near(found, [(W * node.output()).npvalue() for node in nodes])


def test_mistakes_about_trees(runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    table, other = model.add_lookup_parameters((6, 4)), dy.UnidirectionalTreeLSTMBuilder(1, 4, 4, model)
    builder = dy.NaryTreeLSTMBuilder(2, 1, 4, 3, model)

    def export(network: Any, most: Any = 2, length: str = "n") -> None:
        inputs = {"words": onnx.Ids("n"), "children": onnx.Children(length, most)}
        onnx.export(network, tmp_path / "x.onnx", inputs)

    with pytest.raises(ValueError, match=r"2 children; declare onnx.Children\('n', 2\)"):
        export(lambda words, children: onnx.tree(builder, onnx.lookup(table, words), children), 3)
    with pytest.raises(ValueError, match="the length n, the children m"):
        export(lambda words, children: onnx.tree(builder, onnx.lookup(table, words), children), 2, "m")
    with pytest.raises(onnx.Unsupported, match="UnidirectionalTreeLSTMBuilder has none"):
        export(lambda words, children: onnx.tree(other, onnx.lookup(table, words), children))
    with pytest.raises(TypeError, match=r"onnx.Children is needed; got Chosen"):
        export(lambda words, children: onnx.tree(builder, onnx.lookup(table, words), words))
    with pytest.raises(TypeError, match=r"lookup: an input declared as onnx.Ids"):
        export(lambda words, children: onnx.lookup(table, children))
    with pytest.raises(ValueError, match="absent=True goes with a sequence"):
        onnx.Ids(absent=True)


def test_attention_and_places(runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    attention, transformer = MultiHeadAttention(6, 3, model), Transformer(2, 6, 2, 8, model)
    filled(model, rng)

    def network(xs: Any, ys: Any) -> Any:
        memory = ys.map(attention.key), ys.map(attention.value)
        found = attention.symbolic(xs, *memory)
        both = transformer.symbolic(xs, causal=True), transformer.symbolic(xs)
        return found, attention.symbolic(xs[0], *memory), *both, onnx.waves(xs, 6), onnx.waves(ys, 6, after=True)

    names = ["all", "first", "causal", "free", "places", "next"]
    path = onnx.export(
        network, tmp_path / "x.onnx", {x: onnx.Input((6,), n) for x, n in (("xs", "n"), ("ys", "m"))}, names
    )
    for n, m in ((1, 1), (4, 2), (3, 7)):
        xs, ys = (rng.standard_normal((k, 6)).astype(np.float32) for k in (n, m))
        found = dict(zip(names, runtime(path, {"xs": xs, "ys": ys}), strict=True))
        dy.renew_cg()
        a, b = dy.inputTensor(xs.T), dy.inputTensor(ys.T)
        wanted = attention(a, b).npvalue().T.reshape(n, 6)
        near(found["all"], wanted)
        near(found["first"], wanted[0])
        near(found["causal"], transformer(a, causal=True).npvalue().T.reshape(n, 6))
        near(found["free"], transformer(a).npvalue().T.reshape(n, 6))
        near(found["places"], positions(6, n).npvalue().T.reshape(n, 6))
        near(found["next"], positions(6, m + 1).npvalue().T[m])


def test_longer_sequences(runtime: Any, tmp_path: Any) -> None:
    def network(xs: Any, x: Any) -> Any:
        return xs.begun(x), xs.ended(x), xs[::-1].begun(x), xs[::-1].ended(x)[0], xs.ended(x).sum()

    inputs = {"xs": onnx.Input((2,), "n"), "x": onnx.Input((2,))}
    path = onnx.export(network, tmp_path / "x.onnx", inputs, ["front", "back", "turned", "last", "sum"])
    xs, x = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([8, 9], dtype=np.float32)
    front, back, turned, last, total = runtime(path, {"xs": xs, "x": x})
    near(front, [x, *xs])
    near(back, [*xs, x])
    near(turned, [*xs, x])  # of a sequence that goes backwards the first step lies at the end
    near(last, xs[-1])
    near(total, xs.sum(0) + x)
    near(runtime(path, {"xs": xs[:1], "x": x})[4], xs[0] + x)


def test_graphs(runtime: Any, tmp_path: Any) -> None:
    def network(xs: Any, ys: Any, u: Any, v: Any, k: Any) -> Any:
        return onnx.heard([xs, ys], u, v, k), onnx.chosen(xs, u)

    names = {x: onnx.Ids("m") for x in "uvk"}
    path = onnx.export(
        network, tmp_path / "x.onnx", {**{x: onnx.Input((2,), "n") for x in ("xs", "ys")}, **names}, ["heard", "chosen"]
    )
    for n, m in ((1, 0), (1, 2), (4, 9)):
        xs, ys = (rng.standard_normal((n, 2)).astype(np.float32) for _ in range(2))
        u, v, k = rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(0, 2, m)
        found, rows = runtime(path, {"xs": xs, "ys": ys, "u": u, "v": v, "k": k})
        wanted = np.zeros((n, 2), dtype=np.float32)
        for a, b, kind in zip(u, v, k, strict=True):
            wanted[b] += (xs, ys)[kind][a]
        near(found, wanted)
        near(rows, xs[u])
    inputs = {"xs": onnx.Input((2,), "n"), "u": onnx.Ids("m"), "v": onnx.Ids("o")}
    with pytest.raises(ValueError, match="the lengths m, o, m"):
        onnx.export(lambda xs, u, v: onnx.heard([xs], u, v, u), tmp_path / "x.onnx", inputs)
    with pytest.raises(TypeError, match="onnx.Ids with a length is needed; got Sequence"):
        onnx.export(lambda xs, u, v: onnx.chosen(xs, xs), tmp_path / "x.onnx", inputs)
    with pytest.raises(ValueError, match="one length and of vectors of one size"):
        onnx.export(lambda xs, u, v: onnx.heard([xs, xs.begun(xs[0])], u, u, u), tmp_path / "x.onnx", inputs)


@pytest.mark.parametrize("kind", [dy.LSTMBuilder, dy.CoupledLSTMBuilder, dy.GRUBuilder, dy.SimpleRNNBuilder])
def test_steps(kind: Any, runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    builder = kind(2, 4, 3, model)
    filled(model, rng)
    network, inputs, outputs = onnx.step(builder)
    path = onnx.export(network, tmp_path / "x.onnx", inputs, outputs)
    states = {name: np.zeros(3, dtype=np.float32) for name in list(inputs)[1:]}
    dy.renew_cg()
    ours = builder.initial_state()
    for _ in range(3):
        x = rng.standard_normal(4).astype(np.float32)
        after = runtime(path, {"x": x, **states})
        states = dict(zip(states, after, strict=True))
        ours = ours.add_input(dy.inputVector(x))
        for theirs, mine in zip(after, ours.s(), strict=True):
            near(theirs, mine.npvalue())
        near(after[-1], ours.output().npvalue())
    with pytest.raises(TypeError, match="of one direction is needed; got BiRNNBuilder"):
        onnx.step(dy.BiRNNBuilder(1, 4, 4, model, kind))
