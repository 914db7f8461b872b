"""Random functions of mini-batches: exported once, run with mini-batches of other sizes than the traced one, compared.

A function is a few lines of Python on inputs x0, x1 (a mini-batch, of a size that has a name, or of three, or of one) and v, M, t (one
of each). Lines call rows of the op table, cells, compiled functions, loops over lists, builders and what stands in no row. By hand, for
as long as one likes: python tests/export/random_batches.py --functions 1000
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("ops", "fuzz") if str(TESTS / folder) not in sys.path]

from fuzz_names import MOVED, RANGES, rows  # noqa: E402

import dynet_lite as dy  # noqa: E402
from dynet_lite import onnx  # noqa: E402
from dynet_lite.onnx.table import REFUSED  # noqa: E402

D, ROWS, FIXED = 3, 7, 3
SIZES = (1, 2, 5, 61, 64)  # 61 is what a named size pretends to be (dynet_lite/onnx/symbolic.py)
SHAPES = {"x0": (D,), "x1": (D, 2), "v": (D,), "M": (D, D), "t": (2, D, 2)}
# Numbers near the edges of these jump or are as large as one likes: roundings show.
JUMPS = (
    "round",
    "floor",
    "ceil",
    "argmax",
    "kmax",
    "tan(",
    "acosh",
    "inverse",
    "logdet",
    "layer_norm",
    "sparsemax",
    "constrained",
)


def fit(e: Any, shape: tuple[int, ...]) -> Any:
    """e with another shape, cut off or repeated; its mini-batch stays."""
    dims, batch = e.dim()
    have, want = int(np.prod(dims)), int(np.prod(shape))
    flat = dy.reshape(e, (have,), batch)
    if have < want:
        flat = dy.concatenate([flat] * -(-want // have))
    return dy.reshape(flat[:want], shape, batch)


def op(label: str, seed: int, *es: Any) -> Any:
    """The call of a row of the op table with arguments made of these."""
    row, args = rows()[label], []
    for arg, e in zip(row.args, es, strict=True):
        kind = arg.draw.__name__
        drawn = dy.inputTensor(arg.sample(np.random.default_rng(seed))[..., 0])
        if kind in RANGES:
            args.append(RANGES[kind](dy, fit(e, arg.shape)))
        else:
            args.append(dy.tanh(fit(e, arg.shape)) * 0.04 + drawn if kind in MOVED else drawn)
    return row.call(*args, **row.draw_attrs(np.random.default_rng([seed, 1])))


class Function:
    """The lines of one function. batch: a name, or a number."""

    def __init__(self, seed: int) -> None:
        self.r, self.model = random.Random(seed), dy.ParameterCollection()
        self.rng = np.random.default_rng(seed)
        self.batch: str | int = self.r.choice(["b", "b", "b", FIXED, 1])
        self.sizes = SIZES if self.batch == "b" else (self.batch,)
        self.names: dict[str, Any] = {"dy": dy, "op": op, "fit": fit, "T": self.model.add_lookup_parameters((ROWS, D))}
        self.names["T"].init_from_array(self.rng.uniform(-1, 1, (ROWS, D)))
        self.lines: list[str] = []
        self.live, self.count, self.refused = list(SHAPES), 0, set[str]()
        self.batched: dict[str, bool] = {}  # results: do they have the mini-batch?
        tries = 0
        while len(self.batched) < 6 and tries < 60:
            tries += 1
            self.line()

    # ---- lines -----------------------------------------------------------------------------------------------------

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def some(self) -> str:
        return self.r.choice(self.live[-6:] if self.r.random() < 0.5 else self.live)

    def vector(self) -> str:
        return f"fit({self.some()}, ({D},))"

    def weight(self, *shape: int) -> str:
        name = self.name("W")
        self.names[name] = self.model.parameters_from_numpy(self.rng.uniform(-0.8, 0.8, shape))
        return name

    def line(self) -> None:
        """One more result, if it is finite and there is a form of it in a file."""
        kind, before = self.r.choice(LINES), len(self.lines)
        text = kind(self)
        name = self.name("e")
        self.lines.append(f"{name} = {text}")
        try:
            seen = [self.direct(self.given(n), [name])[0] for n in self.sizes[:3]]
            good = all(np.isfinite(x).all() and np.abs(x).max(initial=0.0) < 100 for x, _ in seen)
        except Exception:  # a row's attributes, such as labels, are for one size of a mini-batch
            good = False
        if not good or not self.has_form(name):
            del self.lines[before:]
            return
        self.batched[name] = seen[-1][1] > 1
        self.live.append(name)

    def has_form(self, name: str) -> bool:
        """Can a file compute this?"""
        with tempfile.TemporaryDirectory() as folder:
            try:
                self.export(Path(folder) / "x.onnx", [name])
            except onnx.Unsupported as error:
                self.refused.add(str(error))
                return False
        return True

    # ---- both sides --------------------------------------------------------------------------------------------------

    def given(self, n: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng([n, 3])
        batch = {name: n if name[0] == "x" else 1 for name in SHAPES}
        return {k: rng.uniform(-1, 1, (*s, batch[k])).astype(np.float32) for k, s in SHAPES.items()}

    def results(self, names: dict[str, Any], wanted: list[str]) -> list[Any]:
        env = {**self.names, **names}
        for line in self.lines:
            exec(compile(line, __file__, "exec"), env)
        return [env[name] for name in wanted]

    def direct(self, given: dict[str, np.ndarray], wanted: list[str]) -> list[tuple[np.ndarray, int]]:
        """Values, with the mini-batch as last axis, and its size."""
        dy.renew_cg()
        xs = {k: dy.inputTensor(x, batched=True) for k, x in given.items()}
        found = self.results(xs, wanted)
        values = [e.npvalue() for e in found]
        return [(x if e.dim()[1] > 1 else x[..., None], e.dim()[1]) for x, e in zip(values, found, strict=True)]

    def export(self, path: Path, wanted: list[str]) -> Path:
        specs = {k: onnx.Input(s, batch=self.batch if k[0] == "x" else 1) for k, s in SHAPES.items()}
        return onnx.export(lambda **xs: tuple(self.results(xs, wanted)), path, specs, [f"out_{k}" for k in wanted])

    def compute(self, tmp: Path, run: Any) -> None:
        """Exports the function and compares what the file computes. AssertionError with the lines where it is something else."""
        wanted = list(self.batched)
        if not wanted:
            return
        path = self.export(tmp / "x.onnx", wanted)
        for n in self.sizes:
            given = self.given(n)
            stored = {k: x.T if k[0] == "x" and self.batch != 1 else x[..., 0].T for k, x in given.items()}
            for name, y, (x, batch) in zip(wanted, run(path, stored), self.direct(given, wanted), strict=True):
                said = f"{name} with a mini-batch of {n} ({self.batch}) of\n" + "\n".join(self.lines)
                x = x.T if self.batched[name] or batch > 1 else x[..., 0].T
                assert y.shape == x.shape, f"{y.shape} instead of {x.shape}: {said}"
                np.testing.assert_allclose(y, x, rtol=2e-3, atol=2e-4, err_msg=said)


def row_of_table(g: Function) -> str:
    label = g.r.choice([k for k in rows() if not any(j in k for j in JUMPS) and k.partition("(")[0] not in REFUSED])
    args = [g.some() for _ in rows()[label].args]
    return f"op({', '.join([repr(label), str(g.r.randrange(50)), *args])})"


def elementwise(g: Function) -> str:
    a, b, c = g.some(), g.some(), g.r.choice(["tanh", "logistic", "rectify", "square", "softsign", "abs", "erf"])
    shape = g.r.choice(list(SHAPES.values()))
    x, y = f"fit({a}, {shape})", f"fit({b}, {shape})"
    return g.r.choice(
        [f"dy.{c}({x})", f"{x} + {y}", f"{x} * 0.5 - {y}", f"dy.cmult({x}, {y})", f"dy.esum([{x}, {y}, {x}])", f"dy.average([{x}, {y}])",
         f"dy.emax([{x}, {y}])", f"dy.logsumexp([{x}, {y}])", f"dy.bmax({x}, {y})", f"{x} * dy.sum_elems({y}) * 0.1", f"1.5 - {x}"]
    )  # fmt: skip


def products(g: Function) -> str:
    x, y, W, b = g.vector(), g.vector(), g.weight(D, D), g.weight(D)
    m = f"fit({g.some()}, ({D}, {D}))"
    return "dy.tanh(" + g.r.choice(
        [f"{W} * {x}", f"{m} * {x}", f"{W} * {m}", f"{m} * {m}", f"dy.affine_transform([{b}, {W}, {x}, {m}, {y}])",
         f"dy.affine_transform([{b}, {W}, {m}])", f"dy.transpose({x}) * {y}", f"{x} * dy.transpose({y})", f"dy.transpose({m}) * {x}",
         f"dy.dot_product({x}, {y})", f"dy.colwise_add({m}, {x})"]
    ) + ")"  # fmt: skip


def parts(g: Function) -> str:
    x, y, k = g.vector(), g.vector(), g.r.randint(-D, D - 1)
    m = f"fit({g.some()}, ({D}, 2))"
    return g.r.choice(
        [f"dy.concatenate([{x}, {y}])", f"dy.concatenate_cols([{x}, {y}])", f"dy.concatenate([{m}, {m}], d=1)", f"{x}[{k}]",
         f"{x}[::-1]", f"{m}[1:, ::-1]", f"{m}[:, {g.r.randrange(2)}]", f"dy.pick({m}, 1, 1)", f"dy.pick({x}, {k})",
         f"dy.pick_range({x}, 0, 2)", f"dy.select_rows({m}, [2, 0, 2])", f"dy.select_cols({m}, [1])", f"dy.reshape({m}, (2, {D}))",
         f"dy.transpose({m})", f"dy.max_dim({m}, {g.r.randrange(2)})", f"dy.strided_select({m}, [2, 1], [0, 1])",
         f"dy.kmax_pooling({m}, 1, 1)", f"dy.reshape({x}, (1, {D}, 1))"]
    )  # fmt: skip


def reductions(g: Function) -> str:
    x, d, b, batch = (
        f"fit({g.some()}, (2, {D}))",
        g.r.choice(["0", "1", "[0, 1]", "[1]"]),
        g.r.choice([True, False]),
        g.some(),
    )
    return g.r.choice(
        [f"dy.sum_dim({x}, {d}, {b})", f"dy.mean_dim({x}, {d}, {b})", f"dy.std_dim({x}, {d}, {b})", f"dy.mean_dim({x}, {d}, {b}, n=3)",
         f"dy.moment_dim({x}, {d}, 2, {b})", f"dy.sum_batches({x})", f"dy.mean_batches({x})", f"dy.std_batches({x})",
         f"dy.moment_batches({x}, 2)", f"dy.sum_elems({x})", f"dy.mean_elems({x})", f"dy.std_elems({x})", f"dy.moment_elems({x}, 3)",
         f"dy.logsumexp_dim({x}, 0)", f"dy.cumsum({x}, 1)", f"dy.softmax({x}, 1)", f"dy.mean_dim({x}, {d}, {b}, n={batch}.batch_size)"]
    )  # fmt: skip


def labels(g: Function) -> str:
    x, k = g.vector(), g.r.randrange(D)
    return g.r.choice(
        [f"dy.pickneglogsoftmax({x}, {k})", f"dy.hinge({x}, {k})", f"dy.pick_batch({x}, [{k}])", f"dy.log_softmax({x}, restrict=[0, 2])",
         f"dy.pickneglogsoftmax_batch({x}, [0, 1, {k}])", f"dy.pick_batch({x}, [0, 1, {k}])", f"dy.hinge_batch({x}, [0, {k}, 1])",
         f"dy.hinge_dim(fit({g.some()}, ({D}, 2)), [0, {k}], 0)"]
    )  # fmt: skip


def batches(g: Function) -> str:
    """What looks at the mini-batch as one."""
    x, y = g.vector(), g.vector()
    size = f"{g.some()}.batch_size"
    return g.r.choice(
        [f"dy.concatenate_to_batch([{x}, {y}])", f"dy.concatenate_to_batch([{x}])", f"dy.pick_batch_elem({x}, 0)",
         f"dy.pick_batch_elem({x}, 1)", f"dy.pick_batch_elem({x}, {size} - 1)", f"dy.pick_batch_elems({x}, [0, 0])",
         f"dy.pick_batch_elems({x}, [0, 2, 1])", f"dy.zeros({D}, batch_size={size})", f"dy.ones(({D}, 2), batch_size={size})",
         f"{x} + dy.constant(({D},), 0.5, batch_size={size})", f"dy.reshape({x}, (1, {D}), batch_size={size})",
         f"dy.cmult({x}, dy.lookup_batch(T, [1, 4, 1]))", f"{x} + dy.lookup_batch(T, [2, 0])", f"dy.zeros({D}, batch_size={FIXED}) + {x}",
         f"dy.reshape({x}, ({D} * {FIXED},))", f"dy.reshape(dy.lookup_batch(T, [1, 2, 3]), (9,))[:3] + {x}",
         f"dy.pick_batch(dy.lookup_batch(T, [1, 2, 3]), [0, 1, 2]) + {x}"]
    )  # fmt: skip


def cells(g: Function) -> str:
    """A cell, a compiled function, and loops of them over lists."""
    name, W, b = g.name("f"), g.weight(D, D), g.weight(D)
    body = g.r.choice([f"dy.tanh({W} * x + h)", f"dy.cmult(x, dy.logistic({b} + h))", f"dy.softmax(dy.affine_transform([{b}, {W}, x])) + h",
                       "dy.tanh(x + T[2] + h) * dy.sum_elems(h)"])  # fmt: skip
    kind = g.r.choice(["dy.cell", "dy.compile", ""])
    g.lines.append(f"{name} = {kind}(lambda h, x: {body})")
    xs = f"[{', '.join(g.vector() for _ in range(g.r.randint(1, 4)))}]"
    if kind != "dy.cell":
        return f"{name}({g.vector()}, {g.vector()})"
    one = g.name("g")
    g.lines.append(f"{one} = dy.cell(lambda x: {body.replace('h', 'x') if 'tanh' not in body else 'dy.tanh(x)'})")
    return g.r.choice(
        [f"{name}({g.vector()}, {g.vector()})", f"dy.scan({name}, {g.vector()}, {xs})[-1]", f"dy.esum(dy.map({one}, {xs}))",
         f"dy.esum(dy.scan({name}, {g.vector()}, {xs}))"]
    )  # fmt: skip


def builders(g: Function) -> str:
    name = g.name("B")
    kinds = [
        dy.VanillaLSTMBuilder,
        dy.GRUBuilder,
        dy.SimpleRNNBuilder,
        dy.CoupledLSTMBuilder,
        dy.CompactVanillaLSTMBuilder,
    ]
    g.names[name] = g.r.choice(kinds)(g.r.choice([1, 2]), D, D, g.model)
    xs = f"[{', '.join(g.vector() for _ in range(g.r.randint(1, 3)))}]"
    for p in g.names[name].param_collection().parameters_list():
        p.set_value(g.rng.uniform(-0.8, 0.8, p.shape()))
    return g.r.choice(
        [f"{name}.initial_state().transduce({xs})[-1]", f"{name}.initial_state().add_inputs({xs})[-1].s()[0]",
         f"dy.esum({name}.initial_state().transduce({xs}))"]
    )  # fmt: skip


LINES = (row_of_table, row_of_table, row_of_table, row_of_table, elementwise, products, parts, parts, reductions, reductions, labels, batches,
         batches, cells, builders)  # fmt: skip


def main() -> None:
    import argparse
    import collections

    from exporting import run_file

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    wrong, refused = 0, collections.Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first, options.first + options.functions):
            try:
                f = Function(seed)
                refused.update(re.sub(r"\(\S*:\d+\)", "", one) for one in f.refused)
                f.compute(Path(folder), run_file)
            except Exception as error:
                wrong += 1
                print(f"function {seed}: {type(error).__name__}: {error}\n")
    print(f"{options.functions} functions, {wrong} with something wrong; refused:")
    for one, count in refused.most_common():
        print(f"{count:6} {one}")


if __name__ == "__main__":
    main()
