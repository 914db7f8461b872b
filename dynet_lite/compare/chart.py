"""Small SVG charts for pages: lines over batch sizes, stacked bars. Colours of text follow the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

PALETTE = ("#c2410c", "#2563eb", "#15803d", "#a21caf", "#a16207", "#0e7490", "#6b7280", "#e11d48")
WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 14, 44

DASHED = "fewest possible"  # the line of what cannot be beaten

Series = tuple[str, Sequence[tuple[float, float]]]


def short(v: float) -> str:
    """Short: 1,200, 0.35, 12k."""
    for least, size, unit in ((999_500, 1e6, "M"), (10000, 1e3, "k")):
        if v >= least:
            return (f"{v / size:,.0f}" if v >= 100 * size else f"{v / size:.3g}") + unit
    return f"{v:,.0f}" if v >= 100 or v == int(v) else f"{v:.3g}"


def ticks(least: float, most: float) -> list[float]:
    """1, 2 and 5 times powers of ten (powers alone over a wide range) in [least, most]; where there is one at most, steps of
    equal size."""
    wide = most / least > 60
    found = [
        step * 10.0**power
        for power in range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        for step in ((1,) if wide else (1, 2, 5))
    ]
    found = [v for v in found if least <= v * 1.0001 and v <= most * 1.0001]
    if len(found) > 1:
        return found
    power = 10.0 ** math.floor(math.log10(most - least))
    step = power if most - least >= 2 * power else power / 2
    return [k * step for k in range(math.ceil(least / step), math.floor(most / step) + 1)]


def lines(series: Sequence[Series], across: str, up: str) -> str:
    """Lines over a logarithmic x axis (its marks are the x values) and a logarithmic y axis; every point has a title."""
    series = [(name, [(x, y) for x, y in points if y > 0]) for name, points in series]
    series = [(name, points) for name, points in series if points]
    if not series:
        return "<p>nothing to show</p>"
    xs = sorted({x for _, points in series for x, _ in points})
    ys = [y for _, points in series for _, y in points]
    low, high = min(ys) / 1.25, max(ys) * 1.25

    def at_x(x: float) -> float:
        share = math.log(x / xs[0]) / math.log(xs[-1] / xs[0]) if xs[-1] > xs[0] else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def at_y(y: float) -> float:
        return TOP + (1 - math.log(y / low) / math.log(high / low)) * (HEIGHT - TOP - BOTTOM)

    out = [_head(WIDTH, HEIGHT, f"{up} over {across}")]
    for y in ticks(low, high):
        out.append(f'<path class="grid" d="M{LEFT},{at_y(y):.1f} H{WIDTH - RIGHT}"/>'
                   f'<text class="end" x="{LEFT - 6}" y="{at_y(y) + 4:.1f}">{short(y)}</text>')  # fmt: skip
    for x in xs:
        out.append(f'<text class="middle" x="{at_x(x):.1f}" y="{HEIGHT - BOTTOM + 18}">{short(x)}</text>')
    out.append(f'<path class="axis" d="M{LEFT},{TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}"/>')
    out.append(f'<text class="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}">{escape(across)}</text>')
    out.append(
        f'<text class="middle" transform="translate(12 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)">{escape(up)}</text>'
    )
    ends = _apart([at_y(points[-1][1]) for _, points in series], 15, HEIGHT - BOTTOM)
    for k, (name, points) in enumerate(series):
        colour = PALETTE[k % len(PALETTE)]
        path = " ".join(f"{'M' if i == 0 else 'L'}{at_x(x):.1f},{at_y(y):.1f}" for i, (x, y) in enumerate(points))
        dashes = ' stroke-dasharray="5 4"' if name == DASHED else ""
        out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        for x, y in points:
            out.append(f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3.5" fill="{colour}">'
                       f"<title>{escape(name)}, {short(x)}: {short(y)}</title></circle>")  # fmt: skip
        out.append(
            f'<text x="{at_x(points[-1][0]) + 9:.1f}" y="{ends[k] + 4:.1f}" style="fill:{colour}">{escape(name)}</text>'
        )
    return "\n".join([*out, "</svg>"])


def _apart(wanted: list[float], distance: float, most: float) -> list[float]:
    """The same order, no two nearer than the distance, none beyond the most: places of labels."""
    order = sorted(range(len(wanted)), key=lambda k: wanted[k])
    out = list(wanted)
    for before, k in zip(order, order[1:], strict=False):
        out[k] = max(out[k], out[before] + distance)
    for k in reversed(order):
        out[k] = min(out[k], most)
        most = out[k] - distance
    return out


def bars(rows: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], unit: str) -> str:
    """A horizontal bar per row, made of parts; every piece has a title."""
    wide, high, left = 760, 22, 190
    most = max((sum(values) for _, values in rows), default=0.0) or 1.0
    height = high * len(rows) + 40
    out = [_head(wide, height, f"{', '.join(parts)} in {unit}")]
    x = float(left)
    for k, part in enumerate(parts):
        out.append(f'<rect x="{x:.0f}" y="6" width="11" height="11" fill="{PALETTE[k % len(PALETTE)]}"/>'
                   f'<text x="{x + 16:.0f}" y="16">{escape(part)}</text>')  # fmt: skip
        x += 34 + 7.5 * len(part)
    for r, (name, values) in enumerate(rows):
        y, x = 30 + r * high, float(left)
        out.append(f'<text class="end" x="{left - 8}" y="{y + 13}">{escape(name)}</text>')
        for k, (part, value) in enumerate(zip(parts, values, strict=True)):
            w = value / most * (wide - left - 70)
            if w > 0.05:
                out.append(f'<rect x="{x:.2f}" y="{y}" width="{w:.2f}" height="{high - 6}" fill="{PALETTE[k % len(PALETTE)]}">'
                           f"<title>{escape(name)}: {escape(part)} {short(value)} {unit}</title></rect>")  # fmt: skip
            x += w
        out.append(f'<text x="{x + 6:.1f}" y="{y + 13}">{short(sum(values))}</text>')
    return "\n".join([*out, "</svg>"])


def _head(width: int, height: int, about: str) -> str:
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(about)}">'
    )


STYLE = """
.chart { max-width: 100%; height: auto; }
.chart text { font: 12px system-ui, sans-serif; fill: currentColor; }
.chart .end { text-anchor: end; }
.chart .middle { text-anchor: middle; }
.chart .grid { stroke: var(--line); stroke-width: .7; }
.chart .axis { stroke: currentColor; fill: none; }
"""
