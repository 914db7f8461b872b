"""Makes random programs from a seed. Each step is tried on the engine as it is made, so that most of them are right.

What is tried runs beside the program, one node after another; a step that raises, or whose numbers are not finite, is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fuzz_names import names, op_cases, rows
from fuzz_program import Program, Step, compiled

import dynet_lite as dy

SIZES = (3, 8)


class Skip(Exception):
    """What was begun does not go on."""


class Generator:
    """A program in the making. peer: only what DyNet has, too."""

    def __init__(self, seed: int, peer: bool = False) -> None:
        self.rng, self.peer = np.random.default_rng([seed, int(peer)]), peer
        dy.reset_random_seed(seed + 1)  # what becomes too large must not depend on what is dropped
        self.steps: list[Step] = []
        self.env = names(dy, 0)
        self.env["see"] = lambda x: np.asarray(x)
        self.count = 0
        self.live: list[str] = []  # expressions of this graph
        self.stale: list[str] = []
        self.weights: dict[tuple[int, ...], list[str]] = {}
        self.tables: list[tuple[str, int, int]] = []  # name, rows, width
        self.losses: list[str] = []
        self.changed = False  # were weights changed in this graph?
        self.used: set[str] = set()  # in this graph
        self.graded: set[str] = set()  # of these, what the last backward pass may have reached

    # ---- choosing ----------------------------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def one(self, items: Any) -> Any:
        items = list(items)
        if not items:
            raise Skip
        return items[self.below(len(items))]

    def seed(self) -> int:
        return self.below(10_000)

    # ---- steps -------------------------------------------------------------------------------------------------------
    def do(self, text: str) -> None:
        """A statement; Skip if it raises."""
        try:
            exec(compiled(text), self.env)
        except Exception as error:
            raise Skip(text, error) from None
        self.steps.append(Step(text))
        self.used.update(self.steps[-1].needs)

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def make(self, text: str, letter: str = "e", keep: bool = True) -> str:
        """A new expression, with numbers that are not too large."""
        name = self.name(letter)
        self.do(f"{name} = {text}")
        size = np.max(np.abs(self.env[name].npvalue()), initial=0.0)
        if not size <= 1e3:
            del self.env[name]
            self.steps.pop()
            raise Skip
        if size > 4:
            self.do(f"{name} = dy.tanh({name})")
        if keep:
            self.live.append(name)
        return name

    def hidden(self, text: str) -> str:
        """An expression that drop() lets go."""
        return self.make(text, "t", keep=False)

    def drop(self, *those: str) -> None:
        for name in those:
            if name in self.env:
                self.do(f"del {name}")
            if name in self.live:
                self.live.remove(name)

    def maybe(self, step: Callable[[], Any]) -> Any:
        try:
            return step()
        except Skip:
            return None

    # ---- the model ---------------------------------------------------------------------------------------------------
    def weight(self, *shape: int) -> str:
        found = self.weights.setdefault(shape, [])
        if not found or (len(found) < 3 and self.chance(0.5)):
            name = self.name("W")
            self.do(f"{name} = m0.parameters_from_numpy(A({self.seed()}, {', '.join(map(str, shape))}))")
            found.append(name)
        return str(self.one(found))

    def table(self, width: int | None = None) -> tuple[str, int, int]:
        found = [t for t in self.tables if width in (None, t[2])]
        if not found or (len(self.tables) < 4 and self.chance(0.1)):
            n, d = self.one((5, 40)), width or self.one(SIZES)
            name = self.name("T")
            self.do(f"{name} = m0.lookup_parameters_from_numpy(A({self.seed()}, {n}, {d}))")
            self.tables.append((name, n, d))
            return self.tables[-1]
        return self.one(found)  # type: ignore[no-any-return]

    def ids(self, rows_: int, count: int) -> list[int]:
        return [self.below(rows_ if self.chance(0.5) else 5) for _ in range(count)]

    # ---- expressions -------------------------------------------------------------------------------------------------
    def dim(self, name: str) -> tuple[tuple[int, ...], int]:
        return self.env[name].dim()  # type: ignore[no-any-return]

    def some(self) -> str:
        return str(self.one(self.live)) if self.live else self.leaf()

    def vector(self, n: int, batch: int = 1) -> str:
        """A vector that is there, or a new one."""
        fits = [e for e in self.live if self.dim(e) == ((n,), batch)]
        if fits and self.chance(0.7):
            return str(self.one(fits))
        return self.leaf(n, batch)

    def leaf(self, n: int | None = None, batch: int = 1) -> str:
        n = n or self.one(SIZES)
        table, rows_, _ = self.table(n)
        if batch > 1:
            ids = self.ids(rows_, batch)
            ways = [f"dy.lookup_batch({table}, {ids})", f"{table}.batch({ids})", f"inp({self.seed()}, ({n},), {batch})",
                    f"dy.lookup_batch({table}, {ids}, update=False)"]  # fmt: skip
        else:
            i = self.ids(rows_, 1)[0]
            ways = [f"{table}[{i}]"] * 4
            ways += [f"dy.lookup({table}, {i})", f"dy.lookup({table}, {i}, update=False)", f"inp({self.seed()}, ({n},))",
                     f"dy.inputVector(A({self.seed()}, {n}))", self.weight(n) + " + 0", f"dy.parameter({self.weight(n)})"]  # fmt: skip
            ways += [] if self.peer else [f"dy.const_parameter({self.weight(n)})"]
        return self.make(self.one(ways))

    def whole_table(self) -> str:
        table, _, _ = self.table()
        ways = [table] if self.peer else [table, f"{table}.expr(True)", f"{table}.expr(False)"]
        return self.make(f"dy.tanh({self.one(ways)})")

    def op(self) -> str:
        """An op of the tables of samples, with some arguments from here."""
        if self.peer or self.chance(0.2):
            label = self.one(name for name in op_cases.CASES if not name.startswith(WRONG_IN_DYNET))
            count, call = len(op_cases.CASES[label].args), "case"
        else:
            label = self.one(rows())
            count, call = len(rows()[label].args), "op"
        args = [self.some() if self.chance(0.7) else "None" for _ in range(count)]
        return self.make(f"{call}({', '.join([repr(label), str(self.seed() % 20), *args])})")

    def wrong(self) -> None:
        """A call that raises, in the middle."""
        if self.peer:
            raise Skip
        label = self.one(name for name, row in rows().items() if row.wrong)
        self.steps.append(Step(f"wrong({label!r}, {self.below(len(rows()[label].wrong))})"))

    def begin(self) -> None:
        self.do("m0 = dy.ParameterCollection()")

    def renew(self) -> None:
        for name in (*self.live, *self.losses):
            if self.chance(0.7):
                self.drop(name)
            else:
                self.stale.append(name)
        self.do("dy.renew_cg(**FLAGS)")
        self.live, self.losses, self.used, self.graded = [], [], set(), set()
        self.changed = False

    def program(self) -> Program:
        return tuple(self.steps)


# Cases that DyNet computes wrongly (tests/compat), or that read past what is theirs there.
WRONG_IN_DYNET = ("poisson_loss", "silu beta", "logsumexp_dim", "contract3d_1d_bias")
