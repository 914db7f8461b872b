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
    ort = pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")

    def run(path: Any, inputs: dict[str, Any]) -> list[np.ndarray]:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return session.run(None, {k: np.asarray(v) for k, v in inputs.items()})

    return run
