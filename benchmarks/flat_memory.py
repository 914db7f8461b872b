#!/usr/bin/env python
"""A stream over a file that is larger than one would read at once: how much memory it takes, and how fast it is.

    python benchmarks/flat_memory.py                        # makes a file of 2 GB, goes through it, removes it
    python benchmarks/flat_memory.py --gigabytes 0.1 --conllu

The file is made of random words. One pass counts the examples, one goes through the mini-batches of an epoch and parses
all of them, and one starts in the middle. Memory is what the process has at its highest, less what it had before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import tempfile
import time

from dynet_lite.text import Conllu, Plain, Stream

BATCH = 64


def lines(rng: random.Random, conllu: bool) -> str:
    """Some sentences of 5 to 34 words, as text of about a megabyte."""
    sentences = []
    for _ in range(400 if conllu else 7000):
        words = [f"word{min(rng.randrange(50000), rng.randrange(50000))}" for _ in range(rng.randrange(5, 35))]
        if conllu:
            rows = (f"{i}\t{w}\t{w}\tNOUN\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, w in enumerate(words, 1))
            sentences.append("".join(rows) + "\n")
        else:
            sentences.append(" ".join(words) + "\n")
    return "".join(sentences)


def make(path: str, size: int, conllu: bool) -> None:
    """A file of at least so many bytes."""
    rng = random.Random(1)
    blocks = [lines(rng, conllu).encode() for _ in range(20)]
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(rng.choice(blocks))


def highest() -> float:
    """MB that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--conllu", action="store_true", help="CoNLL-U instead of plain text")
    parser.add_argument("--window", type=int, default=200, help="mini-batches of 64 in memory")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        maker = multiprocessing.Process(target=make, args=(path, int(args.gigabytes * 1e9), args.conllu))
        maker.start()  # in a process of its own, so that its memory does not count
        maker.join()
        size = os.path.getsize(path) / 1e6
        print(f"{size:,.0f} MB, windows of {args.window} mini-batches of {BATCH}", flush=True)
        before = highest()
        stream = Stream([path], Conllu() if args.conllu else Plain(), batch=BATCH, window=args.window)
        start = time.perf_counter()
        count = len(stream)
        spent = time.perf_counter() - start
        print(
            f"counted: {count:,} sentences, {stream.words:,} words, {size / spent:,.0f} MB/s, +{highest() - before:.1f} MB",
            flush=True,
        )
        start, words, tenth = time.perf_counter(), 0, max(1, len(stream.batches(1)) // 10)
        for k, batch in enumerate(stream.batches(1), 1):
            words += sum(len(record.example()) for record in batch)
            if k % tenth == 0:
                print(f"  {k / tenth:.0f} of 10: +{highest() - before:.1f} MB", flush=True)
        spent = time.perf_counter() - start
        print(f"an epoch: {words:,} words, {size / spent:,.0f} MB/s, {count / spent:,.0f} sentences/s", flush=True)
        start = time.perf_counter()
        next(iter(stream.batches(1)[len(stream.batches(1)) // 2 :]))
        print(f"begun in the midst after {time.perf_counter() - start:.2f} s, +{highest() - before:.1f} MB")


if __name__ == "__main__":
    main()
