#!/usr/bin/env python
"""Cost of building graph nodes from Python: DyNet against dynet_lite, in turns on the same machine.

    python benchmarks/graph_building.py
    python benchmarks/graph_building.py --engines dynet:0,dynet_lite:null --rounds 9

Nothing is evaluated: the figures are nanoseconds of one Python call that adds a node, the loop around it
included; "with renewal" adds the share of the renew_cg() that drops the nodes again. With dynet_lite:null the
scheduler is timed too: the graph is planned and "run" by the backend that runs nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from side_by_side import Engine, add_line, machine, run_rounds, serve, table

NODES = 20_000
TIMES = 5  # per round; the best counts, as noise only adds
HIDDEN = 50


def prepare(dy: ModuleType, engine: Engine, setup: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    model = dy.ParameterCollection()
    weight, bias = model.add_parameters((HIDDEN, HIDDEN)), model.add_parameters((HIDDEN,))
    vectors = model.add_lookup_parameters((1000, HIDDEN))
    lstm = dy.VanillaLSTMBuilder(1, HIDDEN, HIDDEN, model)
    tanh, affine_transform, pickneglogsoftmax = dy.tanh, dy.affine_transform, dy.pickneglogsoftmax
    numbers = range(NODES)

    def empty(x: Any) -> Any:
        for _ in numbers:
            pass
        return x

    def unary(x: Any) -> Any:
        for _ in numbers:
            x = tanh(x)
        return x

    def add(x: Any) -> Any:
        for _ in numbers:
            x = x + x
        return x

    def affine(x: Any) -> Any:
        for _ in numbers:
            x = affine_transform([bias, weight, x])
        return x

    def lookup(x: Any) -> Any:
        for i in numbers:
            x = vectors[i % 1000]
        return x

    def loss(x: Any) -> Any:
        y = x
        for _ in numbers:
            y = pickneglogsoftmax(x, 3)
        return y

    def lstm_step(x: Any) -> Any:
        return lstm.initial_state().transduce([x] * NODES)[-1]

    programs = {
        "empty loop": empty,
        "tanh(x)": unary,
        "x + y": add,
        "affine_transform([b, W, x])": affine,
        "lookup": lookup,
        "pickneglogsoftmax(x, i)": loss,
        "LSTM step (transduce)": lstm_step,
    }
    detailed = ("tanh(x)", "affine_transform([b, W, x])")

    def measure(question: dict[str, Any]) -> dict[str, Any]:
        best: dict[str, float] = {}
        for name, program in programs.items():
            for _ in range(TIMES):
                dy.renew_cg()
                x = dy.inputTensor([0.1] * HIDDEN)
                affine_transform([bias, weight, x])  # the parameters enter the graph
                start = time.perf_counter()
                last = program(x)
                built = time.perf_counter()
                seconds = {name: built - start}
                if name in detailed:
                    if engine.mode == "null":
                        last.forward()
                        seconds[f"planning, {name}"] = time.perf_counter() - built
                    del last
                    dropping = time.perf_counter()
                    dy.renew_cg()
                    seconds[f"{name}, with renewal"] = built - start + time.perf_counter() - dropping
                for key, value in seconds.items():
                    best[key] = min(best.get(key, value), value)
        return {name: seconds / NODES * 1e9 for name, seconds in best.items()}

    return measure


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    engines = "dynet:0,dynet_lite:on,dynet_lite:null"
    parser.add_argument("--engines", default=engines, help="names with commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jsonl", default="", metavar="FILE", help="also add the JSON line to this file")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        serve(args.worker, prepare)
        return 0
    answers = run_rounds(args.engines.split(","), __file__, {}, args.rounds, warm=0)
    if not answers:
        print("no engine is installed", file=sys.stderr)
        return 1
    names = list(answers)
    calls = dict.fromkeys(call for rounds in answers.values() for call in rounds[0])
    best = {n: {c: min(r[c] for r in answers[n]) for c in calls if c in answers[n][0]} for n in names}
    where = machine()
    print(f"ns per call, best of {args.rounds} rounds; {where['cpu']}, load {where['load']}\n")
    rows = [[call, *(f"{best[n][call]:,.0f}" if call in best[n] else "-" for n in names)] for call in calls]
    print(table(["", *names], rows))
    line = {"benchmark": "graph_building", "time": time.strftime("%Y-%m-%dT%H:%M:%S"), "machine": where}
    line |= {"ns": best, "versions": {n: Engine.parse(n).version() for n in names}}
    print("\n" + json.dumps(line))
    add_line(args.jsonl, line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
