"""Run as a program: the numbers of everything on the backend "cuda" are those of the CPU, but for rounding.

--few: of a part of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "engine"), str(Path(__file__).parents[1] / "ops")]

import apart_memory  # noqa: E402

FEW = 12  # of so many rows of the table one

if __name__ == "__main__":
    if "--few" in sys.argv:
        apart_memory.PROGRAMS = [0, 1, 30]
        chosen = apart_memory.rows()[::FEW]
        apart_memory.rows = lambda: chosen
    here, there, again = (apart_memory.on(backend, 1) for backend in ("cpu", "cuda", "cuda"))
    assert len(here) == len(there)
    apart_memory.same(here, there, exact=False)
    apart_memory.same(there, again, exact=True)
    print("the same", len(here))
