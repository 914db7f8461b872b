"""A comparison as text and as an HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from dynet_lite.viz.page import frame

from . import chart
from .measure import OFF, Comparison, Measurement

PHASES = ("python", "rewrite", "plan", "forward", "backward", "update")
COLUMNS = ("batch", "strategy", "threads", "{unit}/s", "x off", "batches", "fewest", "nodes/batch", "values", "gradients",
           "loss differs", "at most")  # fmt: skip


def _row(c: Comparison, m: Measurement) -> list[str]:
    """One line of the table, in the order of COLUMNS."""
    gain = c.gain(m)
    differs = ("-", "-") if m.agreement is None else tuple(f"{gap:.0e}" if gap else "0" for gap in m.agreement)
    return [
        str(m.way.batch), m.way.strategy, str(m.way.threads), f"{m.speed:,.0f}", f"{gain:.2f}" if gain else "-",
        f"{m.batches:,}", f"{m.lower_bound:,}" if m.lower_bound else "-", f"{m.mean_batch:.1f}",
        _megabytes(m.memory["values"]), _megabytes(m.memory["gradients"]), *differs,
    ]  # fmt: skip


def _megabytes(n: int) -> str:
    return f"{n / 1e6:,.2f} MB" if n < 1e8 else f"{n / 1e6:,.0f} MB"


def _columns(c: Comparison) -> list[str]:
    return [name.format(unit=c.unit) for name in COLUMNS]


def table(c: Comparison) -> str:
    """A line per way, then what the columns mean."""
    rows = [_columns(c), *(_row(c, m) for m in c.measurements)]
    width = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    lines = []
    last = None
    for row in rows:
        if last not in (None, "batch", row[0]):
            lines.append("")
        last = row[0]
        lines.append("  ".join(word.rjust(w) for word, w in zip(row, width, strict=True)).rstrip())
    return "\n".join([*lines, "", *c.notes, *MEANING])


# What the columns mean.
MEANING = (
    "fewest: the fewest batches that any schedule could have",
    "values, gradients: the largest memory of a mini-batch",
    "x off: times as fast as batching off on one thread",
    "loss differs: relative difference from batching off on one thread, in the first mini-batch; at most: in any mini-batch",
    "where batching off on one thread was not run, losses are compared with the first line of the same batch size",
)


# ---- the page --------------------------------------------------------------------------------------------------------

STYLE = (
    chart.STYLE
    + """
main { max-width: 74rem; margin: 0 auto; padding: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid var(--line); font-weight: 600; }
td.name, th.name { text-align: left; }
tr.first td { border-top: 1px solid var(--line); }
tr.best td { font-weight: 600; }
.side { display: flex; flex-wrap: wrap; gap: 1rem; }
.side > * { flex: 1 1 26rem; min-width: 0; }
.bar { display: inline-block; height: .7rem; background: #2563eb; vertical-align: baseline; }
.quiet { color: var(--quiet); }
select { font: inherit; padding: .1rem .3rem; }
"""
)

SCRIPT = """
const choice = document.getElementById('way'), body = document.getElementById('ops');
DATA.ways.forEach((w, i) => choice.add(new Option(w.name, i)));
choice.value = DATA.start;
choice.onchange = () => {
  const ops = DATA.ways[choice.value].ops, most = Math.max(...ops.map(o => o.share), 1e-9);
  body.replaceChildren(...ops.map(o => {
    const row = document.createElement('tr');
    for (const [k, text] of o.cells.entries()) {
      const cell = row.insertCell();
      cell.textContent = text;
      if (k === 0) cell.className = 'name';
    }
    const cell = row.insertCell(), bar = cell.appendChild(document.createElement('span'));
    cell.className = 'name';
    bar.className = 'bar';
    bar.style.width = 9 * o.share / most + 'rem';
    return row;
  }));
};
choice.onchange();
"""

OP_COLUMNS = ("op", "batches", "nodes", "nodes/batch", "largest", "forward ms", "backward ms", "share of time", "")


def page(c: Comparison) -> str:
    """The page: table, curves, where the time goes, and the ops of the way that is chosen."""
    title = f"{c.recipe}: automatic batching on and off"
    by_name = curves(c)
    speed: list[chart.Series] = [(name, [(m.way.batch, m.speed) for m in found]) for name, found in by_name.items()]
    least = min((m.way.threads for m in c.measurements), default=1)  # threads change the number of batches little
    batches: list[chart.Series] = [
        (name, [(m.way.batch, _per_example(m, m.batches)) for m in found])
        for name, found in by_name.items()
        if found[0].way.threads == least
    ]
    batches.append((chart.DASHED, bounds(c)))
    phases = [(f"batch {m.way.batch}, {m.way.name}", [_ms(m, m.phases[p]) for p in PHASES]) for m in c.measurements]
    start = max(range(len(c.measurements)), key=lambda k: c.measurements[k].speed, default=0)
    best = f"<p>{escape(_best(c))}</p>" if c.measurements else ""
    body = f"""<main>
<h1>{escape(title)}</h1>
<p class="quiet">{escape(c.data)}</p>
{best}
<div class="side"><figure style="margin:0"><h2>Speed</h2>{chart.lines(speed, "examples per mini-batch", c.unit + " per second")}</figure>
<figure style="margin:0"><h2>Batches</h2>{chart.lines(batches, "examples per mini-batch", "batches per example")}</figure></div>
<h2>All figures</h2><div class="wide">{_html_table(c)}</div>
<ul class="quiet">{"".join(f"<li>{escape(note)}</li>" for note in [*c.notes, *MEANING])}</ul>
<h2>Where the time goes</h2>
<p class="quiet">Milliseconds per 100 {escape(c.unit)} of training. python: building the graph and reading data. rewrite:
simplifying it. plan: choosing the batches.</p>
<div class="wide">{chart.bars(phases, PHASES, "ms")}</div>
<h2><label for="way">Ops of</label> <select id="way"></select></h2>
<div class="wide"><table><thead><tr>{"".join(f"<th{_left(k)}>{name}</th>" for k, name in enumerate(OP_COLUMNS))}</tr></thead>
<tbody id="ops"></tbody></table></div>
<p class="quiet">(formulas): elementwise ops that run as one. (affine maps): maps of the same inputs that run as one.
pickneglogsoftmax(scores): losses together with the products that make their scores.</p>
<p class="quiet">{escape(", ".join(f"{k}: {v}" for k, v in c.machine.items()))}</p>
</main>"""
    ways = [{"name": f"batch {m.way.batch}, {m.way.name}", "ops": _ops(m)} for m in c.measurements]
    return frame(title, body, STYLE, SCRIPT, {"ways": ways, "start": start})


def _left(column: int) -> str:
    return ' class="name"' if column == 0 else ""


def curves(c: Comparison) -> dict[str, list[Measurement]]:
    """Measurements by strategy and threads, batch sizes ascending: the lines of the charts."""
    out: dict[str, list[Measurement]] = {}
    for m in sorted(c.measurements, key=lambda m: m.way.batch):
        out.setdefault(m.way.name, []).append(m)
    return out


def _per_example(m: Measurement, n: float) -> float:
    return n / m.examples


def _ms(m: Measurement, seconds: float) -> float:
    return 1e5 * seconds / m.examples


def bounds(c: Comparison) -> list[tuple[float, float]]:
    """(batch size, the fewest batches per example that any schedule has)."""
    found: dict[int, float] = {}
    for m in c.measurements:
        if m.lower_bound and m.way.threads == 1:
            found.setdefault(m.way.batch, _per_example(m, m.lower_bound))
    return sorted(found.items())


def _best(c: Comparison) -> str:
    """The result in one sentence."""
    gains = [(gain, m) for m in c.measurements if m.way.strategy != OFF and (gain := c.gain(m))]
    if not gains:
        return ""
    gain, m = max(gains, key=lambda pair: pair[0])
    worst = max((o.agreement[0] for o in c.measurements if o.agreement), default=0.0)
    return (
        f"At {m.way.batch} example{'s' * (m.way.batch > 1)} per mini-batch, {m.way.name}: {gain:.1f} times as fast as with batching off. Losses of "
        f"the first mini-batch {f'differ by {worst:.0e} at most' if worst else 'are the same'}."
    )


def _html_table(c: Comparison) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in _columns(c))
    rows, last = [], None
    for m in c.measurements:
        fastest = m.speed == max(o.speed for o in c.measurements if o.way.batch == m.way.batch)
        marks = " ".join(name for name, on in (("first", m.way.batch != last), ("best", fastest)) if on)
        last = m.way.batch
        rows.append(f'<tr class="{marks}">' + "".join(f"<td>{escape(word)}</td>" for word in _row(c, m)) + "</tr>")
    return f'<table id="figures"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _ops(m: Measurement) -> list[dict[str, Any]]:
    total = sum(o["seconds"] for o in m.ops) or 1e-12
    out = []
    for o in m.ops:
        cells: Sequence[str] = (
            o["op"], f"{o['batches']:,}", f"{o['nodes']:,}", f"{o['mean_batch']:.1f}", f"{o['largest']:,}",
            f"{1e3 * o['forward']:.2f}", f"{1e3 * o['backward']:.2f}", f"{o['seconds'] / total:.1%}",
        )  # fmt: skip
        out.append({"cells": cells, "share": o["seconds"] / total})
    return out
