#!/usr/bin/env python
"""Everything that only a GPU can tell, in one go: are its numbers right, and how fast is it beside PyTorch?

Needs the source tree, dynet_lite with `pip install ".[test]"` and, to compare with, PyTorch for GPUs.

    python benchmarks/on_a_gpu.py                  # half an hour; writes on_a_gpu-<date>.log and .jsonl here
    python benchmarks/on_a_gpu.py --out FOLDER     # there
    python benchmarks/on_a_gpu.py --smoke          # tiny sizes: does it run? Also on the stand-in (docs/engine/device.md)

First the op table, random programs and training on the GPU against the CPU, then training speeds: dynet_lite and
PyTorch on the GPU in turns, item by item, padded, and padded after sorting, where LSTMs over sequences are cuDNN's;
small ones on a core of the CPU, too.
A part that fails is logged, and the next one goes on. What is aimed at stands beside what was measured (targets.py).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import report
import run
import targets
from side_by_side import Engine, machine, table
from tasks.registry import TASKS

ROOT = Path(__file__).resolve().parents[1]
# Task, which of its sizes, units; with them, what PyTorch's LSTMs are on a GPU.
CASES = [
    ("tagger", "large", 256),
    ("tagger", "large", 1024),
    ("treelstm", "base", 150),
    ("treelstm", "large", 1024),
    ("parser", "base", 100),
    ("parser", "large", 256),
    ("seq2seq", "base", 256),
    ("seq2seq", "large", 1024),
]
CUDNN = ("tagger",)  # where the LSTMs over whole sequences are nearly all of the work
TINY = {"words": 60, "emb": 8, "action_emb": 4, "mlp": 8, "batch": 4}
OURS = ("dynet_lite:on", "dynet_lite:on+idiomatic")
PEERS = ("torch:one", "torch:padded", "torch:sorted")
ON_A_CORE, MOST_UNITS_ON_A_CORE = (
    ["dynet_lite:on+idiomatic"],
    256,
)  # what is a GPU worth? Larger ones take minutes there
# One product, with cuBLAS and without: from where on does it pay?
PRODUCT = """
import sys
import numpy as np
import dynet_lite as dy
from dynet_lite import _core

dy.configure(device="cuda")
m, n, k, times = map(int, sys.argv[1:])
pc = dy.ParameterCollection()
W, x = pc.add_parameters((m, k)), np.ones((k, n), "f")
for _ in range(3):
    before, busy = _core.backend_counts()["cublas"], _core.device_busy("cuda", True)
    for _ in range(times):
        dy.renew_cg()
        (W * dy.inputTensor(x)).npvalue()
    took = _core.device_busy("cuda", False) - busy
print(1e6 * took / times, _core.backend_counts()["cublas"] - before)
"""


class Log:
    """Prints, and keeps what it printed in a file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / time.strftime("on_a_gpu-%Y%m%d-%H%M%S.log")
        self.failed: list[str] = []

    def __call__(self, text: str = "") -> None:
        print(text, flush=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def data(self, line: dict[str, Any]) -> None:
        with open(self.path.with_suffix(".jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def part(self, name: str, work: Callable[[], None]) -> None:
        """Runs it; if it fails, says so and goes on."""
        self(f"\n## {name}\n")
        start = time.perf_counter()
        try:
            work()
        except Exception as error:  # of a GPU whatever may come: the next part may work
            self.failed.append(name)
            self(f"FAILED: {type(error).__name__}: {str(error)[-2000:]}")
            if not isinstance(error, (RuntimeError, run.LossesDiffer)):
                self(traceback.format_exc())
        self(f"\n({time.perf_counter() - start:.0f} s)")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the log (default: here)")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one round: figures mean nothing")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds")
    parser.add_argument("--tasks", default="", help="only these, with commas")
    args = parser.parse_args(arguments)
    wanted = [name for name in args.tasks.split(",") if name]
    if unknown := [name for name in wanted if name not in TASKS]:
        parser.error(f"unknown tasks: {', '.join(unknown)}")
    cases = [case for case in CASES if not wanted or case[0] in wanted]
    log = Log(args.out)
    peers, where = torch_engines(args.smoke)
    log("# dynet_lite on a GPU\n")
    usable = True

    def about() -> None:
        nonlocal usable
        usable = say_what_there_is(log, where)

    log.part("What there is", about)
    if not usable:
        log("\nno GPU can be used: nothing was measured. What would have been:\n")
        log("- the numbers of all ops, of random programs and of training, beside the CPU's")
        log("- products with cuBLAS and without")
        for task, _, hidden in cases:
            log(f"- the speed of {task}, {hidden} units: {', '.join((*OURS, *PEERS))}")
        return 1
    log.part("Are its numbers right?", lambda: check_numbers(log, args.smoke))
    log.part("Products: from where on does cuBLAS pay?", lambda: time_products(log, args.smoke))
    judged: list[tuple[str, report.Verdict]] = []
    for task, size, hidden in cases:
        setup = setup_of(task, size, hidden, args.smoke)
        label = f"{task}, {hidden} units" + (" (tiny: --smoke)" if args.smoke else "")
        beside = peers + (ON_A_CORE if hidden <= MOST_UNITS_ON_A_CORE else [])
        log.part(label, lambda s=setup, x=label, p=beside: judged.extend((x, v) for v in speeds(log, x, s, p, args)))  # type: ignore[misc]
    if judged:
        log("\n## What was aimed at\n\n" + report.target_table(judged))
    log(f"\n{'FAILED: ' + '; '.join(log.failed) if log.failed else 'all parts ran'}; log: {log.path}")
    return 1 if log.failed else 0


def torch_engines(smoke: bool) -> tuple[list[str], str]:
    """PyTorch's engines, and what is said of it. On the CPU only to see whether all runs."""
    try:
        import torch
    except ImportError as error:
        return [], f"left out, it is not installed ({error})"
    about = f"{torch.__version__}"
    if torch.cuda.is_available():
        return [f"{name}@cuda" for name in PEERS], f"{about}, cuDNN {torch.backends.cudnn.version()}"
    if smoke:
        return list(PEERS), f"{about}, on the CPU: it sees no GPU"
    return [], f"left out: {about} sees no GPU"


def say_what_there_is(log: Log, torch: str) -> bool:
    """The machine and its GPUs; is one of them usable?"""
    import dynet_lite as dy

    log(f"{time.strftime('%Y-%m-%d %H:%M')}, dynet_lite {dy.__version__}, {json.dumps(machine())}")
    for device in dy.devices():
        log(f"- {device}")
    log(f"- PyTorch: {torch}")
    log(
        f"- a stand-in for the driver: {os.environ['DYNET_LITE_LIBCUDA']}" if "DYNET_LITE_LIBCUDA" in os.environ else ""
    )
    done = subprocess.run(["nvidia-smi"], capture_output=True, text=True) if has("nvidia-smi") else None
    log(done.stdout if done else "(no nvidia-smi)")
    return any(d.usable and d.name.startswith("cuda") for d in dy.devices())


def has(program: str) -> bool:
    return any((Path(folder) / program).is_file() for folder in os.environ.get("PATH", "").split(os.pathsep))


def output_of(words: Sequence[str], seconds: float) -> str:
    """What a program of ours printed; RuntimeError with its last lines where it failed."""
    command = [sys.executable, "-X", "faulthandler", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return done.stdout


def check_numbers(log: Log, smoke: bool) -> None:
    """The op table, random programs, training loops; and twice the same to the last bit."""
    program = ROOT / "tests" / "device" / "on_device.py"
    if not program.is_file():
        return log("left out: it needs the source tree (tests/device)")
    if importlib.util.find_spec("pytest") is None:
        raise RuntimeError("it needs what pip install '.[test]' installs")
    words = [str(program), *(["--few"] if smoke else [])]
    log("against the CPU, and twice on the GPU: " + output_of(words, 1800).strip())


def time_products(log: Log, smoke: bool) -> None:
    """Microseconds on the GPU of one product, uploads of its argument left out."""
    sizes = (
        [(64, 8, 64)]
        if smoke
        else [(m, n, k) for m, k in ((1024, 256), (2048, 512), (4096, 1024)) for n in (32, 64, 256, 1024)]
    )
    rows = []
    for m, n, k in sizes:
        line = {"m": m, "n": n, "k": k}
        for name, library in (("cublas", os.environ.get("DYNET_LITE_LIBCUBLAS", "")), ("own", "none")):
            environment = {**os.environ, "DYNET_LITE_LIBCUBLAS": library}
            words = [sys.executable, "-c", PRODUCT, *map(str, (m, n, k, 2 if smoke else 50))]
            done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=600)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            line[name], used = float(done.stdout.split()[0]), int(done.stdout.split()[1])
            line["went there"] = line.get("went there", 0) or used
        rows.append(
            [f"{m} x {n} x {k}", f"{line['own']:.1f}", f"{line['cublas']:.1f}", "yes" if line["went there"] else "no"]
        )
        log.data({"product": line})
    log(table(["m x n x k", "own kernel, us", "with cuBLAS, us", "went to cuBLAS"], rows))


def setup_of(task: str, size: str, hidden: int, smoke: bool) -> dict[str, Any]:
    sizes = dict(TASKS[task].SIZES[size], hidden=hidden)
    if smoke:
        sizes = {**sizes, **{name: n for name, n in TINY.items() if name in sizes}, "hidden": 8}
    count = sizes["batch"] * (1 if smoke else 8)
    return {"task": task, "size": size, "sizes": sizes, "units": hidden, "usual_batch": True, "sentences": count,
            "seed": 7, "inference": False}  # fmt: skip


def speeds(
    log: Log, label: str, setup: dict[str, Any], peers: Sequence[str], args: argparse.Namespace
) -> list[report.Verdict]:
    """One task: everybody's speed by wall time, what the GPU did in a mini-batch of ours, the aims."""
    engines = [*(f"{name}@cuda" for name in OURS), *peers]
    answers = run.compare(engines, setup, 1 if args.smoke else args.rounds)
    count, batches = setup["sentences"], setup["sentences"] // setup["sizes"]["batch"]
    rows = [report.figures(name, found[1:], count) for name, found in answers.items()]
    lines, ours = [], f"{OURS[0]}@cuda"
    for row in rows:
        rounds = answers[row["engine"]][1:]
        ratio = report.ratio(answers, row["engine"], ours, "wall")
        wall = 1000 * count / row["sentences_per_wall_second"] / batches
        device = f"{device_ms(rounds, batches):.3f}" if "device_seconds" in rounds[0] else "-"
        lines.append(
            [row["engine"], report.speed(row["sentences_per_wall_second"]), f"{ratio:.2f}", f"{wall:.2f}", device]
        )
    log(f"{count} sentences a round, mini-batches of {setup['sizes']['batch']}, medians of {len(rounds)} rounds; losses "
        f"agree to {max(report.loss_difference(answers).values()):.1e}\n")  # fmt: skip
    log(table(["engine", "sentences / s", f"x {ours}", "ms a mini-batch", "of them at work on the GPU"], lines))
    for name, found in answers.items():
        if "gpu" in found[-1]:
            each = {what: round(n / batches, 1) for what, n in found[-1]["gpu"].items()}
            log(f"\n{name}, a mini-batch: {each}")
            log(
                "the host's ms by op, sentence: " + ", ".join(report.op_lines(found[0]["ops"], count, 6))
                if found[0].get("ops")
                else ""
            )
    verdicts = aims(setup, answers, batches)
    log.data({"case": label, "setup": setup, "rows": rows, "answers": answers,
              "aims": [dict(zip(("what", "measured", "wanted", "reached"), v, strict=True)) for v in verdicts]})  # fmt: skip
    if verdicts:
        log("\n" + report.target_table([(label, v) for v in verdicts]))
    return verdicts


def device_ms(rounds: Sequence[dict[str, Any]], batches: int) -> float:
    """How long the GPU was at work on a mini-batch: of the round that is in the middle."""
    return 1000 * sorted(r["device_seconds"] for r in rounds)[len(rounds) // 2] / batches


def aims(setup: dict[str, Any], answers: report.Answers, batches: int) -> list[report.Verdict]:
    """Of our faster program."""
    ours = min((f"{name}@cuda" for name in OURS), key=lambda name: sum(r["wall"] for r in answers[name][1:]))
    found: list[report.Verdict] = []

    def judge(what: str, peer: str, wanted: float) -> None:
        if peer in answers:
            measured = report.ratio(answers, ours, peer, "wall")
            found.append((what, measured, wanted, measured >= wanted))

    for peer in (name for name in answers if Engine.parse(name).module == "torch"):
        mode = Engine.parse(peer).mode
        if mode == "one":
            judge("item by item", peer, targets.GPU_ONE)
        elif setup["task"] in CUDNN:
            judge(f"cuDNN's LSTM, {mode}", peer, targets.GPU_CUDNN)
        elif setup["task"] in ("treelstm", "parser"):
            judge(mode, peer, targets.GPU_PADDED)
    if model := targets.GPU_MODEL.get((setup["task"], setup["units"])):
        over = device_ms(answers[ours][1:], batches) / model
        found.append(
            ("time on the GPU / estimate (at most)", over, targets.GPU_OVER_MODEL, over <= targets.GPU_OVER_MODEL)
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
