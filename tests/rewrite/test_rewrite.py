"""Each pass alone on a graph that a C++ program builds: what it makes of it, and what it leaves alone.

A file `check_PASS.cc` for each row of the table of passes; graph_of.h says how a check is written. pass_mutations.py
takes conditions of passes away, one at a time, to see that some check fails.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cxx import built, compiler
from pass_mutations import MUTATIONS, Mutation
from rewrite_program import CEXT, HERE, compile_all, link, sources

from dynet_lite import _core

CHECK = re.compile(r"^CHECK\((\w+), (\w+)\)", re.MULTILINE)
CHECKS = [
    f"{name}/{what}" for path in sorted(HERE.glob("check_*.cc")) for name, what in CHECK.findall(path.read_text())
]
PASSES = [name for name, _, _ in _core.passes()]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cxx = compiler()
    if cxx is None or not CEXT.is_dir():
        pytest.skip("needs a C++ compiler and the source tree")
    out = tmp_path_factory.mktemp("rewrite")
    return link(cxx, compile_all(cxx, sources(), out, built=built).values(), out / "rewrite_check")


def test_every_check_is_in_the_program(program: Path) -> None:
    known = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    assert known == sorted(CHECKS)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_its_file(name: str) -> None:
    """What it must do, what it must leave alone, and a condition whose absence is noticed."""
    found = [what for of, what in (check.split("/") for check in CHECKS) if of == name]
    assert {what.startswith("leaves_") for what in found} == {True, False}
    assert (HERE / f"check_{name}.cc").is_file() and any(m.name == name for m in MUTATIONS)


@pytest.mark.parametrize("check", CHECKS)
def test_pass(program: Path, check: str) -> None:
    done = subprocess.run([program, check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{m.name}-{m.what}" for m in MUTATIONS])
def test_the_place_of_a_mutation_is_there(mutation: Mutation) -> None:
    assert (CEXT / mutation.file).read_text().count(mutation.old) == 1 and mutation.old != mutation.new
