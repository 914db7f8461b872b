"""The pointer network: its data against their definition, what it learns, files of the authors' form."""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

NAME = "pointer_network"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "recipes" / f"{NAME}.py"
    spec = importlib.util.spec_from_file_location(f"tested_{NAME}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_convex_hulls(program):
    """Between two corners that follow each other no point lies on the right, and all others do not fulfil that."""
    rng = random.Random(1)
    for n in range(3, 12):
        points = [[rng.random(), rng.random()] for _ in range(n)]
        hull = program.convex_hull(points)
        sides = set(zip(hull, [*hull[1:], hull[0]], strict=True))
        for a, b in itertools.permutations(range(n), 2):
            left = all(program.turn(points[a], points[b], points[c]) > 0 for c in range(n) if c not in (a, b))
            assert ((a, b) in sides) == left
        assert hull[0] == min(hull)
    assert program.convex_hull([[0.5, 0.5]]) == [0]


def test_sizes_of_drawn_data(program):
    """The largest is not below the smallest, also where only that one is given; the first line tells what was drawn."""
    data = program.PointerNetwork.load_data(program.Settings(least=10, examples=20))
    assert {len(puzzle) for puzzle in data.train} == {10} and data.detail == "10 to 10 points"


@pytest.mark.parametrize("task", ["hull", "sort"])
def test_batching_changes_nothing(run_recipe, same_losses, task):
    same_losses(run_recipe(NAME, "--smoke", "--compare", "--task", task).stdout)


def test_it_learns_to_sort(run_recipe, tmp_path):
    small = [
        "--examples",
        1500,
        "--hidden",
        24,
        "--least",
        2,
        "--most",
        4,
        "--epochs",
        6,
        "--batch",
        16,
        "--learning-rate",
        0.01,
    ]
    done = run_recipe(NAME, "--task", "sort", *small, "--save", tmp_path / "model")
    first, baseline, *_, last = done.stdout.splitlines()
    assert "1,500 inputs (2 to 4 points) to train on, 151 for dev" in first and baseline.startswith(
        "baseline (all points as they come)"
    )
    assert float(last.split("all right ")[1].split("%")[0]) > 85
    run = [NAME, "predict", "--load", tmp_path / "model", "-"]
    assert run_recipe(*run, stdin="0.9 0.1 0.5\n\n0.3\n").stdout == "output 2 3 1\n\noutput 1\n"
    done = run_recipe(*run, stdin="0.9 x\n", ok=False)
    assert done.returncode == 2 and "expected numbers, got '0.9 x'" in done.stderr
    done = run_recipe(*run, stdin="0.9 nan\n", ok=False)
    assert done.returncode == 2 and "expected numbers, got '0.9 nan'" in done.stderr
    (tmp_path / "points").write_text("0 0 1 1 0 1 output 1 2 3\n" * 3)
    done = run_recipe(NAME, "evaluate", "--load", tmp_path / "model", "points", ok=False)
    assert done.returncode == 2 and "error: expected points of 1 numbers" in done.stderr


def test_dev_data_need_training_data(run_recipe):
    done = run_recipe(NAME, "--dev", "points", ok=False)
    assert done.returncode == 2 and "error: --dev and --test need --train" in done.stderr


def test_files_of_the_authors_form(run_recipe, program, tmp_path):
    rng = random.Random(2)
    lines = []
    for _ in range(40):
        points = [[round(rng.random(), 3), round(rng.random(), 3)] for _ in range(5)]
        hull = program.convex_hull(points)
        lines.append(
            " ".join(f"{x} {y}" for x, y in points) + " output " + " ".join(str(i + 1) for i in [*hull, hull[0]]) + "\n"
        )
    (tmp_path / "a.txt").write_text("".join(lines))
    done = run_recipe(NAME, "--train", "a.txt", "--test", "a.txt", "--hidden", 6, "--epochs", 1, "--save", "model")
    assert "a.txt: 36 inputs to train on, 4 for dev, 40 for test" in done.stdout
    answer = run_recipe(NAME, "predict", "--load", "model", "-", stdin=lines[0]).stdout.split()
    assert answer[0] == "output" and answer[1] == answer[-1] and len(set(answer[1:-1])) == len(answer) - 2
    (tmp_path / "b.txt").write_text(lines[0] + "0.1 0.2 output 7\n")
    done = run_recipe(NAME, "--train", "b.txt", ok=False)
    assert (
        done.returncode == 2 and "b.txt:2: expected pairs of numbers and places from 1 to their number" in done.stderr
    )
    (tmp_path / "b.txt").write_text("0.1 0.2 0.3 0.4\n")
    done = run_recipe(NAME, "--train", "b.txt", ok=False)
    assert done.returncode == 2 and "b.txt: expected an answer in each line" in done.stderr
