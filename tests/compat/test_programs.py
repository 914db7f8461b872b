"""Whole programs in the style of DyNet's examples: same losses on DyNet and on the stand-in from the same weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_dynet import HAS_DYNET, needs_dynet, python

FOLDER = Path(__file__).with_name("programs")
PROGRAMS = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem != "harness")


def flat(losses: list[Any]) -> list[float]:
    return [float(v) for x in losses for v in np.ravel(x)]


def ours(program: str, weights: Path, out: Path, *flags: str) -> list[float]:
    done = python("-m", "dynet_lite", "run", str(FOLDER / f"{program}.py"), str(weights), str(out), *flags)
    assert done.returncode == 0, done.stderr
    return flat(json.loads(out.read_text()))


@needs_dynet
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_losses_as_dynet(program: str, tmp_path: Path) -> None:
    weights, out = tmp_path / "weights", tmp_path / "out"
    command = [
        sys.executable,
        str(FOLDER / f"{program}.py"),
        str(weights),
        str(out),
        "--dynet-mem",
        "64",
        "--dynet-seed",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": ""})
    assert out.exists(), done.stderr
    theirs = flat(json.loads(out.read_text()))
    for flags in (("--dynet-mem", "64"), ("--dynet-autobatch", "0")):
        given = ours(program, weights, out, *flags)
        assert len(given) == len(theirs) > 5
        np.testing.assert_allclose(given, theirs, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(given[:4], theirs[:4], rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(HAS_DYNET, reason="DyNet is here to compare with")
@pytest.mark.parametrize("program", PROGRAMS)
def test_runs_and_repeats(program: str, tmp_path: Path) -> None:
    """Without DyNet: it runs, prints nothing unasked, and gives the same again."""
    first = ours(program, tmp_path / "weights", tmp_path / "out")
    again = ours(program, tmp_path / "weights", tmp_path / "out")
    assert np.isfinite(first).all()
    np.testing.assert_allclose(again, first, rtol=1e-4, atol=1e-6)
