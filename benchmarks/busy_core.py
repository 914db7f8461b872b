#!/usr/bin/env python
"""One thread and two, in turns, while another process keeps one core busy.

    OPENBLAS_NUM_THREADS=1 python benchmarks/busy_core.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/busy_core.py --tasks tagger --chunks 20 --core 0 --jsonl busy.jsonl

Two threads gain what is left of the core at most; what they must not do is wait for a thread that does not run: 0.95 of the speed
of one is the least. The burning process is bound to its core (Linux), this one may use `--cores`, so that the kernel
decides where threads run, as it does for users. Chunks and ratios are those of two_threads.py.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from side_by_side import add_line, machine, table
from tasks.registry import TASKS
from two_threads import measure, row, training

BURN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"
DEFAULT = "tagger,treelstm,parser,rnnlm"


@contextlib.contextmanager
def busy(core: int) -> Iterator[None]:
    """Keeps a core busy for the time of the block."""
    burner = subprocess.Popen([sys.executable, "-c", BURN, str(core)], stdout=subprocess.PIPE)
    try:
        assert burner.stdout
        burner.stdout.readline()  # it is bound to its core
        yield
    finally:
        burner.kill()
        burner.wait()
        if burner.stdout:
            burner.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=DEFAULT)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=12, help="of each number of threads")
    parser.add_argument("--steps", type=int, default=0, help="mini-batches of a chunk (about a second's)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--core", type=int, help="the busy one (the last of this process)")
    parser.add_argument("--cores", type=int, help="how many this process uses (all)")
    parser.add_argument("--quiet", action="store_true", help="nothing burns: what the same chunks are otherwise")
    parser.add_argument("--jsonl", help="a line for each task is added to this file")
    args = parser.parse_args()
    names = args.tasks.split(",")
    if unknown := [name for name in names if name not in TASKS]:
        parser.error(f"unknown tasks: {', '.join(unknown)}; there are {', '.join(TASKS)}")
    if not hasattr(os, "sched_setaffinity"):
        parser.error("this system does not bind processes to cores")
    cores = sorted(os.sched_getaffinity(0))[: args.cores]
    core = cores[-1] if args.core is None else args.core
    os.sched_setaffinity(0, cores)

    import dynet_lite as dy

    rows = []
    for name in names:
        with contextlib.nullcontext() if args.quiet else busy(core):
            m = measure(dy, training(dy, TASKS[name], False, args.seed), args.threads, args.chunks, args.steps)
        rows.append(row(name, m))
        print(" ".join(rows[-1]), file=sys.stderr)
        if args.jsonl:
            add_line(
                args.jsonl, {"task": name, "threads": args.threads, "busy": not args.quiet, **m, "machine": machine()}
            )
    head = ["task", "1 thread, ms a mini-batch", f"{args.threads} threads", "ratio", "quartiles", "CPU time, ratio"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
