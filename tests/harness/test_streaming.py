"""Training files that are read bit by bit: the same recipe, the order of the stream, and runs that go on in the midst of an epoch."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from dynet_lite import harness
from dynet_lite.harness import report, streaming
from dynet_lite.harness.report import Report
from dynet_lite.text import Stream

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
SIZES = ["--epochs", "2", "--batch", "8", "--word-dim", "6", "--hidden", "6"]


def recipe(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"streamed_{name}", RECIPES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """train("option", ...): the language model on 200 sentences in two files; its exit status."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(2)
    lines = [" ".join(f"w{rng.randrange(20) ** 2 // 40}" for _ in range(rng.randrange(2, 12))) for _ in range(220)]
    for name, part in (("a.txt", lines[:150]), ("b.txt", lines[150:200]), ("dev.txt", lines[200:])):
        Path(name).write_text("\n".join(part) + "\n")
    module = recipe("rnnlm")
    files = ["--train", "a.txt", "b.txt", "--dev", "dev.txt"]

    def run(*options: str, files: list[str] = files) -> int:
        return harness.main(module.LanguageModel, module.Settings, "", [*files, *SIZES, "--window", "5", *options])

    return run


def losses(path: str) -> list[float]:
    return [
        event["loss"] for event in map(json.loads, Path(path).read_text().splitlines()) if event["event"] == "update"
    ]


def test_a_stream_is_trained_on(train: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--stream", "on", "--log", "s.jsonl", "--epochs", "6", "--learning-rate", "0.05") == 0
    out = capsys.readouterr().out
    assert re.match(r"a\.txt, b\.txt: 200 sentences \([\d,]+ words, read bit by bit\) to train on, 20 for dev", out), (
        out
    )
    found = losses("s.jsonl")
    assert len(found) == 6 * 25 and sum(found[-25:]) < 0.95 * sum(found[:25])


def test_it_goes_on_at_the_exact_minibatch(train: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train("--stream", "on", "--log", "whole.jsonl") == 0
    step = Report.step

    def broken(self: Report, epoch: int, batch: int, update: int, *rest: Any) -> None:
        if update == 39:
            raise MemoryError("as if it were killed")
        step(self, epoch, batch, update, *rest)

    monkeypatch.setattr(report.Report, "step", broken)
    with pytest.raises(MemoryError):
        train("--stream", "on", "--save", "m", "--save-every", "8", "--log", "parts.jsonl")
    monkeypatch.setattr(report.Report, "step", step)
    module = recipe("rnnlm")
    assert harness.main(module.LanguageModel, module.Settings, "", ["--resume", "m", "--log", "parts.jsonl"]) == 0
    assert losses("parts.jsonl") == losses("whole.jsonl")


def test_a_stream_with_and_without_batching(train: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--stream", "on", "--compare", "--epochs", "1") == 0
    assert "automatic batching is" in capsys.readouterr().out


def test_the_file_of_an_evaluation_is_read_once(
    train: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train("--stream", "on", "--save", "m", "--epochs", "1") == 0
    best = re.search(r"best dev (.*) after", capsys.readouterr().out)
    monkeypatch.setattr(Stream, "__iter__", None)
    module = recipe("rnnlm")
    assert harness.main(module.LanguageModel, module.Settings, "", ["evaluate", "--load", "m", "dev.txt"]) == 0
    assert best is not None and capsys.readouterr().out == f"dev.txt: 20 sentences: {best[1]}\n"


def test_large_files_are_streamed_by_themselves(
    train: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--epochs", "1") == 0
    assert "bit by bit" not in capsys.readouterr().out
    monkeypatch.setattr(streaming, "LARGE", 1000)
    assert train("--epochs", "1") == 0
    assert "bit by bit" in capsys.readouterr().out
    assert train("--epochs", "1", files=["--train", "a.txt"]) == 0  # the last tenth is dev
    assert "bit by bit" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["--train", "a.txt"], "--stream needs --dev FILE"),
        ([], "--stream on needs files"),
        (["--train", "a.txt", "tagged", "--dev", "dev.txt"], "tagged: expected the same kind of file as a.txt"),
    ],
)
def test_what_cannot_be_streamed(
    train: Any, files: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tagged").write_text("the_D cat_N sat_V on_P the_D mat_N\na_D dog_N ran_V ._.\n" * 3)
    assert train("--stream", "on", files=files) == 2
    assert message in capsys.readouterr().err


def test_how_far_an_epoch_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(streaming, "SILENCE", 0.0)
    now = iter([100.0, 110.0, 120.0])
    monkeypatch.setattr(streaming.time, "monotonic", lambda: next(now))
    pace = streaming.Pace(said.append, 3, 1000, 200, "sentences", quiet=False)
    pace.step(300, 1.5, 1234.4)
    pace.step(400, 1.25, 1000.0)
    assert said == [
        "epoch  3  300 of 1,000 mini-batches (30.0%)  loss 1.5000  1,234 sentences/s  0:01:10 left",
        "epoch  3  400 of 1,000 mini-batches (40.0%)  loss 1.2500  1,000 sentences/s  0:01:00 left",
    ]
    monkeypatch.setattr(streaming, "SILENCE", 60.0)
    now = iter([0.0, 59.0, 61.0, 119.0, 122.0, 0.0, 200.0])
    pace = streaming.Pace(said.append, 1, 100, 0, "sentences", quiet=False)
    for done in (1, 2, 3, 4):  # once a minute
        pace.step(done, 1.0, 1.0)
    assert [line.split()[2] for line in said[2:]] == ["2", "4"]
    streaming.Pace(said.append, 1, 100, 0, "sentences", quiet=True).step(50, 1.0, 1.0)
    assert len(said) == 4


def test_pairs_are_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    pairs = [[f"w{rng.randrange(8)}" for _ in range(rng.randrange(1, 6))] for _ in range(120)]
    for part, some in (("train", pairs[:100]), ("dev", pairs[100:])):
        Path(f"{part}.a").write_text("".join(" ".join(words) + "\n" for words in some))
        Path(f"{part}.b").write_text("".join(" ".join(words).upper() + "\n" for words in some))
        Path(f"{part}.ab").write_text("".join(f"{' '.join(words)}\t{' '.join(words).upper()}\n" for words in some))
    module = recipe("attention_seq2seq")
    sizes = ["--epochs", "2", "--batch", "8", "--embedding", "6", "--hidden", "6", "--attention", "6", "--window", "4"]

    def train(log: str, *options: str) -> int:
        return harness.main(module.Seq2Seq, module.Settings, "", ["--stream", "on", *options, *sizes, "--log", log])

    assert train("files", "--train", "train.a", "train.b", "--dev", "dev.a", "dev.b") == 0
    tokens = sum(map(len, pairs[:100]))
    assert f"100 pairs ({tokens} source tokens, read bit by bit) to train on, 20 for dev" in capsys.readouterr().out
    assert train("columns", "--train", "train.ab", "--dev", "dev.ab") == 0
    assert losses("files") == losses("columns") and len(losses("files")) == 2 * 13
    assert train("whole", "--train", "train.ab", "--dev", "dev.ab", "--stream", "off") == 0
    assert len(losses("whole")) == 2 * 13 and losses("whole") != losses("files")
