"""Programs of many small ops for the tests of fusing: random ones from a seed, and what running one gives.

Only what a program returns is held by expressions; all in between may run inside their readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import _core, structure

Array = np.ndarray
STRATEGIES = ("none", "depth", "agenda", "greedy")


@contextmanager
def engine(fuse: bool = True, strategy: str = "greedy", threads: int = 1, merge: bool = False) -> Iterator[None]:
    """A new graph under these settings, by default with all that is written. tests/conftest.py turns the verifier on."""
    settings = _core.settings
    names = ("fuse", "merge", "strategy", "threads", "least_work", "autobatch")
    before = {name: getattr(settings, name) for name in names}
    assert settings.verify
    settings.fuse, settings.merge, settings.strategy, settings.threads, settings.least_work = (
        fuse,
        merge,
        strategy,
        threads,
        0,
    )
    settings.autobatch = True
    dy.renew_cg()
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
        dy.renew_cg()


def ops() -> list[str]:
    """The ops that ran in the current graph: names, or "fused" and "joined" of those that several nodes were made into."""
    names = [node.op for node in structure.read().nodes if node.sort == "op"]
    return ["fused" if "(" in name else "joined" if " x " in name else name for name in names]


def gone(i: int) -> bool:
    """Is there no value of node i that could be asked for?"""
    return dy.cg().kept_expression(i) is None


class Model:
    """Weights by name, made when a program first asks for them; the numbers depend on name and shape alone."""

    def __init__(self) -> None:
        self.pc = dy.ParameterCollection()
        self.made: dict[Any, Any] = {}

    def _numbers(self, name: str, shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng([*name.encode(), *shape])
        return rng.uniform(-1, 1, shape) / np.sqrt(shape[-1] if len(shape) > 1 else 1)

    def weight(self, name: str, *shape: int) -> Any:
        if (name, shape) not in self.made:
            self.made[name, shape] = self.pc.parameters_from_numpy(self._numbers(name, shape))
        return self.made[name, shape]

    def table(self, *shape: int, rows: int = 7) -> Any:
        key = ("table", shape)
        if key not in self.made:
            self.made[key] = self.pc.lookup_parameters_from_numpy(self._numbers("table", (rows, *shape)))
        return self.made[key]

    def gradients(self) -> dict[Any, Array]:
        """Those of all that was made, and they are zero again."""
        found = {key: p.grad_as_array() for key, p in self.made.items()}
        for p in self.made.values():
            p.zero_gradient()
        return found


@dataclass
class Built:
    """What a program returns: what is read, the loss, inputs."""

    values: list[Any]
    loss: Any
    inputs: list[Any] = field(default_factory=list)
    losses: list[Any] = field(default_factory=list)  # parts of the loss, for further passes


@dataclass
class Result:
    values: list[Array]
    loss: float
    gradients: dict[Any, Array]
    ops: list[str]
    entries: set[str]  # of the registry of ops
    nodes: int


def run(build: Callable[[Model], Built], full: bool = True, passes: int = 1, **how: Any) -> Result:
    """Builds, reads the values, goes backward; in further passes from parts of the loss, and from all of it again."""
    model = Model()
    with engine(**how):
        b = build(model)
        values = [v.numpy() for v in b.values]
        loss = float(b.loss.numpy().ravel()[0])
        b.loss.backward(full=full)
        gradients = model.gradients()
        if full:
            gradients.update({("input", k): x.gradient() for k, x in enumerate(b.inputs)})
        for k in range(1, passes):
            part = b.loss if k % 3 == 0 else b.losses[k % len(b.losses)]
            part.backward(full=full)
            gradients.update({(k, key): grad for key, grad in model.gradients().items()})
            if full and part is b.loss:  # else inputs may stand behind it
                gradients.update({(k, "input", n): x.gradient() for n, x in enumerate(b.inputs)})
        return Result(values, loss, gradients, ops(), _core.graph_ops(dy.cg()), int(dy.stats()["nodes"]))


def near(given: Array, wanted: Array, rtol: float, what: Any = "", atol: float = 1e-7) -> None:
    """Differences relative to the largest number."""
    given, wanted = np.asarray(given), np.asarray(wanted)
    assert given.shape == wanted.shape, what
    assert np.all(np.isfinite(wanted)), f"{what}: {wanted}"
    off = np.abs(given - wanted).max(initial=0)
    assert off <= atol + rtol * np.abs(wanted).max(initial=0), (
        f"{what}: off by {off:.3g}\n{given}\ninstead of\n{wanted}"
    )


def agree(a: Result, b: Result, exact: bool, rtol: float = 1e-6, gtol: float = 1e-5) -> None:
    """Values to the last bit, or nearly; gradients nearly."""
    for k, (x, y) in enumerate(zip(a.values, b.values, strict=True)):
        if exact:
            np.testing.assert_array_equal(x, y, err_msg=f"value {k}")
        else:
            near(x, y, rtol, f"value {k}")
    near(np.array(a.loss), np.array(b.loss), 1e-5, "loss", atol=1e-5)
    assert a.gradients.keys() == b.gradients.keys()
    for key, grad in a.gradients.items():
        near(grad, b.gradients[key], gtol, key, atol=1e-6)


# ---- random programs ----------------------------------------------------------------------------------------------

Unary = Callable[[Any], Any]
small: Unary = dy.tanh


def positive(x: Any) -> Any:
    return dy.square(dy.tanh(x)) + 0.5


def unit(x: Any) -> Any:
    return dy.tanh(x) * 0.9


def above_one(x: Any) -> Any:
    return dy.softplus(dy.tanh(x)) + 1.25


def plain(x: Any) -> Any:
    return x


# Every formula of one argument, after what brings its argument to where it is smooth and not large.
UNARY: dict[str, tuple[Unary, Unary]] = {
    **{name: (plain, getattr(dy, name)) for name in (
        "tanh", "logistic", "rectify", "softsign", "sin", "cos", "atan", "asinh", "abs", "erf", "selu", "gelu", "silu",
        "elu", "softplus", "log_sigmoid", "flip_gradient")},
    **{name: (small, getattr(dy, name)) for name in ("exp", "expm1", "square", "cube", "sinh", "cosh", "tan")},
    **{name: (positive, getattr(dy, name)) for name in ("log", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma")},
    **{name: (unit, getattr(dy, name)) for name in ("asin", "acos", "atanh")},
    "acosh": (above_one, dy.acosh),
    "negate": (plain, lambda x: -x),
    "add_const": (plain, lambda x: x + 0.25),
    "left add_const": (plain, lambda x: 0.75 + x),
    "sub constant": (plain, lambda x: x - 0.125),
    "const_minus": (plain, lambda x: 1 - x),
    "scale": (plain, lambda x: x * 0.7),
    "left scale": (plain, lambda x: -1.3 * x),
    "divided by constant": (plain, lambda x: x / 1.7),
    "const_div": (positive, lambda x: 0.8 / x),
    "pow_const": (positive, lambda x: x**1.5),
    "pow 2": (small, lambda x: x**2),
    "pow 3": (small, lambda x: x**3),
    "const_pow": (small, lambda x: 1.5**x),
    "scale_gradient": (plain, lambda x: dy.scale_gradient(x, 0.5)),
    "elu alpha": (plain, lambda x: dy.elu(x, 0.5)),
    "silu beta": (plain, lambda x: dy.silu(x, 1.5)),
}  # fmt: skip
# Steps of the value: close numbers may give far ones, so only where all is exact.
STEPS: dict[str, tuple[Unary, Unary]] = {
    "round": (plain, lambda x: _core.round(x * 3.3, False)),
    "ceil": (plain, lambda x: _core.ceil(x * 3.3, False)),
    "floor": (plain, lambda x: _core.floor(x * 3.3, False)),
    "round through": (plain, lambda x: _core.round(x * 3.3, True)),
    "ceil through": (plain, lambda x: _core.ceil(x * 3.3, True)),
    "floor through": (plain, lambda x: _core.floor(x * 3.3, True)),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "cmult": dy.cmult,
    "cdiv": lambda x, y: dy.cdiv(x, positive(y)),
    "pow": lambda x, y: dy.pow(positive(x), dy.tanh(y)),
    "bmin": dy.bmin,
    "bmax": dy.bmax,
    "squared_difference": lambda x, y: _core._squared_difference(dy.tanh(x), y),
    "abs_difference": lambda x, y: _core._abs_difference(x, y),
    "huber": lambda x, y: _core._huber(x, y, 0.6),
    "poisson": lambda x, y: _core._poisson(dy.tanh(x), positive(y)),
    "pairwise_rank": lambda x, y: _core._pairwise_rank(x, y, 0.4),
    "binary_log_loss_terms": lambda x, y: _core._binary_log_loss_terms(dy.logistic(x), dy.logistic(y)),
}


EXTREMES = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-40, -1e-40, 1, -1])


class Random:
    """A random program: the same decisions for every example of it, other numbers."""

    unary, binary = UNARY, BINARY

    def __init__(self, seed: int, affine: bool = False, examples: int = 0, peek: bool = False, size: int = 0) -> None:
        """examples, size: how many, how long vectors, if not by chance; peek: values are read while the graph is built."""
        self.seed, self.affine, self.peek = seed, affine, peek
        rng = np.random.default_rng([seed, 1])
        shapes: Sequence[tuple[int, ...]] = (
            ((8,), (9,), (16,), (37,)) if affine else ((8,), (9,), (100,), (3, 4), (2, 3, 2), (3,))
        )
        self.shape = shapes[rng.integers(len(shapes))]
        if size:
            self.shape = (size,)
        # With affine maps most programs are without mini-batches by hand: such maps are not joined.
        self.batch = int(rng.choice([1, 1, 1, 1, 2] if affine else [1, 1, 2, 3]))
        self.steps = int(rng.integers(3, 30))
        self.examples = examples or int(rng.integers(1, 6))

    def __call__(self, model: Model) -> Built:
        all_of_them = Built([], None)
        losses = []
        for k in range(self.examples):
            # Some examples are shorter than others.
            one = self.example(model, k, self.steps - (k % 2) * int(np.random.default_rng([self.seed, 7]).integers(3)))
            all_of_them.values += one.values
            all_of_them.inputs += one.inputs
            losses.append(one.loss)
            all_of_them.losses += one.losses
        all_of_them.loss = dy.esum(losses)
        return all_of_them

    def number(self, data: np.random.Generator) -> tuple[Array, bool]:
        batch = self.batch if self.batch > 1 else 1
        return data.uniform(-1, 1, (*self.shape, batch) if batch > 1 else self.shape), batch > 1

    def example(self, model: Model, k: int, steps: int) -> Built:
        choice, data = np.random.default_rng([self.seed, 2]), np.random.default_rng([self.seed, 3, k])
        built = Built([], None)

        def an_input() -> Any:
            array, batched = self.number(data)
            built.inputs.append(dy.inputTensor(array, batched=batched))
            return built.inputs[-1]

        values = [an_input(), an_input(), self.leaf(model, data, choice)]
        for _ in range(steps):
            self.step(model, values, choice, data, an_input)
            if self.peek and choice.random() < 0.15:
                built.values.append(values[int(choice.integers(len(values)))])
                built.values[-1].npvalue()
        # Read are some of those that are left; the loss is made of some.
        terms = []
        for v in values:
            if choice.random() < 0.25:
                built.values.append(v)
            if choice.random() < 0.7 or v is values[-1]:
                array, _ = self.number(data)
                weighted = dy.cmult(v, dy.inputTensor(array[..., 0] if self.batch > 1 else array))
                terms.append(dy.sum_batches(dy.sum_elems(weighted)))
        built.loss = dy.esum(terms)
        built.losses = [*terms, built.loss]
        return built

    def leaf(self, model: Model, data: np.random.Generator, choice: np.random.Generator) -> Any:
        if choice.random() < 0.5:
            return model.weight("p", *self.shape) if self.batch == 1 else dy.inputTensor(*self.number(data))
        table = model.table(*self.shape)
        rows = [int(i) for i in data.integers(0, 7, self.batch)]
        return table[rows[0]] if self.batch == 1 else dy.lookup_batch(table, rows)

    def step(
        self, model: Model, values: list[Any], choice: np.random.Generator, data: np.random.Generator, an_input: Any
    ) -> None:
        def take() -> Any:
            """One of the values; mostly it is used up, so that it has one reader."""
            k = int(choice.integers(len(values)))
            return values.pop(k) if len(values) > 1 and choice.random() < 0.75 else values[k]

        sort = choice.random()
        if sort < 0.4:
            table = self.unary if self.affine or choice.random() < 0.9 else STEPS
            names = list(table)
            domain, f = table[names[choice.integers(len(names))]]
            values.append(f(domain(take())))
        elif sort < 0.8:
            f2 = self.binary[list(self.binary)[choice.integers(len(self.binary))]]
            values.append(f2(take(), take()))
        elif sort < 0.87:
            values.append(dy.esum([take() for _ in range(int(choice.integers(1, 10)))]) * 0.4)
        elif self.affine:
            values += self.gates(model, take(), take(), choice)
        elif choice.random() < 0.5:
            values.append(self.leaf(model, data, choice))
        else:
            values.append(an_input())

    def gates(self, model: Model, x: Any, h: Any, choice: np.random.Generator) -> list[Any]:
        """Gates as people write them: an affine map each."""
        n, way = self.shape[0], int(choice.integers(5))
        which = str(choice.integers(2))  # the same weights come again

        def affine(name: str) -> Any:
            w, u, b = (
                model.weight(s + name + which, *shape) for s, shape in (("W", (n, n)), ("U", (n, n)), ("b", (n,)))
            )
            if way == 0:
                return w * x + u * h + b
            if way == 1:
                return dy.affine_transform([b, w, x, u, h])
            if way == 2:
                return dy.affine_transform([b, w, x])
            if way == 3:
                return dy.affine_transform([b, w, x, u, h, model.weight("V" + name, n, n), x])
            return w * x

        i = dy.logistic(affine("i"))
        new = dy.cmult(dy.logistic(affine("f")), h) + dy.cmult(i, dy.tanh(affine("g")))
        if choice.random() < 0.3:
            return [new, i]
        return [dy.cmult(dy.logistic(affine("o")), dy.tanh(new)), new]


class Extreme(Random):
    """With infinities, NaN, numbers too small and too large, and nothing that keeps them from the formulas.

    Without sine, cosine, tangent: in their kernels one huge number changes the last bits of its neighbours.
    """

    unary = {name: (plain, f) for name, (_, f) in UNARY.items() if name not in ("sin", "cos", "tan")}
    binary = {**BINARY, "cdiv": dy.cdiv, "pow": dy.pow, "poisson": lambda x, y: _core._poisson(x, y)}

    def number(self, data: np.random.Generator) -> tuple[Array, bool]:
        array, batched = super().number(data)
        return np.where(
            data.random(array.shape) < 0.4, EXTREMES[data.integers(len(EXTREMES), size=array.shape)], array
        ), batched


# ---- cells by hand, and programs that are observed --------------------------------------------------------------------

N = 8
GATES = "ifgo"
Observed = dict[str, Array]


def both(program: Callable[[Model], Observed], gtol: float = 1e-5, **how: Any) -> Observed:
    """What the program observes, fused; it must be the same when not fused."""
    results = []
    for fuse in (True, False):
        with engine(fuse=fuse, **how):
            results.append(program(Model()))
    fused, plain = results
    assert fused.keys() == plain.keys()
    for key, value in fused.items():
        near(value, plain[key], gtol, key, atol=1e-6)
    return fused


def gradients(model: Model, inputs: Sequence[Any] = ()) -> Observed:
    found = {str(key): grad for key, grad in model.gradients().items()}
    return {**found, **{f"input {k}": x.gradient() for k, x in enumerate(inputs)}}


def numbered(*observed: Observed) -> Observed:
    return {f"{k}: {key}": value for k, o in enumerate(observed) for key, value in o.items()}


class Cell:
    """An LSTM written by hand, gate by gate; `way` is how a gate's sum is written."""

    def __init__(self, model: Model, way: str = "affine_transform", n: int = N) -> None:
        self.model, self.way, self.n = model, way, n

    def gate(self, name: str, x: Any, h: Any) -> Any:
        n, weight = self.n, self.model.weight
        w, u = weight("W" + name, n, n), weight("U" + name, n, n)
        if self.way == "operators":
            return w * x + u * h + weight("b" + name, n)
        if self.way == "products":
            return w * x + u * h
        return dy.affine_transform([weight("b" + name, n), w, x, u, h])

    def c(self, x: Any, h: Any, c: Any) -> Any:
        new = dy.cmult(dy.logistic(self.gate("i", x, h)), dy.tanh(self.gate("g", x, h)))
        return dy.cmult(dy.logistic(self.gate("f", x, h)), c) + new

    def h(self, x: Any, h: Any, c: Any) -> Any:
        return dy.cmult(dy.logistic(self.gate("o", x, h)), dy.tanh(c))

    def step(self, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        c = self.c(x, h, c)
        return self.h(x, h, c), c


WAYS = ("affine_transform", "operators", "products")
each_way = pytest.mark.parametrize("way", WAYS)
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def inputs(k: int = 0, n: int = N, count: int = 3) -> list[Any]:
    rng = np.random.default_rng([k, 5])
    return [dy.inputVector(rng.uniform(-1, 1, n)) for _ in range(count)]


def weighted(e: Any, k: int = 0) -> Any:
    """A sum in which no two elements weigh the same."""
    return dy.dot_product(e, dy.inputVector(np.random.default_rng([k, 6]).uniform(0.5, 1.5, e.dim()[0][0])))
