"""Random functions over sequences whose length is not known: exported, run with several lengths, compared with lists of expressions.

A function is a few lines of Python on names of inputs: a, b, w (of length n), c (of length m), the vectors v0 and v1, the trees t. Each
line makes a sequence or a vector. By hand, for as long as one likes: python tests/export/random_functions.py --functions 1000
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dynet_lite as dy
from dynet_lite import onnx

D, ROWS = 3, 7
LENGTHS = ((1, 1), (2, 1), (1, 4), (5, 3))  # of n and m


class Steps:
    """What a sequence is for a file, as a list."""

    def __init__(self, xs: list[Any]) -> None:
        self.xs = xs

    def __getitem__(self, k: Any) -> Any:
        return Steps(self.xs[k]) if isinstance(k, slice) else self.xs[k]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.xs)

    def map(self, f: Callable[..., Any], *others: Steps) -> Steps:
        return Steps([f(*xs) for xs in zip(self, *others, strict=True)])

    def sum(self) -> Any:
        return dy.esum(self.xs)

    def average(self) -> Any:
        return dy.average(self.xs)

    def max(self) -> Any:
        return dy.emax(self.xs)

    def softmax(self) -> Steps:
        weights = dy.softmax(dy.concatenate_cols(self.xs), d=1)
        return Steps([dy.pick(weights, k, 1) for k in range(len(self.xs))])

    def windows(self, width: int, padding: int) -> list[Steps]:
        nothing = [dy.zeros(D)] * padding
        xs = [*nothing, *self.xs, *nothing]
        return [Steps(xs[k : len(xs) - width + 1 + k]) for k in range(width)]

    def begun(self, x: Any) -> Steps:
        return Steps([x, *self.xs])

    def ended(self, x: Any) -> Steps:
        return Steps([*self.xs, x])


class Parts:
    """A builder that takes Steps."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def initial_state(self) -> Parts:
        return Parts(self.builder.initial_state())

    def transduce(self, xs: Steps) -> Steps:
        return Steps(self.builder.transduce(xs.xs))


def scan(f: Any, init: Any, xs: Any, reverse: bool) -> Any:
    """onnx.scan for lists."""
    rows = list(zip(*xs, strict=True)) if isinstance(xs, tuple) else xs.xs
    outputs, state = [], init
    for row in rows[::-1] if reverse else rows:
        state, out = f(state, row)
        outputs.append(out)
    return Steps(outputs[::-1] if reverse else outputs), state


def attend(queries: Any, keys: Steps, values: Steps, heads: int, causal: bool = False) -> Any:
    """onnx.attend for lists."""
    size, found = D // heads, []
    single = not isinstance(queries, Steps)
    for i, q in enumerate([queries] if single else queries):
        seen = slice(0, i + 1 if causal else None)
        parts = []
        for at in (slice(h * size, (h + 1) * size) for h in range(heads)):
            scores = dy.concatenate([dy.dot_product(q[at], k[at]) for k in keys.xs[seen]])
            mixed = [v[at] * s for v, s in zip(values.xs[seen], dy.softmax(scores * size**-0.5), strict=True)]
            parts.append(dy.esum(mixed))
        found.append(dy.concatenate(parts))
    return found[0] if single else Steps(found)


def of_lists(trees: np.ndarray) -> dict[str, Any]:
    """The functions that a random function calls, for lists."""

    def below(rows: np.ndarray, states: list[Any], absent: Any) -> list[Any]:
        return [states[k] if k >= 0 else absent for k in rows]

    def recurse(f: Any, xs: Steps, _: Any, absent: Any) -> Steps:
        states: list[Any] = []
        for x, rows in zip(xs, trees, strict=True):
            states.append(f(x, *below(rows, states, absent)))
        return Steps(states)

    def tree(builder: Any, xs: Steps, _: Any) -> Steps:
        nodes: list[Any] = []
        for x, rows in zip(xs, trees, strict=True):
            given = below(rows, nodes, None)
            some = given if isinstance(builder, dy.NaryTreeLSTMBuilder) else [g for g in given if g is not None]
            nodes.append(builder.node(x, some))
        return Steps([node.output() for node in nodes])

    def cells(f: Any, init: Any, xs: Steps) -> Any:
        return Steps(dy.scan(dy.cell(f), init, xs.xs)[0])

    return {"scan": scan, "attend": attend, "recurse": recurse, "tree": tree, "cells": cells}


OF_FILES = {"scan": onnx.scan, "attend": onnx.attend, "recurse": onnx.recurse, "tree": onnx.tree,
            "cells": lambda f, init, xs: dy.scan(dy.cell(f), init, xs)[0]}  # fmt: skip
KINDS = (dy.VanillaLSTMBuilder, dy.CompactVanillaLSTMBuilder, dy.GRUBuilder, dy.SimpleRNNBuilder, dy.CoupledLSTMBuilder,
         dy.FastLSTMBuilder, lambda *of: dy.VanillaLSTMBuilder(*of, ln_lstm=True))  # fmt: skip
WINDOWS = ((1, 0), (3, 1), (3, 2), (1, 1), (2, 1), (5, 2))


class Function:
    """A random function: its lines, and the weights and builders that they name."""

    def __init__(self, seed: int) -> None:
        self.r, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.absent = seed % 2 == 1  # may words be missing?
        self.model = dy.ParameterCollection()
        self.names: dict[str, Any] = {"dy": dy, "T": self.model.add_lookup_parameters((ROWS, D))}
        self.lines: list[str] = []
        self.vectors = ["v0", "v1"]
        # Text, how much longer than n or m it is, backwards?
        self.sequences = [("a", "n", False), ("b", "n", False), ("w", "n", False), ("c", "m", False)]
        dy.reset_random_seed(seed + 1)
        for _ in range(self.r.randint(2, 8)):
            self.r.choice(LINES)(self, *self.sequence())
        pool = [*self.sequences, *((v, "", False) for v in self.vectors)]
        self.outputs = [*(self.r.choice(pool) for _ in range(3)), pool[0], pool[-1], pool[-1]]

    # ---- choosing --------------------------------------------------------------------------------------------------

    def name(self, letter: str) -> str:
        return f"{letter}{len(self.names) + len(self.lines) + 10}"

    def weight(self, *shape: int) -> str:
        found = [k for k, p in self.names.items() if isinstance(p, dy.Parameters) and p.shape() == shape]
        if found and self.r.random() < 0.5:
            return self.r.choice(found)
        name = self.name("W")
        self.names[name] = self.model.parameters_from_numpy(self.numbers.uniform(-1, 1, shape))
        return name

    def builder(self) -> str:
        found = [k for k in self.names if k[0] == "B"]
        if found and self.r.random() < 0.4:
            return self.r.choice(found)
        name = self.name("B")
        self.names[name] = self.r.choice(KINDS)(self.r.choice([1, 2]), D, D, self.model)
        return name

    def sequence(self, length: str | None = None, back: bool | None = None) -> tuple[str, str, bool]:
        return self.r.choice([s for s in self.sequences if length in (None, s[1]) and back in (None, s[2])])

    def leaf(self) -> str:
        return self.r.choice(
            [*self.vectors, "dy.constant((3,), 0.3)", f"T[{self.r.randrange(ROWS)}]", f"dy.parameter({self.weight(D)})",
             "dy.inputVector([0.1, 0.2, -0.4])"]
        )  # fmt: skip

    def text(self, names: list[str], depth: int = 2) -> str:
        """An expression {D} of these."""
        if not depth or self.r.random() < 0.2:
            return self.r.choice(names) if self.r.random() < 0.8 else self.leaf()
        x, y = self.text(names, depth - 1), self.text(names, depth - 1)
        W, U, b, n = self.weight(D, D), self.weight(D, D), self.weight(D), self.r.randint(-D, D - 1)
        return self.r.choice(
            [f"dy.tanh({W} * {x})", f"dy.cmult({x}, {y})", f"({x} + {y}) * 0.5", f"dy.softmax({x})", f"({x})[::-1]",
             f"dy.tanh(dy.affine_transform([{b}, {W}, {x}, {U}, {y}]))", f"{x} * dy.pick({y}, {n})",
             f"dy.concatenate([({x})[1:], ({y})[-1:]])", f"dy.pick_range(dy.concatenate([{x}, {y}]), 2, {2 + D})",
             f"dy.concatenate_cols([{x}, {y}]) * dy.softmax(dy.inputVector([1.0, 2.0]))", f"dy.nobackprop({x}) + dy.dot_product({x}, {y})",
             f"{x} - dy.logsumexp([{x}, {y}])", f"dy.select_rows({self.weight(5, D)}, [0, 4, 4]) * {x}", f"dy.select_rows({x}, [2, 0, 2])",
             f"{x} * dy.sum_elems({y}) * 0.2", f"dy.log_softmax({x}, restrict=[0, 1, 2])", f"dy.transpose(dy.transpose({x}))",
             f"dy.layer_norm({x} + dy.inputVector([1.0, -2.0, 4.0]), {W}[0], {b})"]
        )  # fmt: skip

    # ---- lines -----------------------------------------------------------------------------------------------------

    def steps(self, text: str, length: str, back: bool) -> None:
        name = self.name("s")
        self.lines.append(f"{name} = {text}")
        self.sequences.append((name, length, back))

    def vector(self, text: str) -> None:
        name = self.name("v")
        self.lines.append(f"{name} = {text}")
        self.vectors.append(name)

    def both(self, text: str, length: str, back: bool) -> None:
        """Outputs and a last state."""
        steps, last = self.name("s"), self.name("v")
        self.lines.append(f"{steps}, {last} = {text}")
        self.sequences.append((steps, length, back))
        self.vectors.append(last)

    def compute(self, tmp: Any, run: Callable[..., list[np.ndarray]]) -> None:
        """Exports the function and compares what the file computes. AssertionError with the lines where it is something else."""
        path = onnx.export(self.traced, tmp / "x.onnx", self.specs(), [f"out{k}" for k in range(len(self.outputs))])
        for n, m in LENGTHS:
            given = self.given(n, m)
            found, wanted = run(path, given), self.wanted(given)
            for (text, *_), one, other in zip(self.outputs, found, wanted, strict=True):
                said = f"{text} with n={n}, m={m} of\n" + "\n".join(self.lines)
                np.testing.assert_allclose(one.reshape(other.shape), other, rtol=1e-3, atol=1e-4, err_msg=said)

    def specs(self) -> dict[str, Any]:
        of_steps = {name: onnx.Input((D,), length) for name, length in (("a", "n"), ("b", "n"), ("c", "m"))}
        vectors = {name: onnx.Input((D,)) for name in ("v0", "v1")}
        return {**of_steps, **vectors, "words": onnx.Ids("n", absent=self.absent), "t": onnx.Children("n", 2)}

    def given(self, n: int, m: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng([n, m])
        trees = np.full((n, 2), -1)
        for i in range(1, n):
            for k in range(rng.integers(0, min(i, 2) + 1)):
                trees[i, k] = rng.integers(0, i)
        shapes = {"a": (n, D), "b": (n, D), "c": (m, D), "v0": (D,), "v1": (D,)}
        numbers = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
        return {**numbers, "words": rng.integers(-self.absent, ROWS, n), "t": trees}

    def traced(self, words: Any, **handles: Any) -> tuple[Any, ...]:
        names = {**self.names, **OF_FILES, **handles, "w": onnx.lookup(self.names["T"], words)}
        return tuple(self.results(names))

    def wanted(self, given: dict[str, np.ndarray]) -> list[np.ndarray]:
        dy.renew_cg()
        names = {k: Parts(x) if k[0] in "BR" else x for k, x in self.names.items()}
        names |= {k: Steps([dy.inputVector(x) for x in given[k]]) for k in "abc"}
        names |= {k: dy.inputVector(given[k]) for k in ("v0", "v1")}
        names["w"] = Steps([names["T"][i] if i >= 0 else dy.zeros(D) for i in given["words"].tolist()])
        values = []
        results = self.results({**names, **of_lists(given["t"]), "t": None})
        for (_, _, back), found in zip(self.outputs, results, strict=True):
            xs = [found] if isinstance(found, dy.Expression) else found.xs[::-1] if back else found.xs
            values.append(np.array([x.npvalue().reshape(D) for x in xs]))
        return values

    def results(self, names: dict[str, Any]) -> list[Any]:
        for line in self.lines:
            exec(line, names)
        return [eval(text, names) for text, *_ in self.outputs]


def mapped(g: Function, a: str, length: str, back: bool) -> None:
    b, *_ = g.sequence(length, back)
    g.steps(
        g.r.choice([f"{a}.map(lambda x: {g.text(['x'])})", f"{a}.map(lambda x, y: {g.text(['x', 'y'])}, {b})"]),
        length,
        back,
    )


def taken(g: Function, a: str, length: str, back: bool) -> None:
    g.vector(a + g.r.choice(["[0]", "[-1]", ".sum()", ".average()", ".max()"]))


def turned(g: Function, a: str, length: str, back: bool) -> None:
    g.steps(f"{a}[::-1]", length, not back)


def weights(g: Function, a: str, length: str, back: bool) -> None:
    g.steps(f"{a}.softmax()", length, back)


def windows(g: Function, a: str, length: str, back: bool) -> None:
    width, padding = g.r.choice(WINDOWS)
    if not back:
        g.steps(
            f"{a}.windows({width}, padding={padding})[{g.r.randrange(width)}]",
            more(length, 2 * padding - width + 1),
            back,
        )


def more(length: str, count: int) -> str:
    return f"{length[0]}{int(length[1:] or 0) + count:+d}".removesuffix("+0")


def longer(g: Function, a: str, length: str, back: bool) -> None:
    g.steps(f"{a}.{g.r.choice(['begun', 'ended'])}({g.text(g.vectors, 1)})", more(length, 1), back)


def recurrent(g: Function, a: str, length: str, back: bool) -> None:
    g.steps(f"{g.builder()}.initial_state().transduce({a})", length, back)


def bidirectional(g: Function, a: str, length: str, back: bool) -> None:
    name, kind = g.name("R"), g.r.choice([dy.LSTMBuilder, dy.GRUBuilder, dy.SimpleRNNBuilder])
    g.names[name] = dy.BiRNNBuilder(g.r.choice([1, 2]), D, 4, g.model, kind)
    if not back:
        g.steps(f"{name}.transduce({a}).map(lambda x: {g.weight(D, 4)} * x)", length, back)


def scanned(g: Function, a: str, length: str, back: bool) -> None:
    b, *_ = g.sequence(length, back)
    reverse, hx = g.r.random() < 0.4, ["h", "x"]
    if g.r.random() < 0.5:
        g.both(f"scan(lambda h, x: ({g.text(hx)}, {g.text(hx)}), {g.text(g.vectors, 1)}, {a}, {reverse})", length, back)
    else:
        step = f"({g.text(['h[0]', 'x[1]'])}, {g.text(['h[1]', 'x[0]'])}), {g.text(['h[0]', 'x[0]'])}"
        g.both(f"scan(lambda h, x: ({step}), ({g.leaf()}, {g.leaf()}), ({a}, {b}), {reverse})", length, back)
        g.vectors[-1] += f"[{g.r.choice([0, 1])}]"


def nested(g: Function, a: str, length: str, back: bool) -> None:
    """A scan or a builder over a sequence, for each step of another."""
    b, *_ = g.sequence()
    inner = f"*scan(lambda k, y: ({g.text(['k', 'y', 'x'], 1)}, {g.text(['k', 'y', 'h'], 1)}), h, {b}, {g.r.random() < 0.3})"
    step = f"(lambda ys, e: ({g.text(['e', 'h', 'x'], 1)}, {g.text(['ys[-1]', 'ys.sum()', 'e'], 1)}))({inner})"
    last = f"{g.builder()}.initial_state().transduce({b}.map(lambda y: {g.text(['y', 'h'], 1)}))[-1]"
    g.both(f"scan(lambda h, x: {g.r.choice([step, f'({last} + x, h)'])}, {g.leaf()}, {a}, False)", length, back)


def cells(g: Function, a: str, length: str, back: bool) -> None:
    kept, g.vectors = g.vectors, []  # a cell takes nothing from outside
    state = f"dy.state(h={g.text(['s.h', 'x'], 1)}, c={g.text(['s.c', 'x', 's.h'], 1)})"
    g.vectors = kept
    name = g.name("z")
    g.lines.append(f"{name} = cells(lambda s, x: {state}, dy.state(h={g.leaf()}, c={g.leaf()}), {a})")
    g.vectors.append(f"{name}[-1].h")
    g.steps(f"{name}.map(lambda s: s.h + s.c)", length, back)


def trees(g: Function, a: str, length: str, back: bool) -> None:
    if back or length != "n":
        return
    name, layers = g.name("C"), g.r.choice([1, 2])
    kinds = [
        lambda: dy.NaryTreeLSTMBuilder(2, layers, D, D, g.model),
        lambda: dy.ChildSumTreeLSTMBuilder(layers, D, D, g.model),
    ]
    g.names[name] = g.r.choice(kinds)()
    f = f"lambda x, p, q: {g.text(['x', 'p', 'q'])}"
    g.steps(g.r.choice([f"recurse({f}, {a}, t, {g.leaf()})", f"tree({name}, {a}, t)"]), length, back)


def attention(g: Function, a: str, length: str, back: bool) -> None:
    if back:
        return
    values, *_ = g.sequence(length, False)
    queries, of, _ = g.sequence(None, False)
    if g.r.random() < 0.3:
        g.vector(f"attend({g.text(g.vectors, 1)}, {a}, {values}, 1)")
    else:
        g.steps(
            f"attend({queries}, {a}, {values}, {g.r.choice([1, 3])}, {of == length and g.r.random() < 0.5})", of, False
        )


def vectors(g: Function, a: str, length: str, back: bool) -> None:
    g.vector(g.text(g.vectors))


LINES = (mapped, mapped, taken, turned, weights, windows, longer, recurrent, recurrent, bidirectional, scanned, scanned, nested, cells,
         trees, attention, vectors)  # fmt: skip


def main() -> None:
    import argparse
    import tempfile
    from pathlib import Path

    from exporting import run_file

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first, options.first + options.functions):
            try:
                Function(seed).compute(Path(folder), run_file)
            except Exception as error:
                wrong += 1
                print(f"function {seed}: {type(error).__name__}: {error}\n")
    print(f"{options.functions} functions, {wrong} with something wrong")


if __name__ == "__main__":
    main()
