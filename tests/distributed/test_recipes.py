"""Every recipe under mpiexec, as it is: one output, one file, the losses of one process, and --resume."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import dynet_lite as dy
from dynet_lite import harness

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
NAMES = sorted(p.stem for p in RECIPES.glob("*.py") if "harness.main" in p.read_text())
# Of a program that has not begun, MPICH's or Open MPI's.
RANK = 'rank = os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"]'
# A step that draws no random numbers is the same in one process and in several.
QUIET = {"bilstm_tagger": ["--dropout", "0", "--word-dropout", "0"]}


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"recipe_of_ranks_{name}", RECIPES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    out = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = out
    spec.loader.exec_module(out)
    return out


@pytest.mark.parametrize("name", NAMES)
def test_losses_of_parts_make_the_loss_of_the_whole(name: str) -> None:
    """What weight() says is what loss() is a mean over."""
    recipe_module = module(name)
    kind = next(x for x in vars(recipe_module).values() if isinstance(x, type) and issubclass(x, harness.Recipe)
                and x.__module__ == recipe_module.__name__)  # fmt: skip
    s = recipe_module.Settings()
    s = dataclasses.replace(s, **{"smoke": True, **kind.smoke})
    data = kind.load_data(s).small()
    dy.reset_random_seed(1)
    recipe = kind(s, kind.build(s, data.train))
    batch = recipe.batches(data.train)[0]

    def loss(examples: list[Any]) -> float:
        dy.renew_cg()
        return float(recipe.loss(examples).value())

    whole, sizes = loss(batch), [recipe.weight([x]) for x in batch]
    assert len(batch) > 1 and sum(sizes) == recipe.weight(batch) and min(map(recipe.cost, batch)) > 0
    parts = sum(loss([x]) * recipe.weight([x]) / recipe.weight(batch) for x in batch)
    assert parts == pytest.approx(whole, rel=1e-5)


def losses(path: Path) -> list[float]:
    return [event["loss"] for event in map(json.loads, path.read_text().splitlines()) if event["event"] == "update"]


def test_two_ranks_have_the_losses_of_one(ranks: Any, tmp_path: Path) -> None:
    arguments = ["--smoke", "--epochs", 3, *QUIET["bilstm_tagger"], "--batch", 5]
    one, two = (
        ranks(n, RECIPES / "bilstm_tagger.py", *arguments, "--log", f"{n}.jsonl", "--save", f"{n}.model")
        for n in (0, 2)
    )
    alone, together = losses(tmp_path / "0.jsonl"), losses(tmp_path / "2.jsonl")
    assert len(alone) == 9 and together == pytest.approx(alone, rel=1e-4)
    speed = re.compile(r"[\d,]+ sentences/s|mean batch [\d.]+|, saved to .*")
    assert speed.sub("", one.stdout) == speed.sub("", two.stdout)
    evaluated = ranks(2, RECIPES / "bilstm_tagger.py", "predict", "--load", "2.model", tmp_path / "text.txt", ok=False)
    assert evaluated.returncode == 2 and evaluated.stderr.count("error: ") == 1
    (tmp_path / "text.txt").write_text("a cat\n")
    answers = ranks(2, RECIPES / "bilstm_tagger.py", "predict", "--load", "2.model", tmp_path / "text.txt").stdout
    assert len(answers.splitlines()) == 1


def test_resume_with_the_same_and_with_another_number(ranks: Any, tmp_path: Path) -> None:
    recipe = RECIPES / "bilstm_tagger.py"
    ranks(2, recipe, "--smoke", "--epochs", 4, "--log", "whole.jsonl", "--save", "whole.model")
    for n in (2, 3, 0):
        ranks(2, recipe, "--smoke", "--epochs", 2, "--log", f"{n}.jsonl", "--save", f"{n}.model")
        ranks(n, recipe, "--resume", f"{n}.model", "--epochs", 4, "--smoke", "--log", f"{n}.jsonl")
    whole = losses(tmp_path / "whole.jsonl")
    assert losses(tmp_path / "2.jsonl") == whole  # bit for bit, with dropout
    for n in (3, 0):
        other = losses(tmp_path / f"{n}.jsonl")
        assert len(other) == len(whole) and other[:6] == whole[:6] and other[-1] == pytest.approx(whole[-1], rel=0.2)


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_runs_on_two_ranks(ranks: Any, tmp_path: Path, name: str) -> None:
    done = ranks(2, RECIPES / f"{name}.py", "--smoke", "--save", "a.model")
    assert len(re.findall(r"^epoch  1  loss ", done.stdout, re.MULTILINE)) == 1, done.stdout
    assert (tmp_path / "a.model").exists() and (tmp_path / "a.model.state").exists()
    assert not done.stderr.strip(), done.stderr


def test_ranks_share_an_evaluation(ranks: Any) -> None:
    """Each tags every other batch; the score is that of one process."""
    program = f"""
import os, runpy, sys
from dynet_lite.harness import Recipe
spread = Recipe.spread
def counted(self, function, batches):
    done = []
    def noted(batch):
        done.append(len(batch))
        return function(batch)
    found = list(spread(self, noted, [batch[k : k + 2] for batch in batches for k in range(0, len(batch), 2)]))
    os.write(2, b"%d of %d\\n" % (sum(done), sum(len(batch) for batch, _ in found)))
    return found
Recipe.spread = counted
sys.argv = ["tagger", "--smoke", "--dropout", "0", "--word-dropout", "0"]
runpy.run_path({str(RECIPES / "bilstm_tagger.py")!r}, run_name="__main__")
"""
    alone, together = ranks(0, program), ranks(2, program)
    assert alone.stderr.split("\n")[:-1] == ["4 of 4"] and together.stderr.split("\n")[:-1] == ["2 of 4"] * 2
    score = re.compile(r"dev accuracy [\d.]+% \(.*?\)")
    assert score.findall(alone.stdout) == score.findall(together.stdout) and score.findall(alone.stdout)


def test_errors_are_told_once(ranks: Any) -> None:
    recipe = RECIPES / "bilstm_tagger.py"
    for arguments, status, text in (
        (["--train", "missing.conllu"], 2, "error: missing.conllu: No such file or directory"),
        (["--epochs", "x"], 2, "argument --epochs: invalid int value: 'x'"),
        (["--smoke", "--learning-rate", "1e38", "--epochs", "9"], 1, "error: epoch "),
    ):
        done = ranks(2, recipe, *arguments, ok=False)
        assert "failed, all ranks end" not in done.stderr
        assert done.returncode == status and done.stderr.count(text) == 1, done.stderr
        assert "Traceback" not in done.stderr


def test_ranks_with_other_settings(ranks: Any) -> None:
    program = f"""
import os, runpy, sys
{RANK}
sys.argv = ["tagger", "--smoke", "--hidden", "8" if rank == "0" else "9"]
runpy.run_path({str(RECIPES / "bilstm_tagger.py")!r}, run_name="__main__")
"""
    done = ranks(2, program, ok=False)
    assert done.returncode == 2 and done.stderr.count("error: ") == 1
    assert "the ranks disagree; settings.hidden: 8 on rank 0, 9 on rank 1" in done.stderr, done.stderr


def test_an_interrupt_of_one_rank_stops_all_and_can_be_resumed(ranks: Any, tmp_path: Path) -> None:
    arguments = ["--smoke", "--epochs", 40, "--patience", 0]
    ranks(2, RECIPES / "bilstm_tagger.py", *arguments, "--log", "whole.jsonl")
    program = f"""
import os, runpy, signal, sys, threading, time
{RANK}
def interrupt():
    while not os.path.exists("a.model.state"):  # after the first epoch
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
if rank == "1":
    threading.Thread(target=interrupt, daemon=True).start()
sys.argv = ["tagger", "--smoke", "--epochs", "40", "--patience", "0", "--log", "a.jsonl", "--save", "a.model"]
runpy.run_path({str(RECIPES / "bilstm_tagger.py")!r}, run_name="__main__")
"""
    done = ranks(2, program, ok=False)
    assert done.returncode == 130 and done.stdout.count("stopped by the keyboard") == 1, done.stdout + done.stderr
    assert 3 <= len(losses(tmp_path / "a.jsonl")) < 120
    ranks(2, RECIPES / "bilstm_tagger.py", "--resume", "a.model", "--smoke", "--log", "a.jsonl")
    assert losses(tmp_path / "a.jsonl") == losses(tmp_path / "whole.jsonl")


def test_ranks_share_a_stream(ranks: Any, tmp_path: Path) -> None:
    """The same minibatches, whatever the number of ranks; each parses its own examples."""
    words = ["the", "a", "cat", "dog", "sees", "hears", "old"]
    lines = [" ".join(words[(3 * i + k * k) % 7] for k in range(2 + i % 9)) for i in range(120)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "dev.txt").write_text("\n".join(lines[:9]) + "\n")
    arguments = ["--train", "a.txt", "--dev", "dev.txt", "--stream", "on", "--window", 4, "--batch", 6, "--epochs", 2,
                 "--word-dim", 6, "--hidden", 6, "--dropout", 0]  # fmt: skip
    for n in (0, 2):
        ranks(n, RECIPES / "rnnlm.py", *arguments, "--log", f"{n}.jsonl")
    alone, together = losses(tmp_path / "0.jsonl"), losses(tmp_path / "2.jsonl")
    assert len(alone) == 40 and together == pytest.approx(alone, rel=1e-4)
    (tmp_path / "a.txt").write_bytes(b"\n".join(line.encode() for line in lines) + b"\nbroken \xff\n")
    done = ranks(2, RECIPES / "rnnlm.py", *arguments, ok=False)
    assert done.returncode == 2 and done.stderr.count("a.txt:121: expected UTF-8 text") == 1, done.stderr
