"""The driver's stand-in, and programs that run with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import build  # noqa: E402


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in as a library; DYNET_LITE_TEST_LIBCUDA names one that is built already."""
    if sys.platform != "linux" or build.compiler() is None or not build.CEXT.is_dir():
        pytest.skip("needs Linux, a C++ compiler and the source tree")
    built = os.environ.get("DYNET_LITE_TEST_LIBCUDA")
    return Path(built) if built else build.stand_in(tmp_path_factory.mktemp("standin"))


@pytest.fixture
def on_gpu(libcuda: Path, tmp_path: Path) -> build.Run:
    """on_gpu(words of a command line, faults="", other variables): what Python did, with the stand-in as the driver."""

    def run(*words: str, faults: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        place = {**os.environ, "PYTHONPATH": str(build.PACKAGE), "DYNET_LITE_LIBCUDA": str(libcuda)}
        place |= {"DYNET_LITE_STANDIN": faults, "XDG_CACHE_HOME": str(tmp_path / "cache"), **more}
        command = [sys.executable, "-X", "faulthandler", *words]
        return subprocess.run(command, capture_output=True, text=True, env=place, cwd=tmp_path, timeout=600)

    return run


@pytest.fixture
def mistake(tmp_path: Path) -> build.Mistake:
    """mistake(file of the kernels, text, other text): a copy of their source with this in it."""

    def make(name: str, right: str, wrong: str) -> Path:
        cext = tmp_path / "cext"
        for folder in ("backends/cuda/kernels", "kernels"):
            shutil.copytree(build.CEXT / folder, cext / folder)
        file = cext / "backends" / "cuda" / "kernels" / name
        text = file.read_text()
        assert text.count(right) == 1, "the place of the mistake is gone"
        file.write_text(text.replace(right, wrong))
        return cext

    return make
