"""What a build from source says when something is missing. Nothing is compiled here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.py").exists() or os.name == "nt", reason="needs the source tree and a shell"
)
pytest.importorskip("Cython")
pytest.importorskip("setuptools", minversion="77")


def built(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "build_ext",
        "--build-temp",
        str(tmp_path / "temp"),
        "--build-lib",
        str(tmp_path / "lib"),
    ]
    env = {**{k: v for k, v in os.environ.items() if k not in ("CC", "CXX")}, **variables}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


def test_a_missing_compiler_is_one_sentence(tmp_path: Path) -> None:
    missing = str(tmp_path / "no-such-compiler")
    done = built(tmp_path, CC=missing, CXX=missing)
    assert done.returncode == 1
    assert f"needs a C++17 compiler, and '{missing}' was not found: install one" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_system_blas_is_one_sentence(tmp_path: Path) -> None:
    """The compiler here cannot link anything."""
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    done = built(tmp_path, CC=str(compiler), CXX=str(compiler), DYNET_LITE_BLAS="system")
    assert done.returncode == 1
    assert "DYNET_LITE_BLAS=system found no BLAS with the C interface (cblas_sgemm): install one" in done.stderr
    assert "Traceback" not in done.stderr
