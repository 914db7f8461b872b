"""Libraries that depend on DyNet, unchanged, on the stand-in: the results that they have on DyNet.

DYNET_LITE_NAGISA_PYTHON and DYNET_LITE_UUPARSER_PYTHON name Pythons that have DyNet and nagisa 0.3 or uuparser 2.4 (with
what these need); without them the Python of the tests is looked at, and the tests are skipped where it has no such library.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynet_lite

HERE = Path(__file__).with_name("libraries")
ROOT = Path(__file__).parents[2]


def interpreter(library: str) -> str:
    named = os.environ.get(f"DYNET_LITE_{library.upper()}_PYTHON")
    if not named and not (importlib.util.find_spec(library) and importlib.util.find_spec("_dynet")):
        pytest.skip(f"{library} and DyNet are not installed")
    return named or sys.executable


def run(library: str, script: str, *arguments: object, ours: bool) -> str:
    command = [interpreter(library), *(["-m", "dynet_lite", "run"] if ours else []), str(HERE / script)]
    path = str(Path(dynet_lite.__file__).parents[1]) if ours else ""
    # Not in the source folder, which -m would put before what is installed.
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=600, cwd=HERE,
                          env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_nagisa_tags(tmp_path: Path) -> None:
    results = []
    for ours in (False, True):
        run("nagisa", "nagisa_tags.py", tmp_path / "out", ours=ours)
        results.append(json.loads((tmp_path / "out").read_text()))
    theirs, given = results
    assert len(given["tags"]) == 500 and given["tags"] == theirs["tags"]
    print({what: (round(theirs[what], 2), round(given[what], 2)) for what in ("load", "seconds")})


def test_nagisa_fit(tmp_path: Path) -> None:
    run("nagisa", "nagisa_fit.py", tmp_path, ours=False)
    theirs, given = (
        [line for line in run("nagisa", "nagisa_fit.py", tmp_path, ours=ours).splitlines() if line.startswith("LOSS")]
        for ours in (False, True)
    )
    assert len(theirs) == 4 and given == theirs


def short_sentences(path: Path, count: int) -> str:
    sentences = path.read_text(encoding="utf-8").strip().split("\n\n")
    words = [sum(not line.startswith("#") for line in s.splitlines()) for s in sentences]
    return "\n\n".join([s for s, n in zip(sentences, words, strict=True) if n <= 18][:count]) + "\n\n"


@pytest.mark.parametrize("kind", [(), ("--graph-based",)], ids=["transitions", "graph"])
def test_uuparser(kind: tuple[str, ...], tmp_path: Path) -> None:
    interpreter("uuparser")
    treebank = sorted((ROOT / "data" / "treebank").glob("*train*.conllu")) or sorted((ROOT / "data").rglob("*.conllu"))
    if not treebank:
        pytest.skip("no treebank in data/")
    (tmp_path / "x-ud-train.conllu").write_text(short_sentences(treebank[0], 120), encoding="utf-8")
    (tmp_path / "x-ud-dev.conllu").write_text(short_sentences(treebank[-1], 30), encoding="utf-8")
    files = (tmp_path / "x-ud-train.conllu", tmp_path / "x-ud-dev.conllu")
    outputs = []
    for name, ours in (("first", False), ("theirs", False), ("ours", True)):
        run("uuparser", "uuparser_train.py", tmp_path, *files, tmp_path / name, *kind, ours=ours)
        outputs.append((tmp_path / name / "dev_epoch_2.conllu").read_text(encoding="utf-8").splitlines())
    _, theirs, given = outputs
    different = sum(a != b for a, b in zip(theirs, given, strict=True))
    assert different <= 0.01 * len(theirs), f"{different} of {len(theirs)} lines differ"
