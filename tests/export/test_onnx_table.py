"""The table of lowerings, row by row: the samples of the op table, our values against ONNX Runtime's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import as_input, close, graph, sample, value_of
from programs import run_code
from samples import Row, rows

import dynet_lite as dy
from dynet_lite import _core, onnx, pytorch_names
from dynet_lite.onnx.table import LOWERINGS, REFUSED, lowering

ROWS = rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{r.label}" for i, r in enumerate(ROWS)])


def ours_to_onnx(x: np.ndarray) -> np.ndarray:
    """An array whose last axis is the batch in the layout of the file."""
    y = np.ascontiguousarray(x.T, dtype=np.float32)
    return y if y.shape[0] > 1 else y[0]


def test_every_op_has_a_row_or_a_reason() -> None:
    lowering("add")  # reads the rows
    known = set(LOWERINGS) | set(REFUSED)
    assert known == set(_core.all_op_names())
    assert not set(LOWERINGS) & set(REFUSED)


def test_a_table_that_is_read_in_part(tmp_path: Path) -> None:
    """As another thread sees it meanwhile."""
    done = run_code("from dynet_lite.onnx import rows_elementwise, table; print(table.lowering('matmul'))", tmp_path)
    assert done.returncode == 0 and "function matmul" in done.stdout, done.stderr


def test_every_row_of_the_table_is_tested() -> None:
    """The samples make a node of each op, of those that are refused, too: test_value asks for their errors."""
    made: set[str] = set()
    for row in ROWS:
        arrays, attrs = sample(row, 0)
        with graph():
            row.call(*map(as_input, arrays), **attrs)
            made |= {op for sort, op, *_ in _core.graph_program(_core.cg()) if sort == "op"}
    assert made == set(LOWERINGS) | set(REFUSED)


# Public functions that make expressions and stand in no row of the op table: how they are called on x {4} and W {4,4}.
MORE = {
    "concatenate_cols": lambda x, W: dy.concatenate_cols([x, W]),
    "const_parameter": lambda x, W: dy.const_parameter(WEIGHT) * x,
    "constant": lambda x, W: x + dy.constant((4,), 2.5),
    "inputTensor": lambda x, W: x + dy.inputTensor([1.0, 2, 3, 4]),
    "lookup": lambda x, W: x + dy.lookup(TABLE, 2),
    "lookup_batch": lambda x, W: x + dy.lookup_batch(TABLE, [2, 0, 1]),
    "one_hot": lambda x, W: x + dy.one_hot(4, 3),
    "ones": lambda x, W: x + dy.ones(4),
    "parameter": lambda x, W: dy.parameter(WEIGHT) * x,
    "pickrange": lambda x, W: dy.pickrange(x, 1, 3),
    "relu": lambda x, W: dy.relu(x),
    "scalarInput": lambda x, W: x * dy.scalarInput(3.5),
    "sparse_inputTensor": lambda x, W: x + dy.sparse_inputTensor([[1, 3]], [2.0, 5.0], (4,)),
    "vanilla_lstm_gates": lambda x, W: dy.vanilla_lstm_gates(x[:1], x[:1], x, x, x),
    "vanilla_lstm_gates_concat": lambda x, W: dy.vanilla_lstm_gates_concat([x, x], x[:1], dy.concatenate_cols([W, W]), x, x),
    "vanilla_lstm_gates_dropout": lambda x, W: dy.vanilla_lstm_gates_dropout(x[:1], x[:1], x, x, x, x[1:2], x[2:3]),
    "vanilla_lstm_gates_dropout_concat":
        lambda x, W: dy.vanilla_lstm_gates_dropout_concat([x, x], x[:1], dy.concatenate_cols([W, W]), x, x, dy.concatenate([x, x]), x[2:3]),
    "vecInput": lambda x, W: x + dy.vecInput(4),
    "zeroes": lambda x, W: x + dy.zeroes(4),
    "zeros": lambda x, W: x + dy.zeros(4),
}  # fmt: skip
MODEL = dy.ParameterCollection()
WEIGHT, TABLE = MODEL.add_parameters((3, 4)), MODEL.add_lookup_parameters((5, 4))

# Modules whose public functions make no expressions, or are DyNet's other names for those that do. test_onnx_cells.py has those of
# dynet_lite.cells.
NO_EXPRESSIONS = {
    f"dynet_lite.{name}"
    for name in "gpus cells checkpoint compat compiled config embeddings explain gradcheck graph io profiling rewrites summary trained words".split()
}


def test_every_public_function_is_exported_or_refused() -> None:
    samples = "".join(p.read_text(encoding="utf-8") for p in (Path(__file__).parents[1] / "ops").glob("samples*.py"))
    found = 0
    for name, f in vars(dy).items():
        if (
            name.startswith("_")
            or not callable(f)
            or isinstance(f, type)
            or name in ("cg", *MORE, *pytorch_names.MODULE)
        ):
            continue
        found += 1
        in_a_row = re.search(rf"\bdy\.{name}\b", samples) or f'"{name}"' in samples
        assert in_a_row or ".".join(f.__module__.split(".")[:2]) in NO_EXPRESSIONS, (
            f"{name}: neither a row of the op table nor one of MORE"
        )
    assert found > 150 and all(hasattr(dy, name) for name in MORE)


@pytest.mark.parametrize("name", MORE)
def test_functions_beside_the_op_table(name: str, runtime: Any, tmp_path: Any) -> None:
    rng = np.random.default_rng(3)
    x, W = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((4,), (4, 4)))
    path = onnx.export(MORE[name], tmp_path / "x.onnx", {"x": onnx.Input((4,)), "W": onnx.Input((4, 4))})
    (found,) = runtime(path, {"x": x, "W": W.T})
    with graph():
        wanted = MORE[name](dy.inputVector(x), dy.inputTensor(W)).npvalue()
    np.testing.assert_allclose(found, wanted.T, rtol=1e-5, atol=1e-6)


@every_row
def test_value(row: Row, runtime: Any, tmp_path: Any) -> None:
    for seed in range(2):
        arrays, attrs = sample(row, seed)
        with graph():
            expression = row.call(*map(as_input, arrays), **attrs)
            ops = {op for sort, op, *_ in _core.graph_program(_core.cg()) if sort == "op"}
            value = value_of(expression)
        inputs = {f"x{i}": onnx.Input(a.shape[:-1], batch=a.shape[-1]) for i, a in enumerate(arrays)}
        path = tmp_path / "row.onnx"

        def network(**xs: Any) -> Any:
            return row.call(*xs.values(), **attrs)  # noqa: B023

        if ops & set(REFUSED):
            with pytest.raises(onnx.Unsupported, match=next(iter(ops & set(REFUSED))).lstrip("_")):
                onnx.export(network, path, inputs)
            return
        onnx.export(network, path, inputs)
        (found,) = runtime(path, {f"x{i}": ours_to_onnx(a) for i, a in enumerate(arrays)})
        close(found.astype(np.float64), ours_to_onnx(value).astype(np.float64), 1e-5, row.label)


def test_symbolic_batch(runtime: Any, tmp_path: Any) -> None:
    model = dy.ParameterCollection()
    W, b = model.add_parameters((3, 4)), model.add_parameters(3)

    def network(x: Any) -> Any:
        return dy.softmax(
            dy.affine_transform([b, W, dy.tanh(x)]) + dy.reshape(dy.concatenate([dy.pick_range(x, 0, 2), x[3:4]]), (3,))
        )

    path = onnx.export(network, tmp_path / "batch.onnx", {"x": onnx.Input((4,), batch="b")})
    for n in (1, 5):
        data = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        with graph():
            wanted = [network(dy.inputVector(row)).npvalue() for row in data]
        np.testing.assert_allclose(runtime(path, {"x": data})[0], wanted, atol=1e-6)


def test_slices_of_a_mini_batch_of_one(runtime: Any, tmp_path: Any) -> None:
    x = np.arange(5, dtype=np.float32)
    path = onnx.export(lambda x: x[::2, ::-1], tmp_path / "x.onnx", {"x": onnx.Input((5,))})
    np.testing.assert_array_equal(runtime(path, {"x": x})[0], x[::2])
