"""The stack LSTM parser as a user runs it: in a process of its own, from another folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dynet_lite.text import is_projective, need_trees, parse_conllu

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "stack_lstm_parser.py"


def run(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RECIPE), *args], cwd=cwd, input=stdin, capture_output=True, text=True,
                          timeout=300)  # fmt: skip


KINDS = [
    ["--system", "arc-standard", "--beam", "3"],
    ["--system", "arc-hybrid"],
    ["--system", "arc-hybrid", "--oracle", "dynamic", "--encoder", "1"],
]


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_smoke(kind: list[str], tmp_path: Path) -> None:
    done = run("--smoke", *kind, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, baseline, epoch, *_ = done.stdout.splitlines()
    assert "351 sentences (3,718 words, 39 relations)" in first and "Apache-2.0" in first
    assert baseline.startswith("baseline (the usual head of each tag)  dev LAS ")
    assert epoch.startswith("epoch  1") and "LAS" in epoch and "UAS" in epoch


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_compare_gives_the_same_losses(kind: list[str], tmp_path: Path) -> None:
    done = run("--smoke", "--compare", *kind, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1].split("by ")[-1].split()[0]) <= 1e-5


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[2]], ids=" ".join)
def test_it_learns_and_parses_files(kind: list[str], tmp_path: Path) -> None:
    model = tmp_path / "model"
    small = ["--hidden", "40", "--item-dim", "40", "--layers", "1", "--word-dim", "40", "--dropout", "0.1"]
    trained = run("--epochs", "5", "--learning-rate", "0.007", *small, *kind, "--save", str(model), cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    best = trained.stdout.splitlines()[-1]
    assert float(best.split("LAS ")[1].split("%")[0]) >= 40, best
    plain = (
        "1\tThe\t_\tDET\t_\t_\t_\t_\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t_\t_\t_\t_\n3\tsleeps\t_\tVERB\t_\t_\t_\t_\t_\t_\n"
    )
    one = "1\tYes\t_\tINTJ\t_\t_\t_\t_\t_\t_\n"
    for beam in ("1", "4"):
        done = run("predict", "--load", str(model), "--beam", beam, "-", cwd=tmp_path, stdin=f"{plain}\n{one}\n{plain}")
        assert done.returncode == 0, done.stderr
        sentences = list(parse_conllu(done.stdout.split("\n")))
        assert [len(x) for x in sentences] == [3, 1, 3] and sentences[0] == sentences[2]
        need_trees(sentences, "output")
        assert sentences[0].heads[0] == 2 and is_projective(sentences[0].heads)


def test_a_dynamic_oracle_needs_arc_hybrid(tmp_path: Path) -> None:
    done = run("--smoke", "--oracle", "dynamic", cwd=tmp_path)
    assert done.returncode == 2
    assert "--oracle dynamic goes with --system arc-hybrid" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--system", "arc-hybrid", "--oracle", "dynamic"], "error: epoch 1, mini-batch 2: the loss is nan"),
        (["--batch", "99"], ""),
        (["--batch", "99", "--beam", "2"], ""),
    ],
)
def test_a_network_that_fails_makes_legal_moves(options: list[str], said: str, tmp_path: Path) -> None:
    done = run("--smoke", "--learning-rate", "1e30", *options, cwd=tmp_path)
    assert done.returncode == bool(said) and done.stderr.startswith(said) and "Traceback" not in done.stderr, (
        done.stderr
    )


def test_a_file_without_trees_is_a_clear_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t1\troot\t_\t_\n\n")
    done = run("--train", str(bad), cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.conllu: expected a tree with one root in sentence 1: Dogs bark" in done.stderr
