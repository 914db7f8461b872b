"""Saved models and other data: the files that are named now are used, labels that the model does not know are one clear error."""

from __future__ import annotations

import pytest

from dynet_lite.errors import DataError
from dynet_lite.harness import Settings, corpus

OTHER = {
    "bilstm_tagger": ("A X\nb Y\n\n" * 4, "tag"),
    "bilstm_crf_chunker": ("A B-PER\nb O\n\n" * 4, "label"),
    "biaffine_parser": ("A\tX\t2\tleft\nb\tY\t0\ttop\n\n" * 4, "relation"),
    "stack_lstm_parser": ("A\tX\t2\tleft\nb\tY\t0\ttop\n\n" * 4, "relation"),
    "rnng": ("(T (X A) (Y b))\n" * 4, "label"),
    "treelstm_sentiment": ("(up (down A) (up b))\n" * 4, "label"),
    "text_cnn": ("spam\tA\nham\tb\n" * 4, "class"),
    "dan_classifier": ("spam\tA\nham\tb\n" * 4, "class"),
}


@pytest.mark.parametrize("name", OTHER)
def test_labels_that_the_model_does_not_know(run_recipe, tmp_path, name):
    text, kind = OTHER[name]
    (tmp_path / "other").write_text(text)
    run_recipe(name, "--smoke", "--save", "model")
    done = run_recipe(name, "--smoke", "--load", "model", "--train", "other", ok=False)
    assert done.returncode == 2 and f"--load: expected training data with the {kind}" in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = run_recipe(name, "evaluate", "--load", "model", "other", ok=False)
    assert done.returncode == 2 and f"other: expected {kind}" in done.stderr and "got none of them" in done.stderr
    assert not done.stdout


def test_loaded_models_train_on_the_files_that_are_named(run_recipe, tmp_path):
    for name in ("train", "dev", "test"):
        (tmp_path / name).write_text("A X\nb Y\n\n" * 6)
    (tmp_path / "new").write_text("b Y\nA X\n\n" * 10)
    run_recipe("bilstm_tagger", "--smoke", "--train", "train", "--dev", "dev", "--test", "test", "--save", "model")
    (tmp_path / "dev").unlink()
    (tmp_path / "test").unlink()
    done = run_recipe("bilstm_tagger", "--load", "model", "--train", "new", "--epochs", 1)
    assert done.stdout.startswith("new: 9 sentences") and "test" not in done.stdout
    done = run_recipe("bilstm_tagger", "--load", "model", "--epochs", 1, "--dev", "new", "--test", "new")
    assert done.stdout.startswith("files of the saved training: --train train\ntrain: 6 sentences")
    assert "\ntest accuracy" in done.stdout


def test_what_a_loaded_model_was_built_with_stays(run_recipe, tmp_path):
    """--ngrams and --vectors, for instance, would have no effect."""
    (tmp_path / "a").write_text("a b a\nb a b a\n" * 6)
    run_recipe("rnnlm", "--smoke", "--train", "a", "--save", "model")
    again = ["rnnlm", "--smoke", "--train", "a", "--load", "model"]
    done = run_recipe(*again, "--ngrams", 0.5, ok=False)
    said = "error: --load: model was made with ngrams = 0.0; with 0.5 train without --load\n"
    assert (done.returncode, done.stderr) == (2, said)
    run_recipe("rnnlm", "--smoke", "--train", "a", "--ngrams", 0.5, "--save", "model")
    for share in (0.2, 0):  # a weight of what is there
        run_recipe(*again, "--ngrams", share)
    (tmp_path / "b").write_text("A X\nb Y\n\n" * 6)
    run_recipe("bilstm_tagger", "--smoke", "--train", "b", "--save", "model")
    done = run_recipe("bilstm_tagger", "--smoke", "--load", "model", "--train", "b", "--vectors", "v", ok=False)
    assert "--load: model was made with vectors = ''; with 'v' train without --load" in done.stderr


def test_a_label_of_phrases_is_no_tag(run_recipe, tmp_path):
    (tmp_path / "a").write_text("(S (NP A) (VP b))\n" * 4)
    (tmp_path / "b").write_text("(NP (NP A) (VP b))\n" * 4)
    run_recipe("rnng", "--smoke", "--train", "a", "--save", "model")
    done = run_recipe("rnng", "--load", "model", "--train", "b", ok=False)
    assert done.returncode == 2 and "got also 'NP('" in done.stderr


@pytest.mark.parametrize("name, text, unit", [("bilstm_tagger", "A X\nb Y\n\n", "sentences"), ("pointer_network", "1 2 3 4 output 1 2\n", "inputs"),
                                              ("attention_seq2seq", "a b\tc\n", "pairs")])  # fmt: skip
def test_files_without_examples(run_recipe, tmp_path, name, text, unit):
    """Nothing else is taken in their place."""
    (tmp_path / "train").write_text(text * 12)
    (tmp_path / "empty").write_text("\n")
    for option in ("--dev", "--test"):
        done = run_recipe(name, "--smoke", "--train", "train", option, "empty", ok=False)
        assert (done.returncode, done.stderr) == (2, f"error: empty: expected {unit}, got none\n")
    run_recipe(name, "--smoke", "--train", "train", "--save", "model")
    (tmp_path / "train").write_text(text)
    assert "train: 1 " in run_recipe(name, "evaluate", "--load", "model", "train").stdout
    done = run_recipe(name, "evaluate", "--load", "model", "empty", ok=False)
    assert (done.returncode, done.stderr) == (2, f"error: empty: expected {unit}, got none\n")
    done = run_recipe(name, "--smoke", "--train", "train", ok=False)
    assert (done.returncode, done.stderr) == (2, f"error: train: expected at least two {unit}\n")


def test_a_model_of_a_corpus_takes_no_dev_files_of_others(tmp_path):
    """Such a file was passed over: the corpus has its own."""
    s = Settings(nltk="treebank", dev=("dev.txt",))
    with pytest.raises(DataError, match="expected either --nltk or --train/--dev, got --nltk treebank and dev.txt"):
        corpus(s, list, home=__file__, nltk=list)
