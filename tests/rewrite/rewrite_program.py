"""Builds the program of checks beside this file: the source tree without bindings, executor and fast kernels, at -O0."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CEXT = HERE.parents[1] / "cext"
FOLDERS = ("ops", "op", "graph", "rewrite", "rewrite/rules", "base", "backends/null")

Built = Callable[[Path], "Path | None"]


def sources() -> list[Path]:
    of_library = [path for folder in FOLDERS for path in sorted((CEXT / folder).glob("*.cc"))]
    return [*of_library, CEXT / "kernels" / "isa_baseline.cc", *sorted(HERE.glob("*.cc"))]


def call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


def compile_all(
    cxx: str, some: Iterable[Path], out: Path, first: Path | None = None, built: Built = lambda source: None
) -> dict[Path, Path]:
    """The object of each source. What lies in the folder `first` goes before what lies in cext/.

    built: the object of a source that is there already. Asked only for what is no part of the graph and its rewriting,
    whose asserts are on here.
    """
    include = [f"-I{folder}" for folder in (first, CEXT, HERE) if folder]
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", *include]
    if first is None:  # Reading the standard library is half of the work without optimization: once for all.
        standard = out / "standard.h"
        shutil.copyfile(CEXT / "base" / "standard.h", standard)
        call([cxx, *flags, "-x", "c++-header", str(standard), "-o", f"{standard}.gch"])
        flags += ["-include", str(standard)]

    def compile_one(source: Path) -> tuple[Path, Path]:
        if source.parent.name in ("ops", "kernels") and (there := built(source)):
            return source, there
        obj = out / f"{source.parent.name}_{source.stem}.o"
        call([cxx, *flags, "-c", str(source), "-o", str(obj)])
        return source, obj

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(compile_one, some))


def link(cxx: str, objects: Iterable[Path], program: Path) -> Path:
    call([cxx, *map(str, objects), "-pthread", "-o", str(program)])
    return program
