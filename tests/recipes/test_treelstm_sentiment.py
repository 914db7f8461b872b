"""The tree LSTM as a user runs it: in a process of its own, from another folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "treelstm_sentiment.py"


def run(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RECIPE), *args], cwd=cwd, input=stdin, capture_output=True, text=True,
                          timeout=300)  # fmt: skip


@pytest.mark.parametrize("cell", ["nary", "childsum"])
def test_smoke(cell: str, tmp_path: Path) -> None:
    done = run("--smoke", "--cell", cell, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, baseline, epoch, *_ = done.stdout.splitlines()
    assert "351 trees (3,718 words, 5 labels)" in first and "Apache-2.0" in first
    assert baseline.startswith("baseline (always 2, the most frequent label of a root)  dev root accuracy ")
    assert epoch.startswith("epoch  1") and "root accuracy" in epoch


@pytest.mark.parametrize("cell", ["nary", "childsum"])
def test_compare_gives_the_same_losses(cell: str, tmp_path: Path) -> None:
    done = run("--smoke", "--compare", "--cell", cell, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert float(last.split("by ")[-1].split()[0]) <= 1e-5


def test_it_learns_and_labels_trees(tmp_path: Path) -> None:
    model = tmp_path / "model"
    trained = run("--epochs", "12", "--hidden", "60", "--save", str(model), cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    best = trained.stdout.splitlines()[-1]
    assert "(all nodes " in best and "; binary: roots " in best
    assert float(best.split("root accuracy ")[1].split("%")[0]) >= 58, best  # 31 of the 59 dev trees are neutral
    lines = "(? (? (? the) (? film)) (? (? is) (? brilliant)))\n\n(X (X awful))\n"
    done = run("predict", "--load", str(model), "-", cwd=tmp_path, stdin=lines)
    assert done.returncode == 0, done.stderr
    first, empty, last = done.stdout.splitlines()
    assert not empty and "?" not in first and "brilliant" in first and last[1] in "01234"


def test_two_classes(tmp_path: Path) -> None:
    trees = tmp_path / "a.txt"
    trees.write_text("(4 (2 a) (4 fine))\n(0 (2 a) (1 (2 very) (0 dull)))\n(2 (2 a) (2 film))\n(3 fine)\n" * 8)
    small = [
        "--word-dim",
        "12",
        "--hidden",
        "12",
        "--epochs",
        "30",
        "--batch",
        "4",
        "--dropout",
        "0.1",
        "--classes",
        "binary",
    ]
    done = run("--train", str(trees), "--save", "model", *small, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "22 trees (44 words, 2 labels)" in done.stdout  # without the neutral ones; two are dev
    assert "best dev root accuracy 100.00% (all nodes 100.00%)" in done.stdout
    done = run("predict", "--load", "model", "-", cwd=tmp_path, stdin="(x (x a) (x (x very) (x dull)))\n")
    assert done.stdout.startswith("(negative (") and done.stdout.endswith("(negative dull)))\n")
    done = run("evaluate", "--load", "model", str(trees), cwd=tmp_path)
    assert "root accuracy 100.00%" in done.stdout
    trees.write_text("(S (D the) (N dog))\n" * 4)
    done = run("--train", str(trees), "--classes", "binary", cwd=tmp_path)
    assert done.returncode == 2 and "--classes binary needs trees with the classes 0 to 4, got 'D'" in done.stderr


def test_labels_of_the_files(tmp_path: Path) -> None:
    """`neutral` is one of them, and evaluation may meet others than 0 to 4."""
    (tmp_path / "a").write_text("(neutral (positive a) (negative film))\n" * 8)
    done = run("--smoke", "--train", "a", cwd=tmp_path)
    assert "7 trees (14 words, 3 labels)" in done.stdout, done.stderr
    (tmp_path / "b").write_text("(0 (1 bad) (2 film))\n(4 (3 good) (2 one))\n" * 4)
    assert run("--smoke", "--train", "b", "--save", "model", cwd=tmp_path).returncode == 0
    (tmp_path / "c").write_text("(0 (1 bad) (2 film))\n(7 (3 good) (2 one))\n")
    done = run("evaluate", "--load", "model", "c", cwd=tmp_path)
    assert "c: 2 trees: root accuracy " in done.stdout, done.stderr


def test_wide_trees_and_a_malformed_file(tmp_path: Path) -> None:
    trees = tmp_path / "trees.ptb"
    trees.write_text("(S (NP (D the) (A old) (N dog)) (VP (V barks) (ADV loudly) (ADV now)) (. .))\n" * 4)
    for options in (["--most", "3"], ["--cell", "childsum"], []):
        done = run("--smoke", "--train", str(trees), *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    done = run("--smoke", "--train", str(trees), "--most", "1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: --most: a node may have at least 2 children, got 1\n")
    trees.write_text("(S (NP the)\n(VP barks\n")
    done = run("--smoke", "--train", str(trees), cwd=tmp_path)
    assert done.returncode == 2
    assert "trees.ptb:2: expected ')'" in done.stderr and "Traceback" not in done.stderr


def test_the_model_is_the_one_written_for_dynet(tmp_path: Path) -> None:
    pytest.importorskip("dynet_config", reason="DyNet is not installed")
    program = RECIPE.parents[1] / "benchmarks" / "treelstm_accuracy.py"
    done = subprocess.run([sys.executable, str(program), "--seeds", "0"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("differ by ")[1].split()[0]) < 1e-4
