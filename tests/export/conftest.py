"""Files are run by ONNX Runtime; where it or the package onnx is missing, these tests are skipped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture
def exported(runtime: Any, tmp_path: Path) -> Callable[..., tuple[Any, Path]]:
    """exported(recipe, options...) -> the recipe with its weights, the file that `export` wrote."""
    from exporting import trained_and_exported

    return lambda name, *options: trained_and_exported(tmp_path, name, *options)


@pytest.fixture(scope="session")
def runtime() -> Callable[..., list[np.ndarray]]:
    """runtime(path, {input: array}) -> outputs."""
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")
    from exporting import run_file

    return run_file
