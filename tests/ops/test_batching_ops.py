"""k copies of a row with different arguments, batched by every strategy, equal k copies run one by one.

Values and gradients, with arguments that lie in order, that lie scattered, that are one weight, or one computed value, for
all copies. Rows with batches of their own give the manual mini-batches.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from harness import STRATEGIES, as_input, close, gradient_of, graph, loss_of, sample, value_of
from samples import Row, rows

import dynet_lite as dy
from dynet_lite import _core

ROWS = rows()
COPIES = 5


def parameter(array: np.ndarray) -> Any:
    p = _core.Parameters.make(array.shape[:-1], "/shared")
    p.set_value(array[..., 0])
    return p


class Program:
    """The copies of one row, and how their arguments come about."""

    def __init__(self, row: Row, mode: str, shared: int | None) -> None:
        self.row, self.mode, self.shared = row, mode, shared
        self.copies = [sample(row, 100 + k) for k in range(COPIES)]
        self.weight = parameter(self.copies[0][0][shared]) if mode == "weight" else None

    def arguments(self) -> tuple[list[list[Any]], list[Any]]:
        """Expressions of all copies, and the leaves whose gradients are compared."""
        leaves: list[Any] = []
        exprs: list[list[Any]] = [[None] * len(self.row.args) for _ in range(COPIES)]
        places = [(k, j) for k in range(COPIES) for j in range(len(self.row.args))]
        if self.mode != "leaves":
            places = [places[i] for i in np.random.default_rng(5).permutation(len(places))]
        common = None
        if self.mode == "value":
            leaf = as_input(self.copies[0][0][self.shared])
            leaves.append(leaf)
            common = self.computed(leaf)
        for k, j in places:
            if j == self.shared:
                exprs[k][j] = self.weight if self.mode == "weight" else common
                continue
            leaf = as_input(self.copies[k][0][j])
            leaves.append(leaf)
            exprs[k][j] = leaf if self.mode == "leaves" else self.computed(leaf)
        return exprs, leaves

    @staticmethod
    def computed(x: Any) -> Any:
        """x as the result of a node that batches with its like."""
        return x + 0.0

    def run(self, strategy: str) -> tuple[list[np.ndarray], list[np.ndarray], str]:
        """Values of all copies, gradients of all leaves and of the weight, the plan."""
        with graph(strategy, seed=9) as g:
            exprs, leaves = self.arguments()
            ys = [self.row.call(*exprs[k], **self.copies[k][1]) for k in range(COPIES)]
            losses = [loss_of(self.row, y) * float(0.5 + k) for k, y in enumerate(ys)]
            total = dy.esum(losses)
            values = [value_of(y) for y in ys]
            grads = []
            if self.row.args:
                total.backward(full=True)
                grads = [gradient_of(leaf) for leaf in leaves]
                if self.weight is not None:
                    grads.append(self.weight.grad_as_array().astype(np.float64))
                    self.weight.zero_gradient()
            return values, grads, g.plan_text()

    def run_alone(self) -> list[np.ndarray]:
        """Values of the copies, each in a graph of its own."""
        values = []
        for arrays, attrs in self.copies:
            with graph("none"):
                arrays = [self.copies[0][0][j] if j == self.shared else a for j, a in enumerate(arrays)]
                values.append(value_of(self.row.call(*map(as_input, arrays), **attrs)))
        return values


def modes(row: Row) -> list[tuple[str, int | None]]:
    found: list[tuple[str, int | None]] = [("leaves", None), ("scattered", None)]
    for j, arg in enumerate(row.args):
        found += [("value", j)] + ([("weight", j)] if arg.batch == 1 else [])
    return found


def runs_of(plan: str, op: str) -> int:
    """How many batches of an op a plan has."""
    return len(re.findall(rf"^\d+\t{re.escape(op)} \{{", plan, re.MULTILINE))


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{r.label}" for i, r in enumerate(ROWS)])
def test_batched_is_single(row: Row) -> None:
    for mode, shared in modes(row):
        program = Program(row, mode, shared)
        values, grads, plan = program.run("none")
        if row.oracle is None:
            for given, wanted in zip(values, program.run_alone(), strict=True):
                close(given, wanted, 2e-6, f"{row.label} {mode}: in one graph, or in {COPIES}")
        single = runs_of(plan, row.op)
        for strategy in STRATEGIES[1:]:
            what = f"{row.label} {mode} {shared} {strategy}"
            v, g, plan = program.run(strategy)
            for given, wanted in zip(v, values, strict=True):
                close(given, wanted, 5e-6, f"{what}: value")
            for given, wanted in zip(g, grads, strict=True):
                close(given, wanted, 1e-5, f"{what}: gradient")
            if row.batches and mode == "scattered" and single == COPIES:
                assert runs_of(plan, row.op) < COPIES, f"{what}: nothing ran together\n{plan}"
