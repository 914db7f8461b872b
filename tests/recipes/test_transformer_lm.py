"""The language model of letters: trains, goes on with text, batching changes nothing."""

from __future__ import annotations

NAME = "transformer_lm"


def test_trains_and_goes_on(run_recipe, tmp_path):
    options = ["--epochs", 3, "--block", 32, "--dim", 16, "--layers", 1, "--save", tmp_path / "model"]
    first, *_, last = run_recipe(NAME, *options).stdout.splitlines()
    assert "data/treebank" in first and "blocks of 32 letters" in first and "Apache-2.0" in first
    assert float(last.split("perplexity ")[1].split()[0]) < 25  # of some 50 letters
    prompts = ["The weather", "", "A sentence that is already longer than a block of the model"]
    predict = ["predict", "--load", tmp_path / "model", "--length", 5, "-"]
    lines = run_recipe(NAME, *predict, stdin="".join(line + "\n" for line in prompts)).stdout.splitlines()
    assert [line[: len(prompt)] for line, prompt in zip(lines, prompts, strict=True)] == prompts
    assert all(len(line) <= len(prompt) + 5 for line, prompt in zip(lines, prompts, strict=True))


def test_batching_changes_nothing(run_recipe, same_losses):
    same_losses(run_recipe(NAME, "--smoke", "--compare").stdout)
