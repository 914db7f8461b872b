"""{D,1} in the place of {D}: what the engine takes, files take, and give its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exporting import filled, near

import dynet_lite as dy
from dynet_lite import onnx

rng = np.random.default_rng(7)

BUILDERS: dict[str, Callable[[Any], Any]] = {
    "lstm": lambda m: dy.LSTMBuilder(2, 2, 2, m),
    "lstm, layers normalised": lambda m: dy.VanillaLSTMBuilder(1, 2, 2, m, ln_lstm=True),
    "gru": lambda m: dy.GRUBuilder(1, 2, 2, m),
    "simple": lambda m: dy.SimpleRNNBuilder(1, 2, 2, m),
    "coupled": lambda m: dy.CoupledLSTMBuilder(1, 2, 2, m),
    "of one number": lambda m: dy.LSTMBuilder(1, 2, 1, m),
}


class Parts:
    """Weights, and a function that gives a column."""

    def __init__(self, make: Callable[[Any], Any] = BUILDERS["lstm"]) -> None:
        model = dy.ParameterCollection()
        self.rnn = make(model)
        self.W, self.v, self.one = model.add_parameters((2, 2)), model.add_parameters(2), model.add_parameters((2, 1))
        self.start = model.add_parameters((self.rnn.hidden_dim, 1))
        filled(model, rng)

    def column(self, x: Any) -> Any:
        return dy.transpose(dy.transpose(x) * self.W)

    def begun(self) -> Any:
        """A state of columns."""
        size = len(self.rnn.initial_state().add_input(dy.zeros(2)).s())
        return self.rnn.initial_state([self.start] * size)


def of_steps(path: Any, runtime: Any, network: Any, engine: Any) -> None:
    """Compares the file of network(a sequence) with engine(a list), the numbers of each step in order."""
    onnx.export(lambda xs: network(xs), path, {"xs": onnx.Input((2,), "n")})
    for n in (1, 4):
        data = rng.standard_normal((n, 2)).astype(np.float32)
        (found,) = runtime(path, {"xs": data})
        dy.renew_cg()
        wanted = engine([dy.inputVector(x) for x in data])
        near(found.reshape(len(wanted), -1), [e.npvalue().flatten("F") for e in wanted])


@pytest.mark.parametrize("name", BUILDERS)
def test_inputs_and_states_of_builders(name: str, runtime: Any, tmp_path: Any) -> None:
    p = Parts(BUILDERS[name])
    path = tmp_path / "x.onnx"
    of_steps(
        path, runtime,
        lambda xs: p.rnn.initial_state().transduce(xs.map(p.column)),
        lambda xs: p.rnn.initial_state().transduce(list(map(p.column, xs))),
    )  # fmt: skip
    of_steps(path, runtime, lambda xs: p.begun().transduce(xs), lambda xs: p.begun().transduce(xs))
    onnx.export(lambda x: p.begun().add_input(p.column(x)).output(), path, {"x": onnx.Input((2,))})
    (found,) = runtime(path, {"x": np.array([0.5, -1], dtype=np.float32)})
    dy.renew_cg()
    near(found, p.begun().add_input(p.column(dy.inputVector([0.5, -1]))).output().npvalue().T)


def test_longer_sequences(runtime: Any, tmp_path: Any) -> None:
    p, path = Parts(), tmp_path / "x.onnx"
    of_steps(path, runtime, lambda xs: xs.begun(p.column(xs[0])), lambda xs: [p.column(xs[0]), *xs])
    of_steps(path, runtime, lambda xs: xs.begun(p.one), lambda xs: [dy.parameter(p.one), *xs])
    of_steps(path, runtime, lambda xs: xs.map(p.column).ended(xs[0]), lambda xs: [*map(p.column, xs), xs[0]])
    with pytest.raises(ValueError, match=r"begun: a step \(3,\) does not fit a sequence of \(2,\)"):
        onnx.export(lambda xs: xs.begun(dy.zeros(3)), path, {"xs": onnx.Input((2,), "n")})


def test_products_of_pairs(runtime: Any, tmp_path: Any) -> None:
    p = Parts()
    for left, right in ((p.column, dy.tanh), (dy.tanh, p.column), (p.column, p.column)):
        of_steps(
            tmp_path / "x.onnx", runtime,
            lambda xs, f=left, g=right: xs.map(f).products(xs.map(g)),
            lambda xs, f=left, g=right: [dy.concatenate([dy.dot_product(f(x), g(y)) for y in xs]) for x in xs],
        )  # fmt: skip


@pytest.mark.parametrize("start", ["v", "one"])
def test_states_of_scan(start: str, runtime: Any, tmp_path: Any) -> None:
    p = Parts()
    steps: list[Callable[[Any, Any], Any]] = [
        lambda s, x: dy.tanh(p.W * s + p.column(x)),
        lambda s, x: dy.tanh(p.W * s + x),
        lambda s, x: (dy.tanh(p.column(s) + x), p.column(s)),
        lambda s, x: (p.column(dy.tanh(p.W * s + x)), s + 1),
    ]

    def engine(f: Callable[[Any, Any], Any], xs: list[Any]) -> list[Any]:
        state, outputs = getattr(p, start), []
        for x in xs:
            found = f(state, x)
            state, output = found if isinstance(found, tuple) else (found, found)
            outputs.append(output)
        return outputs

    for f in steps:
        of_steps(
            tmp_path / "x.onnx", runtime,
            lambda xs, f=f: onnx.scan(f, getattr(p, start), xs)[0], lambda xs, f=f: engine(f, xs),
        )  # fmt: skip


def test_states_of_trees(runtime: Any, tmp_path: Any) -> None:
    p, path = Parts(), tmp_path / "x.onnx"

    def node(x: Any, left: Any, right: Any) -> Any:
        return p.column(dy.tanh(x + p.W * left + right))

    def network(xs: Any, children: Any) -> Any:
        return onnx.recurse(node, xs, children, p.v)

    onnx.export(network, path, {"xs": onnx.Input((2,), "n"), "children": onnx.Children("n", 2)})
    data = rng.standard_normal((3, 2)).astype(np.float32)
    (found,) = runtime(path, {"xs": data, "children": np.array([[-1, -1], [-1, -1], [0, 1]])})
    dy.renew_cg()
    first, second = (node(dy.inputVector(x), p.v, p.v) for x in data[:2])
    wanted = [first, second, node(dy.inputVector(data[2]), first, second)]
    near(found, [e.npvalue().flatten("F") for e in wanted])


OPS: dict[str, Callable[[Any, Any, Parts], Any]] = {
    "concatenate": lambda x, c, p: dy.concatenate([x, c]),
    "esum": lambda x, c, p: dy.esum([x, c]),
    "average": lambda x, c, p: dy.average([x, c]),
    "emax": lambda x, c, p: dy.emax([x, c]),
    "logsumexp": lambda x, c, p: dy.logsumexp([x, c]),
    "affine_transform": lambda x, c, p: dy.affine_transform([p.one, p.W, x]),
    "layer_norm": lambda x, c, p: dy.layer_norm(x, p.one, p.v),
}


@pytest.mark.parametrize("name", OPS)
def test_ops_of_both(name: str, runtime: Any, tmp_path: Any) -> None:
    p = Parts()

    def network(x: Any) -> Any:
        return OPS[name](x, p.column(x), p)

    path = tmp_path / "x.onnx"
    of_steps(path, runtime, lambda xs: xs.map(network), lambda xs: list(map(network, xs)))
    onnx.export(network, path, {"x": onnx.Input((2,))})
    (found,) = runtime(path, {"x": np.array([0.5, -1], dtype=np.float32)})
    dy.renew_cg()
    near(found, network(dy.inputVector([0.5, -1])).npvalue().T)


# Ops of vectors, where some are columns: the function, and the dims of its arguments.
COLUMNS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "circ_conv": (dy.circ_conv, [(3,), (3, 1)]),
    "circ_corr": (dy.circ_corr, [(3, 1), (3,)]),
    "constrained_softmax": (lambda x, y: dy.constrained_softmax(x, dy.logistic(y) + 0.5), [(3, 1), (3,)]),
    "contract3d_1d": (dy.contract3d_1d, [(2, 3, 4), (4, 1)]),
    "contract3d_1d_1d": (dy.contract3d_1d_1d, [(2, 3, 4), (4, 1), (3, 1)]),
    "sparsemax": (dy.sparsemax, [(3, 1)]),
    "sparsemax_loss": (lambda x: dy.sparsemax_loss(x, [0, 1]), [(3, 1)]),
    "vanilla_lstm_c": (dy.vanilla_lstm_c, [(2,), (8, 1)]),
    "vanilla_lstm_h": (dy.vanilla_lstm_h, [(2, 1), (8,)]),
    "vanilla_lstm_h of columns": (dy.vanilla_lstm_h, [(2,), (8, 1)]),
}


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_for_vectors(name: str, batch: int, runtime: Any, tmp_path: Any) -> None:
    f, shapes = COLUMNS[name]
    rng = np.random.default_rng(3)
    data = [rng.standard_normal((*shape, batch)).astype(np.float32) for shape in shapes]
    data = data if batch > 1 else [x[..., 0] for x in data]
    inputs = {f"x{i}": onnx.Input(shape, batch=batch) for i, shape in enumerate(shapes)}
    path = onnx.export(lambda **xs: f(*xs.values()), tmp_path / "x.onnx", inputs)
    (found,) = runtime(path, {f"x{i}": x.T for i, x in enumerate(data)})
    dy.renew_cg()
    e = f(*(dy.inputTensor(x, batched=batch > 1) for x in data))
    assert found.shape == (*([batch] if batch > 1 else []), *reversed(e.shape))
    near(found.ravel(), e.npvalue().ravel("F"))
