"""The language model of words: trains on every kind of file, goes on with sentences."""

from __future__ import annotations

from pathlib import Path

import dynet_lite as dy
from dynet_lite.harness import make_recipe
from dynet_lite.harness.find import load_program

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAME = "rnnlm"


def test_trains_and_goes_on(run_recipe, tmp_path):
    done = run_recipe(NAME, "--epochs", 3, "--hidden", 20, "--word-dim", 20, "--save", tmp_path / "model")
    first, *_, last = done.stdout.splitlines()
    assert "\nbaseline (trigrams, Kneser-Ney)  dev perplexity " in done.stdout
    assert "data/treebank" in first and "Apache-2.0" in first
    assert float(last.split("perplexity ")[1].split()[0]) < 80  # vocabulary of 467
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


def test_answers_are_without_dropout():
    """Also right after a step of training."""
    module = load_program(RECIPES / f"{NAME}.py")
    s = module.Settings(word_dim=6, hidden=6, lstm_dropout=0.5, weight_drop=0.5, temperature=0.0, length=40, seed=3)
    data = module.LanguageModel.load_data(s)
    recipe = make_recipe(module.LanguageModel, s, module.LanguageModel.build(s, data.train))
    lines = ["The", "We", "A dog"] * 4
    before = list(recipe.predict(lines))
    dy.renew_cg()
    recipe.training = True
    recipe.loss(data.train[:4]).value()
    recipe.training = False
    assert list(recipe.predict(lines)) == before


def test_regularised(run_recipe, same_losses, tmp_path):
    """Tied tables, dropped weights, sentences in their context; and a mixture with trigrams, which is better than without."""
    small = ["--tie", "--hidden", 6, "--word-dim", 6, "--context", 2, "--lstm-dropout", 0.1, "--weight-drop", 0.1]
    same_losses(run_recipe(NAME, "--smoke", "--compare", *small, "--ngrams", 0.5).stdout)
    said = run_recipe(NAME, "--epochs", 1, *small).stdout
    assert " runs of sentences/s" in said  # an example of a mini-batch has three sentences
    plain = said.splitlines()[-1]
    mixed = run_recipe(NAME, "--epochs", 1, *small, "--ngrams", 0.5, "--save", tmp_path / "model").stdout.splitlines()[
        -1
    ]
    before, after = (float(line.split("perplexity ")[1].split()[0]) for line in (plain, mixed))
    assert after < before
    home = RECIPES.parent / "data" / "treebank" / "dev.conllu"
    assert f"perplexity {after:.2f}" in run_recipe(NAME, "evaluate", "--load", tmp_path / "model", home).stdout
    said = run_recipe(NAME, "predict", "--load", tmp_path / "model", "-", stdin="The weather\n").stdout
    assert said.startswith("The weather")


def test_options_that_do_not_go_together(run_recipe, tmp_path):
    wrong = run_recipe(NAME, "--smoke", "--tie", "--hidden", 8, ok=False)
    assert (
        wrong.returncode == 2 and "--tie: expected --word-dim and --hidden to be the same; got 6 and 8" in wrong.stderr
    )
    (tmp_path / "text.txt").write_text("a b a\nb a b a\n" * 10)
    files = ["--train", "text.txt", "--dev", "text.txt", "--stream", "on", "--epochs", 1, "--hidden", 4]
    assert "--stream off" in run_recipe(NAME, *files, "--context", 1, ok=False).stderr


def test_the_share_of_unknown_words_is_of_words(run_recipe, tmp_path):
    """The ends of sentences, which the perplexity counts, are no words."""
    (tmp_path / "train.txt").write_text("a b a b\n" * 8)
    (tmp_path / "dev.txt").write_text("a x\nx b\n")
    files = ["--train", tmp_path / "train.txt", "--dev", tmp_path / "dev.txt"]
    assert "(50.0% unknown words)" in run_recipe(NAME, *files, "--smoke").stdout


def test_a_sentence_ends_however_few_there_were(run_recipe, tmp_path):
    """The end is no unknown word, which the model would never write."""
    (tmp_path / "text.txt").write_text("a b a b a b\n" * 2)
    files = ["--train", "text.txt", "--dev", "text.txt", "--min-count", 3]
    sizes = ["--word-dim", 8, "--hidden", 8, "--dropout", 0, "--learning-rate", 0.05, "--epochs", 30]
    run_recipe(NAME, *files, *sizes, "--save", "model")
    done = run_recipe(NAME, "predict", "--load", "model", "--temperature", 0, "--length", 50, "-", stdin="a b\n")
    assert done.stdout == "a b a b a b\n"


def test_plain_text(run_recipe, tmp_path):
    (tmp_path / "text.txt").write_text("a b a\n\nb a b a\n" * 10)
    done = run_recipe(NAME, "--smoke", "--train", "text.txt", "--log", "log.jsonl")
    assert "text.txt: 18 sentences (63 words, vocabulary of 4)" in done.stdout


def test_batching_changes_nothing(run_recipe, same_losses):
    same_losses(run_recipe(NAME, "--smoke", "--compare").stdout)
