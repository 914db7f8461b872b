"""Random programs as plain data: steps of Python source, running them, printing them, making them smaller.

A step that needs a name that is not there is passed over, and an error is an observation; so any choice of steps of a program is a
program, and making one smaller is leaving out steps.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from fuzz_names import Names, names

NAME = re.compile(r"\b(?<![.'\"\w])[a-zA-Z]+\d+\b")
Observation = tuple[int, str, Any]  # step, kind, what was seen


@dataclass(frozen=True)
class Step:
    """One statement. Names of variables are letters and a number: e3, W1."""

    text: str

    @property
    def needs(self) -> tuple[str, ...]:
        text = re.sub(r"'[^']*'|\"[^\"]*\"|\b(?:def|class) \w+", "", self.text)
        made, found, _ = text.partition(" = ")
        return tuple(NAME.findall(text[len(made) :] if found else text))


Program = tuple[Step, ...]


@cache
def compiled(text: str) -> Any:
    return compile(text, "<program>", "exec")


MAKES = re.compile(r"add_\w*parameters|_from_numpy|Collection\(|builder\(|(?<!Cell)Builder\(|Trainer\(|dy\.cell|\bdy\.nn\b|\bdef |"
                   r"dy\.compile\(|= (?:float|holder|K\d+|make\d+)\(")  # fmt: skip


def repeated(program: Program, times: int = 3) -> Program:
    """Each graph of the program that often: what makes weights and parts of models is done once."""
    starts = [k for k, step in enumerate(program) if "renew_cg(" in step.text] + [len(program)]
    out = list(program[: starts[0]])
    for begin, end in itertools.pairwise(starts):
        again = [step for step in program[begin:end] if not MAKES.search(step.text)]
        out += [*program[begin:end], *again * (times - 1)]
    return tuple(out)


def plain(x: Any) -> Any:
    return x if isinstance(x, str) else np.asarray(x, dtype=np.float64)


def execute(
    program: Sequence[Step], dy: Any, numbers: int = 0, moved: int = 0, more: Names | None = None, **flags: Any
) -> list[Observation]:
    """What the program saw. moved: with arguments of fuzz_names.DIVIDES that are off by a rounding, another for each number.

    more: names that it may use besides.
    """
    seen: list[Observation] = []
    env = {**names(dy, numbers, moved, **flags), **(more or {})}
    for k, step in enumerate(program):
        if any(name not in env for name in step.needs):
            continue
        env["see"] = lambda x, k=k: seen.append((k, "seen", plain(x)))
        try:
            exec(compiled(step.text), env)
        except Exception as error:
            seen.append((k, "error", f"{type(error).__name__}: {error}"))
    return seen


def difference(
    given: list[Observation],
    wanted: list[Observation],
    rtol: float = 1e-3,
    atol: float = 1e-4,
    roundings: Sequence[float] | None = None,
) -> tuple[int, str] | None:
    """The first step at which they differ, and how; None if they do not. Errors are compared by their class.

    From the first number on that is not finite or very large, nothing is compared: from there on, rounding decides.
    roundings: how far each observation may be off besides (rounding()).
    """
    for k, ((i, how, a), (j, as_, b)) in enumerate(zip(given, wanted, strict=False)):
        if (i, how) != (j, as_):
            return min(i, j), f"{how} {str(a)[:200]} at step {i} instead of {as_} {str(b)[:200]} at step {j}"
        if how == "error":
            if a.partition(":")[0] != b.partition(":")[0]:
                return i, f"{a[:200]} instead of {b[:200]}"
            continue
        if isinstance(b, str) or isinstance(a, str):
            if a != b:
                return i, f"{a} instead of {b}"
            continue
        if a.shape != b.shape:
            return i, f"shape {a.shape} instead of {b.shape}"
        if not np.all(np.isfinite(b)) or np.max(np.abs(b), initial=0.0) > 1e4:
            return None
        off = float(np.max(np.abs(a - b), initial=0.0))
        if not off <= atol + rtol * float(np.max(np.abs(b), initial=0.0)) + (roundings[k] if roundings else 0.0):
            return i, f"off by {off:.3g}:\n{a}\ninstead of\n{b}"
    if len(given) != len(wanted):
        return -1, f"{len(given)} observations instead of {len(wanted)}"
    return None


# layer_norm(x) is (x - mean) / deviation: a rounding of x is as much as max |x| / deviation of them in the result, so that of
# numbers that are equal but for roundings it shows nothing else. The gradient of std_dim(x) is such a fraction, too. Engines round
# x differently: what comes of ROUNDINGS of them is no difference. x itself is a result of some ops, of one rounding each, and the
# mean of n numbers adds log2(n) or so.
ROUNDINGS = 16


def may_round(program: Program) -> bool:
    return any("layer_norm" in step.text or "std_" in step.text for step in program)


def rounding(seen: list[Observation], run: Callable[[int], list[Observation]], tries: int = 4) -> list[float]:
    """How far each observation may be off by roundings of what fuzz_names.DIVIDES are given: what it is off in run(k), times ROUNDINGS.

    run(k): the program with these numbers off by one rounding each, k says how (execute's moved).
    """
    most = [0.0] * len(seen)
    for k in range(1, tries + 1):
        for at, ((i, how, a), (j, as_, b)) in enumerate(zip(seen, run(k), strict=False)):
            if (i, how) != (j, as_):
                break
            if how == "seen" and not isinstance(a, str) and not isinstance(b, str) and a.shape == b.shape:
                off = float(np.max(np.abs(a - b), initial=0.0))
                most[at] = max(most[at], off) if np.isfinite(off) else np.inf
    return [ROUNDINGS * one for one in most]


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program of few steps that still fails (Zeller and Hildebrandt 2002, delta debugging)."""
    size = max(1, len(program) // 2)
    while True:
        k, less = 0, False
        while k < len(program):
            shorter = program[:k] + program[k + size :]
            if shorter and fails(shorter):
                program, less = shorter, True
            else:
                k += size
        if size == 1 and not less:
            return program
        size = max(1, size // 2)


def smallest(program: Program, differs: Callable[[Program, int], object], numbers: int = 3) -> Program | None:
    """A small program that differs with most numbers; None if that one does not.

    Where two arguments of a maximum are almost equal, rounding decides, but it does so with some numbers only.
    """

    def stays(p: Program) -> bool:
        return sum(differs(p, n) is not None for n in range(numbers)) * 2 > numbers

    if not stays(program):
        return None
    first = next(n for n in range(numbers) if differs(program, n) is not None)
    small = shrink(program, lambda p: differs(p, first) is not None)
    return small if stays(small) else shrink(program, stays)


def source(program: Sequence[Step], title: str, numbers: int = 0, settings: str = "") -> str:
    """Python that runs as it stands, with tests/fuzz on the path."""
    lines = [f"# {line}" for line in title.splitlines()]
    lines += ["import dynet_lite as dy", "from fuzz_names import names", *([settings] if settings else []),
              f"globals().update(names(dy, {numbers}), see=print)", *(step.text for step in program)]  # fmt: skip
    return "\n".join(lines) + "\n"


def to_json(seen: list[Observation]) -> str:
    return json.dumps(
        [(k, how, x if isinstance(x, str) else [list(x.shape), x.ravel().tolist()]) for k, how, x in seen]
    )


def from_json(text: str) -> list[Observation]:
    return [(k, how, x if isinstance(x, str) else np.array(x[1]).reshape(x[0])) for k, how, x in json.loads(text)]
