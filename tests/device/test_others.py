"""Tests of engine, builders and cells with the GPU as their backend, on the stand-in: some, or with --all all of them.

Left out is what looks at the plans of the CPU instead of numbers: a pass whose op the GPU has no code for makes less of
them there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import build

ROOT = Path(__file__).resolve().parents[2]
SOME = [f"tests/{name}.py" for name in
        ("builders/test_states", "builders/test_trees", "builders/test_parameter_names", "cells/test_cell_structure",
         "engine/test_bundles", "engine/test_complete_gradients", "engine/test_constants", "engine/test_dead_code",
         "engine/test_folded_attention", "engine/test_folded_sums")]  # fmt: skip
FOLDERS = ("engine", "builders", "cells", "ops")
ABOUT_PLANS = ("engine/test_auto_strategy.py", "engine/test_back_plan.py", "engine/test_folded_losses.py",
               "engine/test_pass_golden.py", "engine/test_folded_concats.py::test_word_and_tag",
               "builders/test_softmax_builders.py::test_frozen_uses_are_one_batch",
               "engine/test_fusing.py::test_a_run_that_fails_is_tried_again")  # the last: addresses are limited  # fmt: skip


def files() -> list[str]:
    if not build.ALL:
        return SOME
    found = sorted(path for folder in FOLDERS for path in (ROOT / "tests" / folder).glob("test_*.py"))
    return [name for path in found if (name := path.relative_to(ROOT).as_posix())[6:] not in ABOUT_PLANS]


@pytest.mark.parametrize("file", files())
def test_on_the_gpu(file: str, libcuda: Path) -> None:
    place = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    place |= {"DYNET_LITE_LIBCUDA": str(libcuda), "DYNET_LITE_BACKEND": "cuda"}
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
    command += [f"--deselect=tests/{name}" for name in ABOUT_PLANS if "::" in name]
    done = subprocess.run(command, capture_output=True, text=True, env=place, cwd=ROOT, timeout=3000)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
