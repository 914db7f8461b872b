"""The language model of letters: trains, goes on with text, batching changes nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from dynet_lite.harness.find import load_program

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


def test_scores_in_context_and_in_a_mixture(run_recipe):
    """A mixture with 6-grams is better than the model without them, and one with words, too, better still."""
    small = ["--epochs", 1, "--block", 24, "--dim", 8, "--heads", 2, "--layers", 1, "--context", 12]
    said = [
        run_recipe(NAME, *small, *more).stdout.splitlines()[-1]
        for more in ([], ["--ngrams", 0.5], ["--ngrams", 0.5, "--words", 0.6])
    ]
    plain, mixed, words = (float(line.split("(")[1].split()[0]) for line in said)
    assert words < mixed < plain


def test_options_that_do_not_go_together(run_recipe):
    """Said before anything is trained."""
    for options, said in (
        (["--context", 12], "--context: expected fewer than the 12 letters of a block; got 12"),
        (["--dim", 6, "--heads", 4], "--heads: expected a number that divides --dim; got 4 and 6"),
    ):
        done = run_recipe(NAME, "--smoke", *options, ok=False)
        assert done.stderr == f"error: {said}\n" and "baseline" not in done.stdout


def test_words_of_a_text_without_blanks(run_recipe, tmp_path):
    """Each sentence is one; letters that are seen once are unknown, and are no blanks."""
    (tmp_path / "a.txt").write_text("ab\ncd\n")
    done = run_recipe(NAME, "--smoke", "--train", "a.txt", "--dev", "a.txt", "--words", 0.5)
    assert "best dev perplexity" in done.stdout


def test_shares_of_a_mixture(run_recipe):
    for name in ("ngrams", "words"):
        done = run_recipe(NAME, f"--{name}", 1.5, ok=False)
        assert (
            done.returncode == 2 and f"error: settings: {name}: expected at least 0 and below 1, got 1.5" in done.stderr
        )


def test_pieces_are_the_text():
    """Every letter after the first is counted once, and none has fewer letters before it than asked for, but at the start."""
    recipes = Path(__file__).resolve().parents[2] / "recipes"
    pieces_of = load_program(recipes / "transformer_lm.py").LetterModel.pieces
    text = "\nabcdefghijklmnopqrstuvwxyz"
    for block, context in [(5, 0), (5, 2), (6, 5), (40, 3), (26, 1)]:
        model = SimpleNamespace(settings=SimpleNamespace(block=block, context=context))
        blocks = [text[i : i + block + 1] for i in range(0, len(text) - 1, block)]
        pieces = pieces_of(model, blocks)
        assert "\n" + "".join(piece[1 + read :] for piece, read in pieces) == text
        assert all(len(piece) <= block + 1 and (read == context or i == 0) for i, (piece, read) in enumerate(pieces))


def test_batching_changes_nothing(run_recipe, same_losses):
    same_losses(run_recipe(NAME, "--smoke", "--compare").stdout)
