"""A differential fuzzer: random programs over the whole public surface, run in many ways; all must show the same.

    python tests/fuzz/fuzzer.py --programs 10000                # every way against the plainest, a few ways for each program
    python tests/fuzz/fuzzer.py --programs 10000 --peer         # against the real DyNet, where it is installed
    python tests/fuzz/fuzzer.py --programs 10000 --again        # sessions of many steps, with plans that are kept against plans made anew
    python tests/fuzz/fuzzer.py --programs 10000 --calls        # the same with cells and compiled functions, against these functions run
    python tests/fuzz/fuzzer.py --programs 10000 --objects      # the same with methods, closures, weights and trainers that change
    python tests/fuzz/fuzzer.py --programs 10000 --beside       # the same in several threads, and on both sides of a fork
    DYNET_LITE_BACKEND=cuda python tests/fuzz/fuzzer.py --again # one of these sessions on a GPU
    python tests/fuzz/fuzzer.py --seed 1234 --all               # one program in every way
    python tests/fuzz/fuzzer.py --seed 1234 --show              # its source

A program is a list of statements (fuzz_program.py) that a seed makes (fuzz_generate.py, fuzz_motifs.py, fuzz_sessions.py): ops with
arguments from the tables of samples, look-ups of every kind, cells by hand, builders, mini-batches, handles that are kept and let go,
several backward passes, updates, gradients of everything, changes of weights, points to go back to, wrong calls. It is run with
autobatch and fusing off and no plans kept, and in other ways (fuzz_ways.py): strategies, threads, overlapped steps, each rewrite off. What differs is
made small and printed as Python. test_fuzzer.py runs a little of it.

A batch of programs runs in a process of its own: one that dies is a finding, too.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import fuzz_again
import fuzz_beside
import fuzz_calls
import fuzz_objects
import numpy as np
from fuzz_peer import INSTALLED, Peer
from fuzz_program import Program, repeated, source
from fuzz_sessions import generate
from fuzz_ways import WAYS, Finding, check

BATCH = 50
SESSIONS = {"again": fuzz_again, "calls": fuzz_calls, "objects": fuzz_objects, "beside": fuzz_beside}


def ways_of(seed: int, count: int) -> list[str]:
    return [str(way) for way in np.random.default_rng([seed, 3]).choice(list(WAYS), count, replace=False)]


def look_at(seed: int, program: Program, every: bool = False) -> Finding | None:
    """One program, in a few ways or in all. Of every third the graphs are made several times: plans that are kept are found."""
    if seed % 3 == 0:
        program = repeated(program)
    return check(program, seed, list(WAYS) if every else ways_of(seed, 4), keep_weights=bool(seed % 2))


def campaign(
    seeds: range, seconds: float = float("inf"), peer: bool = False, every: bool = False, sessions: str = ""
) -> tuple[list[Finding], int]:
    """What is found, and how many programs were run in the time."""
    found, done, end = [], 0, time.monotonic() + seconds
    with Peer() as other:
        for seed in seeds:
            if time.monotonic() > end:
                break
            if sessions:
                one = SESSIONS[sessions].check(seed)
            else:
                program = generate(seed, peer)
                one = other.check(program, seed) if peer else look_at(seed, program, every)
            found += [one] if one else []
            done += 1
    return found, done


def in_processes(first: int, count: int, extra: list[str]) -> int:
    """How many findings there were; they are printed."""
    found, seed = 0, first
    while seed < first + count:
        size = min(BATCH, first + count - seed)
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--seed",
            str(seed),
            "--programs",
            str(size),
            "--here",
            *extra,
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        print(done.stdout, end="", flush=True)
        found += done.returncode == 1
        if done.returncode not in (0, 1):
            print(f"# a process died with {done.returncode}: one of the seeds {seed} to {seed + size - 1}", flush=True)
            found += 1
        seed += size
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, default=1)
    parser.add_argument("--peer", action="store_true", help="against the real DyNet")
    parser.add_argument("--again", action="store_const", const="again", dest="sessions", default="",
                        help="sessions whose graphs are made again and again")  # fmt: skip
    parser.add_argument(
        "--calls",
        action="store_const",
        const="calls",
        dest="sessions",
        help="the same with cells and compiled functions",
    )
    parser.add_argument(
        "--objects",
        action="store_const",
        const="objects",
        dest="sessions",
        help="the same with methods, closures, weights and trainers that change",
    )
    parser.add_argument(
        "--beside",
        action="store_const",
        const="beside",
        dest="sessions",
        help="the same in several threads and processes",
    )
    parser.add_argument("--all", action="store_true", help="in every way")
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    parser.add_argument("--here", action="store_true", help="in this process")
    args = parser.parse_args()
    if args.peer and not INSTALLED:
        parser.error("DyNet (dyNET38) is not installed")
    seeds = range(args.seed, args.seed + args.programs)
    if args.show:
        for seed in seeds:
            program = SESSIONS[args.sessions].session(seed) if args.sessions else generate(seed, args.peer)
            print(source(program, f"seed {seed}"))
        return 0
    extra = [flag for flag, on in (("--peer", args.peer), ("--all", args.all)) if on]
    extra += [f"--{args.sessions}"] if args.sessions else []
    if args.programs > 1 and not args.here:
        found = in_processes(args.seed, args.programs, extra)
        print(f"{args.programs} programs, {found or 'no'} batches with findings")
        return found > 0
    findings, _ = campaign(seeds, peer=args.peer, every=args.all, sessions=args.sessions)
    for one in findings:
        print(one, flush=True)
    return len(findings) > 0


if __name__ == "__main__":
    sys.exit(main())
