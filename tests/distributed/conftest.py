"""Programs run under mpiexec, as users run them; skipped where mpi4py or an MPI is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from mpi import VARIABLES, mpiexec

import dynet_lite as dy

PACKAGE = Path(dy.__file__).resolve().parents[1]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def written(folder: Path, program: str) -> Path:
    """The program in a file, whole at any time: threads run the same one at once, and a rank that reads half of it ends early,
    while the others wait for it."""
    path = folder / f"program_{zlib.crc32(program.encode()):x}.py"
    own = path.with_suffix(f".{threading.get_ident()}")
    own.write_text(program)
    os.replace(own, path)
    return path


@pytest.fixture
def ranks(tmp_path: Path) -> Run:
    """ranks(n, program or path, *arguments, ok=True, VARIABLE="of the environment"): runs it on n processes, or without MPI."""

    def run(
        n: int, program: str | Path, *args: object, ok: bool = True, **env: str
    ) -> subprocess.CompletedProcess[str]:
        if isinstance(program, str):
            program = written(tmp_path, textwrap.dedent(program))
        command = [mpiexec(), "-n", str(n)] if n else []
        paths = os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run([*command, sys.executable, str(program), *map(str, args)], cwd=tmp_path, capture_output=True,
                              text=True, timeout=300, env={**os.environ, **VARIABLES, "PYTHONPATH": paths, **env})  # fmt: skip
        if ok:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run
