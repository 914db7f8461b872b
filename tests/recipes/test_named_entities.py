"""The finder of names: learns on the project's sentences, reads and writes every scheme, scores each type."""

from __future__ import annotations

import random

import pytest

NAME = "named_entities"
SMALL = ["--word-dim", 20, "--char-hidden", 8, "--hidden", 20, "--learning-rate", 0.01]
IOB2 = "Mary B-PER\nSmith I-PER\nsaw O\nRome B-LOC\n\nIn O\nNew B-LOC\nYork I-LOC\nMary B-PER\nslept O\n\n"
IOB1 = "Mary I-PER\nSmith I-PER\nsaw O\nRome I-LOC\n\nIn O\nNew I-LOC\nYork I-LOC\nMary I-PER\nslept O\n\n"
BIOES = "Mary B-PER\nSmith E-PER\nsaw O\nRome S-LOC\n\nIn O\nNew B-LOC\nYork E-LOC\nMary S-PER\nslept O\n\n"


@pytest.mark.parametrize("options", [(), ("--char-reader", "lstm", "--lstm-dropout", 0.2)])
def test_batching_changes_nothing(run_recipe, same_losses, options):
    same_losses(run_recipe(NAME, "--smoke", "--compare", *options).stdout)


def test_learns_and_marks(run_recipe, tmp_path):
    done = run_recipe(NAME, *SMALL, "--epochs", 10, "--save", tmp_path / "model")
    first, *_, last = done.stdout.splitlines()
    assert "data/treebank" in first and "480 sentences (4,792 words, 640 names)" in first and "Apache-2.0" in first
    best = last.split("best dev F1 ")[1]
    assert float(best.split("%")[0]) > 75 and all(f"{kind} " in best for kind in ("LOC", "MISC", "ORG", "PER"))
    text = "Dear Anna , thank you .\n\nIt has rained in Norway since May .\n"
    lines = run_recipe(NAME, "predict", "--load", tmp_path / "model", "-", stdin=text).stdout.splitlines()
    assert "[PER Anna]" in lines[0] and lines[1] == "" and "[LOC Norway]" in lines[2]


@pytest.mark.parametrize(("scheme", "rows"), [("iob1", IOB1), ("iob2", IOB2), ("bioes", BIOES)])
def test_schemes_are_read_and_written(run_recipe, tmp_path, scheme, rows):
    (tmp_path / "a.txt").write_text(rows * 15)
    done = run_recipe(NAME, "--train", "a.txt", *SMALL, "--word-dropout", 0, "--epochs", 10, "--save", "model")
    assert "F1 100.00% (precision 100.00%, recall 100.00%); LOC" in done.stdout
    text = "Mary Smith saw Rome\nIn New York Mary slept\n"
    written = run_recipe(NAME, "predict", "--load", "model", "--write", scheme, "-", stdin=text).stdout
    assert written == rows.replace(" ", "\t")


def test_tags_are_read(run_recipe, tmp_path):
    """Words say nothing here, tags all."""
    rng = random.Random(1)
    rows = [f"{rng.choice('abc')} {rng.choice(['N B-X', 'V O'])}\n" + "\n" * (i % 3 == 2) for i in range(300)]
    (tmp_path / "a.txt").write_text("".join(rows))
    run_recipe(NAME, "--train", "a.txt", *SMALL, "--tag-dim", 6, "--epochs", 8, "--save", "model")
    run = [NAME, "predict", "--load", "model", "-"]
    assert run_recipe(*run, stdin="a_V b_N c_V\n").stdout == "a [X b] c\n"
    done = run_recipe(*run, stdin="a_V b\n", ok=False)
    assert done.returncode == 2 and "reads tags, too: expected WORD_TAG, got 'b'" in done.stderr
    (tmp_path / "b.txt").write_text("a B-X\nb O\n\n")
    done = run_recipe(NAME, "--train", "b.txt", "--tag-dim", 6, ok=False)
    assert done.returncode == 2 and "no column of tags at 'a b'" in done.stderr


def test_files_without_names(run_recipe, tmp_path):
    (tmp_path / "a.txt").write_text("a O\nb O\n\nc O\n\n")
    done = run_recipe(NAME, "--smoke", "--train", "a.txt", "--dev", "a.txt")
    assert "best dev F1 0.00% (precision 0.00%, recall 0.00%) after epoch 1\n" in done.stdout
