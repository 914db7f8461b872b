"""The tagger recipe as a user runs it: in a process of its own, from another folder."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "bilstm_tagger.py"


def run(*args: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RECIPE), *args], cwd=cwd, input=stdin, capture_output=True, text=True,
                          timeout=300, env={**os.environ, **env})  # fmt: skip


@pytest.mark.parametrize("backend", ["cpu", "null"])
def test_smoke(backend: str, tmp_path: Path) -> None:
    done = run("--smoke", cwd=tmp_path, DYNET_LITE_BACKEND=backend)
    assert done.returncode == 0, done.stderr
    first, baseline, epoch, *_ = done.stdout.splitlines()
    assert "data/treebank" in first and "Apache-2.0" in first
    assert baseline.startswith("baseline (the most frequent tag of each word)  dev accuracy ")
    assert epoch.startswith("epoch  1") and "dev accuracy" in epoch and "mean batch" in epoch


def test_compare_gives_the_same_losses(tmp_path: Path) -> None:
    done = run("--smoke", "--compare", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert "times as fast" in last
    worst = float(last.split("by ")[-1].split()[0])  # "... by 1.2e-07 at most (relative)"
    assert worst <= 1e-5


def test_saved_model_tags_text(tmp_path: Path) -> None:
    model = tmp_path / "model"
    trained = run("--epochs", "6", "--seed", "3", "--save", str(model), cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    done = run("predict", "--load", str(model), "-", cwd=tmp_path, stdin="The dog sleeps .\n\nWe liked the film .\n")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    assert len(lines) == 2
    assert lines[0].startswith("The_DET dog_NOUN") and lines[0].endswith("._PUNCT")


def test_evaluate_gives_the_score_of_the_best_epoch(tmp_path: Path) -> None:
    dev = RECIPE.parents[1] / "data" / "treebank" / "dev.conllu"
    trained = run("--epochs", "3", "--hidden", "10", "--test", str(dev), "--save", "model", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    test = trained.stdout.splitlines()[-1].removeprefix("test ")
    done = run("evaluate", "--load", "model", str(dev), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{dev}: 59 sentences: {test}\n"


def test_a_cut_model_is_a_clear_error(tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert run("--smoke", "--save", str(model), cwd=tmp_path).returncode == 0
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    done = run("predict", "--load", str(model), "-", cwd=tmp_path, stdin="a b\n")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and str(model) in done.stderr


def test_a_malformed_corpus_names_the_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\n\n")
    done = run("--train", str(bad), cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.conllu" in done.stderr and "2" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_ctrl_c_saves_and_a_resumed_run_gives_the_same_curve(tmp_path: Path) -> None:
    """In processes of their own: stopped in the third epoch, resumed, and the same to the bit as a run that went through."""
    common = ["--epochs", "6", "--patience", "0", "--hidden", "20", "--char-hidden", "10", "--batch", "4"]
    command = [sys.executable, str(RECIPE), *common, "--save", "stopped", "--log", "stopped.log"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch  2"):
            break
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err and "go on with --resume stopped" in out
    assert (tmp_path / "stopped").exists() and (tmp_path / "stopped.state").exists()
    assert run("--resume", "stopped", "--log", "stopped.log", cwd=tmp_path).returncode == 0
    assert run(*common, "--save", "whole", "--log", "whole.log", cwd=tmp_path).returncode == 0
    assert numbers(tmp_path / "stopped.log") == numbers(tmp_path / "whole.log")


def numbers(log: Path) -> list[object]:
    """The losses and scores of a log."""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return [(e["loss"], e.get("dev", {}).get("value")) for e in events if e["event"] in ("update", "epoch")]


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_an_interrupted_comparison_prints_what_it_has(tmp_path: Path) -> None:
    command = [sys.executable, str(RECIPE), "--compare", "--epochs", "200", "--hidden", "20", "--char-hidden", "10"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # jobs of a shell may ignore it  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("autobatch off"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopped by the keyboard" in out and "times as fast" in out.splitlines()[-1] and "Traceback" not in err


def test_packed_columns_and_words_with_no_break_spaces(tmp_path: Path) -> None:
    text = "A\u00a0b\tX\n8\u00a01/2\tNUM\n\nA\u00a0b\tX\n\n" * 12
    (tmp_path / "train").write_bytes(gzip.compress(text.encode()))
    small = ["--hidden", "8", "--epochs", "6", "--word-dropout", "0", "--learning-rate", "0.02", "--save", "model"]
    trained = run("--train", "train", *small, cwd=tmp_path)
    assert trained.returncode == 0 and "33 words, 2 tags" in trained.stdout, trained.stderr + trained.stdout
    (tmp_path / "input.gz").write_bytes(gzip.compress("A\u00a0b 8\u00a01/2\n".encode()))
    done = run("predict", "--load", "model", "input.gz", cwd=tmp_path)
    assert done.stdout == "A\u00a0b_X 8\u00a01/2_NUM\n", done.stderr


def test_tags_in_the_last_column(tmp_path: Path) -> None:
    """As the message about many columns says."""
    (tmp_path / "train").write_text("the\tx\tD\ndog\ty\tN\n\n" * 4)
    asked = run("--train", "train", "--smoke", cwd=tmp_path)
    assert asked.returncode == 2 and "--column N (the word is column 0, -1 is the last)" in asked.stderr
    done = run("--train", "train", "--smoke", "--column", "-1", "--save", "model", cwd=tmp_path)
    assert done.returncode == 0 and "6 words, 2 tags" in done.stdout, done.stderr
    done = run("evaluate", "--load", "model", "--column", "2", "train", cwd=tmp_path)
    assert done.returncode == 0 and "train: 4 sentences: accuracy " in done.stdout, done.stderr
