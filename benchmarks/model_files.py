#!/usr/bin/env python
"""Files of parameters: DyNet against dynet_lite, in turns on the same machine, writing and reading DyNet's text format.

    python benchmarks/model_files.py
    python benchmarks/model_files.py --megabytes 400 --rounds 3

Each engine writes the same model to a file of its own and reads it again, then reads the file of the other; what was
read must be the model, to the bit, and the files must be equal, else there is no figure. The best of all rounds counts,
as noise only adds. Checkpoints (dynet_lite's own format) are timed beside it, with the state of an Adam trainer.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from side_by_side import Engine, Measure, add_line, machine, run_rounds, serve, table

HIDDEN = 310  # weights of a common size; a table takes half of the file


def prepare(dy: ModuleType, engine: Engine, setup: dict[str, Any]) -> Measure:
    numbers = int(setup["megabytes"] * 1e6) // 16
    rng = np.random.RandomState(1)
    model = dy.ParameterCollection()
    arrays = [rng.normal(size=(HIDDEN, HIDDEN)).astype(np.float32) for _ in range(numbers // 2 // HIDDEN**2)]
    weights = [model.add_parameters(a.shape, init=a) for a in arrays]
    rows = rng.normal(size=(numbers // 2 // HIDDEN, HIDDEN)).astype(np.float32)
    words = model.add_lookup_parameters(rows.shape, init=rows)
    folder = Path(setup["folder"])
    own = folder / engine.module

    def timed(best: dict[str, float], name: str, call: Callable[..., Any], *args: Any) -> None:
        start = time.perf_counter()
        call(*args)
        best[name] = time.perf_counter() - start

    def read_back(best: dict[str, float], name: str, path: Path) -> None:
        for p in weights:
            p.zero()
        words.zero()
        timed(best, name, model.populate, str(path))
        same = all((np.float32(p.as_array()) == a).all() for p, a in zip(weights, arrays, strict=True))
        if not same or not (np.float32(words.as_array()) == rows).all():
            raise RuntimeError(f"{engine} did not read what is in {path}")

    def measure(question: Any = None) -> dict[str, Any]:
        seconds: dict[str, float] = {}
        timed(seconds, "write text", model.save, str(own))
        read_back(seconds, "read text", own)
        for other in folder.iterdir():
            if other.name in ("dynet", "dynet_lite") and other != own:
                read_back({}, "", other)
                if other.read_bytes() != own.read_bytes():
                    raise RuntimeError("the files of the two engines differ")
        if engine.module == "dynet_lite":
            trainer, path = dy.AdamTrainer(model), str(folder / "checkpoint")
            timed(seconds, "write checkpoint", dy.save_checkpoint, path, model, trainer)
            timed(seconds, "read checkpoint", dy.load_checkpoint, path, model, trainer)
        return seconds

    return measure


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--engines", default="dynet:0,dynet_lite:on", help="names with commas")
    parser.add_argument("--megabytes", type=float, default=40, help="size of the text file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jsonl", default="", metavar="FILE", help="also add the JSON line to this file")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        serve(args.worker, prepare)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        setup = {"folder": folder, "megabytes": args.megabytes}
        answers = run_rounds(args.engines.split(","), __file__, setup, args.rounds)
    if not answers:
        print("no engine is installed", file=sys.stderr)
        return 1
    names = list(answers)
    best = {n: {k: min(r[k] for r in answers[n]) for k in answers[n][0]} for n in names}
    where = machine()
    print(f"seconds, best of {args.rounds + 1} rounds, {args.megabytes:g} MB; {where['cpu']}, load {where['load']}\n")
    calls = dict.fromkeys(call for n in names for call in best[n])
    both = [best[n] for n in ("dynet:0", "dynet_lite:on") if n in best]
    rows = []
    for call in calls:
        ratio = f"{both[0][call] / both[1][call]:.1f}" if len(both) == 2 and call in both[0] else "-"
        rows.append([call, *(f"{best[n][call]:.4f}" if call in best[n] else "-" for n in names), ratio])
    print(table(["", *names, "times as fast"], rows))
    line = {"benchmark": "model_files", "time": time.strftime("%Y-%m-%dT%H:%M:%S"), "machine": where,
            "megabytes": args.megabytes, "seconds": best, "versions": {n: Engine.parse(n).version() for n in names}}  # fmt: skip
    print("\n" + json.dumps(line))
    add_line(args.jsonl, line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
