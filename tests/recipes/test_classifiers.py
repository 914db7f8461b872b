"""The two classifiers of texts."""

from __future__ import annotations

import numpy as np
import pytest

import dynet_lite as dy

BOTH = pytest.mark.parametrize("name", ["text_cnn", "dan_classifier"])
TEXTS = "good\ta fine film\nbad\ta dull film\ngood\tfine and funny\nbad\tdull , dull , dull\n" * 20


@BOTH
def test_batching_changes_nothing(run_recipe, same_losses, name):
    done = run_recipe(name, "--smoke", "--compare")
    assert "data/treebank" in done.stdout.splitlines()[0]
    same_losses(done.stdout)


@BOTH
@pytest.mark.parametrize("subwords", [0, 20])
def test_learns_from_a_table(run_recipe, tmp_path, name, subwords):
    (tmp_path / "a.tsv").write_text(TEXTS)
    done = run_recipe(
        name, "--train", "a.tsv", "--subwords", subwords, "--epochs", 8, "--save", "model", "--learning-rate", 0.01
    )
    assert "72 texts (252 words, 2 classes)" in done.stdout
    assert "accuracy 100.00%" in done.stdout.splitlines()[-1]
    lines = run_recipe(name, "predict", "--load", "model", "-", stdin="a funny film\n\nso dull\n").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["good", "", "bad"]


@BOTH
def test_evidence_of_naive_bayes(run_recipe, same_losses, tmp_path, name):
    (tmp_path / "a.tsv").write_text(TEXTS + "good\tfine fine fine\n" * 3)
    for option in (["--evidence-letters", 4], ["--linear", 0.5]):
        assert "goes with --evidence" in run_recipe(name, "--train", "a.tsv", *option, ok=False).stderr
    (tmp_path / "one.tsv").write_text("good\tfine\ngood\tfunny\n" * 3)
    done = run_recipe(name, "--train", "one.tsv", "--evidence", 1, ok=False)
    message = "--evidence goes with two classes or more; all texts are 'good'"
    assert (done.returncode, done.stderr) == (2, f"error: {message}\n")
    options = ["--train", "a.tsv", "--evidence", 2, "--evidence-letters", 2, 3, "--linear", 0.5, "--word-dropout", 0.7]
    same_losses(run_recipe(name, *options, "--smoke", "--compare").stdout)
    done = run_recipe(name, *options, "--epochs", 8, "--learning-rate", 0.01, "--save", "model")
    assert "accuracy 100.00%" in done.stdout.splitlines()[-1]
    lines = run_recipe(name, "predict", "--load", "model", "-", stdin="a funny film\nso dull\n").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["good", "bad"]
    recipe = dy.load_recipe(tmp_path / "model").recipe
    assert len(recipe.evidence_of(["funny"], own=0)[0]) == 4
    words = ["funny", "film"]
    (whole,), linear = recipe.probabilities([words]), recipe.linear(words)
    recipe.linear = None
    (network,) = recipe.probabilities([words])
    odds = np.log(whole / whole[::-1]) - np.log(network / network[::-1])
    assert odds == pytest.approx([0.5 * (linear[0] - linear[1]), 0.5 * (linear[1] - linear[0])], abs=1e-4)


@BOTH
def test_a_malformed_table_names_the_line(run_recipe, tmp_path, name):
    (tmp_path / "a.tsv").write_text(TEXTS + "good fine\n")
    done = run_recipe(name, "--train", "a.tsv", ok=False)
    assert done.returncode == 2 and "a.tsv:81: expected CLASS<tab>TEXT" in done.stderr


def test_xor(run_recipe):
    lines = run_recipe("xor").stdout.splitlines()
    assert lines[0].startswith("data:")
    answers = [float(line.split("=")[1].split()[0]) for line in lines[-4:]]
    assert [round(answer) for answer in answers] == [0, 1, 1, 0]
