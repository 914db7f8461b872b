"""Functions of one's own over sequences (Scan) and trees (Loop): our values, step by step and node by node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from exporting import filled, near

import dynet_lite as dy
from dynet_lite import onnx

rng = np.random.default_rng(11)


class Cell(NamedTuple):
    h: Any
    c: Any


class Model:
    def __init__(self) -> None:
        self.model = dy.ParameterCollection()
        self.W, self.U = self.model.add_parameters((6, 4)), self.model.add_parameters((6, 3))
        self.V, self.b = self.model.add_parameters((3, 6)), self.model.add_parameters(6)
        self.table = self.model.add_lookup_parameters((7, 4))
        filled(self.model, rng)

    def step(self, state: Cell, x: Any) -> Cell:
        z = dy.tanh(dy.affine_transform([self.b, self.W, x, self.U, state.h]))
        c = dy.cmult(dy.logistic(z[:3]), state.c) + z[3:]
        return Cell(dy.tanh(c), c)

    def join(self, x: Any, left: Cell, right: Cell) -> Cell:
        """Right and left are not alike; x is what the node itself has."""
        mine = self.step(left, x)
        return Cell(mine.h - right.h, dy.cmult(mine.c, right.c) + self.V * dy.concatenate([left.h, right.c]))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(reverse: bool, runtime: Any, tmp_path: Any) -> None:
    m = Model()

    def network(words: Any, start: Any) -> Any:
        xs = onnx.lookup(m.table, words)
        shift = dy.tanh(start) * 0.5  # from outside of the body, and used in it

        def f(state: Cell, x: Any) -> Any:
            new = m.step(state, x + dy.concatenate([shift, shift[:1]]))
            return new, m.V * dy.concatenate([new.h, new.c])

        outputs, last = onnx.scan(f, Cell(start, dy.zeros(3)), xs, reverse)
        states, _ = onnx.scan(m.step, Cell(start, shift), xs[::-1])
        return outputs, last.h, last.c, states.h, states.c[-1]

    names = ["outputs", "h", "c", "states", "end"]
    path = onnx.export(network, tmp_path / "x.onnx", {"words": onnx.Ids("n"), "start": onnx.Input((3,))}, names)
    for n in (1, 2, 5):
        ids, first = rng.integers(0, 7, n), rng.standard_normal(3).astype(np.float32)
        found = dict(zip(names, runtime(path, {"words": ids, "start": first}), strict=True))
        dy.renew_cg()
        start, xs = dy.inputVector(first), [m.table[int(i)] for i in ids]
        shift = dy.tanh(start) * 0.5
        state, outputs = Cell(start, dy.zeros(3)), {}
        for i in reversed(range(n)) if reverse else range(n):
            state = m.step(state, xs[i] + dy.concatenate([shift, shift[:1]]))
            outputs[i] = m.V * dy.concatenate([state.h, state.c])
        near(found["outputs"], [outputs[i].npvalue() for i in range(n)])
        near(found["h"], state.h.npvalue())
        near(found["c"], state.c.npvalue())
        state, states = Cell(start, shift), {}
        for i in reversed(range(n)):
            state = states[i] = m.step(state, xs[i])
        near(found["states"], [states[i].h.npvalue() for i in range(n)])
        near(found["end"], state.c.npvalue())


def test_recurse(runtime: Any, tmp_path: Any) -> None:
    m = Model()

    def network(words: Any, children: Any) -> Any:
        xs = onnx.lookup(m.table, words)
        nobody = Cell(dy.zeros(3), dy.tanh(m.V * m.b))
        found = onnx.recurse(m.join, xs, children, nobody)
        counts = onnx.recurse(lambda x, a, b: a + b + 1, xs, children, dy.zeros(1))
        return found.h.map(lambda h: h * 2), found.c[-1], counts

    inputs = {"words": onnx.Ids("n"), "children": onnx.Children("n", 2)}
    path = onnx.export(network, tmp_path / "x.onnx", inputs, ["h", "root", "counts"])
    for tree in ([(-1, -1)], [(-1, -1), (0, -1), (-1, 1)], [(-1, -1), (-1, -1), (1, 0), (2, 2), (0, 3)]):
        ids = rng.integers(0, 7, len(tree))
        h, root, counts = runtime(path, {"words": ids, "children": np.array(tree)})
        dy.renew_cg()
        nobody, nodes, sizes = Cell(dy.zeros(3), dy.tanh(m.V * m.b)), [], []
        for i, (a, b) in zip(ids, tree, strict=True):
            nodes.append(m.join(m.table[int(i)], *(nodes[k] if k >= 0 else nobody for k in (a, b))))
            sizes.append(1 + sum(sizes[k] for k in (a, b) if k >= 0))
        near(h, [2 * node.h.npvalue() for node in nodes])
        near(root, nodes[-1].c.npvalue())
        near(counts[:, 0], sizes)


def test_a_scan_in_a_scan_and_several_sequences(runtime: Any, tmp_path: Any) -> None:
    """For each step of one sequence all steps of another one are gone over."""

    def network(xs: Any, ys: Any, zs: Any) -> Any:
        def outer(total: Any, step: Any) -> Any:
            x, z = step

            def inner(sum: Any, y: Any) -> Any:
                return sum + dy.cmult(x, y) * 0.5

            _, last = onnx.scan(inner, z, ys)
            return total + last

        sums, last = onnx.scan(outer, dy.zeros(2), (xs, zs))
        return sums, last

    inputs = {"xs": onnx.Input((2,), "n"), "ys": onnx.Input((2,), "m"), "zs": onnx.Input((2,), "n")}
    path = onnx.export(network, tmp_path / "x.onnx", inputs, ["sums", "last"])
    for n, k in ((1, 1), (3, 2)):
        xs, ys, zs = (rng.standard_normal((size, 2)).astype(np.float32) for size in (n, k, n))
        sums, last = runtime(path, {"xs": xs, "ys": ys, "zs": zs})
        wanted = np.cumsum(zs + 0.5 * xs * ys.sum(0), axis=0)
        near(sums, wanted)
        near(last, wanted[-1])


def test_mistakes(runtime: Any, tmp_path: Any) -> None:
    def export(network: Any, most: Any = 2, length: str = "n") -> None:
        inputs = {"xs": onnx.Input((3,), "n"), "children": onnx.Children(length, most)}
        onnx.export(network, tmp_path / "x.onnx", inputs)

    kept: list[Any] = []
    zero = lambda: dy.zeros(3)  # noqa: E731
    for network, error, said in (
        (lambda xs, children: onnx.scan(lambda s, x: 3, zero(), xs)[1], ValueError, "gives the next state, made up like the first"),
        (lambda xs, children: onnx.scan(lambda s, x: x[:2], zero(), xs)[1], ValueError, r"the dims \(3,\) and then \(2,\)"),
        (lambda xs, children: onnx.scan(lambda s, x: x, zero(), [zero()])[1], TypeError, "a sequence, or a tuple of sequences"),
        (lambda xs, children: onnx.scan(lambda s, x: x, zero(), (xs, xs[::-1]))[1], ValueError, "lengths n, n"),
        (lambda xs, children: onnx.scan(lambda s, x: x, "zero", xs)[1], TypeError, "is needed; got str"),
        (lambda xs, children: onnx.recurse(lambda x, a, b: (a,), xs, children, zero()), ValueError, "made up like `absent`"),
        (lambda xs, children: onnx.recurse(lambda x, a, b: a, xs, xs, zero()), TypeError, "onnx.Children is needed; got Sequence"),
        (lambda xs, children: onnx.scan(lambda s, x: kept.append(x) or x, zero(), xs) and kept[-1], RuntimeError, "outside of the function"),
        (lambda xs, children: onnx.scan(lambda s, x: dy.dropout(x, 0.5), zero(), xs)[1], onnx.Unsupported, r"dropout \(.*test_onnx_loops"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            export(network)
    with pytest.raises(onnx.Unsupported, match=r"such as onnx.Children\('n', 2\)"):
        export(lambda xs, children: onnx.recurse(lambda x, a: a, xs, children, zero()), "k")
    with pytest.raises(ValueError, match="the length n, the children m"):
        export(lambda xs, children: onnx.recurse(lambda x, a, b: a, xs, children, zero()), 2, "m")
