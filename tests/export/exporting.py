"""What the tests of exported files share: a recipe trained and exported by its command line, sessions, inputs, weights."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynet_lite as dy
from dynet_lite import harness
from dynet_lite.nn import CASES, case_of

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
WHOLE = os.environ.get(
    "DYNET_LITE_EXPORT", ""
).split()  # options of the training; none: a tiny one, and a part of the dev set
SOME = 40


def filled(model: dy.ParameterCollection, rng: np.random.Generator) -> None:
    """Weights of which none is zero, those of biases neither."""
    for p in model.parameters_list():
        p.set_value(rng.uniform(-0.8, 0.8, p.shape()))


def near(found: Any, wanted: Any) -> None:
    """As close as single functions are; the scores of whole recipes are close()."""
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-4, atol=1e-5)


def trained_and_exported(folder: Path, name: str, *options: str) -> tuple[Any, Path]:
    """The recipe with its weights, and the file that `export` wrote in the folder."""
    script = RECIPES / f"{name}.py"
    for arguments in (
        [*(WHOLE or ["--smoke"]), "--save", "model", *options], ["export", "--load", "model", "--to", "model.onnx"]
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, str(script), *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=3600 if WHOLE else 300,
        )
        assert done.returncode == 0, done.stderr
    assert "model.onnx" in done.stdout and "opset 20" in done.stdout
    kind, module = class_of(name)
    return harness.load_recipe(kind, module.Settings, str(folder / "model")), folder / "model.onnx"


def class_of(name: str) -> tuple[Any, Any]:
    """The class of a recipe and its module; None where the program has none."""
    spec = importlib.util.spec_from_file_location(f"exported_{name}", RECIPES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    kinds = [
        x for x in vars(module).values()
        if isinstance(x, type) and issubclass(x, harness.Recipe) and x.__module__ == spec.name
    ]  # fmt: skip
    return next(iter(kinds), None), module


def dev(recipe: Any) -> list[Any]:
    """Examples to compare on."""
    examples = recipe.load_data(recipe.settings).dev
    return examples if WHOLE else examples[:SOME]


def session(path: Path) -> Any:
    ort = pytest.importorskip("onnxruntime")
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def run_file(path: Any, inputs: dict[str, Any]) -> list[np.ndarray]:
    """The outputs of a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    made = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(made.run(None, {k: np.asarray(v) for k, v in inputs.items()}))


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-4, atol=1e-4)


def ids_of(recipe: Any, forms: list[str], reader: str = "reader") -> dict[str, np.ndarray]:
    """The inputs of a WordReader."""
    read = getattr(recipe, reader)
    inputs = {"words": np.array(read.words.ids(w.lower() if read.folded else w for w in forms))}
    if read.chars:
        cut = [w if len(w) <= 24 else w[:12] + w[-12:] for w in forms]
        letters = [read.letters.ids(w) for w in cut]
        longest = max(map(len, letters))
        inputs["letters"] = np.array([[*x, *[0] * (longest - len(x))] for x in letters])
        inputs["letters_length"] = np.array([len(x) for x in letters])
    if read.case_table is not None:
        inputs["cases"] = np.array([CASES.index(case_of(w)) for w in forms])
    return inputs
