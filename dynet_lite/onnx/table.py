"""The table of lowerings: for each op of the engine the function that writes it as ONNX nodes, or why there is none.

A row is a function (writer, node, arguments) -> name of the result, or a tuple of names where the op has several outputs.
The rows stand in the rows_*.py modules beside this file; tests/export/test_onnx_table.py runs the samples of every op
through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .writer import Made, Value, Writer

Lowering = Callable[[Writer, Made, Sequence[Value]], Any]

LOWERINGS: dict[str, Lowering] = {}

_RANDOM = "it draws random numbers; export what the model does after training"
_REWRITTEN = "it is made by rewriting, so no program has it"

# Ops without a row, and why.
REFUSED: dict[str, str] = {
    **dict.fromkeys(("dropout", "dropout_dim", "dropout_batch", "block_dropout", "noise"), _RANDOM),
    **dict.fromkeys(("random_normal", "random_uniform", "random_bernoulli", "random_gumbel"), _RANDOM),
    **dict.fromkeys(("_affine", "_affines", "_affine_loss", "_layer"), _REWRITTEN),
    **dict.fromkeys(("_fused", "_fused_with_constants"), _REWRITTEN),
}


def row(*ops: str) -> Callable[[Lowering], Lowering]:
    """Enters a function as the lowering of these ops."""

    def enter(f: Lowering) -> Lowering:
        for op in ops:
            assert op not in LOWERINGS, op
            LOWERINGS[op] = f
        return f

    return enter


def lowering(op: str) -> Lowering | None:
    """The row of an op."""
    # At each call: while one thread imports them, another one has to wait.
    from . import rows_cells, rows_double, rows_elementwise, rows_products, rows_reduce, rows_shape  # noqa: F401

    return LOWERINGS.get(op)
