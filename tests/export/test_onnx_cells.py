"""dy.map, dy.scan and dy.recurse inside exported functions: one function, run by us with lists and by ONNX Runtime as a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exporting import filled, near

import dynet_lite as dy
from dynet_lite import onnx

rng = np.random.default_rng(13)


class Model:
    def __init__(self) -> None:
        self.model = dy.ParameterCollection()
        self.W, self.U = self.model.add_parameters((6, 4)), self.model.add_parameters((6, 3))
        self.V, self.b = self.model.add_parameters((3, 6)), self.model.add_parameters(6)
        self.table = self.model.add_lookup_parameters((7, 4))
        filled(self.model, rng)

    @dy.cell
    def step(self, s: Any, word: Any) -> Any:
        """h comes before c though the names are in another order; h is not computed with."""
        z = dy.tanh(dy.affine_transform([self.b, self.W, self.table[word], self.U, s.c]))
        return dy.state(h=z[:3], c=dy.cmult(dy.logistic(z[3:]), s.c) + z[:3])


def each(states: Any, f: Callable[[Any], Any]) -> Any:
    """f of each state: of a list, or of what stands for one in a file."""
    return [f(s) for s in states] if isinstance(states, list) else states.map(f)


def agree(network: Callable[..., Any], path: Any, runtime: Any, ours: dict[str, Any], given: dict[str, Any]) -> None:
    """The outputs of a file are the values of the function: of lists of expressions one row each."""
    found = runtime(path, given)
    dy.renew_cg()
    ours = {k: [dy.inputVector(x) for x in xs] if isinstance(xs, np.ndarray) else xs for k, xs in ours.items()}
    for one, wanted in zip(found, network(**ours), strict=True):
        near(one, [e.npvalue() for e in wanted] if isinstance(wanted, list) else wanted.npvalue())


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_and_map(reverse: bool, runtime: Any, tmp_path: Any) -> None:
    m = Model()

    @dy.cell
    def paired(total: Any, s: Any) -> Any:
        new = dy.tanh((m.U * total)[:3]) + s.h
        return new, dy.cmult(new, s.c)

    @dy.cell
    def mixed(s: Any, word: dy.Index, y: Any) -> Any:
        return m.V * dy.concatenate([s.h, s.c]) + m.table[word][:3], dy.sum_elems(y), m.b * 2

    def network(words: Any) -> Any:
        states, last = dy.scan(m.step, dy.state(h=dy.zeros(3), c=dy.ones(3)), words, reverse)
        sums, total = dy.scan(paired, dy.ones(3), states)
        most = dy.map(mixed, states, words, sums)
        parts = [each(most, lambda x, k=k: x[k]) for k in range(3)]  # the last is the same for each step
        return (*parts, sums, each(states, lambda s: s.h), last.h, last.c, total, states[0].c, states[-1].h,
                states[::-1][0].c)  # fmt: skip

    names = [f"output{i}" for i in range(11)]
    path = onnx.export(network, tmp_path / "x.onnx", {"words": onnx.Ids("n")}, names)
    for n in (1, 2, 5):
        ids = rng.integers(0, 7, n)
        agree(network, path, runtime, {"words": [int(i) for i in ids]}, {"words": ids})


def test_scan_of_several_and_map_of_vectors(runtime: Any, tmp_path: Any) -> None:
    m = Model()

    @dy.cell
    def both(s: Any, pair: Any) -> Any:
        word, y = pair
        return dy.tanh(dy.affine_transform([m.b, m.W, m.table[word] + y, m.U, s])[:3])

    @dy.cell
    def shown(x: Any, word: Any) -> Any:
        return x * 2 + m.table[word][:3]

    def network(words: Any, ys: Any) -> Any:
        pairs = list(zip(words, ys, strict=True)) if isinstance(words, list) else (words, ys)
        states, last = dy.scan(both, dy.zeros(3), pairs)
        return states, last, dy.map(shown, states, words)

    inputs = {"words": onnx.Ids("n", absent=True), "ys": onnx.Input((4,), "n")}
    path = onnx.export(network, tmp_path / "x.onnx", inputs, ["states", "last", "shown"])
    for n in (1, 4):
        ids, ys = rng.integers(0, 7, n), rng.standard_normal((n, 4)).astype(np.float32)
        ours = {"words": [int(i) for i in ids], "ys": ys}
        agree(network, path, runtime, ours, {"words": ids, "ys": ys})
    m.table.init_row(6, np.zeros(4))  # what -1 stands for
    path = onnx.export(network, tmp_path / "x.onnx", inputs, ["states", "last", "shown"])
    ids, ys = np.array([3, -1, 2]), rng.standard_normal((3, 4)).astype(np.float32)
    dy.renew_cg()
    ours = {"words": [3, 6, 2], "ys": [dy.inputVector(y) for y in ys]}
    found, wanted = runtime(path, {"words": ids, "ys": ys}), network(**ours)
    near(found[2], [e.npvalue() for e in wanted[2]])


TREES: list[list[tuple[int, ...]]] = [
    [()],
    [(), (), (0, 1)],
    [(), (0,), (), (2, 1), (3,)],
    [(), (), (1, 0), (2, 2), (0, 3)],
]


def rows(tree: list[tuple[int, ...]], most: int) -> np.ndarray:
    return np.array([[*ids, *[-1] * (most - len(ids))] for ids in tree]).reshape(-1, most)


def test_recurse(runtime: Any, tmp_path: Any) -> None:
    """Leaves, nodes with one child and nodes with two are computed differently."""
    m = Model()

    @dy.cell
    def compose(word: Any, left: Any = None, right: Any = None) -> Any:
        x = dy.tanh(m.W * m.table[word])
        if left is None:
            return dy.state(h=x[:3], c=x[3:])
        if right is None:
            return dy.state(h=left.h + x[:3], c=left.c * 0.5)
        z = m.V * dy.concatenate([left.h, right.c])
        return dy.state(h=dy.tanh(z) - right.h, c=left.c + dy.cmult(z, x[3:]))

    def network(words: Any, children: Any) -> Any:
        nodes = dy.recurse(compose, words, children)
        return each(nodes, lambda s: s.h), nodes[-1].c, dy.map(m.step, nodes, words)[-1].c

    inputs = {"words": onnx.Ids("n"), "children": onnx.Children("n", 2)}
    path = onnx.export(network, tmp_path / "x.onnx", inputs, ["h", "root", "after"])
    for tree in TREES:
        ids = rng.integers(0, 7, len(tree))
        ours = {"words": [int(i) for i in ids], "children": tree}
        agree(network, path, runtime, ours, {"words": ids, "children": rows(tree, 2)})


def test_recurse_with_counts(runtime: Any, tmp_path: Any) -> None:
    """A cell for binary trees alone, and one for any number of children. What was not declared is NaN."""
    m = Model()

    @dy.cell
    def binary(word: Any, left: Any = None, right: Any = None) -> Any:
        if left is None:
            return m.table[word][:3]
        return dy.tanh(m.V * dy.concatenate([left, right]))

    @dy.cell
    def gather(x: Any, *below: Any) -> Any:
        return dy.tanh(dy.esum([x, *below]))

    def network(words: Any, xs: Any, children: Any) -> Any:
        return dy.recurse(binary, words, children), dy.recurse(gather, xs, children)

    def inputs(*counts: int) -> dict[str, Any]:
        return {"words": onnx.Ids("n"), "xs": onnx.Input((2,), "n"), "children": onnx.Children("n", 2, counts)}

    path = onnx.export(network, tmp_path / "x.onnx", inputs(0, 2), ["binary", "all"])
    for tree in TREES[:2]:
        ids, xs = rng.integers(0, 7, len(tree)), rng.standard_normal((len(tree), 2)).astype(np.float32)
        ours = {"words": [int(i) for i in ids], "xs": xs, "children": tree}
        agree(network, path, runtime, ours, {"words": ids, "xs": xs, "children": rows(tree, 2)})
    given = {"words": np.array([1, 2]), "xs": np.ones((2, 2), np.float32)}
    for children in ([[-1, -1], [0, -1]], [[-1, -1], [-1, 0]]):
        binaries, every = runtime(path, {**given, "children": np.array(children)})
        assert np.isfinite(binaries[0]).all() and np.isnan(binaries[1]).all() and np.isnan(every[1]).all()
    with pytest.raises(TypeError, match=r"recurse: binary of 1 children: .*counts=\(0, 2\)"):
        onnx.export(network, tmp_path / "y.onnx", inputs(), ["binary", "all"])
    for counts in ((1, 2), (0, 3)):
        with pytest.raises(ValueError, match="counts must be 0 and other numbers up to 2"):
            onnx.Children("n", 2, counts)


BUILDERS = {
    "coupled, two layers": lambda m: dy.CoupledLSTMBuilder(2, 4, 3, m),
    "fast": lambda m: dy.FastLSTMBuilder(1, 4, 3, m),
    "compact": lambda m: dy.CompactVanillaLSTMBuilder(2, 4, 3, m),
    "sparse": lambda m: dy.SparseLSTMBuilder(1, 4, 3, m),
    "normalised": lambda m: dy.VanillaLSTMBuilder(2, 4, 3, m, ln_lstm=True),
}


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("start", [False, True])
def test_builders_without_an_op_are_scans(name: str, start: bool, runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    builder = BUILDERS[name](model)
    filled(model, rng)
    if name == "sparse":
        builder.set_sparsity(0.5)
    dy.renew_cg()
    states = rng.uniform(-0.9, 0.9, (2 * builder.layers, 3)).astype(np.float32)

    def network(xs: Any) -> Any:
        state = builder.initial_state([dy.inputVector(v) for v in states] if start else None)
        found = state.transduce(xs)
        back = state.transduce(xs[::-1])
        return found, found[-1], back[-1]

    path = onnx.export(network, tmp_path / "x.onnx", {"xs": onnx.Input((4,), "n")}, ["all", "last", "first"])
    for n in (1, 5):
        data = rng.standard_normal((n, 4)).astype(np.float32)
        agree(network, path, runtime, {"xs": data}, {"xs": data})


def test_builders_of_cells_and_stacks(runtime: Any, tmp_path: Any) -> None:
    m = Model()
    lstm, gru = dy.LSTMBuilder(1, 3, 5, m.model), dy.GRUBuilder(1, 5, 2, m.model)
    filled(m.model, rng)

    @dy.cell
    def paired(s: Any, x: Any) -> Any:
        new = dy.tanh((m.U * s)[:3] + x)
        return new, new * 2

    of_words = dy.CellBuilder(m.step, lambda: dy.state(h=dy.zeros(3), c=dy.zeros(3)))
    of_pairs = dy.CellBuilder(paired, lambda: dy.zeros(3))

    def network(words: Any) -> Any:
        hs = of_words.initial_state().transduce(words)
        twice = of_pairs.initial_state().transduce(hs)
        stack = dy.StackedRNNState([lstm.initial_state(), gru.initial_state()])
        return hs, twice, stack.transduce(twice)

    path = onnx.export(network, tmp_path / "x.onnx", {"words": onnx.Ids("n")}, ["h", "twice", "stacked"])
    for n in (1, 4):
        ids = rng.integers(0, 7, n)
        agree(network, path, runtime, {"words": [int(i) for i in ids]}, {"words": ids})


def test_names_of_a_state_may_come_in_any_order(runtime: Any, tmp_path: Any) -> None:
    m = Model()

    @dy.cell
    def turned(s: Any, word: Any) -> Any:
        return dy.state(c=s.h + m.table[word], h=dy.tanh(s.c))

    @dy.cell
    def node(word: Any, below: Any = None) -> Any:
        return dy.state(h=m.table[word], c=dy.zeros(4)) if below is None else turned.function(below, word)

    def network(words: Any, children: Any) -> Any:
        states, last = dy.scan(turned, dy.state(h=dy.zeros(4), c=dy.ones(4)), words)
        nodes = dy.recurse(node, words, children)
        return each(states, lambda s: s.h - 2 * s.c), last.c, each(nodes, lambda s: s.h - 2 * s.c)

    inputs = {"words": onnx.Ids("n"), "children": onnx.Children("n", 1)}
    path = onnx.export(network, tmp_path / "x.onnx", inputs, ["states", "c", "nodes"])
    words, children = [1, 2, 5, 3], [(), (0,), (1,), (2,)]
    given = {"words": np.array(words), "children": rows(children, 1)}
    agree(network, path, runtime, {"words": words, "children": children}, given)


def test_single_rows(runtime: Any, tmp_path: Any) -> None:
    """table[ids] is onnx.lookup(table, ids)."""
    m = Model()

    def network(word: Any, words: Any) -> Any:
        return m.W * m.table[word], m.table[words].sum()

    path = onnx.export(network, tmp_path / "x.onnx", {"word": onnx.Ids(), "words": onnx.Ids("n")}, ["one", "sum"])
    one, total = runtime(path, {"word": np.array(3), "words": np.array([1, 1, 5])})
    values = m.table.as_array()
    near(one, m.W.as_array() @ values[3])
    near(total, 2 * values[1] + values[5])


@pytest.mark.parametrize("cells", ["recorded", "inline", "check"])
def test_cells_are_run_by_hand(cells: str, runtime: Any, tmp_path: Any) -> None:
    m = Model()

    def network(words: Any) -> Any:
        return dy.scan(m.step, dy.state(h=dy.zeros(3), c=dy.zeros(3)), words)[1].c

    with dy.configure(cells=cells):
        path = onnx.export(network, tmp_path / "x.onnx", {"words": onnx.Ids("n")})
    agree(lambda words: [network(words)], path, runtime, {"words": [2, 3]}, {"words": np.array([2, 3])})


def test_mistakes(runtime: Any, tmp_path: Any) -> None:
    m = Model()
    kept: list[Any] = []

    @dy.cell
    def add(x: Any, y: Any) -> Any:
        return x + y

    @dy.cell
    def label(x: Any, y: Any) -> Any:
        return dy.pickneglogsoftmax(x, y)

    @dy.cell
    def leaves_differ(x: Any, *below: Any) -> Any:
        return x if below else (x, x)

    @dy.cell
    def keeps(s: Any, x: Any) -> Any:
        kept.append(x)
        return s + x

    for network, error, said in (
        (lambda xs, ids, children: dy.map(add, xs, [1, 2]), TypeError, "sequences are needed; got list"),
        (lambda xs, ids, children: dy.map(add, xs, xs[::-1]), ValueError, "lengths n and n, backwards"),
        (lambda xs, ids, children: [m.table[i] for i in ids], onnx.Unsupported, r"ids: how many .* use table\[ids\], dy.map or dy.scan"),
        (lambda xs, ids, children: m.table[ids[0]], onnx.Unsupported, r"take the vectors first: table\[ids\]\[0\]"),
        (lambda xs, ids, children: xs[0] * len(ids), onnx.Unsupported, "ids: how many"),
        (lambda xs, ids, children: dy.map(label, xs, ids), TypeError, "must be a whole number; got Number"),
        (lambda xs, ids, children: dy.map(add, xs, children), TypeError, "children is declared as Children"),
        (lambda xs, ids, children: dy.scan(m.step, dy.zeros(3), ids)[1], AttributeError, "'c'"),
        (lambda xs, ids, children: dy.scan(keeps, dy.zeros(3), xs)[1] + kept[0], RuntimeError, "outside of the function"),
        (lambda xs, ids, children: dy.recurse(leaves_differ, xs, children), ValueError, "not made up alike"),
        (lambda xs, ids, children: list(dy.scan(m.step, dy.state(h=dy.zeros(3), c=dy.zeros(3)), ids)[0]), onnx.Unsupported, "cannot be iterated"),
        (lambda xs, ids, children: dy.scan(m.step, dy.state(h=dy.zeros(3), c=dy.zeros(3)), ids, lengths=[2])[1][0].h, onnx.Unsupported, "`lengths` has no form"),
        (lambda xs, ids, children: dy.scan(lambda s, x: s, dy.zeros(3), xs), TypeError, "a cell is needed"),
    ):  # fmt: skip
        inputs = {"xs": onnx.Input((3,), "n"), "ids": onnx.Ids("n"), "children": onnx.Children("n", 2)}
        with pytest.raises(error, match=said):
            onnx.export(network, tmp_path / "x.onnx", inputs)
