"""The biaffine parser as a user runs it: in a process of its own, from another folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dynet_lite.text import is_projective, need_trees, parse_conllu

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "biaffine_parser.py"
SMALL = ["--hidden", "40", "--layers", "1", "--arc-dim", "40", "--label-dim", "20", "--dropout", "0.2"]


def run(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RECIPE), *args], cwd=cwd, input=stdin, capture_output=True, text=True,
                          timeout=300)  # fmt: skip


def test_smoke(tmp_path: Path) -> None:
    done = run("--smoke", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, baseline, epoch, *_ = done.stdout.splitlines()
    assert "351 sentences (3,718 words, 39 relations)" in first and "Apache-2.0" in first
    assert baseline.startswith("baseline (the usual head of each tag)  dev LAS ")
    assert epoch.startswith("epoch  1") and "LAS" in epoch and "UAS" in epoch


def test_compare_gives_the_same_losses(tmp_path: Path) -> None:
    letters = ["--char-hidden", "4", "--char-reader", "cnn", "--case-dim", "3", "--fold"]
    done = run("--smoke", "--compare", *letters, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.splitlines()[-1].split("by ")[-1].split()[0]) <= 1e-5


def test_it_learns_and_parses_files(tmp_path: Path) -> None:
    model = tmp_path / "model"
    trained = run("--epochs", "6", "--learning-rate", "0.005", *SMALL, "--save", str(model), cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    best = trained.stdout.splitlines()[-1]
    assert float(best.split("LAS ")[1].split("%")[0]) >= 40, best
    plain = (
        "1\tThe\t_\tDET\t_\t_\t_\t_\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t_\t_\t_\t_\n3\tsleeps\t_\tVERB\t_\t_\t_\t_\t_\t_\n"
    )
    for options in [], ["--projective"]:
        done = run("predict", "--load", str(model), *options, "-", cwd=tmp_path, stdin=plain + "\n" + plain)
        assert done.returncode == 0, done.stderr
        sentences = list(parse_conllu(done.stdout.split("\n")))
        assert len(sentences) == 2 and sentences[0] == sentences[1]
        need_trees(sentences, "output")
        assert is_projective(sentences[0].heads) and sentences[0].heads[0] == 2


def test_a_network_that_fails_gives_trees(tmp_path: Path) -> None:
    done = run("--smoke", "--learning-rate", "1e30", "--batch", "99", cwd=tmp_path)
    assert done.returncode == 0 and "best dev LAS" in done.stdout, done.stderr


def test_a_file_without_trees_is_a_clear_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t1\troot\t_\t_\n\n")
    done = run("--train", str(bad), cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.conllu: expected a tree with one root in sentence 1: Dogs bark" in done.stderr


def test_it_reads_the_tags_of_the_language(tmp_path: Path) -> None:
    rows = ("Dogs\tdog\tNOUN\tNNS\t_\t2\tnsubj", "bark\tbark\tVERB\tVBP\t_\t0\troot")
    text = "".join(f"{i}\t{row}\t_\t_\n" for i, row in enumerate(rows, 1)) + "\n"
    (tmp_path / "with.conllu").write_text(text * 12)
    (tmp_path / "without.conllu").write_text(text.replace("NNS", "_").replace("VBP", "_") * 12)
    for tags in "xpos", "both":
        given = ["--smoke", "--tags", tags, "--save", str(tmp_path / tags)]
        trained = run(*given, "--train", "with.conllu", "--dev", "with.conllu", cwd=tmp_path)
        assert trained.returncode == 0, trained.stderr
        parsed = run("predict", "--load", str(tmp_path / tags), "with.conllu", cwd=tmp_path)
        assert parsed.returncode == 0, parsed.stderr
        assert [x.xpos for x in parse_conllu(parsed.stdout.split("\n"))] == [["NNS", "VBP"]] * 12
    refused = run("predict", "--load", str(tmp_path / "xpos"), "without.conllu", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--tags xpos needs the column XPOS, which is empty in 'Dogs bark'" in refused.stderr
    assert run("--smoke", "--tags", "xpos", "--train", "without.conllu", cwd=tmp_path).returncode == 2


def test_sentences_without_tags(tmp_path: Path) -> None:
    """A parser that learned tags needs them; one that was trained without has nothing to miss."""
    rows = "1\ta\t_\t{0}\t_\t_\t2\tx\t_\t_\n2\tb\t_\t{0}\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "with").write_text(rows.format("X") * 3)
    (tmp_path / "without").write_text(rows.format("_") * 3)
    for train, status, said in (
        ("with", 2, "expected tags in the column UPOS, which is empty in 'a b'"),
        ("without", 0, ""),
    ):
        assert run("--smoke", "--train", train, "--save", "model", cwd=tmp_path).returncode == 0
        done = run("predict", "--load", "model", "without", cwd=tmp_path)
        assert done.returncode == status and said in done.stderr
