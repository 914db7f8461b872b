"""Builds what stands in for a GPU: a libcuda of our own, and the check of the GPU's kernel table."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cxx import built, compiler

from dynet_lite import _core

HERE = Path(__file__).resolve().parent
CEXT = HERE.parents[1] / "cext"
PACKAGE = Path(_core.__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]  # of conftest.py: on_gpu
Mistake = Callable[[str, str, str], Path]  # of conftest.py: mistake
FLAGS = ["-std=c++17", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{CEXT}", f"-I{HERE}"]
# tests/sanitize.sh: the engine has them, and so do the kernels.
SANITIZERS = ["-g1", "-fsanitize=address,undefined"] if os.environ.get("DYNET_LITE_TEST_SANITIZE") else []

ALL = os.environ.get("DYNET_LITE_TEST_ALL", "0") not in ("", "0")  # not a part of it: tests/device.sh --all


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


def stand_in(folder: Path, cext: Path = CEXT) -> Path:
    """The driver's stand-in, with the kernels inside (DYNET_LITE_LIBCUDA), and that of cuBLAS (DYNET_LITE_LIBCUBLAS).

    cext: another copy of the source, with a mistake in it for instance.
    """
    out = folder / "libcuda.so.1"
    sources = [str(HERE / name) for name in ("standin.cc", "standin_cublas.cc")]
    here = ["-march=native", "-ffp-contract=off"]  # fmaf() is one instruction, and roundings stay as they are written
    run([compiler() or "c++", f"-I{cext}", *FLAGS, *SANITIZERS, *here, "-shared", *sources, "-o", str(out)])
    return out


def table_check(folder: Path, openblas: str) -> Path:
    """The kernel checks on the GPU's table."""
    sources = [HERE / "table_check.cc"]
    sources += sorted((HERE.parent / "kernels").glob("check_*.cc"))
    sources.append(CEXT / "base" / "outer_later.cc")
    sources += sorted((CEXT / "kernels").glob("*.cc"))  # compiled here: the baseline's alone
    sources += [
        CEXT / "backends" / "cuda" / f"{name}.cc"
        for name in ("driver", "device", "cublas", "products", "recorder", "traffic", "table", "cell_parts", "update")
    ]
    (folder / ".libs").symlink_to(openblas)  # where blas.cc looks

    def compiled(source: Path) -> str:
        part_of_package = CEXT in source.parents and source.name != "blas.cc"  # which may be for a BLAS of the system
        if part_of_package and (there := built(source)):
            return str(there)
        out = folder / f"{source.stem}.o"
        run([compiler() or "c++", *FLAGS, f"-I{HERE.parent / 'kernels'}", "-c", str(source), "-o", str(out)])
        return str(out)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, sources))
    out = folder / "table_check"
    run([compiler() or "c++", *objects, "-o", str(out), "-ldl", "-lpthread"])
    return out
