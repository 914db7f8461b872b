"""The language model of words: trains on every kind of file, goes on with sentences."""

from __future__ import annotations

NAME = "rnnlm"


def test_trains_and_goes_on(run_recipe, tmp_path):
    done = run_recipe(NAME, "--epochs", 3, "--hidden", 20, "--word-dim", 20, "--save", tmp_path / "model")
    first, *_, last = done.stdout.splitlines()
    assert "\nbaseline (trigrams, Kneser-Ney)  dev perplexity " in done.stdout
    assert "data/treebank" in first and "Apache-2.0" in first
    assert float(last.split("perplexity ")[1].split()[0]) < 80  # 467 words are known
    prompts = "The weather\n\nWe liked the unheardof\n"
    for temperature in ("0", "1"):
        options = ["--load", tmp_path / "model", "--temperature", temperature, "--length", 5, "-"]
        lines = run_recipe(NAME, "predict", *options, stdin=prompts).stdout.splitlines()
        assert len(lines) == 3
        assert lines[0].startswith("The weather") and lines[2].startswith("We liked the unheardof")
        assert all(
            len(line.split()) <= len(prompt.split()) + 5
            for line, prompt in zip(lines, prompts.splitlines(), strict=True)
        )


def test_plain_text(run_recipe, tmp_path):
    (tmp_path / "text.txt").write_text("a b a\n\nb a b a\n" * 10)
    done = run_recipe(NAME, "--smoke", "--train", "text.txt", "--log", "log.jsonl")
    assert "text.txt: 18 sentences (63 words, 4 of them known)" in done.stdout


def test_batching_changes_nothing(run_recipe, same_losses):
    same_losses(run_recipe(NAME, "--smoke", "--compare").stdout)
