#!/usr/bin/env python
"""Training and inference speed on eight tasks: DyNet, dynet_lite, PyTorch and the matrix products alone, in turns.

    python benchmarks/run.py                                    # every task, every engine that is installed
    python benchmarks/run.py --tasks tagger,parser --engines dynet:1,dynet_lite:on,dynet_lite:on+idiomatic
    python benchmarks/run.py --sizes base,large --jsonl speeds.jsonl --markdown speeds.md --plot speeds.png
    python benchmarks/run.py --batch-sizes 1,8,64,256           # instead of each task's own
    python benchmarks/run.py --threads 1,2                      # dynet_lite and PyTorch with both
    python benchmarks/run.py --inference                        # the forward pass alone
    python benchmarks/run.py --device cuda                      # dynet_lite and PyTorch on a GPU; on_a_gpu.py does more
    python benchmarks/run.py --quick                            # one mini-batch, two rounds: does it run?

All engines start from the same weights and see the same mini-batches; their losses over a first round must agree
to 1e-4 relative, else no speed is printed. Then come the timed rounds, in turns, and one round of dynet_lite with time
by op. README.md says what the engines are called and what the columns mean.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import measure
import report
from side_by_side import Engine, Worker, add_line, machine, serve, start_workers, take_turns
from tasks.registry import TASKS

ENGINES = [
    *("dynet:0", "dynet:1", "dynet:1+compact", "dynet_lite:off", "dynet_lite:on", "dynet_lite:on+idiomatic"),
    *("torch:one", "torch:padded", "torch:sorted", "torch:compiled", "floor"),
]
TOLERANCE = 1e-4
DYNET_MEMORY = (512, 1024, 2048, 4096, 8192)  # MB; the least that will do is used


def main(arguments: Sequence[str] | None = None) -> int:
    args = options().parse_args(arguments)
    if args.worker:
        serve(args.worker, measure.prepare)
        return 0
    if args.quick:
        args.rounds, args.sentences = min(args.rounds, 2), args.sentences or 1
    judged: list[tuple[str, report.Verdict]] = []
    pages: list[str] = []
    lines: list[dict[str, Any]] = []
    for setup in setups(args):
        label = name_of(setup)
        try:
            with real_sentences(args.conllu, setup) as complete:
                answers = compare(engines_of(args), complete, args.rounds)
        except (LossesDiffer, RuntimeError) as error:
            print(f"{label}: {error}", file=sys.stderr)
            pages.append(f"## {label}\n\nno speeds: {str(error).splitlines()[0]}\n")
            continue
        page, line, verdicts = written(label, setup, answers, args.rounds)
        print(page + "\n", flush=True)
        pages.append(page)
        lines.append(line)
        judged += [(label, verdict) for verdict in verdicts]
        add_line(args.jsonl, line)
    if judged:
        pages.append("## Targets\n\n" + report.target_table(judged))
        print(pages[-1])
    if args.markdown:
        with open(args.markdown, "w", encoding="utf-8") as file:
            file.write("\n\n".join(pages) + "\n")
    if args.plot and lines:
        from plot import draw

        draw(lines, args.plot)
    return 0 if len(lines) == len(setups(args)) else 1


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--tasks", default=",".join(TASKS), help="names with commas; default: all")
    parser.add_argument("--engines", default=",".join(ENGINES), help="names with commas; default: all")
    parser.add_argument("--sizes", default="base", help="base, large or both with a comma")
    parser.add_argument("--batch-sizes", default="", help="sentences per update, with commas; default: the task's own")
    parser.add_argument("--threads", default="1", help="numbers with commas; for dynet_lite and PyTorch")
    parser.add_argument("--device", default="", help="cuda: dynet_lite and PyTorch work there")
    parser.add_argument("--inference", action="store_true", help="the forward pass alone")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds")
    parser.add_argument("--sentences", type=int, default=0, help="sentences per round; default: 8 mini-batches")
    parser.add_argument("--seed", type=int, default=7, help="of the data and the initial weights")
    parser.add_argument("--conllu", default="", metavar="FILE", help="real sentences, where a task can use them")
    parser.add_argument("--quick", action="store_true", help="one mini-batch, 2 rounds: figures mean nothing")
    parser.add_argument("--jsonl", default="", metavar="FILE", help="add a line of JSON per run to this file")
    parser.add_argument("--markdown", default="", metavar="FILE", help="write the tables to this file")
    parser.add_argument("--plot", default="", metavar="FILE", help="draw the speeds (needs matplotlib)")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    return parser


def setups(args: argparse.Namespace) -> list[dict[str, Any]]:
    """What to run: every task at every size and batch size."""
    found = []
    for task in args.tasks.split(","):
        for size in args.sizes.split(","):
            usual = TASKS[task].SIZES[size]
            for batch in [int(b) for b in args.batch_sizes.split(",") if b] or [usual["batch"]]:
                found.append({
                    "task": task,
                    "size": size,
                    "sizes": usual | {"batch": batch},
                    "usual_batch": batch == usual["batch"],
                    "sentences": max(args.sentences, batch) if args.sentences else max(8 * usual["batch"], 2 * batch),
                    "seed": args.seed,
                    "inference": args.inference,
                })  # fmt: skip
    return found


def engines_of(args: argparse.Namespace) -> list[str]:
    """The engines, those that have threads once for each number of threads."""
    found = []
    for name in args.engines.split(","):
        engine = Engine.parse(name)
        numbers = [int(n) for n in args.threads.split(",")]
        if engine.module not in ("dynet_lite", "torch") or engine.mode in ("off", "one") or engine.threads > 1:
            numbers = [engine.threads]
        device = args.device if engine.module in ("dynet_lite", "torch") and args.device != "cpu" else ""
        device = engine.device or device
        found += [str(Engine(engine.module, engine.mode, n, engine.variant, device)) for n in numbers]
    return list(dict.fromkeys(found))


def name_of(setup: dict[str, Any]) -> str:
    what = "inference" if setup["inference"] else "training"
    return f"{setup['task']}, {setup['size']}, {what}, batch {setup['sizes']['batch']}"


@contextmanager
def real_sentences(path: str, setup: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The set-up, with the name of a file of instances in it if there is a corpus for the task."""
    if path:
        import real

        if setup["task"] in real.TASKS:
            found = real.instances(path, setup["task"], setup["sentences"], setup["sizes"], setup["seed"])
            with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
                pickle.dump(found, file)
                file.flush()
                setup["text"] = "conllu"
                yield setup | {"instances": file.name}
            return
    setup["text"] = "made up"
    yield setup


class LossesDiffer(Exception):
    """The engines do not compute the same thing."""


def compare(engines: Sequence[str], setup: dict[str, Any], rounds: int) -> report.Answers:
    """Common round and timed rounds of every engine that is installed, then one with time by op of dynet_lite."""
    workers = begin(engines, setup)
    answers: report.Answers = {str(worker.engine): [first] for worker, first in workers}
    try:
        if not answers:
            raise RuntimeError("no engine is installed")
        different = {n: d for n, d in report.loss_difference(answers).items() if not d <= TOLERANCE}
        if different:
            raise LossesDiffer(f"the losses differ by more than {TOLERANCE:.0e}: {different}")
        for number in range(rounds):
            take_turns([worker for worker, _ in workers], {"round": number}, answers, number)
        for worker, first in workers:
            if worker.engine.module == "dynet_lite":
                first["ops"] = worker.ask({"profile": True})["ops"]
    finally:
        for worker, _ in workers:
            worker.close()
    return answers


def begin(engines: Sequence[str], setup: dict[str, Any]) -> list[tuple[Worker, dict[str, Any]]]:
    """The workers and the answers to the common round. DyNet's memory cannot grow: it gets the least that will do."""
    ready: list[tuple[Worker, dict[str, Any]]] = []
    for name in engines:
        sizes = DYNET_MEMORY if name.startswith("dynet:") else DYNET_MEMORY[:1]
        for memory in sizes:
            workers = start_workers([name], __file__, setup | {"memory": memory})
            if not workers:
                break
            try:
                ready.append((workers[0], workers[0].ask({"common": True})))
                break
            except RuntimeError as error:
                if memory == sizes[-1] or "memory" not in str(error):
                    for worker, _ in ready:
                        worker.close()
                    raise
    return ready


def written(
    label: str, setup: dict[str, Any], answers: report.Answers, rounds: int
) -> tuple[str, dict[str, Any], list[report.Verdict]]:
    """The page of one run, the same as data, and its targets."""
    where, count = machine(), setup["sentences"]
    rows = [report.figures(name, found[1:], count) for name, found in answers.items()]
    worst = max(report.loss_difference(answers).values(), default=0.0)
    verdicts = report.verdicts(setup["task"], setup, answers, rows)
    ops = {name: found[0]["ops"] for name, found in answers.items() if "ops" in found[0]}
    page = [
        f"## {label}\n",
        f"{count} sentences ({setup['text']}) a round, medians of {rounds} rounds; losses agree to {worst:.1e}; "
        f"{where['cpu']}, load {where['load']}\n",
        report.speed_table(rows, answers),
    ]
    if ops:
        page.append(
            "\nms per sentence by op, forward + backward, in a round with profiling (share of the time inside ops):\n"
        )
        page += [f"- {name}: " + ", ".join(report.op_lines(profile, count)) for name, profile in ops.items()]
    if verdicts:
        page.append("\n" + report.target_table([(label, verdict) for verdict in verdicts]))
    line = {"benchmark": setup["task"], "time": time.strftime("%Y-%m-%dT%H:%M:%S"), "machine": where}
    line |= {**setup, "loss_difference": worst, "rows": rows, "ops": ops}
    line["targets"] = [dict(zip(("what", "measured", "wanted", "reached"), v, strict=True)) for v in verdicts]
    return "\n".join(page), line, verdicts


if __name__ == "__main__":
    sys.exit(main())
