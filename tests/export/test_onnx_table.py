"""The table of lowerings, row by row: the samples of the op table, our values against ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import as_input, close, graph, sample, value_of
from samples import Row, rows

import dynet_lite as dy
from dynet_lite import _core, onnx
from dynet_lite.onnx.table import LOWERINGS, REFUSED, lowering

ROWS = rows()
every_row = pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{r.label}" for i, r in enumerate(ROWS)])

# Shapes that have no ONNX form though their op has.
NO_FORM = ("filters that differ inside a mini-batch",)


def ours_to_onnx(x: np.ndarray) -> np.ndarray:
    """An array whose last axis is the batch in the layout of the file."""
    y = np.ascontiguousarray(x.T, dtype=np.float32)
    return y if y.shape[0] > 1 else y[0]


def test_every_op_has_a_row_or_a_reason() -> None:
    lowering("add")  # reads the rows
    known = set(LOWERINGS) | set(REFUSED)
    assert known == set(_core.all_op_names())
    assert not set(LOWERINGS) & set(REFUSED)


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
        try:
            onnx.export(network, path, inputs)
        except onnx.Unsupported as error:
            assert any(reason in str(error) for reason in NO_FORM), error
            return
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
