"""Ways to run a program, and what is wrong with one: every way must show what the plainest one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from fuzz_program import Observation, Program, difference, execute, smallest, source

import dynet_lite as dy
from dynet_lite import _core

Way = dict[str, Any]  # settings of dy.configure(), and overlap, flags of renew_cg()
PLAIN: Way = {"autobatch": False, "fuse": False, "keep_plans": False}
PASSES = [name for name, _, _ in _core.passes()]
WAYS: dict[str, Way] = {
    "unbatched": {"autobatch": False},
    "greedy": {},
    "agenda": {"strategy": "agenda"},
    "depth": {"strategy": "depth"},
    "auto": {"strategy": "auto"},
    "no fusing": {"fuse": False},
    "two threads": {"threads": 2},
    "three threads": {"threads": 3},
    "two threads, no overlap": {"threads": 2, "overlap": False},
    "two threads, no fusing": {"threads": 2, "fuse": False},
    "two threads, agenda": {"threads": 2, "strategy": "agenda"},
    "two threads, auto": {"threads": 2, "strategy": "auto"},
    "immediate": {"immediate_compute": True},
    "checked": {"check_validity": True},
    "memory of its own": {"backend": "apart"},
    "memory of its own, no fusing": {"backend": "apart", "fuse": False},
    **{f"without {name}": {"rewrites": f"-{name}"} for name in PASSES},
    **{f"without {name}, two threads": {"rewrites": f"-{name}", "threads": 2} for name in PASSES},
}
FLAGS = ("immediate_compute", "check_validity")
MEANINGS = ("immediate_compute", "keep_weights")  # what is asked for late sees the weights of another time


@contextmanager
def setting(way: Way) -> Iterator[dict[str, bool]]:
    """The settings of a way; gives the flags of renew_cg()."""
    flags = {name: value for name, value in way.items() if name in FLAGS}
    options = {name: value for name, value in way.items() if name not in (*FLAGS, "overlap")}
    before = _core.settings.least_work, _core.settings.overlap
    with ExitStack() as stack:
        stack.enter_context(dy.configure(**options))
        _core.settings.least_work, _core.settings.overlap = 0, way.get("overlap", True)
        _core.settings.verify = True
        try:
            yield flags
        finally:
            _core.settle_steps()
            _core.settings.least_work, _core.settings.overlap = before


def observed(program: Program, way: Way, numbers: int = 0, moved: int = 0) -> list[Observation]:
    with setting(way) as flags:
        _core.set_seed(11)
        dy.renew_cg()
        try:
            return execute(program, dy, numbers, moved, **flags)
        finally:
            dy.renew_cg()


@dataclass
class Finding:
    """Where two ways differ, with the program made small."""

    seed: int
    what: str
    text: str

    def __str__(self) -> str:
        return self.text


def plainest(way: Way) -> Way:
    """What a way is compared with: without all that must not change anything."""
    return {**PLAIN, **{k: v for k, v in way.items() if k in MEANINGS}}


def differs(program: Program, way: Way, numbers: int) -> tuple[int, str] | None:
    given, wanted = observed(program, way, numbers), observed(program, plainest(way), numbers)
    if not way.get("check_validity"):
        return difference(given, wanted)
    checked = observed(program, {**plainest(way), "check_validity": True}, numbers)
    return difference(given, checked) or difference(*(until_not_finite(seen, checked) for seen in (given, wanted)))


def until_not_finite(seen: list[Observation], checked: list[Observation]) -> list[Observation]:
    """What was seen before a check of values found one that is not finite: nobody else looks."""
    errors = (k for k, how, what in checked if how == "error" and what.startswith("NotFiniteError"))
    end = next(errors, None)
    return seen if end is None else [o for o in seen if o[0] < end]


def check(program: Program, seed: int, names: Sequence[str], keep_weights: bool = False) -> Finding | None:
    """The first of the ways in which the program shows something else."""
    for name in names:
        way = {**WAYS[name], **({"keep_weights": True} if keep_weights else {})}
        if differs(program, way, 0) is None:
            continue
        small = smallest(program, lambda p, n, way=way: differs(p, way, n))
        if small is not None:
            what = f"{name} {way} against {plainest(way)}"
            return finding(
                small, seed, what, lambda n, small=small, way=way: differs(small, way, n), settings_text(way)
            )
    return None


def finding(
    program: Program, seed: int, what: str, differs: Callable[[int], tuple[int, str] | None], settings: str
) -> Finding:
    """With the numbers with which it shows. A program whose faults are those of memory may show nothing once more."""
    numbers = next((n for n in range(3) if differs(n) is not None), 0)
    step, how = differs(numbers) or (-1, "")
    return Finding(
        seed, what, source(program, f"seed {seed}, {what}: at `{program[step].text}`\n{how}", numbers, settings)
    )


def settings_text(way: Way) -> str:
    """A line that sets what a way sets."""
    options = {name: value for name, value in way.items() if name not in (*FLAGS, "overlap")}
    lines = [f"dy.configure({', '.join(f'{k}={v!r}' for k, v in options.items())})"]
    if "threads" in way:
        lines.append(f"dy._core.settings.least_work, dy._core.settings.overlap = 0, {way.get('overlap', True)}")
    return "\n".join(lines)
