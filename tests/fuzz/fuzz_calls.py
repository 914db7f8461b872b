"""Sessions that call functions: cells, loops over them and compiled functions (fuzz_functions.py), in steps that come
again with other data and other structures, while numbers and attributes that the functions name change, functions
are made anew, and what fuzz_again.py does happens in between.

    python tests/fuzz/fuzzer.py --programs 1000 --calls

What is shown must be the same to the last bit where plans are kept and where none are, and the same but for rounding
where the functions simply run, nothing is batched, fused or kept.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from fuzz_again import Session, graphs, observed
from fuzz_functions import HELPERS, MOST, functions
from fuzz_generate import Generator
from fuzz_motifs import expressions
from fuzz_program import Observation, Program, difference, shrink, smallest
from fuzz_ways import FLAGS, PASSES, PLAIN, Finding, Way

SEEDS = re.compile(r"(\b(?:words|tree|nested|lengths)\(\d+, )(\d+)")
PLACES = re.compile(r"(\bat\()(\d+)")
COUNTS = re.compile(r"(\b(?:words|tree|nested|lengths)\()(\d+)")
KINDS = re.compile(r"(\b(?:deep|mode)\()(\d+)")
LISTED = re.compile(r"dy\.map\(\w+, \[")  # such a call has as many words as there are expressions

RANDOM = re.compile(r"dy\.(?:noise|dropout\w*|block_dropout|random_\w+)\(|set_dropout")
FAILS = re.compile(r"\b99\b|'no'|\(\w+, 1\)|\[1, 2\]\)")  # mistaken() does; loops take back what they have made
RUNS_AGAIN = re.compile(
    r"set_value\(|populate\(|\.(?:scale|set|set_index|clip_inplace)\(|init_\w+\(|recalculate|" + FAILS.pattern
)
CHANGES = re.compile(r"set_value\(|populate\(|load_array\(|\.(?:scale|clip_inplace|zero)\(|init_\w+\(")
# An argument that a cell does not use is there all the same, and so is what a loop has made that fails inline.
ABSENT = "is not in the current graph"

WAYS: list[Way] = [
    {}, {}, {}, {"autobatch": False}, {"strategy": "agenda"}, {"strategy": "auto"}, {"fuse": False}, {"threads": 2},
    {"backend": "apart"}, {"cells": "inline"}, {"cells": "check"}, {"compile": False}, {"cells": "check", "fuse": False},
    {"keep_weights": True}, {"immediate_compute": True}, *({"rewrites": f"-{name}"} for name in PASSES),
]  # fmt: skip
SIMPLE: Way = {**PLAIN, "cells": "inline", "compile": False}


def some(g: Generator, count: int) -> None:
    """Calls of functions, and other things."""
    for _ in range(count):
        (functions if g.chance(0.7) else expressions)(g, 1)


class CallSession(Session):
    def __init__(self, program: Program, seed: int, steps: int) -> None:
        text = [step.text for step in program]
        self.functions = [one for one in text if "def " in one or "dy.compile(" in one]
        self.numbers = [one.partition(" ")[0] for one in text if re.match(r"G\d+ = float", one)]
        self.holders = [one.partition(" ")[0] for one in text if re.match(r"O\d+ = holder", one)]
        self.builders = [one.partition(" ")[0] for one in text if re.match(r"B\d+ = builder\('Vanilla", one)]
        super().__init__(program, seed, steps)

    def other_data(self, text: str, places: Sequence[int]) -> str:
        text = super().other_data(text, places)
        text = PLACES.sub(lambda m: m[1] + str(self.below(MOST)), text)
        text = SEEDS.sub(lambda m: m[1] + str(self.below(20)), text)
        if self.chance(0.2) and not LISTED.search(text):
            more = self.below(3)
            text = COUNTS.sub(lambda m: m[1] + str(1 + (int(m[2]) + more) % 4), text)
        return KINDS.sub(lambda m: m[1] + (str(self.below(3)) if self.chance(0.2) else m[2]), text)

    def ways(self, within: bool) -> list[str]:
        own = [f"{name} = float({self.one(['0.5', '0.25', '-1.0'])})" for name in self.numbers]
        own += [f"{name}.rate = {self.one(['0.5', '0.25', '-1.0'])}" for name in self.holders]
        own += [f"{name}.inner.on = {self.chance(0.5)}" for name in self.holders]
        own += [f"{name}.set_dropout({self.one(['0.3', '0.0'])})" for name in self.builders]
        own += [f"import copy; {name} = copy.deepcopy({name})" for name in self.holders]
        if self.functions and not within:
            own += [self.one(self.functions)] * 2
        own += ["dy.reset_random_seed(5)", "dy.stats()", "dy.cg().forward()", "dy.cg_checkpoint()", "dy.cg_revert()"]
        return own if self.chance(0.6) else super().ways(within)


def session(seed: int, steps: int = 16) -> Program:
    return tuple(CallSession(graphs(seed, some, HELPERS), seed, steps).steps)


def seen(program: Program, way: Way, changing: bool, keep: bool, numbers: int = 0) -> list[Observation]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # functions that have been recorded often
        return observed(program, way, changing, keep, numbers, HELPERS)


def differs(program: Program, way: Way, changing: bool) -> tuple[int, str] | None:
    """The first step that shows other bits where plans are kept."""
    return difference(*(seen(program, way, changing, keep) for keep in (True, False)), rtol=0, atol=0)


def simply(program: Program, way: Way, numbers: int) -> tuple[int, str] | None:
    """The first step that shows something else where functions simply run."""
    meant = {name: value for name, value in way.items() if name in (*FLAGS, "keep_weights")}
    given, wanted = seen(program, way, False, True, numbers), seen(program, {**SIMPLE, **meant}, False, False, numbers)
    stale = [{k for k, how, what in one if how == "error" and what.startswith("Stale")} for one in (given, wanted)]
    end = min(
        drawn_anew(program), left_behind(program, wanted), *(stale[0] ^ stale[1]), len(program)
    )  # of an argument that the function does not use
    left_out = {k for k, how, what in (*given, *wanted) if how == "error" and ABSENT in what}
    return difference(*([one for one in all_ if one[0] < end and one[0] not in left_out] for all_ in (given, wanted)))


def left_behind(program: Program, wanted: list[Observation]) -> int:
    """The first step that changes a weight after a call in the same graph has failed. Where functions run, what a call has made stays,
    and the weights that it read: when one of these is changed the graph runs again, with what a trainer has made of the others."""
    failed, left = {k for k, how, _ in wanted if how == "error"}, False
    for k, step in enumerate(program):
        left = left and "renew_cg(" not in step.text
        if left and CHANGES.search(step.text):
            return k
        left = left or k in failed
    return len(program)


def drawn_anew(program: Program) -> int:
    """The first step from which on random numbers may be others: where a graph runs again, or a loop in it has failed,
    it is not said how many are drawn."""
    if not any(RANDOM.search(step.text) for step in program):
        return len(program)
    return next((k for k, step in enumerate(program) if RUNS_AGAIN.search(step.text)), len(program))


def check(seed: int, session: Callable[[int], Program] = session) -> Finding | None:
    rng = np.random.default_rng([seed, 31])
    way, changing = WAYS[int(rng.integers(len(WAYS)))], bool(rng.random() < 0.5)
    program = session(seed)
    small: Program | None = None
    if differs(program, way, changing) is not None:
        small = shrink(program, lambda p: differs(p, way, changing) is not None)
        what = f"seed {seed}, plans kept or anew, {way}, changing {changing}: {differs(small, way, changing)}"
    elif simply(program, way, 0) is not None:
        small = smallest(program, lambda p, n: simply(p, way, n))
        what = f"seed {seed}, {way} against {SIMPLE}: {small and [simply(small, way, n) for n in range(3)]}"
    if small is None:
        return None
    return Finding(seed, what, "\n".join([f"# {what}", *(step.text for step in small)]))
