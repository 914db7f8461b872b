#!/usr/bin/env python
"""How fast training on many ranks should be: a cost model over figures that two_ranks.py has measured.

    OPENBLAS_NUM_THREADS=1 mpiexec -n 2 python benchmarks/two_ranks.py --jsonl ranks.jsonl
    OPENBLAS_NUM_THREADS=1 mpiexec -n 4 python benchmarks/two_ranks.py --jsonl ranks.jsonl
    python benchmarks/ranks_model.py ranks.jsonl
    python benchmarks/ranks_model.py ranks.jsonl --latency 2 --bandwidth 10     # of another network, us and GB/s

All assumptions are printed, and all numbers that enter. The second table sets predictions beside what was measured, with
the latency and bandwidth of that machine.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from typing import Any

from side_by_side import table

from dynet_lite.distributed import deal

RANKS = [2**k for k in range(11)]
ASSUMPTIONS = """Assumptions
- A step is the graphs (building, running, backward) and the update. The graphs take as long as the dearest rank's
  share of the lengths in the mini-batch, dealt as Trainer deals them; the update is made by every rank and takes as
  long as that of one. Half the examples take half the time: in truth smaller batches and the handling of messages
  cost more ("without waiting" of two_ranks.py).
- Of a step and of an update the quickest chunk counts. A machine that others use makes steps longer, and then messages seem
  cheap beside them: with a step of 65 ms in the place of 12.5 ms, 1,024 ranks of the tagger would be about 570 times
  as fast as one, and not 200 times.
- A message costs latency a and bytes / bandwidth b. A header is gathered in log2 n rounds. A sum of s bytes takes 2
  log2 n a + 2 (n - 1) / n s / b (reduce-scatter, then gather). Rows of tables are gathered: log2 n a + (n - 1) r / b,
  where r are the bytes of a rank, in proportion to its examples.
- Up to four ranks of one machine add up in memory that they share: a and b as measured there are those of that memory, not
  of a network.
- Nothing is hidden behind the backward pass, or ("hidden") all buckets but the last are, as far as two thirds of the
  graphs' time last.
- Ranks on one machine beyond its cores take turns. Nobody else uses the machine or the network.
- "same batch": the mini-batch of the measurement is shared out. "same share": every rank has as many examples as one
  had.
"""


def share(m: dict[str, Any], n: int, same_batch: bool) -> float:
    """The dearest rank's part of the work, 1 being what one rank did in the measurement."""
    rng, parts = random.Random(1), []
    pool = [cost for costs in m["costs"] for cost in costs]
    for costs in m["costs"] if same_batch else m["costs"][:1]:
        costs = costs if same_batch or n == 1 else rng.choices(pool, k=n * m["batch"])
        parts.append(max(sum(part) for part in deal(costs, n, cost=float)) / sum(costs))
    return sum(parts) / len(parts) * (1 if same_batch else n)


def seconds(
    m: dict[str, Any], n: int, a: float, b: float, hidden: bool, same_batch: bool = True, cores: int = 0
) -> float:
    """Of a step on n ranks; a in seconds, b in bytes a second; cores: of the one machine that all are on, 0: as many as ranks."""
    crowd = max(1.0, n / cores) if cores else 1.0
    update = m["least"]["update"] / 1e3
    graphs = (m["least"]["one"] / 1e3 - update) * share(m, n, same_batch) * crowd
    if n == 1:
        return graphs + update
    rounds = math.ceil(math.log2(n))

    def total(size: float) -> float:
        return 2 * rounds * a + 2 * (n - 1) / n * size / b

    last = m["dense"] / m["buckets"]
    buckets = [last] * m["buckets"]
    behind = sum(map(total, buckets[1:])) if hidden else 0.0
    rows = m["rows"] * (m["size"] / n if same_batch else m["size"])
    talk = rounds * a + sum(map(total, buckets)) + rounds * a + (n - 1) * rows / b
    return graphs + update * crowd + talk - min(behind, 2 / 3 * graphs)


def measured_network(m: dict[str, Any]) -> tuple[float, float]:
    """Latency and bandwidth that explain the sums that were timed."""
    n = m["size"]
    a = m["latency"] / (2 * math.ceil(math.log2(n)))
    return a, 2 * (n - 1) / n * (4 << 20) / max(1e-9, m["sum of 4 MB"] - m["latency"])


def inputs(lines: list[dict[str, Any]]) -> str:
    """A table of the numbers that enter, and a warning where the machine was not free."""
    rows, busy = [], []
    for m in lines:
        a, b = measured_network(m)
        sizes = [f"{m[name] * times / 1e6:.2f}" for name, times in (("dense", 1), ("rows", m["size"]))]
        rows.append([f"`{m['task']}`", str(m["size"]), f"{m['least']['one']:.2f}", f"{m['least']['update']:.2f}", *sizes, str(m["buckets"]),
                     f"{a * 1e6:.1f}", f"{b / 1e9:.2f}", f"{m['x apart']:.2f}", f"{m['machine']['load']:.1f}"])  # fmt: skip
        most = min(m["size"], m["machine"]["cores"])
        if m["x apart"] < 0.9 * most:
            busy.append(
                f"{m['task']} with {m['size']} ranks: apart they made {m['x apart']:.2f} steps in the time of one, not {most}"
            )
    head = ["task", "ranks", "step, ms", "update, ms", "gradients, MB", "rows of a mini-batch, MB", "buckets", "a, us", "b, GB/s",
            "apart", "load"]  # fmt: skip
    warning = (
        "The machine was not free, so these predictions are worth little:\n" + "\n".join(busy) + "\n" if busy else ""
    )
    return f"What enters\n\n{table(head, rows)}\n{warning}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jsonl", help="what two_ranks.py wrote")
    parser.add_argument("--latency", type=float, default=0, help="us of a message (as measured)")
    parser.add_argument("--bandwidth", type=float, default=0, help="GB/s (as measured)")
    args = parser.parse_args()
    with open(args.jsonl, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    print(ASSUMPTIONS + "\n")
    print(inputs(lines))
    rows = []
    for m in lines:
        a, b = measured_network(m)
        cores = m["machine"]["cores"]
        one = seconds(m, 1, a, b, False)
        guesses = [one / seconds(m, m["size"], a, b, hidden, cores=cores) for hidden in (False, True)]
        rows.append([f"`{m['task']}`", str(m["size"]), *(f"{x:.2f}" for x in guesses), f"{m['x ranks']:.2f}",
                     "{:.2f} to {:.2f}".format(*m["quartiles ranks"])])  # fmt: skip
    print(table(["task", "ranks", "predicted", "hidden", "measured", "quartiles"], rows) + "\n")
    head = ["task", *map(str, RANKS)]
    for same_batch in (True, False):
        for hidden in (False, True):
            rows = []
            for m in (m for m in lines if m["size"] == lines[0]["size"]):
                a, b = measured_network(m)
                a, b = args.latency / 1e6 or a, args.bandwidth * 1e9 or b
                one = seconds(m, 1, a, b, hidden)
                ups = [one / seconds(m, n, a, b, hidden, same_batch) * (1 if same_batch else n) for n in RANKS]
                rows.append(
                    [f"`{m['task']}` (batch {m['batch']}, {m['dense'] / 1e6:.1f} MB)", *(f"{x:.3g}" for x in ups)]
                )
            print(
                f"Speed-up, same {'batch' if same_batch else 'share'}{', hidden' if hidden else ''}\n\n{table(head, rows)}\n"
            )


if __name__ == "__main__":
    main()
