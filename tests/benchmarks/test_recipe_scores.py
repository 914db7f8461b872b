"""The program that makes the table of scores: runs, resumes, prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dynet_lite as dy

PROGRAM = Path(__file__).resolve().parents[2] / "benchmarks" / "recipe_scores.py"
RUNS = """
[[run]]
name = "names"
recipe = "named_entities"
corpus = "project-iob"
score = 'F1 ([\\d.]+)%'
steps = [{ name = "small", options = "--epochs 1 --hidden 6 --word-dim 6" }, { name = "no case", options = "--case-dim 0" }]

[[run]]
name = "far away"
recipe = "bilstm_tagger"
corpus = "ewt"
score = 'accuracy ([\\d.]+)%'
steps = [{ name = "as it is", options = "" }]
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1])}
    command = [sys.executable, str(PROGRAM), "--runs", "runs.toml", "--corpora", "nowhere", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=env)


def test_the_table_is_made_and_resumed(tmp_path: Path) -> None:
    (tmp_path / "runs.toml").write_text(RUNS)
    assert "no case: recipes/named_entities.py" in run(tmp_path, "--list", "--only", "names").stdout
    done = run(tmp_path, "--only", "names", "--seeds", "2", "--steps", "--speed")
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in (tmp_path / "recipe_scores.jsonl").read_text().splitlines()]
    assert [(x["step"], x["seed"]) for x in results] == [
        ("no case", 1),
        ("no case", 2),
        ("small", 1),
        ("small", 2),
        ("speed", 1),
    ]
    assert all(0 <= x["score"] <= 100 and x["score"] == x["dev"] for x in results[:4])  # the dev part is the test, too
    assert results[0]["command"].endswith("--epochs 1 --hidden 6 --word-dim 6 --case-dim 0 --seed 1")
    assert results[-1]["on"] > 0 < results[-1]["off"] and results[-1]["unit"] == "words"
    again = run(tmp_path, "--only", "names", "--seeds", "2", "--steps", "--speed")
    assert "recipes/named_entities.py" not in again.stdout  # all is done
    assert (
        "| names | `named_entities` | project-iob | " in again.stdout
        and "| no case | `--case-dim 0` | " in again.stdout
    )
    with (tmp_path / "recipe_scores.jsonl").open("w") as file:
        file.writelines(json.dumps(x) + "\n" for x in results[1:])
    once = run(tmp_path, "--only", "names", "--seeds", "2", "--steps", "--speed")
    assert once.stdout.count("recipes/named_entities.py") == 1 and "--case-dim 0 --seed 1" in once.stdout


def test_a_corpus_that_is_not_there_is_said_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "runs.toml").write_text(RUNS)
    done = run(tmp_path, "--only", "far away", "--seeds", "1")
    assert (
        done.returncode == 1 and "en_ewt-ud-train.conllu is not there" in done.stderr and "Traceback" not in done.stderr
    )
    assert "| far away | `bilstm_tagger` | ewt |" in done.stdout


def test_every_run_names_a_recipe_and_a_corpus(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(dy.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--list", "--steps", "--speed"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        assert (PROGRAM.parents[1] / line.split(": ")[1].split()[0]).is_file(), line
