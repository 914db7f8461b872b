"""Places for the boxes of a picture: columns from left to right, each sentence or tree in a band of its own.

A layered drawing in the manner of Sugiyama: columns by longest path, order inside a column by the mean place of the
neighbours, then heights that pull neighbours level. Joins (the sum of all losses) hold nothing together: what only they
join are parts, drawn one below the other. Pure: numbers in, places out.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence

JOIN = 6  # a node with more arguments than this is a join
SWEEPS = 6

Place = tuple[int, float]  # column, row


def layout(nodes: Sequence[int], arrows: Sequence[tuple[int, int]], joins: Collection[int] = ()) -> dict[int, Place]:
    """node -> (column, row). Rows are at least 1 apart inside a column. `nodes` ascend, and arrows go upwards but for those
    from nodes without arguments, which may stand anywhere.

    joins: nodes that hold nothing together, besides those with many arguments.
    """
    before: dict[int, list[int]] = {n: [] for n in nodes}
    after: dict[int, list[int]] = {n: [] for n in nodes}
    for a, b in arrows:
        before[b].append(a)
        after[a].append(b)
    joins = {n for n in nodes if len(before[n]) > JOIN or n in joins and before[n]}
    column = _columns(sorted(nodes, key=lambda n: bool(before[n])), before, after, joins)
    places: dict[int, Place] = {}
    top = 0.0
    for part in _parts([n for n in nodes if n not in joins], before, joins):
        rows = _rows(part, column, before, after, joins)
        least, most = min(rows.values()), max(rows.values())
        places.update({n: (column[n], top + row - least) for n, row in rows.items()})
        top += most - least + 1.5
    taken: dict[int, list[float]] = defaultdict(list)  # rows of each column, ascending
    for c, row in sorted(places.values()):
        taken[c].append(row)
    for n in sorted(joins):  # in the middle of what they join, below what is there
        row, others = sum(places[a][1] for a in before[n]) / len(before[n]), taken[column[n]]
        k = bisect_right(others, row - 1)
        while k < len(others) and others[k] < row + 1:  # too near
            row += math.ceil(2 * (others[k] + 1 - row)) / 2
            k += 1
        others.insert(k, row)
        places[n] = column[n], row
    return places


def _columns(
    nodes: Sequence[int], before: dict[int, list[int]], after: dict[int, list[int]], joins: set[int]
) -> dict[int, int]:
    """As early as the arguments allow; then as late as the consumers do, joins not counting."""
    column: dict[int, int] = {}
    for n in nodes:
        column[n] = max((column[a] + 1 for a in before[n]), default=0)
    for n in reversed(nodes):
        ends = [column[b] for b in after[n] if b not in joins]
        if ends and n not in joins:
            column[n] = min(ends) - 1
    first = min(column.values(), default=0)
    return {n: c - first for n, c in column.items()}


def _parts(nodes: Sequence[int], before: dict[int, list[int]], joins: set[int]) -> list[list[int]]:
    """Connected parts without the joins, in the order of their first nodes."""
    parent = {n: n for n in nodes}

    def find(n: int) -> int:
        while parent[n] != n:
            parent[n] = parent[parent[n]]
            n = parent[n]
        return n

    for n in nodes:
        for a in before[n]:
            if a not in joins:
                parent[find(n)] = find(a)
    parts: dict[int, list[int]] = defaultdict(list)
    for n in nodes:
        parts[find(n)].append(n)
    return sorted(parts.values(), key=lambda part: part[0])


def _rows(
    part: list[int], column: dict[int, int], before: dict[int, list[int]], after: dict[int, list[int]], joins: set[int]
) -> dict[int, float]:
    """A row for each node of a part."""
    columns: dict[int, list[int]] = defaultdict(list)
    for n in part:
        columns[column[n]].append(n)
    order = sorted(columns)
    row = {n: float(k) for members in columns.values() for k, n in enumerate(members)}

    def pull(n: int, sides: Sequence[dict[int, list[int]]]) -> float:
        near = [row[m] for side in sides for m in side[n] if m in row and m not in joins]
        return sum(near) / len(near) if near else row[n]

    for sweep in range(SWEEPS):
        for c in order if sweep % 2 == 0 else reversed(order):
            want = {n: pull(n, [before] if sweep % 2 == 0 else [after]) for n in columns[c]}
            columns[c].sort(key=lambda n: (want[n], n))
            _spread(columns[c], want, row)
    for _ in range(SWEEPS):
        for c in order:
            want = {n: pull(n, [before, after]) for n in columns[c]}
            _spread(columns[c], want, row)
    return row


def _spread(members: list[int], want: dict[int, float], row: dict[int, float]) -> None:
    """The order stays; each as near to its wish as the distance of 1 allows: neighbours that are too near move as a block."""
    blocks: list[tuple[list[int], float]] = []  # members, row of the first
    for n in members:
        blocks.append(([n], want[n]))
        while len(blocks) > 1 and blocks[-2][1] + len(blocks[-2][0]) > blocks[-1][1]:
            (left, at_left), (right, at_right) = blocks[-2:]
            # The mean of the wishes for the first one, of both blocks.
            at = (at_left * len(left) + (at_right - len(left)) * len(right)) / (len(left) + len(right))
            blocks[-2:] = [(left + right, at)]
    for block, at in blocks:
        for k, n in enumerate(block):
            row[n] = at + k
