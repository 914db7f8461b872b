"""Builds what stands in for a card: a libcuda of our own, and the check of the card's kernel table."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CEXT = HERE.parents[1] / "cext"
FLAGS = ["-std=c++17", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{CEXT}", f"-I{HERE}"]


def compiler() -> str | None:
    names = [os.environ.get("CXX"), (sysconfig.get_config_var("CXX") or "").split(" ")[0], "g++", "clang++"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


def stand_in(folder: Path) -> Path:
    """The driver's stand-in, with the kernels inside (DYNET_LITE_LIBCUDA)."""
    out = folder / "libcuda.so.1"
    run([compiler() or "c++", *FLAGS, "-O2", "-shared", str(HERE / "standin.cc"), "-o", str(out)])
    return out


def table_check(folder: Path, openblas: str) -> Path:
    """The kernel checks on the card's table."""
    sources = [HERE / "table_check.cc"]
    sources += sorted((HERE.parent / "kernels").glob("check_*.cc"))
    sources += sorted((CEXT / "kernels").glob("*.cc"))  # without flags of instruction sets: the baseline's alone
    sources += [CEXT / "backends" / "cuda" / f"{name}.cc" for name in ("driver", "device", "recorder", "table")]
    (folder / ".libs").symlink_to(openblas)  # where blas.cc looks

    def compiled(source: Path) -> str:
        out = folder / f"{source.stem}.o"
        run([compiler() or "c++", *FLAGS, f"-I{HERE.parent / 'kernels'}", "-O1", "-c", str(source), "-o", str(out)])
        return str(out)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, sources))
    out = folder / "table_check"
    run([compiler() or "c++", *objects, "-o", str(out), "-ldl", "-lpthread"])
    return out
