"""The floor: the matrix products that a task cannot do without, at the shapes of an ideal schedule, through numpy's BLAS.

A product (rows, inner, [columns...]) stands for a weight {rows, inner} applied to so many columns at a time: forward
rows x inner x columns for each number of columns, backward the gradient of the inputs for each, and the gradient
of the weight once over all columns. Operands are in one piece each, results are overwritten: nothing is gathered.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

Products = list[tuple[int, int, list[int]]]


@cache
def operand(rows: int, columns: int, part: str) -> Any:
    """An array to multiply or to write to; one of each shape and part is enough."""
    return np.full((rows, columns), 0.01, np.float32)


def run_products(products: Products, train: bool) -> dict[str, float]:
    """CPU seconds of the phases."""
    times = {"forward": 0.0, "backward": 0.0}
    cpu = time.process_time
    for rows, inner, columns in products:
        weight = operand(rows, inner, "weight")
        # Rows are instances, as in memory: x {columns, inner}, y {columns, rows}.
        shapes = [(operand(n, inner, "x"), operand(n, rows, "y"), operand(n, inner, "dx")) for n in columns if n]
        start = cpu()
        for x, y, _ in shapes:
            np.matmul(x, weight.T, out=y)
        times["forward"] += cpu() - start
        if not train:
            continue
        every = sum(columns)
        xs, ys, dw = operand(every, inner, "x"), operand(every, rows, "y"), operand(rows, inner, "dw")
        start = cpu()
        for _, y, dx in shapes:
            np.matmul(y, weight, out=dx)
        if every:
            np.matmul(ys.T, xs, out=dw)
        times["backward"] += cpu() - start
    return times
