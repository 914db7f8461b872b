"""The tutorials run as they stand, in a process of their own, in an empty folder, without a network; the page lists them."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import dynet_lite as dy

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
SCRIPTS = sorted(TUTORIALS.glob("*.py"))

# Whoever asks for another machine gets an error.
OFFLINE = """
import runpy, socket, sys
def refuse(*args, **kwargs): raise OSError("a tutorial asked for the network")
socket.socket.connect = socket.getaddrinfo = refuse
runpy.run_path(sys.argv[1], run_name="__main__")
"""

# A word that shows that the last section was reached.
SAYS = {
    "coming_from_dynet": "squared_norm|dot_product",
    "coming_from_pytorch": "row 0",
    "debugging": "a value was asked for in between",
    "first_network": "saved and loaded",
    "trees": "batching off",
    "writing_a_cell": "fewer nodes",
}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_tutorial(path: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(path)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert re.search(SAYS[path.stem], done.stdout), done.stdout
    assert "Warning" not in done.stderr
    assert list(tmp_path.iterdir()) == [], "a tutorial leaves nothing behind"


def test_the_nodes_of_a_step_are_as_many_as_it_says() -> None:
    told = runpy.run_path(str(TUTORIALS / "writing_a_cell.py"))
    counts = []
    for function in (told["fused"], told["cell"].transduce):
        dy.renew_cg()
        xs = [told["E"][word] for word in range(20)]
        before = len(dy.cg())
        counts.append((len(function(xs)), len(dy.cg()) - before))
    fewer, usual = (nodes // steps for steps, nodes in counts)
    assert f"with {fewer} nodes per step instead of {usual}." in told["fused"].__doc__


def test_the_page_lists_them() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]\(\1\)", (TUTORIALS / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [p.name for p in SCRIPTS]


def test_links_of_the_page() -> None:
    page = (TUTORIALS / "README.md").read_text()
    assert all((TUTORIALS / link).exists() for link in re.findall(r"\]\(([^)#]+)\)", page) if "://" not in link)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_public_names_only(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dy":
            assert node.attr in dy.__all__, f"dy.{node.attr} is not a public name"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_cells_are_numbered(path: Path) -> None:
    numbers = re.findall(r"^# %% (\d+)\. \S", path.read_text(), re.MULTILINE)
    assert numbers == [str(k) for k in range(1, len(numbers) + 1)] and len(numbers) >= 5
