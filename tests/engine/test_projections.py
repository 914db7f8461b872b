"""Cells that read few rows of a table, each many times, characters or actions: their projections are merged (rewrite/rules/merge.cc).

Then no output lies over a projection, and backward writes gradients of gates where the gates lie (BackRun::find_spent_outputs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fused_programs import STRATEGIES, Array, Model, engine, near

import dynet_lite as dy
from dynet_lite import _core, structure

IN, H, LETTERS = 5, 9, 6
BUILDERS: dict[str, Callable[[Any], Any]] = {
    "vanilla": lambda pc: dy.VanillaLSTMBuilder(1, IN, H, pc),
    "two layers": lambda pc: dy.VanillaLSTMBuilder(2, IN, H, pc),
    "coupled": lambda pc: dy.FastLSTMBuilder(1, IN, H, pc),
    "gru": lambda pc: dy.GRUBuilder(1, IN, H, pc),
    "simple": lambda pc: dy.SimpleRNNBuilder(1, IN, H, pc),
    "both ways": lambda pc: dy.BiRNNBuilder(1, IN, 2 * H, pc, dy.VanillaLSTMBuilder),
}
each_builder = pytest.mark.parametrize("name", BUILDERS)


def words(count: int = 40, letters: int = LETTERS) -> list[list[int]]:
    rng = np.random.default_rng(7)
    return [rng.integers(letters, size=rng.integers(1, 7)).tolist() for _ in range(count)]


class Case:
    """Words through a builder, and a loss for each. Two cases of one name have equal numbers."""

    def __init__(self, name: str, rows: int = LETTERS) -> None:
        dy.reset_random_seed(3)
        self.model = Model()
        self.builder = BUILDERS[name](self.model.pc)
        self.model.made.update({p.name(): p for p in self.builder.param_collection().parameters_list()})
        self.table = self.model.table(IN, rows=rows)

    def build(self, texts: list[list[int]], inputs: Callable[[list[int]], list[Any]] | None = None) -> None:
        dy.renew_cg()
        self.losses = []
        for k, text in enumerate(texts):
            xs = inputs(text) if inputs else [self.table[i] for i in text]
            start = self.builder if hasattr(self.builder, "transduce") else self.builder.initial_state()
            hs = start.transduce(xs)
            self.losses.append(dy.esum([dy.squared_norm(h) * (1.0 + k % 3) for h in hs]))

    def gradients(self, every: int = 1) -> list[Array]:
        """Of the sum of every so manyth loss, which comes first."""
        loss = dy.esum(self.losses[::every])
        loss.backward()
        return [loss.npvalue(), *self.model.gradients().values()]


def projections() -> tuple[int, int]:
    """How many ran, and how many were merged."""
    sorts = [node.sort for node in structure.read().nodes if node.op == "affine_transform"]
    return sorts.count("op"), sorts.count("merged")


@pytest.mark.parametrize("how", [{}, {"threads": 2}, *({"strategy": s} for s in STRATEGIES)], ids=str)
@each_builder
def test_no_number_changes(name: str, how: dict[str, Any]) -> None:
    """Nor in further passes, some of them over some words."""
    passes = (1, 1, 3, 1)
    with engine(fuse=False):
        case = Case(name)
        wanted = []
        for every in passes:
            case.build(words())
            wanted.append(case.gradients(every))
    with engine(merge=True, **how):
        case = Case(name)
        case.build(words())
        for every, want in zip(passes, wanted, strict=True):
            for given, other in zip(case.gradients(every), want, strict=True):
                near(given, other, 1e-5, (name, every), atol=1e-6)


@pytest.mark.parametrize("name", ["vanilla", "coupled", "gru", "simple"])
def test_one_projection_for_each_letter(name: str) -> None:
    with engine(merge=True):
        case = Case(name)
        case.build(words())
        dy.esum(case.losses).value()
        ran, merged = projections()
        assert ran == LETTERS
        assert merged == sum(map(len, words())) - LETTERS


@pytest.mark.parametrize(
    ("texts", "rows", "inputs"),
    [
        pytest.param([[1, 2], [3, 1], [2, 2]], LETTERS, None, id="few letters"),
        pytest.param(words(letters=90), 90, None, id="many different ones"),
        pytest.param(words(), LETTERS, lambda table, text: [dy.tanh(table[i]) if k % 2 else table[i] for k, i in enumerate(text)],
                     id="computed vectors beside them"),
    ],
)  # fmt: skip
def test_who_keeps_projections_for_its_gates(texts: list[list[int]], rows: int, inputs: Any) -> None:
    """Only beginnings that are alike have common ones."""
    with engine(merge=True):
        case = Case("vanilla", rows)
        case.build(texts, inputs and (lambda text: inputs(case.table, text)))
        dy.esum(case.losses).value()
        steps = [
            node.sort for node in structure.read().nodes if node.op.startswith("lstm") and node.sort in ("op", "merged")
        ]
        ran, merged = projections()
        assert (ran, merged) == (steps.count("op"), steps.count("merged"))


def test_letters_that_an_expression_refers_to() -> None:
    """They may still be set to other rows."""
    found = []
    for fuse in (True, False):
        with engine(merge=True, fuse=fuse):
            case = Case("vanilla")
            kept: list[Any] = []
            case.build(
                words(),
                lambda text, case=case, kept=kept: kept.extend(case.table[i] for i in text) or kept[-len(text) :],
            )
            case.gradients()
            assert projections()[1] == 0
            kept[3].set(0)
            found.append(case.gradients())
    for given, wanted in zip(*found, strict=True):
        near(given, wanted, 1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["vanilla", "coupled"])
def test_gates_are_made_again_for_a_second_pass_alone(name: str) -> None:
    """So the first one has written over them."""
    with engine(merge=True):
        _core.settings.profile = True
        case = Case(name)
        case.build(words())

        def calls() -> int:
            return sum(p["calls"] for op, p in dy.cg().op_profile().items() if "_lstm_" in op)

        before = calls()
        loss = dy.esum(case.losses)
        loss.value()
        once = calls() - before
        loss.backward()
        assert calls() - before == once > 0
        loss.backward()
        assert calls() - before == 2 * once
