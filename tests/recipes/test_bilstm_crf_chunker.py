"""The chunker: trains on trees and on IOB columns, marks what it finds."""

from __future__ import annotations

import pytest

NAME = "bilstm_crf_chunker"


@pytest.mark.parametrize("strategy", ["greedy", "agenda"])
def test_batching_changes_nothing(run_recipe, same_losses, strategy):
    same_losses(run_recipe(NAME, "--smoke", "--compare", "--strategy", strategy).stdout)


def test_learns_and_marks(run_recipe, tmp_path):
    small = ["--word-dim", 40, "--char-hidden", 16, "--hidden", 40, "--epochs", 8]
    done = run_recipe(NAME, *small, "--save", tmp_path / "model", "--learning-rate", 0.005)
    first, *_, last = done.stdout.splitlines()
    assert "data/treebank" in first and "chunks" in first and "Apache-2.0" in first
    assert float(last.split("F1 ")[1].split("%")[0]) > 70
    text = "The dog sleeps .\n\nWe liked the old film .\n"
    lines = run_recipe(NAME, "predict", "--load", tmp_path / "model", "-", stdin=text).stdout.splitlines()
    assert lines[0].startswith("[NP The dog]") and lines[1] == "" and "[NP We]" in lines[2]


def test_columns(run_recipe, tmp_path):
    """CoNLL-2003 as it is published: four columns, IOB1, -DOCSTART-."""
    rows = (
        "-DOCSTART- -X- O O\n\n"
        + "EU NNP I-NP I-ORG\nlikes VBZ I-VP O\nPeter NNP I-NP I-PER\nBlack NNP I-NP I-PER\n\n" * 8
    )
    (tmp_path / "a.txt").write_text(rows)
    done = run_recipe(NAME, "--smoke", "--train", "a.txt", "--vectors", "v.txt", ok=False)
    assert done.returncode == 2 and "v.txt" in done.stderr
    (tmp_path / "v.txt").write_text("eu 1 2 3 4\nparis 1 2 3 4\n")
    done = run_recipe(NAME, "--smoke", "--train", "a.txt", "--vectors", "v.txt", "--word-dim", 4, "--save", "model")
    assert "7 sentences (28 words, 14 chunks)" in done.stdout  # one is dev
    (tmp_path / "v.txt").unlink()  # a saved model needs it no more
    assert run_recipe(NAME, "predict", "--load", "model", "-", stdin="EU\n").stdout.count("EU") == 1
    (tmp_path / "a.txt").write_text(rows + "Paris NNP I-NP PLACE\n")
    done = run_recipe(NAME, "--train", "a.txt", ok=False)
    assert (
        done.returncode == 2
        and "a.txt:43: expected O, B-TYPE or I-TYPE" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_names_in_bioes_and_f1_by_type(run_recipe, tmp_path):
    rows = "Mary|I-PER saw|O New|I-LOC York|I-LOC City|I-LOC\nin|O Rome|I-LOC Mary|B-PER Smith|I-PER slept|O\n" * 15
    (tmp_path / "a.txt").write_text(rows)
    small = ["--word-dim", 12, "--char-hidden", 6, "--hidden", 12, "--epochs", 8, "--learning-rate", 0.02]
    done = run_recipe(NAME, "--train", "a.txt", *small, "--scheme", "bioes", "--types", "--save", "model")
    assert "F1 100.00% (precision 100.00%, recall 100.00%); LOC 100.00% of 3, PER 100.00% of 3" in done.stdout
    text = "Mary saw New York City\n"
    assert (
        run_recipe(NAME, "predict", "--load", "model", "-", stdin=text).stdout == "[PER Mary] saw [LOC New York City]\n"
    )
    done = run_recipe(NAME, "evaluate", "--load", "model", "--types", "a.txt")
    assert done.stdout.endswith("LOC 100.00% of 30, PER 100.00% of 30\n")
