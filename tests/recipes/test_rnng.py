"""The recurrent neural network grammar: trains, parses sentences, batching changes nothing."""

from __future__ import annotations

import random

import pytest

from dynet_lite.text import parse_trees

NAME = "rnng"


@pytest.fixture
def corpus(tmp_path):
    subjects = ["(NP (PRON We))", "(NP (DET the) (NOUN dog))", "(NP (DET the) (ADJ old) (NOUN dog))"]
    objects = ["", " (NP (PRON it))", " (NP (DET the) (NOUN road))", " (ADVP (ADV here))"]
    trees = [f"(S {s} (VP (VERB left){o}) (PUNCT .))\n" for s in subjects for o in objects]
    (tmp_path / "trees.ptb").write_text("".join(trees * 5))
    return tmp_path / "trees.ptb"


@pytest.mark.parametrize(("oracle", "epochs"), [("static", 8), ("dynamic", 16)])
def test_learns_and_parses(run_recipe, corpus, tmp_path, oracle, epochs):
    sizes = ["--word-dim", 16, "--hidden", 24, "--char-hidden", 6, "--learning-rate", 0.01, "--dropout", 0.1]
    done = run_recipe(NAME, "--train", corpus, "--dev", corpus, *sizes, "--epochs", epochs, "--oracle", oracle,
                      "--save", tmp_path / "model")  # fmt: skip
    assert float(done.stdout.splitlines()[-1].split("F1 ")[1].split("%")[0]) > 95
    for beam in ("1", "4"):
        done = run_recipe(NAME, "predict", "--load", tmp_path / "model", "--beam", beam, "-",
                          stdin="the old dog left here .\n\nwe saw unheardof things\n")  # fmt: skip
        first, empty, other = done.stdout.split("\n")[:3]
        assert first == "(S (NP (DET the) (ADJ old) (NOUN dog)) (VP (VERB left) (ADVP (ADV here))) (PUNCT .))"
        assert empty == ""
        assert next(parse_trees([other])).words() == ["we", "saw", "unheardof", "things"]
        done = run_recipe(NAME, "evaluate", "--load", tmp_path / "model", "--beam", beam, corpus)
        assert float(done.stdout.split("EVALB F1 ")[1].split("%")[0]) > 95
    done = run_recipe(NAME, "evaluate", "--load", tmp_path / "model", "--hidden", 8, corpus, ok=False)
    assert done.returncode == 2 and "--hidden" in done.stderr


def test_tags_are_read(run_recipe, tmp_path):
    """A phrase begins at a word with the tag A, and ends with the sentence; words say nothing."""
    rng = random.Random(1)

    def tree() -> str:
        words = [f"({tag} {rng.choice('abc')})" for tag in rng.choices("BC", k=3)]
        words.insert(at := rng.randrange(1, 4), f"(A {rng.choice('abc')})")
        return f"(S {' '.join(words[:at])} (NP {' '.join(words[at:])}))\n"

    (tmp_path / "a.ptb").write_text("".join(tree() for _ in range(200)))
    sizes = ["--word-dim", 8, "--hidden", 24, "--char-hidden", 0, "--tag-dim", 8, "--dropout", 0.1]
    run_recipe(NAME, "--train", "a.ptb", *sizes, "--epochs", 6, "--learning-rate", 0.01, "--save", "model")
    run = [NAME, "predict", "--load", "model", "--beam", 2, "-"]
    done = run_recipe(*run, stdin="a_B a_C b_A c_B\n\na_B b_A a_C a_X\n")
    first, empty, other = done.stdout.split("\n")[:3]
    assert first == "(S (B a) (C a) (NP (A b) (B c)))" and empty == ""
    known = "(S (B a) (NP (A b) (C a) ({} a)))"  # X: training had none, so the parser chooses
    assert other in [known.format(tag) for tag in "ABC"]
    done = run_recipe(*run, stdin="a_B a\n", ok=False)
    assert done.returncode == 2 and "reads tags, too: expected WORD_TAG, got 'a'" in done.stderr


def test_brackets_in_sentences(run_recipe, tmp_path):
    """The trees can be read again, and known words are found: files have them as -LRB- and -RRB-."""
    trees = "(S (A x) (-LRB- -LRB-) (B y) (-RRB- -RRB-))\n"
    (tmp_path / "a").write_text(trees * 40)
    sizes = ["--word-dim", 8, "--hidden", 16, "--char-hidden", 0, "--dropout", 0, "--word-dropout", 0]
    run_recipe(NAME, "--train", "a", *sizes, "--epochs", 6, "--learning-rate", 0.02, "--save", "model")
    first, other = run_recipe(NAME, "predict", "--load", "model", "-", stdin="x ( y )\n:) f(x)\n").stdout.splitlines()
    assert first == trees.strip()
    assert next(parse_trees([other])).words() == [":-RRB-", "f-LRB-x-RRB-"]


def test_traces_are_no_words(run_recipe, tmp_path):
    """Files of the Penn Treebank have empty elements, which nobody writes in a sentence that is to be parsed."""
    trees = (
        "(S (NP-SBJ (-NONE- *)) (VP (VB Go) (ADVP (RB on))))\n((S (NP (PRP I)) (VP (VBP go) (NP (-NONE- *T*-1)))))\n"
    )
    (tmp_path / "a.mrg").write_text(trees * 6)
    done = run_recipe(NAME, "--smoke", "--train", "a.mrg", "--dev", "a.mrg")
    assert "(24 words, 4 labels, 4 tags)" in done.stdout
    done = run_recipe("treelstm_sentiment", "--smoke", "--train", "a.mrg", "--dev", "a.mrg")
    assert "(24 words, 8 labels)" in done.stdout


def test_smoke(run_recipe):
    first, baseline, epoch, *_ = run_recipe(NAME, "--smoke").stdout.splitlines()
    assert "data/treebank" in first and "17 labels" in first
    assert baseline.startswith("baseline (trees that branch to the right)  dev bracket F1 ")
    assert epoch.startswith("epoch  1") and "bracket F1" in epoch


@pytest.mark.parametrize(
    "options",
    [
        ["--strategy", "greedy"],
        ["--strategy", "agenda"],
        ["--layers", 2, "--lstm-dropout", 0.3, "--tag-dim", 4],
        ["--oracle", "dynamic", "--spans"],
    ],
)
def test_batching_changes_nothing(run_recipe, same_losses, options):
    same_losses(run_recipe(NAME, "--smoke", "--compare", *options).stdout)


def test_a_network_that_fails_gives_trees(run_recipe):
    """Weights that are so large make scores that are no numbers."""
    failing = "--smoke", "--learning-rate", 3e38
    assert "best dev bracket F1" in run_recipe(NAME, *failing, "--batch", 99).stdout
    drawn = run_recipe(NAME, *failing, "--oracle", "dynamic", "--explore", 1, ok=False)
    assert drawn.stderr.startswith("error: epoch 1, mini-batch 2: the loss is nan"), drawn.stderr
