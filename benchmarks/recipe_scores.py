#!/usr/bin/env python
"""The scores of the recipes on real corpora, and their speed: one command makes the whole table and can be stopped at any time.

    python benchmarks/recipe_scores.py                          # every run with the seeds 1, 2, 3; what is done is not done again
    python benchmarks/recipe_scores.py --only tagger,chunker --seeds 5
    python benchmarks/recipe_scores.py --steps                  # also each step on the way to the last options: an ablation
    python benchmarks/recipe_scores.py --speed                  # also words per second, batching on and off
    python benchmarks/recipe_scores.py --list                   # what would be run
    python benchmarks/recipe_scores.py --table                  # only print what there is

Runs are named in recipe_scores.toml, or another file (--runs). A run has a recipe, a corpus (corpora.py), a pattern of
the score in the line that begins with "test", and steps; each step adds its options to those before it. A result is a
line of JSON in --results: run, step, seed, command, score, seconds of processor time. A run with another command than
that of the line is run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import corpora  # noqa: E402


@dataclass(frozen=True)
class Job:
    """One process of a recipe."""

    run: str
    step: str  # "speed": words per second
    seed: int
    recipe: str
    options: tuple[str, ...]  # without the files
    corpus: str
    pattern: str

    def command(self, files: dict[str, Path]) -> list[str]:
        """What is run: files by name, train, dev and test."""
        named = [item for part, path in files.items() for item in (f"--{part}", str(path))]
        return [
            sys.executable,
            str(HERE.parent / "recipes" / f"{self.recipe}.py"),
            *named,
            *self.options,
            "--seed",
            str(self.seed),
        ]

    def key(self) -> dict[str, Any]:
        """What makes two jobs the same: also the command, but for where files lie."""
        command = shlex.join([f"recipes/{self.recipe}.py", *self.options, "--seed", str(self.seed)])
        return {"run": self.run, "step": self.step, "seed": self.seed, "corpus": self.corpus, "command": command}


def jobs(runs: list[dict[str, Any]], seeds: int, steps: bool, speed: bool) -> Iterator[Job]:
    """Every job, the last steps first: they are the table. Speeds come last."""
    early: list[Job] = []
    for run in runs:
        options: list[str] = []
        for i, step in enumerate(run["steps"]):
            options += shlex.split(step["options"])
            given = run["name"], step["name"], run["recipe"], tuple(options), run["corpus"], run["score"]
            made = [Job(given[0], given[1], seed, *given[2:]) for seed in range(1, seeds + 1)]
            if i + 1 == len(run["steps"]):
                yield from made
            elif steps:
                early += made
    yield from early
    for run in runs if speed else ():
        options = [x for step in run["steps"] for x in shlex.split(step["options"])]
        options = [*options, "--compare", "--epochs", "2", "--batch", "64"]
        yield Job(run["name"], "speed", 1, run["recipe"], tuple(options), run["corpus"], "")


def do(job: Job, files: dict[str, Path], work: Path) -> dict[str, Any]:
    """Runs a job; its line of the results. RuntimeError with what the recipe said if it fails or says no score."""
    if job.step == "speed":
        files = corpora.part_of(files, 400, work)
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(job.command(files), capture_output=True, text=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{job.run}, {job.step}: {done.stderr.strip()[-2000:]}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = speeds(done.stdout) if job.step == "speed" else scores(done.stdout, job)
    return {**job.key(), **found, "seconds": round(seconds, 1)}


def scores(said: str, job: Job) -> dict[str, Any]:
    """The test score, and the dev score of the best epoch."""
    found = {}
    for part, begins in (("dev", "best dev"), ("score", "test")):
        line = next((line for line in said.splitlines() if line.startswith(begins)), "")
        match = re.search(job.pattern, line)
        if match is None:
            raise RuntimeError(
                f"{job.run}, {job.step}: no {job.pattern!r} in the line {begins!r} of what it said:\n{said[-2000:]}"
            )
        found[part] = float(match[1].replace(",", ""))
    return found


def speeds(said: str) -> dict[str, Any]:
    """Words per second, of the fastest epoch with batching and without it."""
    first = said.splitlines()[0]
    examples, words = (re.search(pattern, first) for pattern in (r": ([\d,]+) \w+ ", r"\(([\d,]+) words"))
    found: dict[str, Any] = {}
    for mode in ("on", "off"):
        best = max(float(x.replace(",", "")) for x in re.findall(rf"autobatch {mode}\b.*?([\d,]+) \w+/s", said))
        mean = float(words[1].replace(",", "")) / float(examples[1].replace(",", "")) if examples and words else 1.0
        found[mode] = round(best * mean)
    return {**found, "unit": "words" if words else "examples"}


def table(runs: list[dict[str, Any]], results: list[dict[str, Any]]) -> str:
    """The results as Markdown: a line for each run, then a table of the steps of each that has them."""
    lines = [
        "| run | recipe | corpus | test | seeds | processor time | words/s on | off | on/off |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        last = run["steps"][-1]["name"]
        mean = average(results, run["name"], last)
        speed = next((x for x in reversed(results) if x["run"] == run["name"] and x["step"] == "speed"), None)
        shown = (
            [f"{speed['on']:,}", f"{speed['off']:,}", f"{speed['on'] / speed['off']:.1f} ×"] if speed else ["", "", ""]
        )
        done = [run["name"], f"`{run['recipe']}`", run["corpus"], *mean, *shown]
        lines.append(f"| {' | '.join(done)} |")
    for run in runs:
        known = [step for step in run["steps"] if average(results, run["name"], step["name"])[0]]
        if len(known) < 2:
            continue
        lines += [
            "",
            f"`{run['recipe']}`, {run['corpus']}:",
            "",
            "| step | options added | test | gain |",
            "|---|---|---|---|",
        ]
        before = None
        for step in known:
            mean = float(average(results, run["name"], step["name"])[0])
            gain = "" if before is None else f"{mean - before:+.2f}"
            lines.append(f"| {step['name']} | `{step['options']}` | {mean:.2f} | {gain} |")
            before = mean
    return "\n".join(lines)


def average(results: list[dict[str, Any]], run: str, step: str) -> tuple[str, str, str]:
    """Mean of the test scores, how many there are with the lowest and the highest, mean of the seconds; "" where there
    is none."""
    found = {x["seed"]: x for x in results if x["run"] == run and x["step"] == step}  # the last one of each seed
    if not found:
        return "", "", ""
    values, seconds = [x["score"] for x in found.values()], [x["seconds"] for x in found.values()]
    spread = f"{len(values)} ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else "1"
    return f"{sum(values) / len(values):.2f}", spread, f"{sum(seconds) / len(seconds):.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=HERE / "recipe_scores.toml", help="the list of runs")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("recipe_scores.jsonl"),
        help="what is done is read from here and added here",
    )
    parser.add_argument(
        "--corpora", type=Path, default=corpora.FOLDER, help="where the corpora are (DYNET_LITE_CORPORA)"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("recipe_scores"), help="folder for training, dev and test files"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds 1 to this one")
    parser.add_argument("--only", default="", help="names of runs, with commas between")
    for name in ("steps", "speed", "list", "table"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    runs = [
        run
        for run in tomllib.loads(given.runs.read_text(encoding="utf-8"))["run"]
        if not given.only or run["name"] in given.only.split(",")
    ]
    text = given.results.read_text(encoding="utf-8") if given.results.exists() else ""
    results = [json.loads(line) for line in text.splitlines()]
    failed = False
    for job in () if given.table else jobs(runs, given.seeds, given.steps, given.speed):
        key = job.key()
        if any(key.items() <= old.items() for old in results):
            continue
        print(f"{key['run']}, {key['step']}: {key['command']}", flush=True)
        if given.list:
            continue
        try:
            result = do(job, corpora.prepare(job.corpus, given.corpora, given.work, job.seed), given.work)
        except (RuntimeError, FileNotFoundError) as error:
            print(f"    {error}", file=sys.stderr)
            failed = True
            continue
        results.append(result)
        with given.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        print(
            "    "
            + ", ".join(f"{name} {result[name]}" for name in ("score", "on", "off", "seconds") if name in result),
            flush=True,
        )
    if not given.list:
        print(table(runs, results))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
